"""Fees of a month: who gets one, what the invoice has, and that each is made once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, LiteralString
from uuid import UUID

import httpx
import pytest

from plankeeper.database.client import Transaction
from plankeeper.resources.fees import store
from support.fees import FEE, FEE_ITEM, FIRST_DAY, LAST_DAY, MONTH, OWN_ABN, FeeOffice

REASONS = {
    "no_plan": "No plan was in force on a day of the month.",
    "already_made": "The fee of the month was made before.",
}


def reasons(found: dict[str, Any]) -> dict[str, str]:
    return {each["participant_id"]: each["reason"] for each in found["left_out"]}


def count_rows(office: FeeOffice) -> dict[str, int]:
    """The rows of the plan manager in the tables that a fee is written to."""
    tables: tuple[LiteralString, ...] = ("invoices", "invoice_lines", "fees", "events", "recheck_queue")
    statements = [f"select count(*) from {each} where plan_manager_id = $1" for each in tables]

    async def work() -> dict[str, int]:
        found = [await office.server.db.one(int, each, office.plan_manager_id) for each in statements]
        return dict(zip(tables, found, strict=True))

    return office.server.run(work())


def at_once(*requests: Callable[[], httpx.Response]) -> list[httpx.Response]:
    with ThreadPoolExecutor(len(requests)) as executor:
        return [each.result() for each in [executor.submit(request) for request in requests]]


def test_a_fee_is_an_invoice_of_the_office(office: FeeOffice) -> None:
    participant = office.managed()
    made = office.made()
    [fee] = made["fees"]
    expected = {"id": fee["id"], "participant_id": participant, "service_date": LAST_DAY.isoformat(), "amount": FEE}
    left_out = {"participant_id": office.participant, "reason": "no_plan", "message": REASONS["no_plan"]}
    assert made == {
        "month": MONTH, "count": 1, "total": FEE, "fees": [expected], "left_out": [left_out], "left_out_count": 1,
    }  # fmt: skip
    invoice = office.read(fee["id"])
    number = f"FEE-{MONTH}-{participant.replace('-', '')[-10:].upper()}"
    found = {name: invoice[name] for name in ("invoice_number", "pm_provider_id", "subtotal", "tax", "total", "payee")}
    assert found == {
        "invoice_number": number, "pm_provider_id": office.own_provider, "subtotal": FEE, "tax": 0, "total": FEE,
        "payee": "provider",
    }  # fmt: skip
    assert (invoice["claim_status"], invoice["approval_status"]) == ("new", "not_required")
    [line] = invoice["line_items"]
    assert (line["service_item_number"], line["quantity"], line["unit_price"], line["total_price"]) == (
        FEE_ITEM["Support Item Number"], 1, FEE, FEE,
    )  # fmt: skip
    assert (line["service_date_from"], line["service_date_to"]) == (LAST_DAY.isoformat(), LAST_DAY.isoformat())
    assert line["description"] == f"Plan management - monthly sample, {LAST_DAY:%B %Y}"
    listed = office.client.get("/fees", month=MONTH).json()["data"]
    record = {
        "id": fee["id"], "month": MONTH, "participant_id": participant, "invoice_number": number, "total": FEE,
        "claim_status": "new", "taken": 0, "created_at": listed[0]["created_at"],
        "updated_at": listed[0]["created_at"],
    }  # fmt: skip
    assert listed == [record]
    assert office.client.get("/fees").json()["data"] == [record]
    assert office.client.get("/fees", month="2020-01").json()["data"] == []


def test_twice_in_a_month_makes_nothing_new(office: FeeOffice) -> None:
    first, second = office.managed(), office.managed()
    assert office.made()["count"] == 2
    third = office.managed()
    again = office.made()
    assert [each["participant_id"] for each in again["fees"]] == [third]
    expected = {first: "already_made", second: "already_made", office.participant: "no_plan"}
    assert reasons(again) == expected
    last = office.made()
    assert (last["count"], last["total"], last["fees"], last["left_out_count"]) == (0, 0, [], 4)


def test_requests_at_the_same_time_make_each_fee_once(office: FeeOffice) -> None:
    people = [office.managed() for _ in range(8)]
    responses = at_once(*[office.make] * 4)
    assert [each.status_code for each in responses] == [201] * 4
    assert sorted(each.json()["count"] for each in responses) == [0, 0, 0, 8]
    assert sorted(each["participant_id"] for each in office.client.get("/fees").json()["data"]) == sorted(people)
    assert office.client.get("/invoices").json()["pagination"]["total"] == 8


def test_a_request_that_fails_in_its_last_part_stores_nothing(
    office: FeeOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The invoices, their lines and their events are written before the rows that make each fee unique."""
    office.managed()
    office.managed()
    insert = store.insert

    async def fail(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
        await insert(tx, plan_manager_id, records)
        assert await tx.one(int, "select count(*) from fees where plan_manager_id = $1", plan_manager_id) == 2
        raise RuntimeError("the fees can't be made")

    before = count_rows(office)
    monkeypatch.setattr(store, "insert", fail)
    assert office.make().status_code == 500
    assert count_rows(office) == before
    assert office.client.get("/fees").json()["data"] == []
    monkeypatch.undo()
    assert office.made()["count"] == 2
    after = count_rows(office)
    assert [after[each] - before[each] for each in ("invoices", "invoice_lines", "fees")] == [2, 2, 2]


def test_a_dry_run_stores_nothing(office: FeeOffice) -> None:
    participant = office.managed()
    response = office.make(dry_run=True)
    assert response.status_code == 200
    found = response.json()
    expected = {"id": None, "participant_id": participant, "service_date": LAST_DAY.isoformat(), "amount": FEE}
    assert (found["count"], found["total"], found["fees"]) == (1, FEE, [expected])
    assert office.client.get("/invoices").json()["data"] == office.client.get("/fees").json()["data"] == []


def test_participants_are_left_out_for_a_reason(office: FeeOffice) -> None:
    before = FIRST_DAY - timedelta(days=1)
    expected = {
        office.participant: "no_plan",
        office.managed(plan_end_date=before): "no_plan",
        office.managed(managed_from=LAST_DAY + timedelta(days=1)): "not_managed",
        office.managed(managed_until=before): "not_managed",
        office.managed(status="Lead"): "not_managed",
        office.managed(status="Inactive"): "inactive",
        office.managed(status="Inactive", date_ceased=before): "not_managed",
        office.managed(deceased_on=before): "deceased",
    }
    days = {
        office.managed(plan_end_date=FIRST_DAY): FIRST_DAY,
        office.managed(managed_until=FIRST_DAY + timedelta(days=9)): FIRST_DAY + timedelta(days=9),
        office.managed(status="Inactive", date_ceased=FIRST_DAY + timedelta(days=4)): FIRST_DAY + timedelta(days=4),
        office.managed(deceased_on=FIRST_DAY + timedelta(days=2)): FIRST_DAY + timedelta(days=2),
        office.managed(managed_from=LAST_DAY): LAST_DAY,
    }
    found = office.made()
    assert reasons(found) == expected
    assert {each["participant_id"]: date.fromisoformat(each["service_date"]) for each in found["fees"]} == days


def test_the_price_is_that_of_the_participants_place(office: FeeOffice) -> None:
    prices = {office.managed(remoteness="remote"): 146.23, office.managed(remoteness="very_remote"): 156.68}
    found = office.made()
    assert {each["participant_id"]: each["amount"] for each in found["fees"]} == prices
    assert found["total"] == float(Decimal("302.91"))


def test_without_the_item_in_the_catalogue_nobody_gets_a_fee(office: FeeOffice) -> None:
    office.set(fee_item_number="14_999_0127_8_3")
    participant = office.managed()
    assert reasons(office.made())[participant] == "not_in_catalogue"


def test_settings_are_required(office: FeeOffice) -> None:
    office.set(fee_item_number=None, fee_provider_id=None, abn=None)
    response = office.make(dry_run=True)
    assert response.status_code == 400
    fields = {each["field"]: each["code"] for each in response.json()["errors"]}
    assert fields == {"fee_item_number": "required", "fee_provider_id": "required", "abn": "required"}


def test_the_provider_has_the_abn_of_the_office(office: FeeOffice) -> None:
    office.client.put(f"/providers/{office.own_provider}", {"abn": "89000000019"}).raise_for_status()
    [error] = office.make().json()["errors"]
    assert (error["field"], error["code"]) == ("fee_provider_id", "inconsistent")


def test_a_month_that_has_not_ended_is_an_error(office: FeeOffice) -> None:
    for month, code in (("2099-01", "too_large"), ("2026-13", "invalid_format"), ("November", "invalid_format")):
        response = office.make(month)
        assert response.status_code == 400
        [error] = response.json()["errors"]
        assert (error["field"], error["code"]) == ("month", code)


def test_no_approval_is_asked(office: FeeOffice) -> None:
    participant = office.managed(approval_required=True)
    [fee] = office.made()["fees"]
    assert office.read(fee["id"])["approval_status"] == "not_required"
    body = {"participant_id": participant, "pm_provider_id": office.provider, "total": 10}
    assert office.client.create("/invoices", body)["approval_status"] == "pending"
    assert office.client.create("/invoices", body | {"pm_provider_id": office.own_provider})["approval_status"] == (
        "not_required"
    )


def test_a_fee_is_never_in_a_payment_run(office: FeeOffice) -> None:
    office.managed()
    [fee] = office.made()["fees"]
    office.claim_and_pay(fee["id"])
    office.set(abn=None)  # a fee stays one
    for each in (OWN_ABN, None):
        office.set(abn=each)
        found = office.post(fee["id"], dry_run=True).json()
        assert [line["reason"] for line in found["left_out"]] == ["own_fee"]
