"""Imports leave lines alone that have a claim or a payment that was made here; imported results are confirmed."""

from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, Actor, WriteContext
from plankeeper.core.errors import DomainError
from plankeeper.events.recorder import record_event
from plankeeper.resources.claims import line_claims
from plankeeper.resources.invoices import store as invoice_store
from support.claims import Office
from support.client import Client
from support.console import create_account
from support.importing import import_records
from support.results import SubmittedBatch
from support.server import RunningServer

WRITABLE = (
    "id", "description", "service_item_number", "service_date_from", "service_date_to", "quantity", "unit_price",
    "total_price", "gst_code", "claim_status", "claim_batch_ref", "claim_number", "paid_amount", "rejection_reason",
    "created_at",
)  # fmt: skip


@pytest.fixture
def office(server: RunningServer, api: Client) -> Office:
    return Office(server, api)


def import_row(office: Office, **row: Any) -> list[tuple[str, str]]:
    report = office.server.run(import_records(office.server, office.plan_manager_id, "invoices", [row]))
    return [(each.field, each.message) for each in report.errors]


def lines_of(invoice: dict[str, Any]) -> list[dict[str, Any]]:
    return [{name: each[name] for name in WRITABLE} for each in invoice["line_items"]]


def test_an_import_does_not_change_a_claimed_line(office: Office) -> None:
    batch = SubmittedBatch(office, office.invoice("A1", office.line(), office.line(service_date_from="2026-01-14")))
    batch.apply(batch.paid(0))
    invoice = office.read(batch.invoices[0])
    lines = lines_of(invoice)
    assert import_row(office, id=invoice["id"], line_items=lines) == []
    assert office.read(invoice) == invoice
    changed = [lines[0] | {"description": "Other"}, lines[1]]
    message = f"line 1 is payment ready and was claimed in claim batch {batch.number}, so it can't be changed"
    assert import_row(office, id=invoice["id"], line_items=changed) == [("line_items", message)]
    message = f"line 2 is in claim batch {batch.number}, so it can't be deleted"
    assert import_row(office, id=invoice["id"], line_items=lines[:1]) == [("line_items", message)]
    [(field, message)] = import_row(office, id=invoice["id"], invoice_number="Other")
    assert (field, "can't be changed: invoice_number" in message) == ("invoice_number", True)
    assert [field for field, _ in import_row(office, id=invoice["id"], is_deleted=True)] == ["is_deleted"]
    assert [field for field, _ in import_row(office, id=invoice["id"], claim_status="paid")] == ["claim_status"]
    assert import_row(office, id=invoice["id"], due_date="2026-12-01") == []
    assert office.read(invoice)["line_items"] == invoice["line_items"]


def test_an_import_does_not_correct_the_invoice_of_a_rejected_line(office: Office) -> None:
    batch = SubmittedBatch(office, office.invoice("A1"))
    batch.apply(batch.rejected(0))
    id_, other = batch.invoices[0]["id"], office.provider_with(entity_name="Birch Care", abn="53004085616")
    message = (
        f"can't be changed, because line 1 is rejected and was claimed in claim batch {batch.number}: correct the"
        " invoice in the console or over the API"
    )
    assert import_row(office, id=id_, pm_provider_id=other) == [("pm_provider_id", message)]
    assert import_row(office, id=id_, due_date="2026-12-01") == []


def test_an_import_does_not_change_a_line_with_an_adjustment(office: Office) -> None:
    id_, line_id = str(uuid7()), str(uuid7())
    line = office.line(id=line_id, claim_status="partially_ready", paid_amount=200)
    other = office.line(id=str(uuid7()), service_date_from="2026-01-14")
    row = office.values("I1", line, other, id=id_, claim_status="partially_ready")
    assert import_row(office, **row) == []
    reversal = {"line_id": line_id, "kind": "agency_reversal", "amount": 50, "date": "2026-02-01"}
    office.client.create(f"/invoices/{id_}/adjustments", reversal)
    reason = "line 1 is partially ready and has an adjustment, so it can't be"
    assert import_row(office, **row) == [("line_items", f"{reason} changed")]
    assert import_row(office, id=id_, line_items=[other]) == [("line_items", f"{reason} deleted")]
    invoice = office.read({"id": id_})
    assert import_row(office, id=id_, line_items=lines_of(invoice)) == []
    assert office.read(invoice) == invoice
    assert confirm(office, id_, line_id) == ""


