"""Invoices that are created and updated over the API."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.json import to_json
from support import factories
from support.client import Client
from support.console import Account
from support.importing import import_bytes
from support.pdf_files import text_pdf
from support.server import RunningServer, wait_until

Put = Callable[..., str]

LINE = {"service_item_number": "01_011_0107_1_1", "quantity": 2, "unit_price": 50.05, "total_price": 100.10}
OTHER_LINE = {"description": "Travel", "service_item_number": "01_799_0107_1_1", "total_price": 10}
INVOICE = {
    "invoice_number": "INV-1",
    "invoice_date": "2026-01-12",
    "due_date": "2026-02-12",
    "subtotal": 100.10,
    "tax": 0,
    "total": 100.10,
    "line_items": [LINE],
}
NUMBER, ABN = "430205409", "51824753556"


@pytest.fixture
def record_ids(api: Client) -> dict[str, str]:
    return {
        "participant": api.create("/participants", {"first_name": "Ann", "participant_number": NUMBER})["id"],
        "provider": api.create("/providers", {"entity_name": "Care", "abn": "51 824 753 556"})["id"],
    }


@pytest.fixture
def import_invoice(server: RunningServer, api: Client, record_ids: dict[str, str]) -> Put:
    return partial(factories.import_invoice, server, api, record_ids, subtotal=100.10, tax=0, total=100.10)


def lines_of(invoice: dict[str, Any]) -> list[tuple[str | None, bool]]:
    return [(each["description"] or each["service_item_number"], each["is_deleted"]) for each in invoice["line_items"]]


def test_an_invoice_is_created_with_its_lines(api: Client, record_ids: dict[str, str]) -> None:
    numbers = {"participant_number": "430 205-409", "provider_abn": ABN}
    response = api.post("/invoices", INVOICE | numbers | {"external_id": "X1", "payee": "participant"})
    assert response.status_code == 201, response.text
    made = response.json()
    assert response.headers["location"].endswith(f"/invoices/{made['id']}")
    assert made.pop("matched") == {"participant": "number", "provider": "number"}
    assert made == api.get(f"/invoices/{made['id']}").json()
    assert {name: made[name] for name in INVOICE if name != "line_items"} == {
        name: value for name, value in INVOICE.items() if name != "line_items"
    }
    assert (made["participant_id"], made["pm_provider_id"]) == (record_ids["participant"], record_ids["provider"])
    assert (made["claim_status"], made["approval_status"], made["is_reimbursement"]) == ("new", "not_required", True)
    assert made["received_at"] == made["created_at"]
    [line] = made["line_items"]
    assert line | LINE == line
    assert (line["gst_code"], line["claim_status"], line["invoice"]) == ("P2", "new", made["id"])
    assert api.get("/invoices", external_id="X1").json()["data"][0]["id"] == made["id"]


def test_line_items_replace_the_lines(api: Client) -> None:
    made = api.create("/invoices", INVOICE)
    [line] = made["line_items"]
    both = api.put(f"/invoices/{made['id']}", {"line_items": [OTHER_LINE, LINE]}).json()
    assert lines_of(both) == [(LINE["service_item_number"], False), ("Travel", False)]
    assert both["line_items"][0] == line
    changed = api.put(
        f"/invoices/{made['id']}", {"line_items": [{"id": both["line_items"][1]["id"], "description": "Bus"}]}
    ).json()
    assert lines_of(changed) == [(LINE["service_item_number"], True), ("Bus", False)]
    assert api.get(f"/invoices/{made['id']}").json()["line_items"] == changed["line_items"]
    # A client can send back what it has received, with read-only fields and deleted lines.
    again = api.put(f"/invoices/{made['id']}", changed)
    assert again.status_code == 200, again.text
    assert again.json() == changed
    cleared = api.put(f"/invoices/{made['id']}", {"line_items": []}).json()
    assert [each["is_deleted"] for each in cleared["line_items"]] == [True, True]


def test_errors_of_fields_are_all_reported(api: Client, record_ids: dict[str, str]) -> None:
    made = api.create("/invoices", INVOICE)
    deleted = api.create("/invoices", INVOICE | {"line_items": [LINE, OTHER_LINE]})
    deleted = api.put(f"/invoices/{deleted['id']}", {"line_items": [LINE]}).json()
    cases = [
        ({"participant_id": str(uuid4())}, {"participant_id": "not_found"}),
        ({"pm_provider_id": record_ids["participant"]}, {"pm_provider_id": "not_found"}),
        ({"assigned_to": str(uuid4())}, {"assigned_to": "not_found"}),
        (
            {"participant_id": record_ids["participant"], "participant_number": NUMBER},
            {"participant_number": "inconsistent"},
        ),
        ({"total": 100.101, "tax": 1e12}, {"total": "invalid_format", "tax": "too_large"}),
        (
            {"line_items": [{"total_price": 0.001}, {"id": str(uuid7())}, {"id": "x"}]},
            {"line_items[2].id": "invalid_format"},
        ),
        (
            {"line_items": [{"total_price": 0.001}, {"id": made["line_items"][0]["id"]}]},
            {"line_items[0].total_price": "invalid_format", "line_items[1].id": "not_found"},
        ),
        ({"line_items": [{"id": deleted["line_items"][0]["id"]}] * 2}, {"line_items[1].id": "duplicate"}),
        (
            {"line_items": [{"id": deleted["line_items"][1]["id"], "description": "Bus"}]},
            {"line_items[0].id": "inconsistent"},
        ),
        ({"claim_statu": "paid"}, {"claim_statu": "unknown"}),
    ]
    for change, expected in cases:
        response = api.put(f"/invoices/{deleted['id']}", change)
        assert response.status_code == 400, response.text
        assert {each["field"]: each["code"] for each in response.json()["errors"]} == expected


def codes_of(invoice: dict[str, Any]) -> list[str]:
    return invoice["state_management"]["errors"]


def event_types(api: Client, ident: str, count: int) -> list[str]:
    events = wait_until(
        lambda: data if len(data := api.get("/events", resource_id=ident).json()["data"]) >= count else None
    )
    return [each["type"] for each in events]


def test_a_number_of_several_records_leaves_the_reference_empty(api: Client, record_ids: dict[str, str]) -> None:
    twin = api.create("/participants", {"participant_number": "430 205 409"})["id"]
    other_provider = api.create("/providers", {"abn": ABN})["id"]
    made = api.create("/invoices", {"participant_number": NUMBER, "provider_abn": ABN})
    assert made["matched"] == {"participant": "several", "provider": "several"}
    assert (made["participant_id"], made["pm_provider_id"]) == (None, None)
    assert codes_of(made)[1:3] == ["several_participants", "several_providers"]
    path = f"/invoices/{made['id']}"
    kept = api.put(path, {"due_date": "2026-03-04"}).json()
    assert (kept["matched"], codes_of(kept)) == (made["matched"], codes_of(made))
    chosen = api.put(path, {"participant_id": twin, "pm_provider_id": other_provider}).json()
    assert chosen["matched"] == {"participant": "id", "provider": "id"}
    assert (chosen["ambiguous_participant_number"], chosen["ambiguous_provider_abn"]) == (None, None)
    assert not {"several_participants", "several_providers"} & {*codes_of(chosen)}
    unknown = api.put(path, {"participant_number": "430000000", "provider_abn": None}).json()
    assert unknown["matched"] == {"participant": "none", "provider": "none"}
    assert codes_of(unknown)[1:3] == ["missing_participant", "missing_provider"]
    assert api.delete(f"/participants/{twin}").status_code == 200
    found = api.put(path, {"participant_number": NUMBER}).json()
    assert (found["matched"]["participant"], found["participant_id"]) == ("number", record_ids["participant"])


def test_an_invoice_keeps_a_deleted_participant_that_is_sent_back(api: Client) -> None:
    person = api.create("/participants", {"participant_number": NUMBER})["id"]
    made = api.create("/invoices", {"participant_id": person})
    assert api.delete(f"/participants/{person}").status_code == 200
    kept = api.put(f"/invoices/{made['id']}", made | {"due_date": "2026-03-04"})
    assert (kept.status_code, kept.json()["participant_id"]) == (200, person)
    assert api.post("/invoices", {"participant_id": person}).status_code == 400


def test_records_of_another_plan_manager_are_as_if_they_did_not_exist(
    api: Client, other: Client, record_ids: dict[str, str], new_account: Callable[..., Account]
) -> None:
    foreign = other.create("/invoices", INVOICE | {"external_id": "X1"})
    account = new_account("owner", UUID(other.plan_manager_id))
    made = api.create("/invoices", INVOICE | {"external_id": "X1"})
    path = f"/invoices/{made['id']}"
    for field, value in (
        ("participant_id", other.create("/participants", {"participant_number": "430000001"})["id"]),
        ("pm_provider_id", other.create("/providers", {"abn": "11111111111"})["id"]),
        ("assigned_to", str(account.account_id)),
    ):
        [error] = api.put(path, {field: value}).json()["errors"]
        assert (error["field"], error["code"]) == (field, "not_found")
    [error] = api.put(path, {"line_items": [{"id": foreign["line_items"][0]["id"]}]}).json()["errors"]
    assert (error["field"], error["code"]) == ("line_items[0].id", "not_found")
    numbers = {"participant_number": "430000001", "provider_abn": "11111111111"}
    assert api.put(path, numbers).json()["matched"] == {"participant": "none", "provider": "none"}
    assert other.post("/invoices", {"participant_number": NUMBER}).json()["matched"]["participant"] == "none"
    [error] = api.post("/invoices/bulk", {"items": [{"id": foreign["id"]}]}).json()["errors"]
    assert (error["field"], error["code"]) == ("items[0].id", "not_found")
    changed = api.post("/invoices/bulk?match=external_id", {"items": [{"external_id": "X1", "total": 1}]})
    assert [each["id"] for each in changed.json()["data"]] == [made["id"]]
    foreign.pop("matched")
    assert other.get(f"/invoices/{foreign['id']}").json() == foreign


def test_a_locked_line_locks_its_invoice(api: Client, import_invoice: Put) -> None:
    paid = {"id": str(uuid7()), "claim_status": "paid", "total_price": 60}
    rejected = {"id": str(uuid7()), "claim_status": "rejected", "total_price": 40.10, "rejection_reason": "Late"}
    path = f"/invoices/{import_invoice(line_items=[paid, rejected], claim_status='paid')}"
    both = [{"id": paid["id"]}, {"id": rejected["id"]}]
    locked: list[dict[str, Any]] = [
        {"invoice_number": "INV-2"}, {"invoice_date": "2026-01-01"}, {"payee": "participant"}, {"total": 1},
        {"participant_id": None}, {"pm_provider_id": None}, {"subtotal": 1}, {"line_items": []},
        {"line_items": [both[0] | {"quantity": 3}, both[1]]},
        {"line_items": [*both, {"total_price": 5}], "subtotal": 104.10},
    ]  # fmt: skip
    before = api.get(path).json()
    for change in locked:
        response = api.put(path, change)
        assert (response.status_code, response.json()["error"]) == (409, "invoice_locked"), change
        assert response.json()["resource"] == {"kind": "invoice", "id": before["id"]}
        bulk = api.post("/invoices/bulk", {"items": [{}, change | {"id": before["id"]}]})
        assert (bulk.status_code, bulk.json()["resource"]["id"]) == (409, before["id"])
        assert bulk.json()["detail"] == f"items[1]: {response.json()['detail']}"
    assert api.get(path).json() == before
    assert api.get("/invoices").json()["pagination"]["total"] == 1
    # What a lock leaves writable. It leaves the state, too, which an import stores as the file says.
    writable = api.put(path, {"due_date": "2026-03-04", "external_id": "X1", "received_at": "2026-01-20T00:00:00Z"})
    assert (before["claim_status"], writable.json()["claim_status"]) == ("paid", "paid")
    corrected = api.put(
        path, {"line_items": [both[0], both[1] | {"total_price": 45.10}], "subtotal": 105.10, "total": 105.10}
    )
    assert corrected.status_code == 200, corrected.text
    assert [each["claim_status"] for each in corrected.json()["line_items"]] == ["paid", "new"]
    assert corrected.json()["line_items"][1]["rejection_reason"] == "Late"
    assert api.get("/invoices", line_claim_status="rejected").json()["data"] == []
    assert [each["id"] for each in api.get("/invoices", line_claim_status="paid,new").json()["data"]] == [before["id"]]


def test_states_cannot_be_written(api: Client, import_invoice: Put) -> None:
    line = {"id": str(uuid7()), "claim_status": "flagged"}
    path = f"/invoices/{import_invoice(line_items=[line], claim_status='flagged', approval_status='approved')}"
    before = api.get(path).json()
    states = {"claim_status": "paid", "approval_status": "pending", "held_at": None, "is_deleted": True}
    of_line = {"claim_status": "paid", "paid_amount": 5, "claim_number": "1", "payment_ref": "P", "is_deleted": True}
    unchanged = api.put(path, states | {"line_items": [of_line | {"id": line["id"]}]})
    assert unchanged.status_code == 200, unchanged.text
    assert {name: unchanged.json()[name] for name in before} == before
    work = {"due_date": "2026-03-04", "external_id": "X1", "received_at": "2026-01-20T00:00:00Z"}
    assigned = api.put(path, work).json()
    assert (assigned["claim_status"], assigned["approval_status"]) == ("flagged", "approved")
    changed = api.put(path, {"total": 99}).json()
    assert (changed["claim_status"], changed["approval_status"]) == ("new", "pending")
    assert api.get("/invoices", claim_status="new").json()["pagination"]["total"] == 1


def test_an_invoice_of_a_participant_who_approves_waits_for_approval(api: Client) -> None:
    person = api.create("/participants", {"approval_required": True, "participant_number": NUMBER})["id"]
    assert api.create("/invoices", {"participant_number": NUMBER})["approval_status"] == "pending"
    later = api.create("/invoices", INVOICE)
    assert later["approval_status"] == "not_required"
    assert api.put(f"/invoices/{later['id']}", {"participant_id": person}).json()["approval_status"] == "pending"


def test_an_assignment_is_an_event_of_its_own(api: Client, new_account: Callable[..., Account]) -> None:
    account = new_account("viewer", UUID(api.plan_manager_id))
    made = api.create("/invoices", INVOICE)
    assigned = api.put(f"/invoices/{made['id']}", {"assigned_to": str(account.account_id)}).json()
    assert assigned["assigned_to"] == str(account.account_id)
    assert api.put(f"/invoices/{made['id']}", {"assigned_to": str(account.account_id)}).json() == assigned
    api.put(f"/invoices/{made['id']}", {"assigned_to": None, "total": 5})
    assert event_types(api, made["id"], 3) == ["invoice.created", "invoice.assigned", "invoice.updated"]
    assert [each["id"] for each in api.get("/invoices", assigned_to=str(account.account_id)).json()["data"]] == []


def test_the_same_bulk_twice_changes_nothing(api: Client, record_ids: dict[str, str]) -> None:
    items = [
        INVOICE | {"external_id": f"X{number}", "participant_number": NUMBER, "line_items": [LINE, LINE, OTHER_LINE]}
        for number in range(3)
    ]
    path = "/invoices/bulk?match=external_id"
    first = api.post(path, {"items": items}).json()["data"]
    assert [each["is_duplicate"] for each in first] == [False] * 3  # without a provider
    assert api.post(path, {"items": items}).json()["data"] == first
    assert event_types(api, first[0]["id"], 1) == ["invoice.created"]
    changed = api.post(path, {"items": [each | {"provider_abn": ABN} for each in items]}).json()["data"]
    assert [each["is_duplicate"] for each in changed] == [False, True, True]
    assert [api.get(f"/invoices/{each['id']}").json()["is_duplicate"] for each in changed] == [False, True, True]


def test_a_changed_number_checks_the_invoices_with_the_old_and_the_new_one(
    api: Client, record_ids: dict[str, str]
) -> None:
    invoice = INVOICE | {"pm_provider_id": record_ids["provider"]}
    first, second, third = (api.create("/invoices", invoice) for _ in range(3))
    assert [each["is_duplicate"] for each in (first, second, third)] == [False, True, True]
    renumbered = api.put(f"/invoices/{first['id']}", {"invoice_number": "INV-2"}).json()
    shown = [api.get(f"/invoices/{each['id']}").json()["is_duplicate"] for each in (first, second, third)]
    assert (renumbered["is_duplicate"], shown) == (False, [False, False, True])
    api.put(f"/invoices/{second['id']}", {"invoice_number": "INV-2"})
    shown = [api.get(f"/invoices/{each['id']}").json()["is_duplicate"] for each in (first, second, third)]
    assert shown == [False, True, False]
    assert event_types(api, second["id"], 3) == ["invoice.created", "invoice.updated", "invoice.updated"]


def test_warnings_that_another_invoice_causes_leave_the_version(api: Client, record_ids: dict[str, str]) -> None:
    invoice = INVOICE | {"pm_provider_id": record_ids["provider"], "participant_id": record_ids["participant"]}
    first, second = (api.create("/invoices", invoice) for _ in range(2))
    path = f"/invoices/{second['id']}"
    api.request("PUT", f"{path}/document", content=text_pdf()).raise_for_status()
    before = api.get(path)
    api.put(f"/invoices/{first['id']}", {"invoice_number": "INV-2"}).raise_for_status()
    api.request("PUT", f"/invoices/{first['id']}/document", content=text_pdf()).raise_for_status()
    after = api.get(path)
    found = [each.json()["state_management"]["errors"] for each in (before, after)]
    assert found == [["possible_duplicate"], ["same_document"]]
    assert after.json()["updated_at"] == before.json()["updated_at"]
    response = api.put(path, {"due_date": "2026-03-01"}, headers={"If-Match": before.headers["etag"]})
    assert response.status_code == 200, response.text


def test_warnings_come_with_their_facts(api: Client, record_ids: dict[str, str]) -> None:
    invoice = INVOICE | {"pm_provider_id": record_ids["provider"], "participant_id": record_ids["participant"]}
    first = api.create("/invoices", invoice)
    wrong = LINE | {"total_price": 90, "service_item_number": None}
    made = api.create("/invoices?include=warnings", invoice | {"line_items": [LINE, wrong]})
    line_id = made["line_items"][1]["id"]
    facts = {(each["code"], each["line_id"]): each for each in made["warnings"]}
    assert set(facts) == {
        ("check_total", line_id), ("check_total", None), ("check_item_code", line_id), ("possible_duplicate", None),
    }  # fmt: skip
    assert facts["check_total", line_id] == {
        "code": "check_total", "level": "warn", "line_id": line_id, "expected": 100.10, "found": 90,
        "related_invoice_id": None, "message": "Line 2: 2 × $50.05 is $100.10, the invoice says $90.00.",
        "ignored": None,
    }  # fmt: skip
    assert facts["possible_duplicate", None]["related_invoice_id"] == first["id"]
    made.pop("matched")
    assert api.get(f"/invoices/{made['id']}", include="warnings").json() == made
    listed = api.get("/invoices", include="line_items,warnings").json()["data"]
    assert [each["code"] for each in listed[0]["warnings"]] == ["first_time_provider"]
    assert listed[1] == made
    updated = api.put(f"/invoices/{made['id']}?include=warnings", {"line_items": [LINE]}).json()
    assert [each["code"] for each in updated["warnings"]] == ["possible_duplicate"]
    [bulk] = api.post("/invoices/bulk?include=warnings", {"items": [{"id": made["id"]}]}).json()["data"]
    assert bulk == updated


def test_two_updates_of_one_version_never_both_succeed(api: Client) -> None:
    made = api.create("/invoices", INVOICE)
    path = f"/invoices/{made['id']}"
    for number in range(3):
        version = {"If-Match": api.get(path).headers["etag"]}
        with ThreadPoolExecutor(4) as pool:
            send = lambda total: api.put(path, {"total": total}, headers=version)  # noqa: E731, B023
            responses = list(pool.map(send, range(10 * number, 10 * number + 4)))
        statuses = sorted(each.status_code for each in responses)
        assert statuses == [200, 412, 412, 412]
    # Without a version, each is applied to the result of the others.
    with ThreadPoolExecutor(4) as pool:
        changes = [{"line_items": [LINE, OTHER_LINE]}, {"due_date": "2026-03-04"}, {"subtotal": 1}, {"tax": 2}]
        assert {each.status_code for each in pool.map(lambda change: api.put(path, change), changes)} == {200}
    after = api.get(path).json()
    assert (len(after["line_items"]), after["due_date"], after["subtotal"], after["tax"]) == (2, "2026-03-04", 1, 2)


def test_concurrent_requests_with_one_external_id_create_one_invoice(api: Client) -> None:
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda _: api.post("/invoices", INVOICE | {"external_id": "X1"}), range(6)))
        assert sorted(each.status_code for each in made) == [201, *[400] * 5]
        send = lambda _: api.post("/invoices/bulk?match=external_id", {"items": [INVOICE | {"external_id": "X2"}]})  # noqa: E731
        matched = list(pool.map(send, range(6)))
    assert {each.status_code for each in matched} == {200}
    assert len({each.json()["data"][0]["id"] for each in matched}) == 1
    assert api.get("/invoices").json()["pagination"]["total"] == 2


def test_concurrent_invoices_with_one_number_are_duplicates(api: Client, record_ids: dict[str, str]) -> None:
    invoice = INVOICE | {"pm_provider_id": record_ids["provider"]}
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda _: api.create("/invoices", invoice)["id"], range(6)))
    shown = [api.get(f"/invoices/{each}").json()["is_duplicate"] for each in made]
    assert sorted(shown) == [False, *[True] * 5]


def test_an_import_fills_the_paid_amount_and_finds_invoices_by_external_id(
    api: Client, server: RunningServer, import_rows: Callable[..., Any]
) -> None:
    lines: list[dict[str, Any]] = [
        {"claim_status": "paid", "total_price": 100, "gst_code": "P1"},
        {"claim_status": "payment_ready", "quantity": 2, "unit_price": 5, "total_price": 10, "paid_amount": 7},
        {"claim_status": "pending", "total_price": 5},
    ]
    made = api.create("/invoices", {"external_id": "X1"})
    content = to_json({"external_id": "X1", "line_items": lines}).encode()
    report = server.run(import_bytes(server, UUID(api.plan_manager_id), "invoices", content, match="external_id"))
    assert not report.errors
    shown = api.get(f"/invoices/{made['id']}").json()["line_items"]
    assert [each["paid_amount"] for each in shown] == [110, 7, None]
    for status in ("partially_paid", "partially_ready"):
        report = import_rows(api, "invoices", [{"line_items": [{"claim_status": status}]}])
        [error] = report.errors
        assert (error.field, error.message) == ("line_items[0].paid_amount", f"is required for a line that is {status}")


def test_all_errors_of_a_bulk_are_listed_also_beside_valid_lines(api: Client) -> None:
    unknown = "01a0d109-cab8-7b34-a51a-c81ee07c0e8e"
    item = {"invoice_date": "never", "participant_id": unknown, "line_items": [{"id": unknown, "quantity": 1.5}, {}]}
    items = [{"due_date": "2026-11-03", "total": 10, "received_at": "2026-11-03T10:00:00Z"}, item]
    errors = api.post("/invoices/bulk", {"items": items}).json()["errors"]
    assert [(each["field"], each["code"]) for each in errors] == [
        ("items[1].invoice_date", "invalid_format"),
        ("items[1].participant_id", "not_found"),
        ("items[1].line_items[0].id", "not_found"),
    ]
