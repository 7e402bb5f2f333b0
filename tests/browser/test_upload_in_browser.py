"""Documents are dropped or chosen in Chromium, become invoices, and are entered one after the other."""

import re
from typing import Any

import pytest

from support.client import Client
from support.pdf_files import text_pdf

UPLOAD = "/console/invoices/upload"
WORD = {"name": "letter.docx", "mimeType": "application/msword", "buffer": b"PK\x03\x04 word"}


def pdf(number: int) -> dict[str, Any]:
    trailer = f"% {number}\n".encode()
    return {"name": f"{number}.pdf", "mimeType": "application/pdf", "buffer": text_pdf(pages=2, trailer=trailer)}


@pytest.fixture
def records(client: Client) -> None:
    client.create("/providers", {"entity_name": "Amber Gardens", "abn": "51824753556"})
    client.create("/participants", {"first_name": "Ann", "last_name": "Lee", "participant_number": "430205409"})


def upload(page: Any, files: list[dict[str, Any]], *, has_script: bool) -> None:
    page.goto(UPLOAD)
    page.get_by_label("Documents").set_input_files(files)
    if not has_script:
        page.get_by_role("button", name="Upload").click()
    added = page.get_by_role("region", name="Added").or_(page.locator("[data-added]"))
    added.get_by_role("listitem").nth(len(files) - 2).wait_for()


def test_documents_become_invoices_that_are_entered_one_after_the_other(
    visitor: Any, client: Client, records: None, has_script: bool
) -> None:
    loads: list[str] = []
    visitor.on("framenavigated", lambda frame: loads.append(frame.url))
    upload(visitor, [*(pdf(number) for number in range(11)), WORD], has_script=has_script)
    failed = visitor.locator("[data-failed]")
    failed.get_by_text("The file must be a PDF, PNG or JPEG.").wait_for()
    assert "letter.docx" in failed.inner_text()
    assert len(client.get("/invoices", limit=100).json()["data"]) == 11
    visitor.get_by_role("link", name="Enter the first").click()
    visitor.get_by_role("heading", name="Edit invoice without number").wait_for()
    visitor.get_by_alt_text(f"Page {2 if has_script else 1} of the document").wait_for()
    visitor.get_by_label("Invoice number").fill("A-1")
    for kind, text in (("Provider", "51824753556"), ("Participant", "430205409")):
        visitor.get_by_label(kind, exact=True).fill(text)
    visitor.get_by_label("Invoice date").fill("3/11/2026")
    visitor.get_by_label("Quantity", exact=True).fill("2")
    visitor.get_by_label("Unit price", exact=True).fill("60")
    visitor.get_by_role("button", name=re.compile("next", re.IGNORECASE)).click()
    visitor.get_by_text("Changes saved").wait_for()
    visitor.get_by_role("heading", name="Edit invoice without number").wait_for()
    entered = [each for each in client.get("/invoices", limit=100).json()["data"] if each["invoice_number"]]
    assert [(each["invoice_number"], each["subtotal"]) for each in entered] == [("A-1", 120)]
    assert entered[0]["participant_id"]
    assert entered[0]["pm_provider_id"]
    # The page, the form, and the next form. Without JavaScript, the results are another page.
    assert len(loads) == (3 if has_script else 4), loads


@pytest.mark.parametrize("has_script", [True], indirect=True)
def test_files_are_dropped_and_tried_again(visitor: Any, client: Client) -> None:
    visitor.goto(UPLOAD)
    visitor.context.set_offline(True)
    drop = """() => {
        const transfer = new DataTransfer();
        transfer.items.add(new File(["%PDF-1.7 a"], "dropped.pdf", { type: "application/pdf" }));
        document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }"""
    visitor.evaluate(drop)
    failed = visitor.locator("[data-failed]")
    failed.get_by_text("The connection was lost. Try again.").wait_for()
    assert client.get("/invoices").json()["data"] == []
    visitor.context.set_offline(False)
    failed.get_by_role("button", name="Try again").click()
    visitor.locator("[data-added]").get_by_role("link", name="dropped.pdf").wait_for()
    assert failed.is_hidden()
    assert visitor.get_by_role("status").last.inner_text() == "1 added."
    [invoice] = client.get("/invoices").json()["data"]
    assert invoice["document"]["file_name"] == "dropped.pdf"
    visitor.evaluate(drop)
    visitor.locator("[data-added]").get_by_role("link", name="Another invoice").wait_for()
