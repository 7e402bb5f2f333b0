"""Invoices over HTTP: imported values, results of the checks, and the status of an invoice."""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
import pytest
from uuid_utils.compat import uuid7

from support import factories
from support.client import PREFIX, Client
from support.resources import times_of
from support.server import RunningServer

Put = Callable[..., str]

FIELDS = [
    "id", "invoice_number", "invoice_date", "total", "tax", "subtotal", "plan_manager", "participant_id",
    "claim_status", "approval_status", "created_at", "pm_provider_id", "s3_key", "email_message_id", "errors",
    "state_management", "is_deleted", "wont_claim", "is_reimbursement", "is_duplicate",
    "payee", "received_at", "due_date", "assigned_to", "held_at", "held_by", "hold_reason", "cancelled_at",
    "closing_reason", "approval_decided_at", "approval_decided_by", "approval_team_member_id", "approval_reason",
    "external_id", "ambiguous_participant_number", "ambiguous_provider_abn", "document",
    "updated_at",
]  # fmt: skip
LINE_FIELDS = [
    "id", "invoice", "description", "service_item_number", "service_date_from", "service_date_to", "quantity",
    "unit_price", "total_price", "gst_code", "amount", "claim_type", "cancellation_reason", "component_id",
    "claim_status", "claim_batch_ref", "claim_number", "paid_amount", "rejection_reason", "payment_ref",
    "closing_reason", "open_claim_batch", "open_payment_run", "has_payment", "is_rest_waiting", "is_deleted",
    "created_at",
]  # fmt: skip
CLAIM_STATUSES = [
    "new", "flagged", "pending", "payment_ready", "partially_ready", "partially_paid", "paid", "rejected", "on_hold",
    "cancelled",
]  # fmt: skip
AMOUNTS = {"total": 110.11, "tax": 10.01, "subtotal": 100.10}
PROVIDER = {"entity_name": "Care", "email": "Billing@care.example", "abn": "51824753556"}
LINE = {
    "service_item_number": "01_011_0107_1_1", "quantity": 2, "unit_price": 50.05, "total_price": 100.10,
    "gst_code": "P1",
}  # fmt: skip


@pytest.fixture
def record_ids(api: Client) -> dict[str, str]:
    """An active participant with a plan, one who has left, and a provider."""
    plan = {"plan_start_date": "2025-07-01", "plan_end_date": "2026-06-30"}
    return {
        "participant": api.create("/participants", {"first_name": "Ann"} | plan)["id"],
        "left": api.create("/participants", {"first_name": "Bo", "status": "Inactive"} | plan)["id"],
        "lead": api.create("/participants", {"first_name": "Cy", "status": "Lead"} | plan)["id"],
        "provider": api.create(
            "/providers", {"entity_name": "Care", "email": "Billing@care.example", "abn": "51824753556"}
        )["id"],
    }


@pytest.fixture
def import_invoice(server: RunningServer, api: Client, record_ids: dict[str, str]) -> Put:
    """Imports an invoice without warnings, except for what the values cause: its id."""
    return partial(factories.import_invoice, server, api, record_ids, **AMOUNTS, line_items=[LINE])


def list_ids(api: Client, **filters: Any) -> list[str]:
    """The ids that a filter finds, in both modes, with the total that it states."""
    page = api.get("/invoices", **filters)
    assert page.status_code == 200, page.text
    assert api.get("/invoices", **filters, after="0").json()["data"] == page.json()["data"]
    ids = [each["id"] for each in page.json()["data"]]
    assert page.json()["pagination"]["total"] == len(ids)
    return ids


def warning_codes(api: Client, ident: str) -> list[str]:
    return api.get(f"/invoices/{ident}").json()["state_management"]["errors"]


