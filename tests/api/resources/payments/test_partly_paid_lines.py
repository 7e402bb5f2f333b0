"""A line of 100 that the agency pays in parts: reversals, refunds, results and returns while its rest is claimed."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from support.claims import Office
from support.client import Client
from support.money_rules import BROKEN_RULES
from support.payments import PayingOffice
from support.results import SubmittedBatch
from support.server import RunningServer

SCOPES = ("read", "write", "claims", "payments")
IMPORTED = (
    "id", "description", "service_item_number", "service_date_from", "service_date_to", "quantity", "unit_price",
    "total_price", "gst_code",
)  # fmt: skip


class Line:
    """The line. What the agency answers, and what a run pays, are amounts in dollars."""

    def __init__(self, server: RunningServer, client: Client) -> None:
        self.client, self.today = client, str(datetime.now(UTC).date())
        self.paying, self.claiming = PayingOffice(server, client), Office(server, client)
        self.paying.set_account("provider", self.claiming.provider, "Amber Physio")
        line = self.claiming.line(quantity=1, unit_price=100, total_price=100)
        self.invoice = self.claiming.invoice("A1", line)
        self.id = self.invoice["line_items"][0]["id"]
        self.path = f"/invoices/{self.invoice['id']}"

    def import_as(self, status: str, paid: float) -> None:
        """Import the line in a state, with what the agency has paid."""
        [item] = self.paying.read(self.invoice["id"])["line_items"]
        item = {name: item[name] for name in IMPORTED} | {"claim_status": status, "paid_amount": paid}
        self.claiming.import_rows("invoices", {"id": self.invoice["id"], "claim_status": status, "line_items": [item]})

    def claim(self) -> SubmittedBatch:
        return SubmittedBatch(self.claiming, self.invoice)

    def answer(self, batch: SubmittedBatch, amount: float) -> None:
        batch.apply(batch.paid(0, amount))

    def claim_rest(self) -> None:
        self.client.post(f"{self.path}/lines/{self.id}/claim-rest", {}).raise_for_status()

    def run(self) -> dict[str, Any]:
        return self.paying.run(self.invoice["id"], process_date=self.today)

    def pay(self) -> float:
        """Pay what is due, and return it."""
        run = self.run()
        self.paying.act(run, "mark-paid").raise_for_status()
        return run["total"]

    def give_back(self, run: dict[str, Any]) -> None:
        """The bank returns the payment of a run."""
        [payment] = self.paying.payments(run)
        body = {"date": self.today, "reason": "Closed account"}
        self.client.post(f"/payment-runs/{run['id']}/payments/{payment['id']}/returned", body).raise_for_status()
        self.paying.set_account("provider", self.claiming.provider, "Amber Physio")

    def try_to_adjust(self, kind: str, amount: float) -> httpx.Response:
        body = {"line_id": self.id, "kind": kind, "amount": amount, "date": self.today}
        return self.client.post(f"{self.path}/adjustments", body)

    def adjust(self, kind: str, amount: float) -> None:
        self.try_to_adjust(kind, amount).raise_for_status()

    def pay_part(self) -> SubmittedBatch:
        """The agency pays 60, which the provider gets, and the rest of 40 is claimed."""
        self.answer(self.claim(), 60)
        assert self.pay() == 60
        self.claim_rest()
        return self.claim()

    @property
    def state(self) -> tuple[str, float]:
        """The state, and what the agency has paid. The rules of money hold."""
        broken = self.paying.server.run(self.paying.server.db.rows(str, NAMES_OF_BROKEN, self.paying.plan_manager_id))
        assert broken == []
        [line] = self.paying.read(self.invoice["id"])["line_items"]
        return line["claim_status"], line["paid_amount"]

    def recoveries(self) -> list[tuple[float, float]]:
        return [(each["to_recover"], each["to_repay"]) for each in self.client.get("/recoveries").json()["data"]]


NAMES_OF_BROKEN = f"select rule || ': ' || what from ({BROKEN_RULES}) broken"


@pytest.fixture
def line(server: RunningServer, new_client: Callable[..., Client]) -> Line:
    return Line(server, new_client(scopes=SCOPES))


@pytest.mark.parametrize("amount", [10, 40, 100])
def test_a_line_in_a_draft_run_is_not_reversed(line: Line, amount: float) -> None:
    line.answer(line.pay_part(), 40)
    run = line.run()
    assert line.paying.download(run).is_success
    response = line.try_to_adjust("agency_reversal", amount)
    assert (response.status_code, response.json()["error"]) == (409, "invoice_locked")
    assert line.paying.act(run, "mark-paid").json()["total"] == 40
    assert line.state == ("paid", 100)


@pytest.mark.parametrize("status", ["payment_ready", "partially_ready"])
def test_a_reversal_of_all_leaves_what_the_payee_has_to_be_recovered(line: Line, status: str) -> None:
    line.answer(line.pay_part(), 40 if status == "payment_ready" else 30)
    _, paid = line.state
    line.adjust("agency_reversal", paid)
    assert (line.state, line.recoveries()) == (("partially_paid", 0), [(60, 60)])
    other = line.paying.provider_with("Other", abn="53004085616")
    response = line.client.put(line.path, {"pm_provider_id": other})
    assert (response.status_code, response.json()["error"]) == (409, "invoice_locked")
    line.claim_rest()
    line.answer(line.claim(), 100)  # the agency pays all of it again: the payee may keep its 60
    assert (line.state, line.recoveries()) == (("payment_ready", 100), [(0, 60)])
    assert line.pay() == 40
    assert line.state == ("paid", 100)


@pytest.mark.parametrize("amount", [100, 50])
def test_what_the_payee_has_refunded_is_paid_again_when_the_agency_pays_again(line: Line, amount: float) -> None:
    line.answer(line.claim(), 60)
    assert line.pay() == 60
    for kind in ("agency_reversal", "provider_refund", "repaid_to_agency"):
        line.adjust(kind, 60)
    line.claim_rest()
    batch = line.claim()
    assert [each["amount"] for each in batch.claims] == [100]
    line.answer(batch, amount)
    line.adjust("agency_reversal", 10)
    assert line.state == ("partially_ready", amount - 10)
    run = line.run()
    assert line.paying.download(run).is_success
    assert run["total"] == amount - 10
    line.paying.act(run, "mark-paid").raise_for_status()
    assert (line.state, line.recoveries()) == (("partially_paid", amount - 10), [])


def test_a_refund_before_its_reversal_is_repaid_to_the_agency(line: Line) -> None:
    line.answer(line.claim(), 60)
    line.pay()
    line.adjust("provider_refund", 20)
    line.adjust("agency_reversal", 20)
    assert (line.state, line.recoveries()) == (("partially_paid", 40), [(0, 20)])
    line.adjust("agency_reversal", 5)
    assert (line.state, line.recoveries()) == (("partially_paid", 35), [(5, 25)])


@pytest.mark.parametrize("reversed_, status", [(50, "partially_paid"), (40, "partially_paid"), (30, "partially_ready")])
def test_a_rest_that_is_paid_after_a_reversal_is_due_only_beyond_what_the_payee_has(
    line: Line, reversed_: float, status: str
) -> None:
    batch = line.pay_part()
    line.adjust("agency_reversal", reversed_)
    assert line.state == ("pending", 60 - reversed_)
    line.answer(batch, 40)
    assert line.state == (status, 100 - reversed_)
    if status == "partially_ready":
        assert line.pay() == 10
    assert line.recoveries() == [(max(reversed_ - 40, 0), reversed_)]
    line.claim_rest()
    line.answer(line.claim(), reversed_)
    assert line.state == ("payment_ready", 100)


def test_a_part_of_a_rest_that_is_paid_after_a_reversal_is_due_only_beyond_what_the_payee_has(line: Line) -> None:
    line.answer(line.claim(), 60)
    line.pay()
    line.adjust("agency_reversal", 50)
    line.claim_rest()
    batch = line.claim()
    path = f"{line.path}/lines/{line.id}/claim-result"
    line.client.post(path, {"outcome": "paid", "amount": 40}).raise_for_status()
    assert (batch.state(), line.state) == ("processed", ("partially_paid", 50))


def test_a_batch_is_submitted_after_the_bank_has_returned_the_first_part(line: Line) -> None:
    line.answer(line.claim(), 60)
    run = line.run()
    line.paying.act(run, "mark-paid").raise_for_status()
    line.claim_rest()
    batch = line.claiming.batch(line.invoice)
    line.give_back(run)
    assert line.state == ("partially_ready", 60)
    second = line.run()
    locked = line.client.post(f"/claim-batches/{batch['id']}/submit")
    assert (locked.status_code, locked.json()["error"]) == (409, "invoice_locked")
    line.paying.act(second, "cancel").raise_for_status()
    line.client.post(f"/claim-batches/{batch['id']}/submit").raise_for_status()
    [shown] = line.paying.read(line.invoice["id"])["line_items"]
    assert (line.state, shown["has_payment"], shown["is_rest_waiting"]) == (("pending", 60), False, False)
    path = f"{line.path}/lines/{line.id}/claim-result"
    line.client.post(path, {"outcome": "paid", "amount": 40}).raise_for_status()
    assert (line.state, line.pay(), line.state) == (("payment_ready", 100), 100, ("paid", 100))


def test_a_payment_that_the_bank_returns_after_its_reversal_leaves_a_rejected_line(line: Line) -> None:
    line.answer(line.claim(), 60)
    run = line.run()
    line.paying.act(run, "mark-paid").raise_for_status()
    line.adjust("agency_reversal", 60)
    assert (line.state, line.recoveries()) == (("partially_paid", 0), [(60, 60)])
    line.give_back(run)
    [shown] = line.paying.read(line.invoice["id"])["line_items"]
    assert (line.state, shown["rejection_reason"]) == (("rejected", 0), "The agency has reversed its payment.")
    assert line.recoveries() == []
    line.client.post(f"{line.path}/lines/{line.id}/retry", {}).raise_for_status()
    line.answer(line.claim(), 100)
    assert (line.state, line.pay(), line.state) == (("payment_ready", 100), 100, ("paid", 100))


@pytest.mark.parametrize("reversed_, status", [(100, "rejected"), (30, "payment_ready")])
def test_a_returned_payment_is_due_as_far_as_the_agency_still_pays_for_it(
    line: Line, reversed_: float, status: str
) -> None:
    line.answer(line.claim(), 100)
    run = line.run()
    line.paying.act(run, "mark-paid").raise_for_status()
    line.adjust("agency_reversal", reversed_)
    assert line.state == ("paid", 100 - reversed_)
    line.give_back(run)
    assert line.state == (status, 100 - reversed_)
    if status == "rejected":
        line.client.post(f"{line.path}/lines/{line.id}/cancel", {"reason": "Twice"}).raise_for_status()
    else:
        assert (line.pay(), line.state) == (70, ("paid", 70))


@pytest.mark.parametrize("reversed_, to_recover", [(40, 0), (100, 60)])
def test_a_returned_payment_isnt_due_if_the_payee_has_what_the_agency_still_pays_for(
    line: Line, reversed_: float, to_recover: float
) -> None:
    line.answer(line.pay_part(), 40)
    second = line.run()
    line.paying.act(second, "mark-paid").raise_for_status()
    line.adjust("agency_reversal", reversed_)
    line.give_back(second)
    assert line.state == ("partially_paid", 100 - reversed_)
    assert [each for each, _ in line.recoveries()] == [to_recover]
    line.claim_rest()
    line.answer(line.claim(), reversed_)
    assert (line.state, line.pay(), line.state) == (("payment_ready", 100), 40, ("paid", 100))


@pytest.mark.parametrize("order", [("give_back", "reverse"), ("reverse", "give_back")])
def test_a_draft_is_submitted_after_the_first_part_of_its_line_was_taken_back(line: Line, order: list[str]) -> None:
    line.answer(line.claim(), 60)
    run = line.run()
    line.paying.act(run, "mark-paid").raise_for_status()
    line.claim_rest()
    draft = line.claiming.batch(line.invoice)
    for step in order:
        line.give_back(run) if step == "give_back" else line.adjust("agency_reversal", 60)
    assert line.state == ("rejected", 0)
    locked = line.client.post(f"{line.path}/lines/{line.id}/retry", {})
    assert (locked.status_code, locked.json()["error"]) == (409, "invoice_locked")
    line.client.post(f"/claim-batches/{draft['id']}/submit").raise_for_status()
    assert line.state == ("pending", 0)
    path = f"{line.path}/lines/{line.id}/claim-result"
    line.client.post(path, {"outcome": "rejected", "reason": "No budget"}).raise_for_status()
    assert line.state == ("rejected", 0)
    line.client.post(f"{line.path}/lines/{line.id}/retry", {}).raise_for_status()
    assert [each["amount"] for each in line.claim().claims] == [100]


def test_a_line_whose_first_part_was_taken_back_leaves_a_cancelled_draft(line: Line) -> None:
    line.answer(line.claim(), 60)
    run = line.run()
    line.paying.act(run, "mark-paid").raise_for_status()
    line.claim_rest()
    batch = line.claiming.batch(line.invoice)
    line.adjust("agency_reversal", 60)
    line.give_back(run)
    line.client.post(f"/claim-batches/{batch['id']}/cancel", {}).raise_for_status()
    [shown] = line.paying.read(line.invoice["id"])["line_items"]
    assert (line.state, shown["is_rest_waiting"]) == (("rejected", 0), False)
    line.client.post(f"{line.path}/lines/{line.id}/retry", {}).raise_for_status()
    assert [each["amount"] for each in line.claim().claims] == [100]


def test_a_return_while_the_rest_is_in_a_draft_run_is_paid_after_it(line: Line) -> None:
    line.answer(line.claim(), 60)
    first = line.run()
    line.paying.act(first, "mark-paid").raise_for_status()
    line.claim_rest()
    line.answer(line.claim(), 40)
    second = line.run()
    assert line.paying.download(second).is_success
    line.give_back(first)
    line.paying.act(second, "mark-paid").raise_for_status()
    assert line.state == ("payment_ready", 100)
    assert (line.pay(), line.state) == (60, ("paid", 100))


@pytest.mark.parametrize("end", ["rejected", "cancelled", "file", "batch"])
def test_a_return_while_the_rest_is_claimed_is_due_when_the_claim_ends(line: Line, end: str) -> None:
    line.answer(line.claim(), 60)
    first = line.run()
    line.paying.act(first, "mark-paid").raise_for_status()
    line.claim_rest()
    line.answer(line.claim(), 20)
    assert line.pay() == 20
    line.claim_rest()
    batch = line.claim()
    line.give_back(first)
    assert line.state == ("pending", 80)
    if end == "file":
        batch.apply(batch.rejected(0))
    elif end == "batch":
        body = {"uploaded": False, "reason": "Again"}
        line.client.post(f"/claim-batches/{batch.id}/cancel", body).raise_for_status()
    else:
        line.client.post(f"{line.path}/lines/{line.id}/claim-result", {"outcome": end}).raise_for_status()
    assert line.state == ("partially_ready", 80)
    assert (line.pay(), line.state) == (60, ("partially_paid", 80))


def test_an_imported_part_whose_rest_is_rejected_was_paid_out(line: Line) -> None:
    line.import_as("pending", 60)
    line.client.post(f"{line.path}/lines/{line.id}/claim-result", {"outcome": "rejected"}).raise_for_status()
    assert line.state == ("partially_paid", 60)
    line.claim_rest()
    line.answer(line.claim(), 40)
    assert (line.pay(), line.state) == (40, ("paid", 100))


def test_an_imported_part_that_is_reversed_while_its_rest_is_pending_is_recovered(line: Line) -> None:
    line.import_as("pending", 60)
    line.adjust("agency_reversal", 60)
    assert (line.state, line.recoveries()) == (("pending", 0), [(60, 60)])
    line.client.post(f"{line.path}/lines/{line.id}/claim-result", {"outcome": "rejected"}).raise_for_status()
    assert (line.state, line.recoveries()) == (("partially_paid", 0), [(60, 60)])


@pytest.mark.parametrize("reversals", [[60], [20, 40]])
def test_an_imported_payment_that_is_reversed_before_it_is_paid_out_is_not_deducted(
    line: Line, reversals: list[float]
) -> None:
    line.import_as("payment_ready", 60)
    for each in reversals:
        line.adjust("agency_reversal", each)
    assert line.state == ("rejected", 0)
    line.client.post(f"{line.path}/lines/{line.id}/retry", {}).raise_for_status()
    line.answer(line.claim(), 100)
    assert (line.state, line.pay(), line.recoveries()) == (("payment_ready", 100), 100, [])
