"""Claims and payments of an erased person: kept, with their documents, until they are old enough."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext, or_404
from plankeeper.core.formatting import format_date
from plankeeper.core.settings import Settings
from plankeeper.privacy import financial_records, person_export, service
from plankeeper.privacy.schemas import ErasureReport
from plankeeper.resources.invoices import approval_store
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.approval_requests import content_hash
from plankeeper.resources.invoices.approval_schemas import NewLink
from support.claims import Office
from support.client import Client
from support.factories import upload_document
from support.importing import import_records
from support.payments import PayingOffice
from support.server import RunningServer
from support.statements import send_statement

NDIS_NUMBER = "430000001"
EIGHT_YEARS = timedelta(days=8 * 365)


class Person:
    """A participant that was reimbursed for one invoice, with another invoice that isn't claimed."""

    def __init__(self, office: PayingOffice) -> None:
        self.office, self.client = office, office.client
        self.id = office.participant
        self.invoice = office.invoice("120.00", payee="participant")
        self.other = self.client.create("/invoices", {"participant_id": self.id})["id"]
        for each in (self.invoice, self.other):
            upload_document(self.client, each)
        fields = json.dumps({"ndis_number": NDIS_NUMBER, "support_number": "01_011_0107_1_1"})
        office.execute(
            "update claims set fields = $2::text::jsonb, reason = 'Robin was away' where plan_manager_id = $1",
            office.plan_manager_id, fields,
        )  # fmt: skip
        run = office.run(self.invoice)
        office.act(run, "mark-paid", paid_on="2026-11-20").raise_for_status()
        self.run = run

    def make_old(self) -> None:
        """As if everything had happened eight years ago."""
        plan_manager_id = self.office.plan_manager_id
        for table, columns in {
            "claims": ("created_at", "result_at"),
            "payments": ("created_at",),
            "payment_runs": ("paid_at",),
            "invoices": ("received_at",),
        }.items():
            changes = ", ".join(f"{each} = $2" for each in columns)
            statement = f"update {table} set {changes} where plan_manager_id = $1"
            self.office.execute(statement, plan_manager_id, datetime.now(UTC) - EIGHT_YEARS)

    def erase(self, settings: Settings | None = None) -> ErasureReport:
        async def work() -> ErasureReport:
            async with self.office.server.db.transaction() as tx:
                used = settings or self.office.server.settings
                ctx = WriteContext(tx, self.office.plan_manager_id, used, SYSTEM)
                return await service.erase(ctx, UUID(self.id), search_events=False)

        return self.office.server.run(work())

    def run_task(self) -> None:
        server = self.office.server
        server.run(financial_records.erase_due(server.db, server.settings))

    def export(self) -> str:
        server = self.office.server
        work = person_export.export_person(server.db, self.office.plan_manager_id, UUID(self.id))
        return person_export.to_document(server.run(work))

    def has_document(self, invoice_id: str) -> bool:
        return self.client.get(f"/invoices/{invoice_id}").json()["document"] is not None


@pytest.fixture
def person(server: RunningServer, new_client: Callable[..., Client]) -> Person:
    return Person(PayingOffice(server, new_client(scopes=("read", "write", "claims", "payments"))))


def test_the_export_of_a_person_has_claims_and_payments(person: Person) -> None:
    adjustment = {
        "line_id": person.office.line_ids(person.invoice)[0], "kind": "agency_reversal", "amount": 20,
        "date": "2026-11-26", "reason": "twice",
    }  # fmt: skip
    person.client.create(f"/invoices/{person.invoice}/adjustments", adjustment)
    found = json.loads(person.export())
    [claim], [payment], [line] = found["claims"], found["payments"], found["payment_lines"]
    assert (claim["fields"]["ndis_number"], payment["payee_name"], line["amount"]) == (NDIS_NUMBER, "Robin Hale", 120)
    assert [each["reason"] for each in found["adjustments"]] == ["twice"]
    assert (payment["account_ending"], "account" in payment, line["state"]) == (
        payment["account_ending"],
        False,
        "paid",
    )


def test_an_erasure_keeps_what_was_claimed_and_says_until_when(person: Person) -> None:
    report = person.erase()
    assert report.kept is not None
    assert report.kept.until is not None
    days = (report.kept.until - datetime.now(UTC)).days
    assert (report.kept.invoices, report.counts["documents"], days >= 2554) == (1, 1, True)
    assert report.kept.text.endswith(f"kept until {format_date(report.kept.until.date())}.")
    assert (person.has_document(person.invoice), person.has_document(person.other)) == (True, False)
    document = person.export()
    assert NDIS_NUMBER in document
    assert "Robin Hale" in document
    assert person.erase().kept == report.kept