def test_an_invoice_is_read_with_its_lines_and_listed_without(
    api: Client, record_ids: dict[str, str], import_invoice: Put
) -> None:
    line = LINE | {
        "id": str(uuid7()), "description": "Lawn mowing", "service_date_from": "2026-01-12",
        "service_date_to": "2026-01-13", "gst_code": "P1", "amount": 110.11, "claim_type": "CANC",
        "cancellation_reason": "NSDO", "component_id": str(uuid7()), "claim_status": "paid", "claim_batch_ref": "B1",
        "claim_number": "C1",
        "paid_amount": 110.11, "rejection_reason": "Late", "payment_ref": "P1", "closing_reason": None,
        "open_claim_batch": None, "open_payment_run": None, "has_payment": False, "is_rest_waiting": False,
        "is_deleted": False, "created_at": "2026-01-16T01:02:03.000004Z",
    }  # fmt: skip
    work: dict[str, Any] = {
        "payee": "participant", "received_at": "2026-01-15T23:00:00Z", "due_date": "2026-02-15",
        "assigned_to": str(uuid7()), "held_at": "2026-01-17T00:00:00Z", "held_by": "Ama Owusu", "hold_reason": "Late",
        "cancelled_at": None, "closing_reason": None, "external_id": "crm-1",
        "approval_decided_at": "2026-01-18T00:00:00Z", "approval_decided_by": "participant",
        "approval_team_member_id": None, "approval_reason": "By phone",
        "ambiguous_participant_number": "430205409", "ambiguous_provider_abn": "51824753556",
    }  # fmt: skip
    ident = import_invoice(
        **work, line_items=[line], claim_status="paid", approval_status="approved", created_at="2026-01-16T00:00:00Z",
        s3_key="a/b.pdf", email_message_id="<1@mail>", wont_claim=True, is_reimbursement=True, is_deleted=True,
    )  # fmt: skip
    expected = {
        "id": ident, "invoice_number": "INV-1", "invoice_date": "2026-01-15", "total": 110.11, "tax": 10.01,
        "subtotal": 100.10, "plan_manager": api.plan_manager_id, "participant_id": record_ids["participant"],
        "claim_status": "paid", "approval_status": "approved", "created_at": "2026-01-16T00:00:00Z",
        "pm_provider_id": record_ids["provider"], "s3_key": "a/b.pdf", "email_message_id": "<1@mail>", "errors": False,
        "state_management": {"errors": [], "ignored_errors": []}, "is_deleted": True, "wont_claim": True,
        "is_reimbursement": True, "is_duplicate": False, "document": None, **work,
    }  # fmt: skip
    response = api.get(f"/invoices/{ident}")
    expected |= times_of(response.json())
    assert (response.status_code, response.json()) == (200, expected | {"line_items": [line | {"invoice": ident}]})
    assert list(response.json()) == [*FIELDS, "line_items"]
    assert list(response.json()["line_items"][0]) == LINE_FIELDS
    meta = {"limit": 20, "offset": 0, "has_more": False, "total": 1, "next_cursor": None}
    assert api.get("/invoices").json() == {"data": [expected], "pagination": meta}


def test_every_field_is_present_when_no_value_is_known(api: Client, import_rows: Callable[..., Any]) -> None:
    ident, line = str(uuid7()), {"id": str(uuid7())}
    assert not import_rows(api, "invoices", [{"id": ident, "line_items": [line]}]).errors
    shown = api.get(f"/invoices/{ident}").json()
    warnings = ["missing_invoice_number", "missing_participant", "missing_provider", "check_dates", "check_item_code"]
    flags = dict.fromkeys(("is_deleted", "wont_claim", "is_reimbursement", "is_duplicate"), False)
    assert shown == dict.fromkeys(FIELDS) | flags | {
        "id": ident, "plan_manager": api.plan_manager_id, "claim_status": "new", "approval_status": "not_required",
        **times_of(shown), "errors": True, "payee": "provider", "received_at": shown["created_at"],
        "state_management": {"errors": warnings, "ignored_errors": []},
        "line_items": [
            dict.fromkeys(LINE_FIELDS)
            | {"id": line["id"], "invoice": ident, "claim_status": "new", "is_deleted": False, "gst_code": "P2"}
            | {"has_payment": False, "is_rest_waiting": False}
            | {"created_at": shown["line_items"][0]["created_at"]}
        ],
    }  # fmt: skip


