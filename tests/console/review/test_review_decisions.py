"""Decisions of the review queue about rejected lines and approvals, documents, undo, and reasons that say enough."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from support import factories
from support.client import Client
from support.console import Browser, main_text
from support.form_helpers import form_fields, require_linked_errors
from support.pdf_files import text_pdf
from support.server import RunningServer

REVIEW = "/console/review"
Put = Callable[..., str]
REJECTED = {
    "claim_status": "rejected",
    "line_items": [factories.INVOICE_LINE | {"claim_status": "rejected", "rejection_reason": "No plan"}],
}


@pytest.fixture
def record_ids(client: Client) -> dict[str, str]:
    return {
        "participant": client.create("/participants", {"first_name": "Ann", "last_name": "Lee"})["id"],
        "provider": client.create("/providers", {"entity_name": "Amber", "abn": "51824753556"})["id"],
    }


@pytest.fixture
def import_invoice(server: RunningServer, client: Client, record_ids: dict[str, str]) -> Put:
    return partial(factories.import_invoice, server, client, record_ids)


def location(response: Any) -> str:
    assert response.status_code == 303, main_text(response.text)
    return response.headers["location"]


def test_a_rejected_line_is_claimed_again(owner: Browser, client: Client, import_invoice: Put) -> None:
    ident = import_invoice(**REJECTED)
    page = owner.get(f"{REVIEW}/{ident}").text
    [path] = re.findall(rf'action="({REVIEW}/{ident}/lines/[^"]+/retry)"', page)
    for words in ("Claim again", "Won’t claim…", "No plan"):
        assert words in main_text(page)
    assert location(owner.submit(path)) == f"{REVIEW}?after={ident}"
    assert client.get(f"/invoices/{ident}").json()["line_items"][0]["claim_status"] == "new"
    again = owner.submit(path)
    assert (again.status_code, "can&#39;t be retried" in again.text) == (409, True)


def test_a_rejected_line_beside_a_paid_one_is_cancelled(owner: Browser, client: Client, import_invoice: Put) -> None:
    paid = factories.INVOICE_LINE | {"claim_status": "paid", "paid_amount": 1234.5}
    lines = [paid, *REJECTED["line_items"]]
    ident = import_invoice(claim_status="partially_paid", total=2469, subtotal=2469, line_items=lines)
    page = owner.get(f"{REVIEW}/{ident}?queue=rejected").text
    for words in (
        "To review 1", "Rejected 1", "A part of it is paid. The agency has rejected line 2: No plan.",
        "Next: correct line 2, claim it again, or cancel it.",
    ):  # fmt: skip
        assert words in main_text(page)
    [path] = re.findall(rf'action="({REVIEW}/{ident}/lines/[^"]+/cancel\?queue=rejected)"', page)
    refused = owner.submit(path, {"reason": " "})
    assert (refused.status_code, "must have 1 to 10000 characters" in refused.text) == (422, True)
    cancelled = owner.submit(path, {"reason": "Not delivered"})
    assert location(cancelled) == f"{REVIEW}?queue=rejected&after={ident}"
    page = owner.get(location(cancelled)).text
    for words in ("No invoice is left in this part", "Line cancelled: INV-1.", "To review 0", "Rejected 0"):
        assert words in main_text(page)
    assert [each["claim_status"] for each in client.get(f"/invoices/{ident}").json()["line_items"]] == [
        "paid", "cancelled",
    ]  # fmt: skip


def test_an_invoice_is_excluded_from_claims(owner: Browser, client: Client, import_invoice: Put) -> None:
    ident = import_invoice(**REJECTED)
    response = owner.submit(f"{REVIEW}/{ident}/wont-claim", {"reason": "Too small"})
    assert location(response) == f"{REVIEW}?after={ident}"
    assert client.get(f"/invoices/{ident}").json()["wont_claim"]


def test_a_decision_about_the_approval_is_recorded(owner: Browser, client: Client, import_invoice: Put) -> None:
    ident = import_invoice(approval_status="pending")
    path = f"{REVIEW}/{ident}/approval/record?queue=approval"
    assert "Record a decision…" in main_text(owner.get(f"{REVIEW}/{ident}?queue=approval").text)
    assert owner.submit(path, {"decision": "perhaps", "reason": "Phone"}).status_code == 422
    decision = {"decision": "reject", "reason": "On the phone: not delivered"}
    assert location(owner.submit(path, decision)) == f"{REVIEW}?queue=approval&after={ident}"
    invoice = client.get(f"/invoices/{ident}").json()
    assert (invoice["approval_status"], invoice["approval_reason"]) == ("rejected", decision["reason"])
    page = main_text(owner.get(f"{REVIEW}/{ident}").text)
    assert re.search(r"and rejected by Ann Lee \(participant\) on \d+ \w+: On the phone: not delivered\.", page)


def test_a_document_is_added(owner: Browser, client: Client, import_invoice: Put) -> None:
    ident = import_invoice(total=99)
    assert "No document." in main_text(owner.get(f"{REVIEW}/{ident}").text)
    path = f"{REVIEW}/{ident}/document?warning=check_total"
    refused = owner.submit(path, files=[("files", ("a.txt", b"text"))])
    assert (refused.status_code, "Document added" in refused.text) == (415, False)
    assert owner.submit(path).status_code == 422
    added = owner.submit(path, files=[("files", ("a.pdf", text_pdf(pages=1)))])
    assert location(added) == f"{REVIEW}/{ident}?warning=check_total"
    assert client.get(f"/invoices/{ident}").json()["document"]["file_name"] == "a.pdf"
    assert "No document." not in main_text(owner.get(f"{REVIEW}/{ident}").text)


def test_the_undo_leads_back_to_the_invoice_in_the_queue(owner: Browser, client: Client, import_invoice: Put) -> None:
    first, second = import_invoice(total=99), import_invoice(invoice_number="INV-2", total=99)
    held = location(owner.submit(f"{REVIEW}/{first}/hold?warning=check_total", {"reason": "Price"}))
    page = owner.get(location(owner.get(held))).text
    [path] = re.findall(r'<a href="([^"]+)" data-key="u">Undo</a>', page)
    assert path.endswith("/undo?review=warning%3Dcheck_total")
    assert "<button autofocus>Undo change</button>" in owner.get(path).text
    undone = owner.submit(path, form_fields(owner, path))
    assert location(undone) == f"{REVIEW}/{first}?warning=check_total"
    assert client.get(f"/invoices/{first}").json()["claim_status"] == "new"
    next_page = owner.get(f"{REVIEW}/{second}?warning=check_total").text
    assert f'href="{REVIEW}/{first}?warning=check_total" data-key="p"' in next_page


def test_a_warning_that_blocks_claims_needs_a_reason_that_says_something(
    owner: Browser, client: Client, import_invoice: Put
) -> None:
    ident = import_invoice(pm_provider_id=None, total=99)
    page = owner.get(f"{REVIEW}/{ident}").text
    assert (page.count('data-key="i"'), page.count("Ignore…")) == (1, 2)
    for reason in ("Agreed", "aaaaaaaaaaaa", "ha ha ha ha ha"):
        for base in (REVIEW, "/console/invoices"):
            response = owner.submit(f"{base}/{ident}/warnings/missing_provider/ignore", {"reason": reason})
            assert (response.status_code, "at least 10 characters" in response.text) == (422, True), (base, reason)
            assert require_linked_errors(response.text)
            assert reason in response.text
    warning = {"code": "missing_provider", "reason": "aaaaaaaaaaaa", "id": [ident]}
    assert owner.submit("/console/invoices/selected/ignore-warning", warning).status_code == 422
    path = f"{REVIEW}/{ident}/warnings/missing_provider/ignore"
    assert location(owner.submit(path, {"reason": "Paid from petty cash"})) == f"{REVIEW}/{ident}"
    path = f"{REVIEW}/{ident}/warnings/check_total/ignore"
    assert location(owner.submit(path, {"reason": "Ok"})) == f"{REVIEW}?after={ident}"
    assert client.get(f"/invoices/{ident}").json()["errors"] is False


def test_a_flagged_invoice_leaves_the_queue_with_its_last_warning(
    owner: Browser, client: Client, import_invoice: Put
) -> None:
    line = factories.INVOICE_LINE | {"claim_status": "flagged"}
    ident = import_invoice(total=99, claim_status="flagged", line_items=[line])
    response = owner.submit(f"{REVIEW}/{ident}/warnings/check_total/ignore", {"reason": "Rounded"})
    assert location(response) == f"{REVIEW}?after={ident}"
    assert "No invoice waits for you." in main_text(owner.get(location(response)).text)
    assert client.get(f"/invoices/{ident}").json()["claim_status"] == "new"


def test_one_page_of_a_document_says_how_many_there_are(owner: Browser, client: Client, import_invoice: Put) -> None:
    ident = import_invoice()
    factories.upload_document(client, ident, text_pdf(pages=2))
    image = owner.get(f"/console/invoices/{ident}/document/pages/1")
    assert image.headers["server-timing"] == 'pages;desc="2"'
