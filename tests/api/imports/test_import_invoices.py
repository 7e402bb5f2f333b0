"""Invoices in an import: their lines, what the checks find, what that changes for others of the same number."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from support.client import Client
from support.import_samples import (
    CREATED_AT,
    FULL_INVOICE,
    INVOICE,
    ITEM,
    LINE,
    PERSON,
    Events,
    Import,
    Row,
    assert_imported,
    get_json,
    new_id,
    to_csv,
    to_json_lines,
)
from support.resources import times_of
from support.sweeps import sweep

UNKNOWN_ID = "017a5f00-0000-7000-8000-0000000000ff"

MINIMAL_INVOICE: Row = {
    "invoice_number": None, "invoice_date": None, "total": None, "tax": None, "subtotal": None, "participant_id": None,
    "claim_status": "new", "approval_status": "not_required", "pm_provider_id": None, "s3_key": None,
    "email_message_id": None, "errors": True, "is_deleted": False, "wont_claim": False, "is_reimbursement": False,
    "is_duplicate": False, "payee": "provider",
    **dict.fromkeys(("due_date", "assigned_to", "held_at", "held_by", "hold_reason", "cancelled_at")),
    **dict.fromkeys(("closing_reason", "external_id")),
    **dict.fromkeys(("approval_decided_at", "approval_decided_by", "approval_team_member_id", "approval_reason")),
    **dict.fromkeys(("ambiguous_participant_number", "ambiguous_provider_abn", "document")),
    "state_management": {
        "errors": ["missing_invoice_number", "missing_participant", "missing_provider", "check_dates"],
        "ignored_errors": [],
    },
}  # fmt: skip


@pytest.fixture
def provider(api: Client) -> str:
    return api.create("/providers", {"entity_name": "Physio", "email": "p@example.com", "abn": "51824753556"})["id"]


def invoice_row(provider: str, number: str, created_at: str, **more: Any) -> Row:
    return {"id": new_id(), "invoice_number": number, "pm_provider_id": provider, "created_at": created_at} | more


def duplicate_flags(client: Client) -> dict[str, bool]:
    flags = {}
    for each in get_json(client, "/invoices")["data"]:
        assert ("possible_duplicate" in each["state_management"]["errors"]) == each["is_duplicate"]
        flags[each["id"]] = each["is_duplicate"]
    return flags


@pytest.mark.parametrize("to_file", [to_json_lines, to_csv])
def test_an_invoice_needs_almost_no_fields(
    api: Client, import_content: Import, to_file: Callable[[list[Row]], bytes]
) -> None:
    assert_imported(import_content(api, "invoices", to_file([{"wont_claim": False, "line_items": [{}]}])), created=1)
    [listed] = get_json(api, "/invoices")["data"]
    invoice = get_json(api, f"/invoices/{listed['id']}")
    [line] = invoice.pop("line_items")
    assert invoice == listed
    codes = [*MINIMAL_INVOICE["state_management"]["errors"], "check_item_code"]
    rest = {"id": invoice["id"], "plan_manager": api.plan_manager_id, **times_of(invoice)}
    rest["received_at"] = invoice["created_at"]
    assert invoice == MINIMAL_INVOICE | rest | {"state_management": {"errors": codes, "ignored_errors": []}}
    assert line == dict.fromkeys(line) | {
        "id": line["id"], "invoice": invoice["id"], "claim_status": "new", "gst_code": "P2", "is_deleted": False,
        "created_at": line["created_at"], "has_payment": False, "is_rest_waiting": False,
    }  # fmt: skip


def test_warnings_in_a_file_are_recomputed(api: Client, import_content: Import) -> None:
    claimed = {"errors": False, "is_duplicate": True, "state_management": {"errors": ["check_total"]}}
    assert_imported(
        import_content(api, "invoices", [{"id": INVOICE, "plan_manager": api.plan_manager_id} | claimed]), created=1
    )
    invoice = get_json(api, f"/invoices/{INVOICE}")
    assert {name: invoice[name] for name in claimed} == {name: MINIMAL_INVOICE[name] for name in claimed}


def test_an_ignored_warning_is_detected_but_does_not_count(
    api: Client, import_content: Import, recorded_events: Events
) -> None:
    codes = MINIMAL_INVOICE["state_management"]["errors"]
    ignored = {"state_management": {"ignored_errors": codes}}
    assert_imported(import_content(api, "invoices", to_csv([{"id": INVOICE} | ignored])), created=1)
    assert get_json(api, f"/invoices/{INVOICE}")["errors"] is False
    assert_imported(import_content(api, "invoices", [{"id": INVOICE, "state_management": {}}]), unchanged=1)
    assert_imported(
        import_content(api, "invoices", [{"id": INVOICE, "state_management": {"ignored_errors": codes[1:]}}]), changed=1
    )
    after = get_json(api, f"/invoices/{INVOICE}")
    assert (after["errors"], after["state_management"]) == (True, {"errors": codes, "ignored_errors": codes[1:]})
    [_, event] = recorded_events(api)
    assert json.loads(event.data or "") == after
    assert json.loads(event.previous or "") == {
        "errors": False, "state_management": {"errors": codes, "ignored_errors": codes},
    }  # fmt: skip


def test_lines_keep_their_order_and_are_replaced_together(
    seeded_api: Client, import_content: Import, recorded_events: Events
) -> None:
    before = len(recorded_events(seeded_api))
    items = [ITEM | {"id": new_id(), "description": text} for text in ("c", "a", "b")]
    assert_imported(import_content(seeded_api, "invoices", [{"id": INVOICE, "line_items": items}]), changed=1)
    invoice = get_json(seeded_api, f"/invoices/{INVOICE}")
    assert [line["description"] for line in invoice["line_items"]] == ["c", "a", "b"]
    assert invoice["state_management"]["errors"] == [
        "inactive_participant", "inactive_provider", "check_total", "check_gst",
    ]  # fmt: skip
    [event] = recorded_events(seeded_api)[before:]
    assert set(json.loads(event.previous or "")) == {"line_items", "state_management", "errors"}
    assert_imported(import_content(seeded_api, "invoices", [{"id": INVOICE, "line_items": []}]), changed=1)
    assert get_json(seeded_api, f"/invoices/{INVOICE}")["line_items"] == []
    assert get_json(seeded_api, f"/invoices/{INVOICE}")["total"] == FULL_INVOICE["total"]


def test_an_existing_line_without_created_at_keeps_its_creation_time(
    seeded_api: Client, import_content: Import, recorded_events: Events
) -> None:
    before = recorded_events(seeded_api)
    line = {name: value for name, value in ITEM.items() if name != "created_at"}
    assert_imported(import_content(seeded_api, "invoices", [{"id": INVOICE, "line_items": [line]}]), unchanged=1)
    assert recorded_events(seeded_api) == before
    new = {"id": new_id(), "line_items": [{"id": new_id()}]}
    assert_imported(import_content(seeded_api, "invoices", [new]), created=1)
    assert_imported(import_content(seeded_api, "invoices", [new]), unchanged=1)


def test_the_earliest_invoice_with_a_number_is_no_duplicate_in_any_import_order(
    api: Client, import_content: Import, recorded_events: Events, provider: str
) -> None:
    late = invoice_row(provider, "7", "2026-03-01T00:00:00Z")
    later = invoice_row(provider, "7", "2026-04-01T00:00:00Z")
    assert_imported(import_content(api, "invoices", [later, late]), created=2)
    assert duplicate_flags(api) == {late["id"]: False, later["id"]: True}
    earliest = invoice_row(provider, "7", "2026-02-01T00:00:00Z")
    assert_imported(import_content(api, "invoices", [earliest]), created=1)
    assert duplicate_flags(api) == {earliest["id"]: False, late["id"]: True, later["id"]: True}
    assert sorted(
        (event.type, event.resource_id) for event in recorded_events(api) if event.type.startswith("invoice")
    ) == [
        *sorted(("invoice.created", each["id"]) for each in (late, later, earliest)),
        ("invoice.updated", late["id"]),
    ]
    event = next(event for event in recorded_events(api) if event.type == "invoice.updated")
    assert set(json.loads(event.previous or "")) == {"is_duplicate", "state_management"}
    assert json.loads(event.data or "") == get_json(api, f"/invoices/{late['id']}")


def test_other_invoices_with_the_number_are_rechecked_when_one_is_removed(
    api: Client, import_content: Import, provider: str
) -> None:
    first, second = (invoice_row(provider, "8", f"2026-0{month}-01T00:00:00Z") for month in (2, 3))
    assert_imported(import_content(api, "invoices", [first, second]), created=2)
    assert duplicate_flags(api) == {first["id"]: False, second["id"]: True}
    assert_imported(import_content(api, "invoices", [{"id": first["id"], "is_deleted": True}]), changed=1)
    assert duplicate_flags(api) == {first["id"]: False, second["id"]: False}
    assert_imported(import_content(api, "invoices", [{"id": first["id"], "is_deleted": False}]), changed=1)
    assert_imported(import_content(api, "invoices", [{"id": first["id"], "invoice_number": "9"}]), changed=1)
    assert duplicate_flags(api) == {first["id"]: False, second["id"]: False}
    assert_imported(import_content(api, "invoices", [{"id": first["id"], "invoice_number": "8"}]), changed=1)
    assert duplicate_flags(api) == {first["id"]: False, second["id"]: True}
    assert_imported(
        import_content(api, "invoices", [{"id": second["id"], "created_at": "2026-01-01T00:00:00Z"}]), changed=1
    )
    assert duplicate_flags(api) == {first["id"]: True, second["id"]: False}


def test_the_same_number_from_different_or_unknown_providers_is_no_duplicate(
    api: Client, import_content: Import, provider: str
) -> None:
    other = api.create("/providers", {"entity_name": "Speech"})["id"]
    rows = [invoice_row(one, "1", CREATED_AT) for one in (provider, other)]
    rows += [invoice_row(provider, " ", CREATED_AT) for _ in range(2)] + [
        {"id": new_id(), "invoice_number": "1"} for _ in "ab"
    ]
    assert_imported(import_content(api, "invoices", rows), created=6)
    assert set(duplicate_flags(api).values()) == {False}


def test_checks_cover_the_participant_the_dates_and_the_amounts(
    api: Client, import_content: Import, provider: str
) -> None:
    plan = {"plan_start_date": "2026-01-01", "plan_end_date": "2026-06-30"}
    person = api.create("/participants", plan | {"status": "Active"})["id"]
    good = {
        "participant_id": person, "invoice_date": "2026-06-30", "total": 16.5, "tax": 1.5, "subtotal": 15,
        "line_items": [ITEM | {"quantity": 0.15, "unit_price": 100, "total_price": 15}],
    }  # fmt: skip
    flaws: dict[str, Row] = {
        "check_dates": {"invoice_date": "2999-01-01"},
        "check_total": {"total": 16.49},
        "check_item_code": {"line_items": [good["line_items"][0] | {"service_item_number": "15_056_0128_1"}]},
        "missing_participant": {"participant_id": new_id()},
        "missing_provider": {"pm_provider_id": new_id()},
        "missing_invoice_number": {"invoice_number": ""},
    }
    rows = [good | invoice_row(provider, str(n), CREATED_AT) | flaw for n, flaw in enumerate(flaws.values())]
    for day, row in enumerate(rows, 1):  # so that no line is a duplicate of another one
        [line] = row["line_items"]
        row["line_items"] = [line | {"service_date_from": f"2026-05-{day:02}", "service_date_to": None}]
    assert_imported(
        import_content(api, "invoices", [*rows, good | invoice_row(provider, "good", CREATED_AT)]), created=7
    )
    found = [each["state_management"]["errors"] for each in get_json(api, "/invoices", after="0")["data"]]
    assert found == [*([code] for code in flaws), []]


INVALID_AMOUNT = "must be a number below 10^12 with at most 10 decimal places"


@sweep(
    "content,field,reason",
    [
        (
            f'{{"plan_manager": "{UNKNOWN_ID}"}}', "plan_manager",
            "must be the id of the plan manager that you import into",
        ),
        ('{"total": 1000000000000}', "total", INVALID_AMOUNT),
        ('{"total": 1e999999999}', "total", INVALID_AMOUNT),
        ('{"tax": 0.00000000001}', "tax", INVALID_AMOUNT),
        ('{"total": "NaN"}', "total", INVALID_AMOUNT),
        ('{"line_items": [{"quantity": "sNaN"}]}', "line_items[0].quantity", INVALID_AMOUNT),
        ('{"line_items": [{"paid_amount": "NaN"}]}', "line_items[0].paid_amount", INVALID_AMOUNT),
        ('{"line_items": [{}, {"quantity": -1e12}]}', "line_items[1].quantity", INVALID_AMOUNT),
        ('{"line_items": [{"description": 1}]}', "line_items[0].description", "must be a string or null, not"),
        ('{"line_items": null}', "line_items", "must be a list, not null"),
        (
            f'{{"id": "{INVOICE}", "line_items": [{{"invoice": "{PERSON}"}}]}}',
            "line_items[0].invoice", "must be the id of the invoice that contains it",
        ),
        (
            f'{{"line_items": [{{"id": "{LINE}"}}, {{"id": "{LINE.upper()}"}}]}}',
            "line_items", "must not contain two lines with the same id",
        ),
    ],
)  # fmt: skip
def test_an_invalid_invoice_is_a_line_error(
    api: Client, import_content: Import, content: str, field: str, reason: str
) -> None:
    [bad] = import_content(api, "invoices", content.encode()).errors
    assert (bad.line_number, bad.field) == (1, field)
    assert bad.message.startswith(reason)
    assert get_json(api, "/invoices")["data"] == []


def test_amounts_are_exact(api: Client, import_content: Import) -> None:
    amounts = ["999999999999.99", "-0.01", "0.0000000001", "10.10", "0", "1e2"]
    rows = "".join(f'{{"total": {amount}, "line_items": [{{"quantity": {amount}}}]}}\n' for amount in amounts)
    assert_imported(import_content(api, "invoices", rows.encode()), created=len(amounts))
    table = "total,line_items\n" + "".join(f'{amount},"[{{""quantity"":{amount}}}]"\n' for amount in amounts)
    assert_imported(import_content(api, "invoices", table.encode()), created=len(amounts))
    stored = ['"total":' + text + "," for text in ("999999999999.99", "-0.01", "1E-10", "10.10", "0", "100")]
    listed = api.get("/invoices", after="0").text
    assert [listed.count(text) for text in stored] == [2] * len(amounts)


def test_a_hold_and_a_cancellation_follow_the_imported_status(api: Client, import_content: Import) -> None:
    given = {"claim_status": "on_hold", "held_at": "2026-01-02T00:00:00Z", "hold_reason": "Late"}
    rows = [
        {"id": new_id(), "claim_status": "on_hold"},
        {"id": new_id()} | given,
        {"id": new_id(), "claim_status": "cancelled"},
    ]
    assert_imported(import_content(api, "invoices", rows), created=3)
    held, as_given, cancelled = (get_json(api, f"/invoices/{each['id']}") for each in rows)
    assert held["held_at"]
    assert {name: as_given[name] for name in given} == given
    assert (cancelled["cancelled_at"] is not None, cancelled["held_at"]) == (True, None)
    assert_imported(import_content(api, "invoices", rows), unchanged=3)
    released = [{"id": each["id"], "claim_status": "new"} for each in rows]
    assert_imported(import_content(api, "invoices", released), changed=3)
    for each in rows:
        shown = get_json(api, f"/invoices/{each['id']}")
        assert [shown[name] for name in ("held_at", "held_by", "hold_reason", "cancelled_at")] == [None] * 4


def test_a_reimbursement_is_paid_to_the_participant(api: Client, import_content: Import) -> None:
    row = {"id": new_id(), "payee": "participant"}
    assert_imported(import_content(api, "invoices", [row]), created=1)
    shown = get_json(api, f"/invoices/{row['id']}")
    assert (shown["payee"], shown["is_reimbursement"]) == ("participant", True)
    [error] = import_content(api, "invoices", [row | {"is_reimbursement": False}]).errors
    message = "must be participant if is_reimbursement is true, otherwise provider"
    assert (error.field, error.message) == ("payee", message)