def test_amounts_are_exact_numbers(api: Client, import_invoice: Put) -> None:
    amounts = {"total": "0.30", "tax": "0.1", "subtotal": "0.2000000001"}
    ident = import_invoice(**{name: Decimal(value) for name, value in amounts.items()})
    large = import_invoice(total=Decimal("999999999999.9999999999"), invoice_number="INV-2")
    read = msgspec.json.Decoder(float_hook=Decimal)
    shown = read.decode(api.http.get(f"{PREFIX}/invoices/{ident}", headers=api.headers()).content)
    assert {name: str(shown[name]) for name in amounts} == amounts
    shown = read.decode(api.http.get(f"{PREFIX}/invoices/{large}", headers=api.headers()).content)
    assert str(shown["total"]) == "999999999999.9999999999"


def test_lines_are_returned_in_order(api: Client, import_invoice: Put) -> None:
    lines = [LINE | {"id": str(uuid7()), "description": str(n)} for n in range(3)]
    ident = import_invoice(line_items=[lines[2], lines[0], lines[1]])
    assert [each["description"] for each in api.get(f"/invoices/{ident}").json()["line_items"]] == ["2", "0", "1"]


WARNINGS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "all is well": ([], {}),
    "a lead is no one who has left": ([], {"participant_id": "lead"}),
    "a blank number": (["missing_invoice_number"], {"invoice_number": "  "}),
    "no participant": (["missing_participant"], {"participant_id": None}),
    "an unknown participant": (["missing_participant"], {"participant_id": str(uuid7())}),
    "no provider": (["missing_provider"], {"pm_provider_id": None}),
    "an unknown provider": (["missing_provider"], {"pm_provider_id": str(uuid7())}),
    "a participant who has left": (["inactive_participant"], {"participant_id": "left"}),
    "a total that is not subtotal and tax": (["check_total"], {"total": 110.12}),
    "a subtotal that is not the sum": (["check_total", "check_gst"], {"line_items": [LINE, LINE]}),
    "a line that does not multiply": (["check_total"], {"line_items": [LINE | {"quantity": 3}]}),
    "before the plan": (["check_dates"], {"invoice_date": "2025-06-30"}),
    "after the plan": (["check_dates"], {"invoice_date": "2026-07-01"}),
    "in the future": (["check_dates"], {"invoice_date": "2999-01-01"}),
    "an item code that is none": (["check_item_code"], {"line_items": [LINE | {"service_item_number": "1_2_3"}]}),
    "no item code": (["check_item_code"], {"line_items": [LINE | {"service_item_number": None}]}),
    "a deleted line counts for nothing": ([], {"line_items": [LINE, {"total_price": 5, "is_deleted": True}]}),
    "two at once": (["missing_provider", "check_total"], {"pm_provider_id": None, "total": 1}),
}


@pytest.mark.parametrize("case", WARNINGS)
def test_an_invoice_is_checked_on_import(
    api: Client, record_ids: dict[str, str], import_invoice: Put, case: str
) -> None:
    expected, values = WARNINGS[case]
    ident = import_invoice(
        **values | ({"participant_id": record_ids[who]} if (who := values.get("participant_id")) in record_ids else {})
    )
    for shown in (api.get(f"/invoices/{ident}").json(), api.get("/invoices").json()["data"][0]):
        assert shown["state_management"] == {"errors": expected, "ignored_errors": []}
        assert (shown["errors"], shown["is_duplicate"]) == (bool(expected), False)


def test_warnings_in_a_file_are_ignored(api: Client, import_invoice: Put) -> None:
    ident = import_invoice(errors=True, is_duplicate=True, state_management={"errors": ["check_total"]})
    shown = api.get(f"/invoices/{ident}").json()
    assert (shown["errors"], shown["is_duplicate"], shown["state_management"]["errors"]) == (False, False, [])


def test_an_ignored_warning_is_kept_but_is_no_error(api: Client, import_invoice: Put) -> None:
    ignored = {"ignored_errors": ["check_total", "check_dates"]}
    some = import_invoice(total=1, state_management=ignored)
    more = import_invoice(total=1, pm_provider_id=None, state_management=ignored)
    for ident, errors in ((some, ["check_total"]), (more, ["missing_provider", "check_total"])):
        shown = api.get(f"/invoices/{ident}").json()
        assert shown["state_management"] == ignored | {"errors": errors}
        assert shown["errors"] == (ident == more)


