"""The money of an invoice from its document to the last cent, over HTTP, against the ledger of the test."""

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from support.office_files import Credit, read_claims, read_credits
from support.outbox import MailingServer
from system.office.ledger import cents
from system.office.office import NDIS_NUMBER, Office, Row

# In cents: what the lines cost, what the agency pays for the second one, and the third one after its correction.
FULL, PART, SHORT, WRONG, RIGHT, REIMBURSED = 29_099, 15_005, 5_023, 19_527, 18_033, 8_800
BUDGET = 500_000


@pytest.fixture(params=[False, True], ids=["by results", "by receipts"])
def office(
    mailing: MailingServer, new_plan_manager: Callable[[], UUID], request: pytest.FixtureRequest
) -> Iterator[Office]:
    made = Office(mailing, new_plan_manager(), needs_receipts=request.param)
    yield made
    made.people.close()


def test_every_cent_from_the_document_to_the_last_repayment(office: Office) -> None:
    bill, reimbursement = enter_and_approve(office)
    first, second, third = (each["id"] for each in bill["line_items"])
    [own] = (each["id"] for each in reimbursement["line_items"])
    claim_and_answer(office, bill, reimbursement)
    pay_what_the_agency_has_paid(office, bill, reimbursement, {first: FULL, second: PART}, {own: REIMBURSED})
    correct_what_was_rejected(office, bill)
    claim_again_after_a_cancellation(office, bill)
    pay_the_rest_which_comes_back_once(office, bill, {second: SHORT, third: RIGHT})
    recover_a_reversal(office, bill)
    assert office.states(bill) == ["paid", "paid", "paid"]
    assert office.read(bill)["claim_status"] == "paid"
    check_money(office, bill, reimbursement)
    assert office.ledger.held() == {}
    total = FULL + PART + SHORT + RIGHT + REIMBURSED
    figures, _ = office.reconcile()
    assert figures == {
        "opening": 0, "received": total, "paid_out": total + SHORT + RIGHT, "returned": SHORT + RIGHT, "refunded": 4000,
        "repaid": 4000, "fees": 0, "closing": 0,
    }  # fmt: skip


def check_money(office: Office, *invoices: Row) -> None:
    """Everything that the program says about money is what the ledger says."""
    figures, held = office.reconcile()
    assert (figures, held) == (office.ledger.figures(), office.ledger.held())
    assert sum(held.values()) == figures["closing"]
    for line in (each for invoice in invoices for each in office.read(invoice)["line_items"]):
        assert cents(line["paid_amount"] or 0) == office.ledger.lines[line["id"]].paid
    budget = office.component()
    assert budget["paid"] == office.ledger.paid
    assert budget["available"] == BUDGET - budget["paid"] - budget["pending"] - budget["waiting"]


def enter_and_approve(office: Office) -> tuple[Row, Row]:
    """A bill with a wrong total, which is corrected, and a reimbursement with GST; both are approved by mail."""
    items = (office.item(1.5, 193.99, 290.99), office.item(2, 100.14, 200.28), office.item(3, 65.09, 195.27))
    bill = office.enter("2026/442", *items, total=700, subtotal=700)
    assert "check_total" in bill["state_management"]["errors"]
    assert office.left_out(bill) == ["approval_pending"] * 3
    office.mailing.mail.wait_for(office.nominee)
    bill = office.put(f"/invoices/{bill['id']}", {"subtotal": 686.54, "total": 686.54})
    assert "check_total" not in bill["state_management"]["errors"]
    office.approve(bill, 2)
    assert office.left_out(bill) == []
    taxed = office.item(1, 80, 80, gst_code="P1")
    reimbursement = office.enter("R-7", taxed, tax=8, total=88, payee="participant")
    office.approve(reimbursement, 3)
    assert office.component() == {
        "paid": 0, "pending": 0, "waiting": FULL + PART + SHORT + WRONG + REIMBURSED,
        "available": BUDGET - FULL - PART - SHORT - WRONG - REIMBURSED,
    }  # fmt: skip
    return bill, reimbursement


