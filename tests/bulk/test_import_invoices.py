"""Invoices in an import: their lines, what the checks find, what that changes for others of the same number."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from bulk.samples import (
    EARLY,
    FULL_INVOICE,
    INVOICE,
    ITEM,
    LINE,
    PERSON,
    Events,
    Import,
    Row,
    an_id,
    by_csv,
    by_json,
    clean,
    shown,
)
from support.client import Client

SOMEBODY = "017a5f00-0000-7000-8000-0000000000ff"

BARE: Row = {
    "invoice_number": None, "invoice_date": None, "total": None, "tax": None, "subtotal": None, "participant_id": None,
    "claim_status": "new", "approval_status": "not_required", "pm_provider_id": None, "s3_key": None,
    "email_message_id": None, "errors": True, "is_deleted": False, "wont_claim": False, "is_reimbursement": False,
    "is_duplicate": False,
    "state_management": {
        "errors": ["missing_invoice_number", "missing_participant", "missing_provider", "check_dates"],
        "ignored_errors": [],
    },
}  # fmt: skip


@pytest.fixture
def provider(api: Client) -> str:
    return api.made("/providers", {"entity_name": "Physio", "email": "p@example.com"})["id"]


def numbered(provider: str, number: str, created_at: str, **more: Any) -> Row:
    return {"id": an_id(), "invoice_number": number, "pm_provider_id": provider, "created_at": created_at} | more


def duplicates(client: Client) -> dict[str, bool]:
    found = {}
    for each in shown(client, "/invoices")["data"]:
        assert ("possible_duplicate" in each["state_management"]["errors"]) == each["is_duplicate"]
        found[each["id"]] = each["is_duplicate"]
    return found


@pytest.mark.parametrize("written", [by_json, by_csv])
def test_an_invoice_may_say_next_to_nothing(api: Client, taken: Import, written: Callable[[list[Row]], bytes]) -> None:
    clean(taken(api, "invoices", written([{"wont_claim": False, "line_items": [{}]}])), created=1)
    [listed] = shown(api, "/invoices")["data"]
    invoice = shown(api, f"/invoices/{listed['id']}")
    [line] = invoice.pop("line_items")
    assert invoice == listed
    codes = [*BARE["state_management"]["errors"], "check_item_code"]
    rest = {"id": invoice["id"], "created_at": invoice["created_at"], "plan_manager": api.plan_manager_id}
    assert invoice == BARE | rest | {"state_management": {"errors": codes, "ignored_errors": []}}
    empty = ("description", "service_item_number", "quantity", "unit_price", "total_price", "claim_batch_ref")
    assert line == {
        **dict.fromkeys((*empty, "claim_number", "payment_ref")), "id": line["id"], "invoice": invoice["id"],
        "claim_status": "new", "is_deleted": False, "created_at": line["created_at"],
    }  # fmt: skip


def test_what_a_file_says_of_the_findings_is_found_anew(api: Client, taken: Import) -> None:
    claimed = {"errors": False, "is_duplicate": True, "state_management": {"errors": ["check_total"]}}
    clean(taken(api, "invoices", [{"id": INVOICE, "plan_manager": api.plan_manager_id} | claimed]), created=1)
    invoice = shown(api, f"/invoices/{INVOICE}")
    assert {name: invoice[name] for name in claimed} == {name: BARE[name] for name in claimed}


def test_an_ignored_error_is_found_and_does_not_count(api: Client, taken: Import, told: Events) -> None:
    codes = BARE["state_management"]["errors"]
    ignored = {"state_management": {"ignored_errors": codes}}
    clean(taken(api, "invoices", by_csv([{"id": INVOICE} | ignored])), created=1)
    assert shown(api, f"/invoices/{INVOICE}")["errors"] is False
    clean(taken(api, "invoices", [{"id": INVOICE, "state_management": {}}]), unchanged=1)
    clean(taken(api, "invoices", [{"id": INVOICE, "state_management": {"ignored_errors": codes[1:]}}]), changed=1)
    after = shown(api, f"/invoices/{INVOICE}")
    assert (after["errors"], after["state_management"]) == (True, {"errors": codes, "ignored_errors": codes[1:]})
    [_, event] = told(api)
    assert json.loads(event.data or "") == after
    assert json.loads(event.previous or "") == {
        "errors": False, "state_management": {"errors": codes, "ignored_errors": codes},
    }  # fmt: skip


def test_lines_are_kept_in_order_and_replaced_as_a_whole(stocked: Client, taken: Import, told: Events) -> None:
    before = len(told(stocked))
    items = [ITEM | {"id": an_id(), "description": text} for text in ("c", "a", "b")]
    clean(taken(stocked, "invoices", [{"id": INVOICE, "line_items": items}]), changed=1)
    invoice = shown(stocked, f"/invoices/{INVOICE}")
    assert [line["description"] for line in invoice["line_items"]] == ["c", "a", "b"]
    assert invoice["state_management"]["errors"] == ["inactive_participant", "check_total"]
    [event] = told(stocked)[before:]
    assert set(json.loads(event.previous or "")) == {"line_items", "state_management", "errors"}
    clean(taken(stocked, "invoices", [{"id": INVOICE, "line_items": []}]), changed=1)
    assert shown(stocked, f"/invoices/{INVOICE}")["line_items"] == []
    assert shown(stocked, f"/invoices/{INVOICE}")["total"] == FULL_INVOICE["total"]


def test_a_known_line_that_does_not_say_when_it_was_made_is_as_old_as_it_was(
    stocked: Client, taken: Import, told: Events
) -> None:
    before = told(stocked)
    line = {name: value for name, value in ITEM.items() if name != "created_at"}
    clean(taken(stocked, "invoices", [{"id": INVOICE, "line_items": [line]}]), unchanged=1)
    assert told(stocked) == before
    new = {"id": an_id(), "line_items": [{"id": an_id()}]}
    clean(taken(stocked, "invoices", [new]), created=1)
    clean(taken(stocked, "invoices", [new]), unchanged=1)


def test_the_earliest_of_a_number_is_no_duplicate_whichever_comes_first(
    api: Client, taken: Import, told: Events, provider: str
) -> None:
    late = numbered(provider, "7", "2026-03-01T00:00:00Z")
    later = numbered(provider, "7", "2026-04-01T00:00:00Z")
    clean(taken(api, "invoices", [later, late]), created=2)
    assert duplicates(api) == {late["id"]: False, later["id"]: True}
    earliest = numbered(provider, "7", "2026-02-01T00:00:00Z")
    clean(taken(api, "invoices", [earliest]), created=1)
    assert duplicates(api) == {earliest["id"]: False, late["id"]: True, later["id"]: True}
    assert sorted((event.type, event.resource_id) for event in told(api) if event.type.startswith("invoice")) == [
        *sorted(("invoice.created", each["id"]) for each in (late, later, earliest)),
        ("invoice.updated", late["id"]),
    ]
    event = next(event for event in told(api) if event.type == "invoice.updated")
    assert set(json.loads(event.previous or "")) == {"is_duplicate", "state_management"}
    assert json.loads(event.data or "") == shown(api, f"/invoices/{late['id']}")


def test_the_others_of_a_number_are_checked_again_when_one_goes(api: Client, taken: Import, provider: str) -> None:
    first, second = (numbered(provider, "8", f"2026-0{month}-01T00:00:00Z") for month in (2, 3))
    clean(taken(api, "invoices", [first, second]), created=2)
    assert duplicates(api) == {first["id"]: False, second["id"]: True}
    clean(taken(api, "invoices", [{"id": first["id"], "is_deleted": True}]), changed=1)
    assert duplicates(api) == {first["id"]: False, second["id"]: False}
    clean(taken(api, "invoices", [{"id": first["id"], "is_deleted": False}]), changed=1)
    clean(taken(api, "invoices", [{"id": first["id"], "invoice_number": "9"}]), changed=1)
    assert duplicates(api) == {first["id"]: False, second["id"]: False}
    clean(taken(api, "invoices", [{"id": first["id"], "invoice_number": "8"}]), changed=1)
    assert duplicates(api) == {first["id"]: False, second["id"]: True}
    clean(taken(api, "invoices", [{"id": second["id"], "created_at": "2026-01-01T00:00:00Z"}]), changed=1)
    assert duplicates(api) == {first["id"]: True, second["id"]: False}


def test_one_number_of_two_providers_or_of_none_is_no_duplicate(api: Client, taken: Import, provider: str) -> None:
    other = api.made("/providers", {"entity_name": "Speech"})["id"]
    rows = [numbered(one, "1", EARLY) for one in (provider, other)]
    rows += [numbered(provider, " ", EARLY) for _ in range(2)] + [{"id": an_id(), "invoice_number": "1"} for _ in "ab"]
    clean(taken(api, "invoices", rows), created=6)
    assert set(duplicates(api).values()) == {False}


def test_the_checks_see_the_participant_the_dates_and_the_amounts(api: Client, taken: Import, provider: str) -> None:
    plan = {"plan_start_date": "2026-01-01", "plan_end_date": "2026-06-30"}
    person = api.made("/participants", plan | {"status": "Active"})["id"]
    good = {
        "participant_id": person, "invoice_date": "2026-06-30", "total": 16.5, "tax": 1.5, "subtotal": 15,
        "line_items": [ITEM | {"quantity": 0.15, "unit_price": 100, "total_price": 15}],
    }  # fmt: skip
    flaws: dict[str, Row] = {
        "check_dates": {"invoice_date": "2026-07-01"},
        "check_total": {"total": 16.49},
        "check_item_code": {"line_items": [good["line_items"][0] | {"service_item_number": "15_056_0128_1"}]},
        "missing_participant": {"participant_id": an_id()},
        "missing_provider": {"pm_provider_id": an_id()},
        "missing_invoice_number": {"invoice_number": ""},
    }
    rows = [good | numbered(provider, str(n), EARLY) | flaw for n, flaw in enumerate(flaws.values())]
    clean(taken(api, "invoices", [*rows, good | numbered(provider, "good", EARLY)]), created=7)
    found = [each["state_management"]["errors"] for each in shown(api, "/invoices", after="0")["data"]]
    assert found == [*([code] for code in flaws), []]


BAD_AMOUNT = "must be a number below 10^12 with at most 10 decimal places"


@pytest.mark.parametrize(
    "content,field,reason",
    [
        (f'{{"plan_manager": "{SOMEBODY}"}}', "plan_manager", "must be the plan manager of --plan-manager"),
        ('{"total": 1000000000000}', "total", BAD_AMOUNT),
        ('{"total": 1e999999999}', "total", BAD_AMOUNT),
        ('{"tax": 0.00000000001}', "tax", BAD_AMOUNT),
        ('{"total": "NaN"}', "total", BAD_AMOUNT),
        ('{"line_items": [{}, {"quantity": -1e12}]}', "line_items[1].quantity", BAD_AMOUNT),
        ('{"line_items": [{"description": 1}]}', "line_items[0].description", "must be a string or null, not"),
        ('{"line_items": null}', "line_items", "must be a list, not null"),
        (
            f'{{"id": "{INVOICE}", "line_items": [{{"invoice": "{PERSON}"}}]}}',
            "line_items[0].invoice", "must be the id of the invoice that it stands in",
        ),
        (
            f'{{"line_items": [{{"id": "{LINE}"}}, {{"id": "{LINE.upper()}"}}]}}',
            "line_items", "two lines have the same id",
        ),
    ],
)  # fmt: skip
def test_what_an_invoice_cannot_say_is_a_bad_line(
    api: Client, taken: Import, content: str, field: str, reason: str
) -> None:
    [bad] = taken(api, "invoices", content.encode()).errors
    assert (bad.line_number, bad.field) == (1, field)
    assert bad.message.startswith(reason)
    assert shown(api, "/invoices")["data"] == []


def test_amounts_are_exact(api: Client, taken: Import) -> None:
    amounts = ["999999999999.99", "-0.01", "0.0000000001", "10.10", "0", "1e2"]
    rows = "".join(f'{{"total": {amount}, "line_items": [{{"quantity": {amount}}}]}}\n' for amount in amounts)
    clean(taken(api, "invoices", rows.encode()), created=len(amounts))
    table = "total,line_items\n" + "".join(f'{amount},"[{{""quantity"":{amount}}}]"\n' for amount in amounts)
    clean(taken(api, "invoices", table.encode()), created=len(amounts))
    kept = ['"total":' + text + "," for text in ("999999999999.99", "-0.01", "1E-10", "10.10", "0", "100")]
    listed = api.get("/invoices", after="0").text
    assert [listed.count(text) for text in kept] == [2] * len(amounts)