@pytest.mark.parametrize("action", ["submit", "cancel"])
def test_a_line_in_a_draft_claim_batch_is_kept_whatever_becomes_of_the_batch(
    server: RunningServer, new_client: Callable[..., Client], action: str
) -> None:
    office = Office(server, new_client(scopes=("read", "write", "claims")))
    batch = office.batch(office.invoice("A-1"))

    async def erase() -> ErasureReport:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, office.plan_manager_id, server.settings, SYSTEM)
            return await service.erase(ctx, UUID(office.participant), search_events=False)

    kept = server.run(erase()).kept
    assert kept is not None
    assert kept.invoices == 1
    office.client.post(f"/claim-batches/{batch['id']}/{action}", {} if action == "cancel" else None).raise_for_status()
    numbers = "select fields ->> 'ndis_number' from claims where plan_manager_id = $1"
    assert server.run(server.db.rows(str, numbers, office.plan_manager_id)) == [NDIS_NUMBER]
    long_ago = datetime.now(UTC) - EIGHT_YEARS
    office.execute("update invoices set received_at = $2 where plan_manager_id = $1", office.plan_manager_id, long_ago)
    office.execute("update claims set created_at = $2 where plan_manager_id = $1", office.plan_manager_id, long_ago)
    due = "update kept_financial_records set kept_until = now() where plan_manager_id = $1"
    office.execute(due, office.plan_manager_id)
    server.run(financial_records.erase_due(server.db, server.settings))
    assert server.run(server.db.rows(str, numbers, office.plan_manager_id)) == ["[erased]"]


def test_the_document_that_is_kept_is_restricted(person: Person) -> None:
    url = f"/invoices/{person.invoice}/document"
    assert person.client.get(url).status_code == 200
    person.erase()
    assert person.client.get(url).status_code == 404


def test_no_import_creates_a_participant_with_the_id_of_an_erased_one(person: Person) -> None:
    person.erase()
    server, plan_manager_id = person.office.server, person.office.plan_manager_id
    rows = [{"first_name": "New", "status": "Active"}, {"id": person.id, "first_name": "Robin", "status": "Active"}]
    report = server.run(import_records(server, plan_manager_id, "participants", rows))
    message = "belongs to a person whose data was erased; leave it out to create a new participant"
    assert [(each.line_number, each.field, each.message) for each in report.errors] == [(2, "id", message)]
    assert person.client.get(f"/invoices/{person.invoice}/document").status_code == 404
    person.make_old()
    person.office.execute(
        "update kept_financial_records set kept_until = now() where plan_manager_id = $1", plan_manager_id
    )
    person.run_task()
    assert server.run(import_records(server, plan_manager_id, "participants", rows[1:])).counts.created == 1


def test_texts_of_claims_and_payments_of_others_are_mentions(person: Person) -> None:
    office, client = person.office, person.client
    other = office.participant_with("Somebody", "Else")
    invoice = office.invoice("50.00", number="A-2", participant_id=other, payee="participant")
    office.act(office.run(invoice), "mark-paid", paid_on="2026-11-20").raise_for_status()
    for each in (person.invoice, invoice):
        adjustment = {"kind": "agency_reversal", "amount": 20, "date": "2026-11-26", "reason": "agreed"}
        client.create(f"/invoices/{each}/adjustments", adjustment | {"line_id": office.line_ids(each)[0]})
    office.execute(
        "insert into claim_batches (plan_manager_id, id, number, state, total, lines, created_at)"
        " values ($1, $2, 'CB-1', 'cancelled', 0, 0, now())",
        office.plan_manager_id, uuid7(),
    )  # fmt: skip
    texts = {
        "adjustments": ("reason",),
        "bank_detail_changes": ("note",),
        "claim_batches": ("cancel_reason",),
        "claims": ("reason",),
        "invoice_lines": ("closing_reason", "rejection_reason"),
        "invoices": ("approval_reason", "closing_reason", "hold_reason"),
        "payment_runs": ("cancel_reason",),
        "payments": ("return_reason",),
    }
    for table, columns in texts.items():
        changes = ", ".join(f"{each} = 'asked by Robin'" for each in columns)
        office.execute(f"update {table} set {changes} where plan_manager_id = $1", office.plan_manager_id)
    mentions = person.erase().mentions
    assert {each.text for each in mentions} == {"asked by Robin"}
    # Those of the person itself are kept, or erased.
    counts = Counter((each.table, each.column) for each in mentions)
    assert counts == Counter((table, each) for table, columns in texts.items() for each in columns) | {
        ("payment_runs", "cancel_reason"): 2,  # they have no person
        ("bank_detail_changes", "note"): 2,  # of the other participant and the provider
    }