def claim_and_answer(office: Office, bill: Row, reimbursement: Row) -> None:
    """One line is paid in full, one in part, one is rejected, and the reimbursement is paid."""
    amounts = [FULL, PART + SHORT, WRONG, REIMBURSED]
    batch = office.submit(bill, reimbursement)
    assert (cents(batch["total"]), batch["lines"]) == (sum(amounts), 4)
    assert [cents(each["amount"]) for each in office.claims(batch)] == amounts
    rows = read_claims(office.client.get(f"/claim-batches/{batch['id']}/file").content)
    day = str(office.service_day)
    common = {
        "RegistrationNumber": "4050000000", "NDISNumber": NDIS_NUMBER, "SupportsDeliveredFrom": day,
        "SupportsDeliveredTo": day, "SupportNumber": "15_056_0128_1_3",
    }  # fmt: skip
    assert all(each | common == each for each in rows)
    names = ("ClaimReference", "Quantity", "UnitPrice", "GSTCode", "ABN of Support Provider")
    assert [tuple(each[name] for name in names) for each in rows] == [
        ("2026/442_1", "1.50", "193.99", "P2", "89000000019"), ("2026/442_2", "2.00", "100.14", "P2", "89000000019"),
        ("2026/442_3", "3.00", "65.09", "P2", "89000000019"), ("R-7", "1.00", "88.00", "P1", "REIMB"),
    ]  # fmt: skip
    assert {name for each in rows for name, value in each.items() if value} == {*common, *names}
    assert office.component()["pending"] == sum(amounts)
    applied = office.apply(batch, [FULL, PART, "C11: not in the plan", REIMBURSED])
    assert applied == {"state": "processed", "paid": 2, "partially_paid": 1, "rejected": 1, "unmatched": []}
    assert office.states(bill) == ["payment_ready", "partially_ready", "rejected"]
    check_money(office, bill, reimbursement)
    if office.ledger.needs_receipts:
        assert office.unpaid(bill) == ["waiting_for_receipt", "waiting_for_receipt", "not_ready"]
    office.receive(batch)
    check_money(office, bill, reimbursement)


def pay_what_the_agency_has_paid(
    office: Office, bill: Row, reimbursement: Row, amounts: dict[str, int], own: dict[str, int]
) -> None:
    """The provider and the participant are paid with one file, once their accounts are approved."""
    assert office.unpaid(bill, reimbursement) == [
        "bank_details_waiting", "bank_details_waiting", "not_ready", "bank_details_waiting",
    ]  # fmt: skip
    assert office.people.approve_accounts() == 2
    run = office.payment_run(bill, reimbursement)
    assert (cents(run["total"]), run["payments"]) == (FULL + PART + REIMBURSED, 2)
    assert read_credits(office.file(run)) == [
        Credit("999-001", "12345678", "Coral Test Physio", f"{run['number']}-0001", FULL + PART),
        Credit("999-004", "00220011", "Robin Hale", f"{run['number']}-0002", REIMBURSED),
    ]
    office.mark_paid(run, amounts | own)
    assert office.states(bill) == ["paid", "partially_paid", "rejected"]
    check_money(office, bill, reimbursement)
    mail = office.mailing.mail.wait_for(office.payee_mail)
    assert f"{run['number']}-0001: ${(FULL + PART) / 100:.2f} from" in str(mail.message["Subject"])


def correct_what_was_rejected(office: Office, bill: Row) -> None:
    """The price of the rejected line was wrong. The lines beside it are locked, and the invoice is approved again."""
    found = office.read(bill)
    items = [{name: each[name] for name in ("id", *office.item(1, 1, 1))} for each in found["line_items"]]
    changed = items[2] | {"unit_price": 60.11, "total_price": 180.33}
    path, totals = f"/invoices/{bill['id']}", {"subtotal": 671.60, "total": 671.60}
    locked = [items[0] | {"unit_price": 1.00}, items[1], changed]
    assert office.refused(office.client.put(path, totals | {"line_items": locked})) == "invoice_locked"
    assert office.refused(office.client.put(path, {"subtotal": 600, "total": 600})) == "invoice_locked"
    after = office.put(path, totals | {"line_items": [items[0], items[1], changed]})
    assert [each["claim_status"] for each in after["line_items"]] == ["paid", "partially_paid", "new"]
    assert after["approval_status"] == "pending"
    assert office.left_out(bill) == ["state", "state", "approval_pending"]
    office.approve(bill, 4)