def test_an_import_changes_what_an_import_has_stored(office: Office) -> None:
    id_, line = str(uuid7()), office.line(id=str(uuid7()), claim_status="paid")
    assert import_row(office, **office.values("I1", line, id=id_, claim_status="paid")) == []
    again = office.values("I1", line | {"claim_status": "rejected"}, id=id_, claim_status="rejected")
    assert import_row(office, **again) == []
    assert office.read({"id": id_})["claim_status"] == "rejected"


@pytest.mark.parametrize("status", ["new", "flagged", "on_hold", "rejected", "cancelled"])
def test_a_line_that_can_be_claimed_has_no_paid_amount(office: Office, status: str) -> None:
    message = f"must be empty or 0 for a line that is {status}: the agency has paid nothing for it"
    row = office.values("I1", office.line(claim_status=status, paid_amount=1))
    assert import_row(office, **row) == [("line_items[0].paid_amount", message)]
    assert import_row(office, **office.values("I1", office.line(claim_status=status, paid_amount=0))) == []
    negative = office.values("I2", office.line(claim_status="payment_ready", paid_amount=-1))
    assert import_row(office, **negative) == [("line_items[0].paid_amount", "must be 0 or more")]


def test_a_part_of_a_cent_is_neither_imported_as_paid_nor_confirmed(office: Office) -> None:
    id_, line_id = str(uuid7()), str(uuid7())
    line = office.line(id=line_id, total_price=12.345, claim_status="payment_ready")
    message = "must be a number below 10^12 with at most 2 decimal places"
    row = office.values("I1", line | {"paid_amount": 12.345}, id=id_, claim_status="payment_ready")
    assert import_row(office, **row) == [("line_items[0].paid_amount", message)]
    assert import_row(office, **office.values("I1", line, id=id_, claim_status="payment_ready")) == []
    assert office.read({"id": id_})["line_items"][0]["paid_amount"] == 12.35
    office.execute("update invoice_lines set paid_amount = 12.345 where plan_manager_id = $1", office.plan_manager_id)
    detail = "Line 1 has a paid amount with a part of a cent, 12.345: import it again."
    assert confirm(office, id_, line_id) == detail


def test_a_paid_line_without_a_paid_amount_gets_its_price(office: Office) -> None:
    id_, line = str(uuid7()), {"quantity": 2, "unit_price": 50, "gst_code": "P1", "claim_status": "paid"}
    assert import_row(office, id=id_, claim_status="paid", line_items=[line, line | {"total_price": 90}]) == []
    assert [each["paid_amount"] for each in office.read({"id": id_})["line_items"]] == [110, 99]


def test_lines_of_two_invoices_can_have_the_same_id(office: Office) -> None:
    first, second = ({"id": str(uuid7())} for _ in range(2))
    line = office.line(id=str(uuid7()))
    rows = [office.values(number, line, **each) for number, each in (("I1", first), ("I2", second))]
    office.import_rows("invoices", *rows)
    batch = office.batch(first)
    office.import_rows("invoices", rows[1])
    lines = [office.read(each)["line_items"][0] for each in (first, second)]
    assert [each["open_claim_batch"] for each in lines] == [batch["number"], None]
    third = {"id": str(uuid7())}
    office.import_rows("invoices", office.values("I2", office.line(), **second), office.values("I3", line, **third))
    assert line["id"] not in {each["id"] for each in office.read(second)["line_items"]}


