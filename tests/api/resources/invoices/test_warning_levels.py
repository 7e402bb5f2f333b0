"""Warnings that depend on other records, over HTTP: plans, budgets, the catalogue, other invoices, and levels."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.resources.invoices import recheck_store
from plankeeper.resources.invoices.rechecks import check_next
from plankeeper.resources.office_settings import service as office_settings
from support.client import Client
from support.rechecks import recheck_at_once
from support.server import RunningServer

LINE = {
    "service_item_number": "01_011_0107_1_1", "quantity": 2, "unit_price": 50, "total_price": 100,
    "service_date_from": "2026-03-02", "service_date_to": "2026-03-03",
}  # fmt: skip
Invoice = dict[str, Any]


@pytest.fixture
def records(api: Client) -> dict[str, str]:
    plan = {"plan_start_date": "2026-01-01", "plan_end_date": "2026-12-31", "state": "NSW"}
    return {
        "participant_id": api.create("/participants", plan)["id"],
        "pm_provider_id": api.create("/providers", {"entity_name": "Care", "abn": "51824753556"})["id"],
    }


@pytest.fixture
def create(api: Client, records: dict[str, str]) -> Callable[..., Invoice]:
    """Creates an invoice with one line, the fields of the line being those that an invoice doesn't have."""
    count = iter(range(1, 100))

    def send(**values: Any) -> Invoice:
        line = LINE | {name: values.pop(name) for name in [*values] if name in LINE}
        amount = line["total_price"]
        own: Invoice = {"invoice_number": f"N-{next(count)}", "invoice_date": "2026-03-05", "line_items": [line]}
        own |= {"subtotal": amount, "total": amount} | records | values
        return api.create("/invoices?include=warnings", own)

    return send


def codes(api: Client, invoice: Invoice) -> list[str]:
    """The warnings that it has now, with those that only inform."""
    found = api.get(f"/invoices/{invoice['id']}", include="warnings").json()["warnings"]
    return list(dict.fromkeys(each["code"] for each in found))


def test_a_line_on_two_invoices_is_found_on_both(api: Client, create: Callable[..., Invoice]) -> None:
    first, other_day = create(), create(service_date_from="2026-03-03")
    assert codes(api, first) == ["first_time_provider"]
    second = create()
    assert second["state_management"]["errors"] == ["line_duplicate"]
    assert (codes(api, first), codes(api, other_day)) == (["first_time_provider", "line_duplicate"], [])
    [warning] = second["warnings"]
    assert (warning["line_id"], warning["related_invoice_id"]) == (second["line_items"][0]["id"], first["id"])
    api.post(f"/invoices/{first['id']}/cancel", {"reason": "Billed twice"}).raise_for_status()
    assert "line_duplicate" not in codes(api, second)
    api.post(f"/invoices/{first['id']}/reopen", {}).raise_for_status()
    assert "line_duplicate" in codes(api, second)
    api.put(f"/invoices/{first['id']}", {"line_items": [LINE | {"quantity": 1, "total_price": 50}]})
    assert "line_duplicate" not in codes(api, second)


def test_a_line_is_a_duplicate_until_one_invoice_has_it(api: Client, create: Callable[..., Invoice]) -> None:
    invoices = [create() for _ in range(4)]
    for left in (3, 2, 1):
        cancelled = invoices.pop(0)
        api.post(f"/invoices/{cancelled['id']}/cancel", {"reason": "Billed again"}).raise_for_status()
        assert ["line_duplicate" in codes(api, each) for each in invoices] == [left > 1] * left


def test_lines_of_one_bulk_are_compared(api: Client, records: dict[str, str]) -> None:
    items = [records | {"invoice_number": number, "line_items": [LINE]} for number in ("A", "B")]
    saved = api.post("/invoices/bulk", {"items": items}).json()["data"]
    assert ["line_duplicate" in each["state_management"]["errors"] for each in saved] == [True, True]
    assert ["line_duplicate" in codes(api, each) for each in saved] == [True, True]
    single = api.create("/invoices", records | {"invoice_number": "C", "line_items": [LINE | {"quantity": 1}]})
    items = [{"id": each["id"], "line_items": [LINE | {"quantity": 1}]} for each in saved]
    api.post("/invoices/bulk", {"items": items}).raise_for_status()
    assert "line_duplicate" in codes(api, single)
    items = [{"id": each["id"], "line_items": [LINE]} for each in saved]
    api.post("/invoices/bulk", {"items": items}).raise_for_status()
    assert "line_duplicate" not in codes(api, single)


def test_two_records_of_one_provider_have_the_same_numbers(api: Client, create: Callable[..., Invoice]) -> None:
    twin = api.create("/providers", {"entity_name": "Care Pty Ltd", "abn": "51-824-753-556"})["id"]
    first = create(invoice_number="7", quantity=1, total_price=50)
    second = create(invoice_number="7", pm_provider_id=twin)
    assert "possible_duplicate" in second["state_management"]["errors"]
    api.post(f"/invoices/{first['id']}/cancel", {"reason": "Wrong"}).raise_for_status()
    assert "possible_duplicate" not in codes(api, second)


