"""The review queue finds invoices by their lines, whatever the state of the invoice says."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.resources.invoices import review_store
from plankeeper.resources.invoices.review_store import QueueCounts, ReviewFilter
from support.claims import Office
from support.client import Client
from support.importing import import_records
from support.money_rules import RULES
from support.results import SubmittedBatch
from support.server import RunningServer

RULE = RULES["the review queue knows the lines of an invoice"]
PARTS = {"waiting": ReviewFilter(), **{each: ReviewFilter(each) for each in ("held", "approval", "rejected")}}


@pytest.fixture
def office(server: RunningServer, new_client: Callable[..., Client], plan_manager_id: UUID) -> Office:
    return Office(server, new_client(plan_manager_id))


def queue(office: Office, invoice: dict[str, Any]) -> list[str]:
    """The parts of the queue that have an invoice, after a look at what all invoices have stored."""
    server, place, now = office.server, (office.server.db, office.plan_manager_id), datetime.now(UTC)
    assert server.run(server.db.rows(str, RULE, office.plan_manager_id)) == []
    parts = [
        name
        for name, part in PARTS.items()
        if UUID(invoice["id"]) in server.run(review_store.list_candidates(*place, uuid7(), part, None, now))
    ]
    counts = server.run(review_store.count(*place, uuid7()))
    assert {name for name in PARTS if getattr(counts, name)} == {*parts}
    waiting = server.run(review_store.count_by_assignee(*place))  # what Home counts
    assert sum(each.count for each in waiting) == counts.waiting
    return parts


def half_rejected(office: Office) -> tuple[SubmittedBatch, dict[str, Any]]:
    """An invoice of which the agency has paid the first line, and rejected the second one."""
    lines = (office.line(), office.line(service_date_from="2026-01-14"))
    batch = SubmittedBatch(office, office.invoice("A1", *lines))
    batch.apply(batch.paid(0), batch.rejected(1))
    return batch, batch.invoices[0]


def act(office: Office, invoice: dict[str, Any], action: str, line: str = "", **body: Any) -> None:
    path = f"/invoices/{invoice['id']}" + (f"/lines/{line}" if line else "")
    response = office.client.post(f"{path}/{action}", body or None)
    assert response.status_code == 200, response.text


def test_a_rejected_line_beside_a_paid_one_waits_until_it_is_retried_or_cancelled(office: Office) -> None:
    batch, invoice = half_rejected(office)
    line = batch.line(1)["id"]
    assert office.read(invoice)["claim_status"] == "partially_ready"
    assert queue(office, invoice) == ["waiting", "rejected"]
    act(office, invoice, "retry", line)
    assert queue(office, invoice) == []
    again = SubmittedBatch(office, invoice)
    assert queue(office, invoice) == []
    again.apply(again.rejected(0))
    assert queue(office, invoice) == ["waiting", "rejected"]
    act(office, invoice, "cancel", line, reason="Not ours")
    assert queue(office, invoice) == []
    act(office, invoice, "reopen", line)
    assert queue(office, invoice) == []  # it can be claimed, and nothing keeps it


def test_a_pending_line_beside_a_rejected_one_does_not_hide_it(office: Office) -> None:
    batch = SubmittedBatch(office, office.invoice("A1", office.line(), office.line(service_date_from="2026-01-14")))
    invoice = batch.invoices[0]
    batch.apply(batch.rejected(0))
    assert (office.read(invoice)["claim_status"], queue(office, invoice)) == ("pending", ["waiting", "rejected"])
    act(office, invoice, "hold", reason="Wait")
    assert queue(office, invoice) == ["held", "rejected"]
    act(office, invoice, "release")
    assert queue(office, invoice) == ["waiting", "rejected"]


def test_a_corrected_line_that_needs_approval_waits_for_it_beside_paid_lines(office: Office) -> None:
    batch, invoice = half_rejected(office)
    office.execute(
        "update invoices set approval_status = 'approved' where plan_manager_id = $1", office.plan_manager_id
    )
    lines = office.read(invoice)["line_items"]
    lines[1]["description"] = "Physiotherapy at home"
    body = {"line_items": [{"id": each["id"], "description": each["description"]} for each in lines]}
    assert office.client.put(f"/invoices/{invoice['id']}", body).status_code == 200
    assert [each["claim_status"] for each in office.read(invoice)["line_items"]] == ["payment_ready", "new"]
    assert queue(office, invoice) == ["approval"]
    act(office, invoice, "reject", reason="Not delivered")
    assert queue(office, invoice) == ["waiting"]
    assert batch.line(0)["claim_status"] == "payment_ready"


def test_a_flagged_line_beside_a_claimed_one_waits(office: Office) -> None:
    invoice = office.invoice("A1", office.line(), office.line(unit_price=0, total_price=0))  # a free line
    SubmittedBatch(office, invoice)
    states = [each["claim_status"] for each in office.read(invoice)["line_items"]]
    assert (states, queue(office, invoice)) == (["pending", "flagged"], ["waiting"])


def test_an_imported_invoice_waits_by_the_lines_of_its_file(office: Office) -> None:
    def put(state: str, *states: str, **more: Any) -> dict[str, Any]:
        paid = {"paid_amount": 290.99}
        lines = [
            office.line(id=str(UUID(int=index)), claim_status=each, **(paid if "paid" in each else {}))
            for index, each in enumerate(states, 1)
        ]
        values = {"line_items": lines} if lines else {}
        row = office.values("A1", office.line()) | {"id": str(UUID(int=9)), "claim_status": state} | values | more
        if not lines:
            del row["line_items"]
        run = import_records(office.server, office.plan_manager_id, "invoices", [row])
        report = office.server.run(run)
        assert not report.errors, report.errors
        return row

    assert queue(office, put("partially_paid", "paid", "rejected")) == ["waiting", "rejected"]
    assert queue(office, put("partially_paid")) == ["waiting", "rejected"]  # its lines stay as they are
    assert queue(office, put("partially_paid", "paid", "paid")) == []
    assert queue(office, put("partially_paid", "paid", "flagged")) == ["waiting"]
    assert queue(office, put("partially_paid", "paid", "new", total=99)) == ["waiting"]  # it doesn't add up
    assert queue(office, put("paid", "new", total=99)) == []  # the file says that it is paid
    assert queue(office, put("rejected", "new")) == ["waiting", "rejected"]
    assert queue(office, put("cancelled", "paid", "rejected")) == []
    assert queue(office, put("on_hold", "paid", "rejected")) == ["held", "rejected"]
    assert queue(office, put("partially_paid", "paid", "rejected", wont_claim=True)) == []
    assert queue(office, put("partially_paid", "paid", "rejected", wont_claim=False, is_deleted=True)) == []


def test_the_numbers_of_the_queue_count_an_invoice_once(office: Office) -> None:
    half_rejected(office)
    counts = office.server.run(review_store.count(office.server.db, office.plan_manager_id, uuid7()))
    assert counts == QueueCounts(waiting=1, mine=0, unassigned=1, held=0, approval=0, rejected=1)