def confirm(office: Office, invoice_id: str, line_id: str, actor: Actor = SYSTEM) -> str:
    """The detail of the error, or an empty text."""

    async def work() -> None:
        async with office.server.db.transaction() as tx:
            ctx = WriteContext(tx, office.plan_manager_id, office.server.settings, actor)
            await line_claims.confirm_result(ctx, UUID(invoice_id), UUID(line_id))

    try:
        office.server.run(work())
    except DomainError as error:
        return error.detail or error.code
    return ""


def test_a_reversal_before_the_confirmation_counts_once(office: Office) -> None:
    id_, line_id = str(uuid7()), str(uuid7())
    line = office.line(id=line_id, claim_status="payment_ready")
    assert import_row(office, **office.values("I1", line, id=id_, claim_status="payment_ready")) == []
    reversal = {"line_id": line_id, "kind": "agency_reversal", "amount": 90.99, "date": "2026-02-01"}
    office.client.create(f"/invoices/{id_}/adjustments", reversal)
    assert confirm(office, id_, line_id) == ""
    statement = "select paid::float8 from claims where plan_manager_id = $1"
    assert office.server.run(office.server.db.rows(float, statement, office.plan_manager_id)) == [290.99]
    assert office.read({"id": id_})["line_items"][0]["paid_amount"] == 200


@pytest.mark.parametrize("reversed_amount", [290.99, 90.99])
def test_an_imported_result_is_not_replaced_after_a_reversal(office: Office, reversed_amount: float) -> None:
    id_, line_id = str(uuid7()), str(uuid7())
    line = office.line(id=line_id, claim_status="payment_ready")
    assert import_row(office, **office.values("I1", line, id=id_, claim_status="payment_ready")) == []
    reversal = {"line_id": line_id, "kind": "agency_reversal", "amount": reversed_amount, "date": "2026-02-01"}
    office.client.create(f"/invoices/{id_}/adjustments", reversal)
    if reversed_amount < 290.99:
        assert confirm(office, id_, line_id) == ""
    invoice = office.read({"id": id_})
    body = {"outcome": "rejected", "replaces_result": True}
    response = office.client.post(f"/invoices/{id_}/lines/{line_id}/claim-result", body)
    assert (response.status_code, response.json().get("error")) == (409, "invalid_transition")
    assert office.read(invoice) == invoice


def test_what_was_paid_elsewhere_is_recovered_also_beside_a_rest_that_was_claimed_here(office: Office) -> None:
    id_, line_id = str(uuid7()), str(uuid7())
    line = office.line(id=line_id, claim_status="partially_paid", paid_amount=200)
    assert import_row(office, **office.values("I1", line, id=id_, claim_status="partially_paid")) == []
    office.client.create(f"/invoices/{id_}/lines/{line_id}/claim-rest", {})
    batch = SubmittedBatch(office, {"id": id_})
    assert batch.claims[0]["amount"] == 90.99
    batch.apply(batch.paid(0))
    reversal = {"line_id": line_id, "kind": "agency_reversal", "amount": 100, "date": "2026-02-01"}
    office.client.create(f"/invoices/{id_}/adjustments", reversal)
    # Of 290.99, the payee has 200, and may keep 190.99.
    [found] = office.client.get("/recoveries").json()["data"]
    assert (found["to_recover"], found["to_repay"]) == (9.01, 9.01)


@pytest.mark.parametrize("end", ["rejected", "cancelled"])
def test_a_part_that_was_paid_elsewhere_stays_paid_without_its_rest(office: Office, end: str) -> None:
    id_, line_id = str(uuid7()), str(uuid7())
    line = office.line(id=line_id, claim_status="partially_paid", paid_amount=200)
    assert import_row(office, **office.values("I1", line, id=id_, claim_status="partially_paid")) == []
    office.client.create(f"/invoices/{id_}/lines/{line_id}/claim-rest", {})
    batch = SubmittedBatch(office, {"id": id_})
    if end == "rejected":
        batch.apply(batch.rejected(0))
    else:
        office.client.create(f"/claim-batches/{batch.id}/cancel", {"uploaded": False, "reason": "Wrong"})
    assert (batch.line(0)["claim_status"], batch.line(0)["paid_amount"]) == ("partially_paid", 200)