def test_the_earliest_invoice_with_a_number_is_no_duplicate(
    api: Client, record_ids: dict[str, str], import_invoice: Put
) -> None:
    second = import_invoice(created_at="2026-02-02T00:00:00Z")
    third = import_invoice(created_at="2026-02-03T00:00:00Z")
    elsewhere = api.create("/providers", {"abn": "53004085616"})["id"]
    outsiders = [
        import_invoice(pm_provider_id=elsewhere),
        import_invoice(invoice_number="INV-2"),
        import_invoice(invoice_number="inv-1"),
    ]
    assert [warning_codes(api, each) for each in (second, third, *outsiders)] == [
        [],
        ["possible_duplicate"],
        [],
        [],
        [],
    ]
    first = import_invoice(created_at="2026-02-01T00:00:00Z", participant_id=record_ids["lead"])
    for ident, duplicate in ((first, False), (second, True), (third, True)):
        shown = api.get(f"/invoices/{ident}").json()
        assert (shown["is_duplicate"], shown["errors"]) == (duplicate, duplicate)
        assert shown["state_management"]["errors"] == (["possible_duplicate"] if duplicate else [])
    import_invoice(id=first, is_deleted=True, created_at="2026-02-01T00:00:00Z")
    assert [warning_codes(api, each) for each in (first, second, third)] == [[], [], ["possible_duplicate"]]


def test_deleted_invoices_are_listed(api: Client, import_invoice: Put) -> None:
    ids = [import_invoice(is_deleted=True), import_invoice(invoice_number="INV-2")]
    assert list_ids(api) == ids
    assert api.get(f"/invoices/{ids[0]}").json()["is_deleted"] is True


def test_the_filters_are_exact_and_combine_with_and(
    api: Client, record_ids: dict[str, str], import_invoice: Put
) -> None:
    elsewhere = api.create("/providers", {})["id"]
    a, b, c, d = (
        import_invoice(invoice_number="A", claim_status="paid", approval_status="approved"),
        import_invoice(invoice_number="A", participant_id=record_ids["left"], claim_status="paid"),
        import_invoice(invoice_number="B", pm_provider_id=elsewhere, approval_status="approved"),
        import_invoice(invoice_number=None, participant_id=None, pm_provider_id=None),
    )
    assert list_ids(api) == [a, b, c, d]
    assert list_ids(api, participant_id=record_ids["participant"].upper()) == [a, c]
    assert list_ids(api, provider_id=record_ids["provider"]) == [a, b]
    assert list_ids(api, claim_status="paid") == [a, b]
    assert list_ids(api, approval_status="approved") == [a, c]
    assert list_ids(api, invoice_number="A") == [a, b]
    assert list_ids(api, invoice_number="a") == []
    whole = {"participant_id": record_ids["participant"], "provider_id": record_ids["provider"], "claim_status": "paid"}
    whole |= {"approval_status": "approved", "invoice_number": "A", "updated_since": "2020-01-01T00:00:00Z"}
    assert list_ids(api, **whole) == [a]


@pytest.mark.parametrize("name, values", [
    ("claim_status", CLAIM_STATUSES),
    ("approval_status", ["not_required", "pending", "approved", "rejected"]),
])  # fmt: skip
def test_an_invoice_can_have_each_status(api: Client, import_invoice: Put, name: str, values: list[str]) -> None:
    ids = {value: import_invoice(**{name: value, "invoice_number": value}) for value in values}
    for value, ident in ids.items():
        assert list_ids(api, **{name: value}) == [ident]
        assert api.get(f"/invoices/{ident}").json()[name] == value
    for wrong in ("Paid", "unknown"):
        response = api.get("/invoices", **{name: wrong})
        assert [(each["field"], each["message"]) for each in response.json()["errors"]] == [
            (f"{name}[0]", f"must be one of {', '.join(values)}")
        ]
    some = list(ids)[:2]
    assert list_ids(api, **{name: ",".join(some)}) == [ids[each] for each in some]
    page = api.get("/invoices", **{name: ",".join(reversed(some))}, limit=1, sort="-id").json()
    assert ([each["id"] for each in page["data"]], page["pagination"]["total"]) == ([ids[some[1]]], 2)


