"""The whole story of an invoice in Chromium, from a dropped PDF to a reconciliation that closes.

Two people do the work: Ada enters, claims and makes payment runs, Kim approves bank details and marks runs as paid.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from support.chromium import ACTION_TIMEOUT
from support.cluster import SharedCluster
from support.console import create_account, fill_sign_in_form, wait_until_signed_in
from support.factories import create_client
from support.office_files import read_claims, read_credits
from support.outbox import MailingServer, mailing_server
from support.results import results_csv
from support.tls_front import PUBLIC_URL, TlsFront
from system.office.ledger import cents
from system.office.office import NDIS_NUMBER, Office

# In cents: what the lines cost, what the agency pays for the second one, and the third one after its correction.
FULL, PART, SHORT, RIGHT, REVERSED = 29_099, 15_005, 5_023, 18_033, 4000
LINES = (("1.5", "193.99"), ("2", "100.14"), ("3", "65.09"))
DROP = """() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["%PDF-1.7 a bill"], "bill.pdf", { type: "application/pdf" }));
    document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


class Story(NamedTuple):
    """The office, the pages of Ada and Kim, and a page of the nominee, who has no account."""

    office: Office
    ada: Any
    kim: Any
    nominee: Any


@pytest.fixture(scope="module")
def mailing(cluster: SharedCluster) -> Iterator[MailingServer]:
    with mailing_server(cluster) as found:
        yield found


@pytest.fixture
def story(chromium: Any, public_front: TlsFront, mailing: MailingServer) -> Iterator[Story]:
    client = mailing.server.run(create_client(mailing.server))
    client.http.close()
    plan_manager_id = UUID(client.plan_manager_id)
    office = Office(mailing, plan_manager_id, needs_receipts=True)
    public_front.lead_to(mailing.server.url)

    def open_page(name: str) -> Any:
        context = chromium.new_context(base_url=PUBLIC_URL, ignore_https_errors=True, reduced_motion="reduce")
        context.set_default_timeout(ACTION_TIMEOUT)
        page = context.new_page()
        if name:
            account = mailing.server.run(create_account(mailing.server, plan_manager_id, "owner", name))
            fill_sign_in_form(page, account.email)
            wait_until_signed_in(page)
        return page

    pages = [open_page(name) for name in ("Ada Okafor", "Kim Sato", "")]
    yield Story(office, *pages)
    for each in pages:
        each.context.close()
    office.people.close()


def test_from_a_dropped_pdf_to_a_closed_reconciliation(story: Story) -> None:
    invoice = enter_a_dropped_pdf(story)
    settle_the_warning(story, invoice)
    approve_with_the_link(story, 2)
    batch = make_batch(story.ada)
    record_results(story, batch, [FULL, PART, "C11: not in the plan"])
    receive(story, batch, FULL + PART)
    approve_bank_details(story.kim, "Coral Test Physio")
    assert pay(story) == [FULL + PART]
    correct_the_rejected_line(story, batch, invoice)
    claim_after_a_cancellation(story, invoice)
    pay_twice_after_a_return(story)
    recover_a_reversal(story, invoice)
    check_the_reconciliation(story)
    assert story.office.states({"id": invoice}) == ["paid", "paid", "paid"]


def heading(page: Any, name: str) -> None:
    page.get_by_role("heading", name=name).first.wait_for()