def test_more_than_the_line_costs_is_not_confirmed(office: Office) -> None:
    id_, line_id = str(uuid7()), str(uuid7())
    line = office.line(id=line_id, claim_status="payment_ready", paid_amount=291)
    assert import_row(office, **office.values("I1", line, id=id_, claim_status="payment_ready")) == []
    detail = "Line 1 costs 290.99, and the agency can't have paid 291.00 for it: import it again."
    assert confirm(office, id_, line_id) == detail


async def record_import(office: Office, account_id: str, invoice_id: str) -> None:
    """The event of an import of an invoice by an account."""
    async with office.server.db.transaction() as tx:
        actor = Actor("user", account_id, "Robin")
        ctx = WriteContext(tx, office.plan_manager_id, office.server.settings, actor, import_id=uuid7())
        invoice = await invoice_store.get(tx, office.plan_manager_id, UUID(invoice_id))
        await record_event(ctx, "invoice.updated", None, invoice)


def test_an_imported_result_is_confirmed_by_another_person(office: Office) -> None:
    id_, line_id = str(uuid7()), str(uuid7())
    line = office.line(id=line_id, claim_status="partially_ready", paid_amount=200)
    assert import_row(office, **office.values("I1", line, id=id_, claim_status="partially_ready")) == []
    importer, other = str(uuid7()), str(uuid7())
    office.server.run(record_import(office, importer, id_))

    assert confirm(office, id_, line_id, Actor("user", importer, "Robin")) == (
        "Line 1 was imported by you, so another person must confirm its amount."
    )
    assert confirm(office, id_, line_id, Actor("user", other, "Kim")) == ""
    assert confirm(office, id_, line_id) == "Line 1 has a claim, so its result is known."
    statement = "select json_build_object('a', source, 'b', state, 'c', paid)::text from claims where line_id = $1"
    found = office.server.run(office.server.db.rows(str, statement, UUID(line_id)))  # pyright: ignore[reportArgumentType]
    assert found == ['{"a" : "imported", "b" : "partially_paid", "c" : 200}']


@pytest.mark.parametrize(
    "status", ["pending", "payment_ready", "partially_ready", "partially_paid", "paid", "cancelled"]
)
def test_the_lines_of_an_invoice_that_was_imported_as_claimed_or_closed_are_not_claimed(
    office: Office, status: str
) -> None:
    """Its lines have no states of their own."""
    id_ = str(uuid7())
    assert import_row(office, **office.values("OLD", id=id_, claim_status=status)) == []
    other = office.invoice("NEW", office.line(service_date_from="2026-01-14"))
    before, words = office.read({"id": id_}), status.replace("_", " ")
    tried = office.claim(before, params={"dry_run": "true"}).json()
    [left_out] = tried["left_out"]
    expected = ("state", f"Line 1 is on an invoice that was imported as {words}.")
    assert (tried["lines"], left_out["reason"], left_out["message"]) == (0, *expected)
    batch = office.batch()
    assert (batch["lines"], batch["left_out_count"]) == (1, 0)
    claims = office.client.get(f"/claim-batches/{batch['id']}/lines").json()["data"]
    assert [each["invoice_id"] for each in claims] == [other["id"]]
    assert office.read(before) == before
    response = office.client.post(f"/invoices/{id_}/claimed-elsewhere", {"reference": "PORTAL-1"})
    if status == "pending":  # as the file says
        assert response.json()["claim_status"] == "pending"
    else:
        detail = f"The invoice was imported as {words}, so it can't be marked as claimed elsewhere."
        assert (response.status_code, response.json()["detail"]) == (409, detail)
        assert office.read(before) == before