def test_several_values_of_filters_combine_with_and(api: Client, import_invoice: Put) -> None:
    ids = [
        import_invoice(invoice_number=f"{claim}-{approval}", claim_status=claim, approval_status=approval)
        for claim in ("new", "paid", "rejected")
        for approval in ("pending", "approved")
    ]
    assert list_ids(api, claim_status="new,paid", approval_status="approved") == [ids[1], ids[3]]
    assert list_ids(api, claim_status="rejected", approval_status="approved,pending") == ids[4:]
    assert list_ids(api, claim_status="paid,new", approval_status="approved,pending", is_deleted="false") == ids[:4]
    for params, total in (
        ({"claim_status": "new,paid", "approval_status": "approved"}, 2),
        ({"claim_status": "new,paid,rejected"}, 6),
        ({"claim_status": "new,paid", "is_deleted": "false"}, 4),
    ):
        assert api.get("/invoices", **params).json()["pagination"]["total"] == total


def test_an_invalid_filter_is_reported(api: Client) -> None:
    for name in ("participant_id", "provider_id"):
        response = api.get("/invoices", **{name: uuid7().hex})
        assert [(each["field"], each["message"]) for each in response.json()["errors"]] == [
            (name, "must be a UUID with hyphens")
        ]
    for name in ("pm_provider_id", "errors"):
        response = api.get("/invoices", **{name: "true"})
        assert (response.status_code, [each["field"] for each in response.json()["errors"]]) == (400, [name])


def test_updated_since_includes_changed_invoices_and_not_those_with_other_warnings(
    api: Client, import_invoice: Put
) -> None:
    first, second, third = (
        import_invoice(invoice_number=name, created_at="2026-01-01T00:00:00Z") for name in ("A", "A", "B")
    )
    clock = api.post("/providers", {}).json()["created_at"]
    assert list_ids(api, updated_since=clock) == []
    import_invoice(id=first, invoice_number="C", created_at="2026-01-01T00:00:00Z")
    assert not api.get(f"/invoices/{second}").json()["is_duplicate"]  # any more, which is computed
    assert list_ids(api, updated_since=clock) == [first]
    assert list_ids(api) == [first, second, third]


def query_status(api: Client, email: Any = "Billing@care.example", number: Any = "INV-1") -> Any:
    return api.post("/invoices/status", {"provider_email": email, "invoice_number": number})


def test_the_status_query_finds_all_invoices_with_a_number_from_a_provider(
    api: Client, record_ids: dict[str, str], import_invoice: Put
) -> None:
    one = import_invoice(claim_status="paid")
    response = query_status(api, "billing@CARE.example")
    listed = {each["id"]: each for each in api.get("/invoices").json()["data"]}
    assert response.status_code == 200
    assert response.json() == {"success": True, "message": "1 invoice found.", "data": {"invoices": [listed[one]]}}
    namesake = api.create("/providers", {"email": "BILLING@care.example"})["id"]
    two = import_invoice(is_deleted=True, pm_provider_id=namesake)
    import_invoice(invoice_number="INV-2")
    import_invoice(pm_provider_id=api.create("/providers", {"email": "other@care.example"})["id"])
    listed = {each["id"]: each for each in api.get("/invoices").json()["data"]}
    assert query_status(api).json() == {
        "success": True, "message": "2 invoices found.", "data": {"invoices": [listed[one], listed[two]]},
    }  # fmt: skip


def test_the_status_query_finds_nothing_for_unknown_values(
    api: Client, other: Client, record_ids: dict[str, str], import_invoice: Put
) -> None:
    import_invoice()
    import_invoice(invoice_number="", pm_provider_id=api.create("/providers", {})["id"])
    for response in (
        query_status(api, number="inv-1"),
        query_status(api, number="INV"),
        query_status(api, "care.example"),
        query_status(api, ""),
        query_status(api, "%"),
        query_status(api, "", ""),
        query_status(other),
    ):
        assert (response.status_code, response.json()["error"]) == (404, "not_found")
    assert api.delete(f"/providers/{record_ids['provider']}").status_code == 200
    assert query_status(api).status_code == 404