def enter_a_dropped_pdf(story: Story) -> str:
    """Drop a PDF, and enter its invoice with a wrong total. Returns the invoice's id."""
    page, day = story.ada, f"{story.office.service_day:%d/%m/%Y}"
    page.goto("/console/invoices/upload")
    page.evaluate(DROP)
    page.locator("[data-added]").get_by_role("link", name="bill.pdf").wait_for()
    page.get_by_role("link", name="Enter the first").click()
    heading(page, "Edit invoice without number")
    page.get_by_label("Invoice number").fill("2026/442")
    for kind, text in (("Provider", "89000000019"), ("Participant", NDIS_NUMBER)):
        page.get_by_label(kind, exact=True).fill(text)
    page.get_by_label("Invoice date").fill(day)
    for number, (quantity, price) in enumerate(LINES, 1):
        if number > 1:
            page.keyboard.press("Alt+l")
        line = page.get_by_role("group", name=f"Line {number}", exact=True)
        line.get_by_label("Support item").fill("15_056_0128_1_3")
        line.get_by_label("Description").fill("Physiotherapy")
        for name, text in (("From", day), ("To", day), ("Quantity", quantity), ("Unit price", price)):
            line.get_by_label(name, exact=True).fill(text)
    page.get_by_label("Total", exact=True).last.fill("700")
    page.get_by_role("button", name="Save and finish").click()
    page.get_by_role("link", name="1 open warning").click()
    heading(page, "Amounts don’t add up")
    story.office.mailing.mail.wait_for(story.office.nominee)  # a correction before that would take its place
    return page.url.split("/invoices/")[1].split("?")[0].split("/")[0]


def settle_the_warning(story: Story, invoice: str) -> None:
    """The review queue shows the warning; a claim batch leaves the invoice out until it is corrected and approved."""
    page = story.ada
    page.goto("/console/claims/new")
    page.get_by_text("No line can be claimed now.").wait_for()
    page.goto("/console/review")
    heading(page, "Invoice 2026/442")
    page.keyboard.press("e")
    heading(page, "Edit invoice 2026/442")
    page.get_by_label("Subtotal").fill("686.54")
    page.get_by_label("Total", exact=True).last.fill("686.54")
    page.get_by_role("button", name="Save changes").click()
    page.get_by_text("Changes saved").wait_for()
    assert "check_total" not in story.office.read({"id": invoice})["state_management"]["errors"]


def approve_with_the_link(story: Story, mails: int) -> None:
    """The nominee opens the link of the latest mail."""
    [link] = story.office.mailing.mail.wait_for(story.office.nominee, mails).links
    story.nominee.goto(link)
    story.nominee.get_by_role("button", name="Approve the invoice").click()
    heading(story.nominee, "The invoice is approved")


def make_batch(page: Any) -> str:
    """Make a batch of everything, download its file, and mark it as submitted. Returns the path of its page."""
    page.goto("/console/claims")
    page.get_by_role("link", name="Make a claim batch").first.click()
    page.get_by_role("button", name="Make claim batch").click()
    heading(page, "Claim batch B")
    page.wait_for_load_state()  # until then, the form is sent without its script
    with page.expect_download() as download:
        page.get_by_role("button", name="Download file").click()
    rows = read_claims(download.value.path().read_bytes())
    assert {each["NDISNumber"] for each in rows} == {NDIS_NUMBER}
    page.get_by_text("Next: upload it to the agency’s portal").wait_for()
    page.get_by_role("button", name="Mark as submitted").click()
    page.get_by_text("Waiting for the agency’s results.").wait_for()
    return page.url.removeprefix(PUBLIC_URL).split("?")[0]


def results(story: Story, batch: str, answers: list[int | str]) -> dict[str, Any]:
    """The agency's file: cents that it pays, or why it pays nothing."""
    claims = story.office.claims({"id": batch.rpartition("/")[2]})
    rows = [_answer(*each) for each in zip(claims, answers, strict=True)]
    return {"name": "results.csv", "mimeType": "text/csv", "buffer": results_csv(rows)}


def _answer(claim: Mapping[str, Any], answer: int | str) -> dict[str, Any]:
    found = {"NDISNumber": NDIS_NUMBER, "ClaimReference": claim["reference"], "Payment Request Number": "900000123"}
    if isinstance(answer, int):
        return found | {"Payment Request Status": "SUCCESSFUL", "Paid Total Amount": f"{answer / 100:.2f}"}
    return found | {"Payment Request Status": "ERROR", "Error Message": answer}