@pytest.mark.parametrize("status", ["pending", "paid", "cancelled"])
def test_work_with_an_invoice_that_was_imported_as_claimed_or_closed_leaves_its_state(
    office: Office, status: str
) -> None:
    id_ = str(uuid7())
    account = office.server.run(create_account(office.server, office.plan_manager_id, "manager")).account_id
    assert import_row(office, **office.values("OLD", id=id_, claim_status=status, total="90.00")) == []
    before = office.read({"id": id_})
    work = {"due_date": "2026-12-01", "external_id": "X-1", "received_at": "2026-01-20T00:00:00Z"}
    for change in ({"assigned_to": str(account)}, work):
        office.client.put(f"/invoices/{id_}", change).raise_for_status()
        assert office.read(before)["claim_status"] == status
    ignored = {"code": "check_total", "reason": "Rounded"}
    office.client.post(f"/invoices/{id_}/ignore-warning", ignored).raise_for_status()
    assert office.read(before)["claim_status"] == status
    tried = office.claim(before, params={"dry_run": "true"}).json()
    assert (tried["lines"], [each["reason"] for each in tried["left_out"]]) == (0, ["state"])
    office.client.put(f"/invoices/{id_}", {"total": "100.00"}).raise_for_status()
    assert office.read(before)["claim_status"] == "new"


@pytest.mark.parametrize("status", ["pending", "paid", "cancelled"])
def test_actions_keep_or_end_the_state_that_an_invoice_was_imported_with(office: Office, status: str) -> None:
    id_ = str(uuid7())
    assert import_row(office, **office.values("OLD", id=id_, claim_status=status)) == []

    def act(action: str, **body: str) -> tuple[int, str]:
        response = office.client.post(f"/invoices/{id_}/{action}", body)
        return response.status_code, response.json().get("claim_status") or response.json()["detail"]

    if status == "pending":
        assert act("hold", reason="Duplicate?") == (200, status)
        assert act("release") == (200, status)
    else:
        expected = f"The invoice is {status}, so it can't be held."
        assert act("hold", reason="Duplicate?") == (409, expected)
    if status == "cancelled":
        assert act("cancel", reason="Again")[0] == 409
        assert act("reopen") == (200, "new")
        return
    assert act("wont-claim", reason="Old") == (200, status)
    assert act("reopen") == (200, status)
    tried = office.claim({"id": id_}, params={"dry_run": "true"}).json()
    assert (tried["lines"], [each["reason"] for each in tried["left_out"]]) == (0, ["state"])
    assert act("cancel", reason="Old") == (200, "cancelled")
    assert act("reopen") == (200, "new")


def test_the_release_of_an_invoice_that_was_imported_as_claimed_and_held_keeps_its_state(office: Office) -> None:
    id_ = str(uuid7())
    row = office.values("OLD", id=id_, claim_status="payment_ready", held_at="2026-01-20T00:00:00Z")
    assert import_row(office, **row) == []
    released = office.client.post(f"/invoices/{id_}/release").json()
    assert (released["held_at"], released["claim_status"]) == (None, "payment_ready")


@pytest.mark.parametrize("status", ["new", "flagged", "partially_paid"])
def test_the_lines_of_an_imported_invoice_that_wait_are_claimed(office: Office, status: str) -> None:
    """A new line beside a paid one waits."""
    paid = office.line(claim_status="paid") if status == "partially_paid" else office.line(claim_status="cancelled")
    row = office.values("A1", paid, office.line(service_date_from="2026-01-14"), claim_status=status)
    assert import_row(office, **row) == []
    assert office.batch()["lines"] == 1


def test_an_invoice_that_was_imported_on_hold_is_claimed_after_its_release(office: Office) -> None:
    id_ = str(uuid7())
    assert import_row(office, **office.values("A1", id=id_, claim_status="on_hold")) == []
    for invoices in ((), ({"id": id_},)):
        tried = office.claim(*invoices, params={"dry_run": "true"}).json()
        assert [each["reason"] for each in tried["left_out"]] == ["held"]
    office.client.post(f"/invoices/{id_}/release").raise_for_status()
    assert office.batch()["lines"] == 1