def test_the_status_query_requires_exactly_both_fields(api: Client) -> None:
    responses = {
        "{}": api.post("/invoices/status", {}),
        "null": query_status(api, None, None),
        "long": query_status(api, "a" * 255, "1" * 256),
        "more": api.post("/invoices/status", {"provider_email": "a", "invoice_number": "1", "id": "1"}),
        "query": api.post("/invoices/status?limit=1", {"provider_email": "a", "invoice_number": "1"}),
    }
    assert {response.status_code for response in responses.values()} == {400}
    reported = {
        name: [(e["field"], e["message"]) for e in response.json()["errors"]] for name, response in responses.items()
    }
    both = ("provider_email", "invoice_number")
    assert reported["{}"] == [(name, "is required") for name in both]
    assert reported["null"] == [(name, "must be a string, not null") for name in both]
    assert reported["long"] == [
        ("provider_email", "must be at most 254 characters long"),
        ("invoice_number", "must be at most 255 characters long"),
    ]  # fmt: skip
    assert [field for field, _ in reported["more"]] == ["id"]
    assert reported["query"] == [("limit", "is unknown; no parameters are supported")]


def test_the_status_query_needs_only_the_read_scope(
    api: Client, new_client: Callable[..., Client], import_invoice: Put
) -> None:
    ident = import_invoice()
    reader = new_client(UUID(api.plan_manager_id), scopes=("read",))
    response = query_status(reader)
    assert (response.status_code, [each["id"] for each in response.json()["data"]["invoices"]]) == (200, [ident])


def test_invoices_cannot_be_deleted_over_http(api: Client, import_invoice: Put) -> None:
    one = f"/invoices/{import_invoice()}"
    before = api.get(one).json()
    response = api.request("DELETE", one)
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD, OPTIONS, PUT")
    assert api.get(one).json() == before


def test_a_list_includes_lines_on_request(api: Client, import_invoice: Put) -> None:
    for number in ("A", "B", "C"):
        import_invoice(invoice_number=number)
    plain = api.get("/invoices").json()["data"]
    assert plain
    assert not [each for each in plain if "line_items" in each]
    for filters in ({}, {"sort": "-total"}, {"claim_status": plain[0]["claim_status"]}, {"limit": 1}):
        page = api.get("/invoices", include="line_items", **filters).json()["data"]
        assert page == [api.get(f"/invoices/{each['id']}").json() for each in page]
        assert [each["id"] for each in page] == [each["id"] for each in api.get("/invoices", **filters).json()["data"]]
    rejected = api.get("/invoices", include="notes")
    assert rejected.json()["errors"][0] | {"message": ""} == {
        "field": "include[0]", "code": "not_allowed", "in": "query", "message": "",
        "allowed": ["line_items", "warnings"],
    }  # fmt: skip


def test_deleted_invoices_can_be_left_out(api: Client, import_invoice: Put) -> None:
    deleted = import_invoice(is_deleted=True, invoice_number="A")
    kept = [import_invoice(invoice_number="B", claim_status="paid"), import_invoice(invoice_number="C")]
    assert list_ids(api, is_deleted="false") == kept
    assert list_ids(api, is_deleted="true") == [deleted]
    assert list_ids(api, is_deleted="false", claim_status="paid") == kept[:1]
    assert list_ids(api, is_deleted="false", sort="-id") == kept[::-1]
    assert list_ids(api, is_deleted="false", include="line_items") == kept
    page = api.get("/invoices", is_deleted="false", limit=1, after="0").json()
    assert page["pagination"]["next_cursor"] == kept[0]
    assert [api.get("/invoices", is_deleted=each).json()["pagination"]["total"] for each in ("true", "false")] == [1, 2]
    assert api.get("/invoices", is_deleted="no").status_code == 400