def check_file(story: Story, batch: str, answers: list[int | str]) -> None:
    page = story.ada
    page.goto(f"{batch}/results")
    page.get_by_label("Results file").set_input_files(results(story, batch, answers))
    page.get_by_role("button", name="Check file").click()


def record_results(story: Story, batch: str, answers: list[int | str]) -> None:
    check_file(story, batch, answers)
    paid = sum(each for each in answers if isinstance(each, int))
    strip = story.ada.locator(".sum-strip")
    strip.get_by_text(f"${paid / 100:,.2f}").wait_for()
    story.ada.get_by_role("button", name="Record these results").click()
    story.ada.get_by_text("The results of this file are recorded.").wait_for()


def receive(story: Story, batch: str, amount: int) -> None:
    """The agency's money arrives."""
    page = story.ada
    page.goto(batch)
    page.get_by_role("link", name="Record money received").click()
    page.get_by_label("Amount, in dollars").fill(f"{amount / 100:.2f}")
    page.get_by_role("button", name="Record money").click()
    page.get_by_text(f"Recorded: ${amount / 100:.2f} received.").wait_for()


def approve_bank_details(page: Any, payee: str) -> None:
    page.goto("/console/bank-details")
    page.get_by_role("link", name=f"Review the bank details of {payee}").click()
    page.get_by_label("How the payee confirmed it").fill("Called on 02 5550 1234")
    page.get_by_role("button", name="Approve").click()
    page.get_by_text(f"Approved: {payee} is paid").wait_for()


def pay(story: Story) -> list[int]:
    """Ada makes a run and downloads its file; Kim marks it as paid. Returns the credits of the file, in cents."""
    page, kim = story.ada, story.kim
    page.goto(f"/console/payments/new?process_date={story.office.today}")
    page.get_by_role("button", name="Make the run").click()
    heading(page, "Payment run P")
    page.wait_for_load_state()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the ABA file").click()
    paid = [each.cents for each in read_credits(download.value.path().read_bytes())]
    page.get_by_text("Next: upload it to your bank").wait_for()
    page.get_by_text("Your office needs two people").first.wait_for()
    kim.goto(page.url)
    assert kim.get_by_label("The bank paid on").input_value()
    kim.get_by_role("button", name="Mark as paid").click()
    kim.get_by_text("The bank paid on").first.wait_for()
    kim.get_by_role("heading", name="Mark as paid").wait_for(state="detached")
    return paid


def correct_the_rejected_line(story: Story, batch: str, invoice: str) -> None:
    """The review queue has it. The price was wrong. The lines beside it are paid, and stay as they are."""
    page = story.ada
    page.goto("/console/review?queue=rejected")
    heading(page, "Invoice 2026/442")
    page.get_by_text("The agency has rejected line 3: C11: not in the plan.").wait_for()
    page.goto(f"{batch}?state=rejected")
    page.get_by_role("link", name="Line 3 of 2026/442").click()
    page.get_by_role("link", name="Correct the invoice").click()
    heading(page, "Edit invoice 2026/442")
    line = page.get_by_role("group", name="Line 3", exact=True)
    line.get_by_label("Unit price", exact=True).fill("60.11")
    line.get_by_label("Total", exact=True).fill("")
    for name in ("Subtotal", "Total"):
        page.get_by_label(name, exact=True).last.fill("671.60")
    page.get_by_role("button", name="Save changes").click()
    page.get_by_text("Changes saved").wait_for()
    assert story.office.states({"id": invoice}) == ["paid", "partially_paid", "new"]
    page.goto("/console/review?queue=rejected")
    page.get_by_text("No invoice is left in this part of the queue.").wait_for()
    page.goto("/console/review?queue=approval")
    heading(page, "Invoice 2026/442")
    approve_with_the_link(story, 3)