def test_old_records_are_erased_at_once(person: Person) -> None:
    person.make_old()
    report = person.erase()
    assert (report.kept, report.counts["documents"], report.counts["financial_records"]) == (None, 2, 2)
    document = person.export()
    assert NDIS_NUMBER not in document
    assert "Robin" not in document
    assert person.erase().is_empty


def test_the_task_erases_what_has_become_old_enough(person: Person) -> None:
    person.erase()
    person.run_task()
    assert person.has_document(person.invoice)
    person.make_old()
    person.office.execute(
        "update kept_financial_records set kept_until = now() - interval '1 hour' where plan_manager_id = $1",
        person.office.plan_manager_id,
    )
    person.run_task()
    assert not person.has_document(person.invoice)
    assert NDIS_NUMBER not in person.export()
    [payment] = person.office.payments(person.run)
    assert (payment["payee"]["name"], payment["amount"], payment["state"]) == ("[erased]", 120, "paid")
    assert person.office.download(person.run).json()["error"] == "invalid_transition"
    assert person.erase().is_empty


def test_a_legal_hold_stops_the_task(person: Person) -> None:
    person.erase()
    person.make_old()

    async def hold() -> None:
        async with person.office.server.db.transaction() as tx:
            ctx = WriteContext(tx, person.office.plan_manager_id, person.office.server.settings, SYSTEM)
            await service.hold(ctx, UUID(person.id), "Case 12")

    person.office.server.run(hold())
    person.office.execute(
        "update kept_financial_records set kept_until = now() where plan_manager_id = $1", person.office.plan_manager_id
    )
    person.run_task()
    assert person.has_document(person.invoice)


def test_without_a_retention_the_records_are_kept_without_an_end(person: Person) -> None:
    report = person.erase(replace(person.office.server.settings, financial_retention=None))
    assert report.kept is not None
    assert (report.kept.until, report.kept.text) == (
        None,
        "The claims, payments, document, approval and sent statements of 1 claimed invoice are kept without an end.",
    )  # fmt: skip


def test_links_to_approve_kept_invoices_are_revoked(person: Person) -> None:
    server, plan_manager_id, invoice_id = person.office.server, person.office.plan_manager_id, UUID(person.invoice)

    async def add() -> None:
        async with server.db.transaction() as tx:
            found = or_404(await invoice_store.get(tx, plan_manager_id, invoice_id))
            now = datetime.now(UTC)
            link = NewLink(invoice_id, uuid7(), UUID(person.id), None, content_hash(found), False, now)
            await approval_store.insert_links(tx, plan_manager_id, [link])

    server.run(add())
    statement = "select coalesce(revoked_because, 'open') from approval_links where plan_manager_id = $1"
    assert server.run(server.db.rows(str, statement, plan_manager_id)) == ["open"]
    person.erase()
    assert server.run(server.db.rows(str, statement, plan_manager_id)) == ["unavailable"]


def test_statements_that_were_sent_about_claimed_invoices_are_kept(person: Person) -> None:
    office, path = person.office, f"/participants/{person.id}"
    office.execute("update invoices set invoice_date = '2026-02-05' where plan_manager_id = $1", office.plan_manager_id)
    person.client.create(f"{path}/plans", {"start_date": "2026-01-01", "end_date": "2026-12-31"})
    months = ("2026-02", "2026-02", "2026-01")
    sent, unsent, empty = (person.client.create(f"{path}/statements", {"month": each}) for each in months)
    for each in (sent, empty):
        send_statement(office.server, person.client, each["id"])
    for each in (sent, unsent):
        url = f"{path}/statements/{each['id']}"
        assert person.client.request("GET", url, headers={"Accept": "application/pdf"}).status_code == 200
    found = json.loads(person.export())
    assert (len(found["statements"]), len(found["statement_sends"])) == (3, 2)
    assert person.erase().counts["statements"] == 2
    found = json.loads(person.export())
    assert [each["id"] for each in found["statements"]] == [sent["id"]]
    assert person.client.get(f"{path}/statements/{sent['id']}").status_code == 404
    assert person.client.get(f"{path}/statements").status_code == 404
    assert [
        event["data"] for event in found["events"] if event["type"] == "statement.sent" and event["data"].get("sent")
    ] == []
    person.make_old()
    office.execute(
        "update kept_financial_records set kept_until = now() where plan_manager_id = $1", office.plan_manager_id
    )
    person.run_task()
    assert json.loads(person.export())["statements"] == []