def claim_again_after_a_cancellation(office: Office, bill: Row) -> None:
    """The rest and the corrected line are claimed. The batch is cancelled, and yet a result of it arrives."""
    second = bill["line_items"][1]["id"]
    office.post(f"/invoices/{bill['id']}/lines/{second}/claim-rest", {})
    cancelled = office.submit(bill)
    references = [each["reference"] for each in office.claims(cancelled)]
    assert [cents(each["amount"]) for each in office.claims(cancelled)] == [SHORT, RIGHT]
    office.post(f"/claim-batches/{cancelled['id']}/cancel", {"uploaded": False, "reason": "A line is wrong"})
    assert office.states(bill) == ["paid", "partially_paid", "new"]
    late = office.results(cancelled, [SHORT, RIGHT])
    assert (late["state"], late["paid"], len(late["unmatched"])) == ("cancelled", 0, 2)
    assert office.read(bill)["held_at"] is not None
    check_money(office, bill)
    office.post(f"/invoices/{bill['id']}/release", {})
    batch = office.submit(bill)
    claims = office.claims(batch)
    assert [cents(each["amount"]) for each in claims] == [SHORT, RIGHT]
    assert {each["reference"] for each in claims}.isdisjoint(references)
    rows = read_claims(office.client.get(f"/claim-batches/{batch['id']}/file").content)
    assert [(each["Quantity"], each["UnitPrice"]) for each in rows] == [("1.00", "50.23"), ("3.00", "60.11")]
    assert office.apply(batch, [SHORT, RIGHT])["paid"] == 2
    assert office.states(bill) == ["paid", "payment_ready", "payment_ready"]
    office.receive(batch)
    check_money(office, bill)


def pay_the_rest_which_comes_back_once(office: Office, bill: Row, amounts: dict[str, int]) -> None:
    """The bank sends the payment back. It is paid again, once, after the account was approved again."""
    total = sum(amounts.values())
    run = office.payment_run(bill)
    assert [each.cents for each in read_credits(office.file(run))] == [total]
    office.mark_paid(run, amounts)
    check_money(office, bill)
    [payment] = office.payments(run)
    path, body = (
        f"/payment-runs/{run['id']}/payments/{payment['id']}/returned",
        {"date": str(office.today), "reason": "Closed"},
    )
    assert office.post(path, body)["state"] == "returned"
    assert office.refused(office.client.post(path, body)) == "invalid_transition"
    office.ledger.send_back(amounts)
    check_money(office, bill)
    assert office.unpaid(bill)[-2:] == ["bank_details_need_approval"] * 2
    assert office.people.approve_accounts() == 1
    again = office.payment_run(bill)
    assert (
        office.refused(office.client.post("/payment-runs", {"all": True, "process_date": str(office.today)}))
        == "invalid_request"
    )
    assert [each.cents for each in read_credits(office.file(again))] == [total]
    office.mark_paid(again, amounts)
    assert (
        office.refused(office.client.post("/payment-runs", {"all": True, "process_date": str(office.today)}))
        == "invalid_request"
    )
    check_money(office, bill)


def recover_a_reversal(office: Office, bill: Row) -> None:
    """The agency takes 40 dollars back of what was paid out. The provider returns them, and the office repays them."""
    line = bill["line_items"][0]
    office.adjust(bill, line, "agency_reversal", 4000)
    assert office.recoveries() == [(line["id"], 4000, 4000)]
    check_money(office, bill)
    office.adjust(bill, line, "provider_refund", 1500)
    office.adjust(bill, line, "repaid_to_agency", 4000)
    assert office.recoveries() == [(line["id"], 2500, 0)]
    check_money(office, bill)
    office.adjust(bill, line, "provider_refund", 2500)
    assert office.recoveries() == []
    check_money(office, bill)