def open_line(story: Story, invoice: str, number: int) -> None:
    story.ada.goto(f"/console/invoices/{invoice}")
    story.ada.get_by_role("link", name=f"Claims of line {number}").click()
    heading(story.ada, f"Claims of line {number} of 2026/442")


def claim_after_a_cancellation(story: Story, invoice: str) -> None:
    """The rest and the corrected line are claimed. The batch is cancelled, and yet a result of it arrives."""
    page = story.ada
    open_line(story, invoice, 2)
    page.get_by_role("button", name="Claim the rest").click()
    page.get_by_text("The rest of this line goes into the next claim batch.").wait_for()
    cancelled = make_batch(page)
    page.get_by_role("link", name="Cancel batch").click()
    page.get_by_label("The file hasn’t been uploaded").check()
    page.get_by_label("Reason").fill("A line is wrong")
    page.get_by_role("button", name="Cancel batch").click()
    page.get_by_text("Cancelled: A line is wrong.").wait_for()
    check_file(story, cancelled, [SHORT, RIGHT])
    page.get_by_text("was cancelled, but the agency has paid").first.wait_for()
    page.get_by_role("button", name="Record these results").click()
    page.goto(f"/console/invoices/{invoice}")
    page.get_by_role("button", name="Release").click()
    page.get_by_text("Invoice 2026/442 released.").wait_for()
    batch = make_batch(page)
    record_results(story, batch, [SHORT, RIGHT])
    receive(story, batch, SHORT + RIGHT)


def pay_twice_after_a_return(story: Story) -> None:
    """The bank sends the payment back. It is paid again, once, after the account was approved again."""
    page = story.ada
    assert pay(story) == [SHORT + RIGHT]
    page.reload()
    page.get_by_role("link", name="Coral Test Physio").click()
    page.get_by_text("Record that the bank returned this payment").click()
    page.get_by_label("Returned on").fill(f"{story.office.today:%d/%m/%Y}")
    page.get_by_label("Reason").fill("Closed")
    page.get_by_role("button", name="Record the return").click()
    page.get_by_text("The bank returned this payment on").wait_for()
    page.goto("/console/payments/new")
    page.get_by_text("Nothing can be paid.").wait_for()
    approve_bank_details(story.kim, "Coral Test Physio")
    assert pay(story) == [SHORT + RIGHT]
    page.goto("/console/payments/new")
    page.get_by_text("Nothing can be paid.").wait_for()


def recover_a_reversal(story: Story, invoice: str) -> None:
    """The agency takes back what was paid out. The provider returns it, and the office repays it."""
    page, amount = story.ada, f"{REVERSED / 100:.2f}"
    open_line(story, invoice, 1)
    page.get_by_role("link", name="Record a reversal").click()
    page.get_by_label("Amount, in dollars").fill(amount)
    page.get_by_role("button", name="Record reversal").click()
    page.get_by_text("To recover from the payee").wait_for()
    for name in ("Refund received", "Repaid"):
        page.goto("/console/recoveries")
        page.get_by_role("link", name=name).click()
        assert page.get_by_label("Amount, in dollars").input_value() == amount
        page.get_by_role("button", name="Record refund").click()
        page.get_by_text("Recorded: returned").wait_for()
    page.goto("/console/recoveries")
    page.get_by_text("There is nothing to recover.").wait_for()


def check_the_reconciliation(story: Story) -> None:
    page, total = story.ada, FULL + PART + SHORT + RIGHT
    page.goto("/console/payments/reconciliation")
    page.get_by_text("The office holds nobody’s money").wait_for()
    found = story.office.client.get("/reconciliation").json()
    assert {name: cents(found[name]) for name in story.office.ledger.figures()} == {
        "opening": 0, "received": total, "paid_out": total + SHORT + RIGHT, "returned": SHORT + RIGHT,
        "refunded": REVERSED, "repaid": REVERSED, "fees": 0, "closing": 0,
    }  # fmt: skip