def test_a_warning_that_informs_is_found_and_sets_no_error(api: Client, create: Callable[..., Invoice]) -> None:
    first = create()
    assert (first["errors"], first["state_management"]) == (False, {"errors": [], "ignored_errors": []})
    assert [(each["code"], each["level"]) for each in first["warnings"]] == [("first_time_provider", "inform")]
    create(service_date_from="2026-03-03")
    found = api.get("/invoices", warning="first_time_provider").json()
    assert ([each["id"] for each in found["data"]], found["pagination"]["total"]) == ([first["id"]], 1)


def test_the_office_chooses_the_levels(server: RunningServer, api: Client, create: Callable[..., Invoice]) -> None:
    invoice = create(total=99)
    assert invoice["state_management"]["errors"] == ["check_total"]

    async def set_levels() -> bool:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM)
            levels: Any = {"check_total": "inform", "first_time_provider": "block"}
            return await office_settings.set_warnings(ctx, levels, duplicates_need_participant=True)

    assert server.run(set_levels())
    assert not server.run(set_levels())
    recheck_at_once(server)
    assert api.get(f"/invoices/{invoice['id']}").json()["state_management"]["errors"] == ["first_time_provider"]
    levels = {
        each["code"]: each["level"]
        for each in api.get(f"/invoices/{invoice['id']}", include="warnings").json()["warnings"]
    }
    assert levels == {"check_total": "inform", "first_time_provider": "block"}
    body = {"code": "first_time_provider", "reason": "Known"}
    assert api.post(f"/invoices/{invoice['id']}/ignore-warning", body).status_code == 403
    # The same number of another participant is no duplicate any more.
    other = api.create("/participants", {"plan_start_date": "2026-01-01", "plan_end_date": "2026-12-31"})["id"]
    again = create(invoice_number=invoice["invoice_number"], participant_id=other)
    assert "possible_duplicate" not in again["state_management"]["errors"]
    same = create(invoice_number=invoice["invoice_number"], service_date_from="2026-03-03")
    assert "possible_duplicate" in same["state_management"]["errors"]


def test_an_ignored_warning_opens_again_with_another_value(api: Client, create: Callable[..., Invoice]) -> None:
    invoice = create(total=99)
    path = f"/invoices/{invoice['id']}"
    api.post(f"{path}/ignore-warning", {"code": "check_total", "reason": "Rounded"}).raise_for_status()
    kept = api.put(path, {"due_date": "2026-04-01"}).json()
    assert (kept["errors"], kept["state_management"]["ignored_errors"]) == (False, ["check_total"])
    opened = api.put(path, {"total": 98}).json()
    assert (opened["errors"], opened["state_management"]) == (
        True, {"errors": ["check_total"], "ignored_errors": []},
    )  # fmt: skip
    assert api.get("/invoices", warning="check_total").json()["pagination"]["total"] == 1


def test_a_late_bill_after_a_renewal(api: Client, records: dict[str, str], create: Callable[..., Invoice]) -> None:
    renewed = {"start_date": "2027-01-01", "end_date": "2027-12-31"}
    api.create(f"/participants/{records['participant_id']}/plans", renewed)
    assert "check_dates" not in codes(api, create(service_date_from="2026-12-28", service_date_to="2026-12-29"))
    outside = create(service_date_from="2025-12-28", service_date_to="2025-12-28")
    assert "check_dates" in outside["state_management"]["errors"]


def test_a_line_beyond_the_budget_is_found_in_the_order_of_receipt(
    server: RunningServer, api: Client, records: dict[str, str], create: Callable[..., Invoice]
) -> None:
    path = f"/participants/{records['participant_id']}/plans"
    [plan] = api.get(path).json()["data"]
    core = {"name": "Core", "kind": "flexible", "categories": [1], "amount": 150}
    api.put(f"{path}/{plan['id']}", {"components": [core]}).raise_for_status()
    first, second = create(), create(service_date_from="2026-03-03")
    assert ("check_budget" in codes(api, first), "check_budget" in codes(api, second)) == (False, True)
    [fact] = [each for each in second["warnings"] if each["code"] == "check_budget"]
    assert (fact["expected"], fact["found"]) == (50, 100)
    assert fact["message"] == "Line 1 costs $100.00, and Core has $50.00 available."
    # What the first one frees is available to the second one, after the check in the background.
    api.post(f"/invoices/{first['id']}/cancel", {"reason": "Wrong"}).raise_for_status()
    recheck_at_once(server)
    assert api.get(f"/invoices/{second['id']}").json()["state_management"]["errors"] == []


def test_a_recheck_of_all_changes_nothing(server: RunningServer, api: Client, create: Callable[..., Invoice]) -> None:
    invoices = [create(), create(), create(total=99)]
    before = [api.get(f"/invoices/{each['id']}").json() for each in invoices]

    async def check_all() -> int:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM)
            return (await check_next(ctx, recheck_store.FIRST))[1]

    assert server.run(check_all()) == 0
    assert [api.get(f"/invoices/{each['id']}").json() for each in invoices] == before
