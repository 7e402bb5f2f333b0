"""Working through the review queue in Chromium: with the keyboard alone, and without JavaScript on a phone."""

import os
from typing import Any

import pytest

from support.client import Client
from support.factories import upload_document
from support.pdf_files import text_pdf

REVIEW = "/console/review"
PHONE, WIDE = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
ITEM = "01_011_0107_1_1"


@pytest.fixture
def numbers(client: Client) -> dict[str, str]:
    """Five invoices with a line that doesn't add up, and a document: their ids by number, the oldest first."""
    provider = client.create("/providers", {"entity_name": "Amber Gardens", "abn": "51824753556"})["id"]
    person = {"first_name": "Ann", "last_name": "Lee", "participant_number": "430205409"}
    participant = client.create("/participants", person)["id"]
    component = {"name": "Daily life", "kind": "stated", "categories": [1], "amount": 500}
    plan = {"start_date": "2026-07-01", "end_date": "2027-06-30", "components": [component]}
    client.create(f"/participants/{participant}/plans", plan)
    line = {
        "description": "Lawn mowing", "service_item_number": ITEM, "quantity": 2, "unit_price": 50, "total_price": 120,
    }  # fmt: skip
    ids = dict[str, str]()
    for day in range(1, 6):
        dates = {"invoice_date": f"2026-11-0{day}", "received_at": f"2026-11-0{day}T01:00:00Z"}
        service = {"service_date_from": f"2026-11-0{day}", "service_date_to": f"2026-11-0{day}"}
        invoice = client.create(
            "/invoices",
            {
                "invoice_number": f"INV-{day}", "participant_id": participant, "pm_provider_id": provider,
                "subtotal": 120, "tax": 0, "total": 120, "line_items": [line | service], **dates,
            },
        )  # fmt: skip
        ids[invoice["invoice_number"]] = invoice["id"]
        upload_document(client, invoice["id"], text_pdf(pages=1, trailer=f"% {day}\n".encode()))
    return ids


def wait_for_invoice(page: Any, number: str) -> None:
    page.get_by_role("heading", name=f"Invoice {number}").wait_for()
    page.wait_for_load_state()  # keys work when the scripts have run


def keep_picture(page: Any, name: str) -> None:
    """Store a picture of the page if somebody wants to look at it."""
    if folder := os.environ.get("PICTURES"):
        page.wait_for_load_state("networkidle")
        page.screenshot(path=f"{folder}/{name}.png", full_page=page.viewport_size == PHONE)


def type_keys(page: Any, *keys: str, then: str = "") -> None:
    """Type texts, and press the keys in brackets. An invoice appears then."""
    for each in keys:
        if each.startswith("["):
            page.keyboard.press(each.strip("[]"))
        else:
            page.keyboard.type(each)
    if then:
        wait_for_invoice(page, then)


@pytest.mark.parametrize("has_script", [True], indirect=True)
def test_five_invoices_are_reviewed_with_the_keyboard_alone(
    visitor: Any, client: Client, numbers: dict[str, str]
) -> None:
    visitor.set_viewport_size(WIDE)
    visitor.goto("/console")
    type_keys(visitor, "gq", then="INV-1")
    keep_picture(visitor, "review-1280")
    assert visitor.evaluate("document.documentElement.scrollHeight") <= 1100
    type_keys(visitor, "e")
    visitor.get_by_role("heading", name="Edit invoice INV-1").wait_for()
    visitor.wait_for_load_state()
    visitor.get_by_role("group", name="Line 1", exact=True).get_by_label("Quantity", exact=True).focus()
    type_keys(visitor, "[Control+a]", "2.4", "[Control+Enter]", then="INV-1")
    visitor.get_by_text("No open warnings.").wait_for()
    visitor.wait_for_load_state()
    type_keys(visitor, "n", then="INV-2")
    type_keys(visitor, "i", "The provider rounds", "[Control+Enter]", then="INV-3")
    visitor.get_by_text("ignored on INV-2.").wait_for()
    type_keys(visitor, "h", "[Control+Enter]", then="INV-4")  # with the warnings as the reason
    type_keys(visitor, "q", "[Enter]", then="INV-5")
    type_keys(visitor, "m")
    visitor.get_by_text("Assigned: INV-5.").wait_for()
    visitor.wait_for_load_state()
    type_keys(visitor, "h", "[Control+Enter]", then="INV-4")
    type_keys(visitor, "u")
    visitor.get_by_role("heading", name="Undo this change?").wait_for()
    visitor.wait_for_load_state()
    type_keys(visitor, "[Enter]", then="INV-5")
    visitor.get_by_text("Undone:").wait_for()
    found = {name: client.get(f"/invoices/{ident}").json() for name, ident in numbers.items()}
    assert [each["claim_status"] for each in found.values()] == ["new", "new", "on_hold", "new", "new"]
    assert found["INV-1"]["line_items"][0]["quantity"] == 2.4
    assert found["INV-2"]["state_management"]["ignored_errors"] == ["check_total"]
    assert found["INV-3"]["hold_reason"] == "Amounts don’t add up"
    assert found["INV-4"]["approval_status"] == "pending"
    assert found["INV-5"]["assigned_to"]


def test_invoices_are_reviewed_with_and_without_javascript(
    visitor: Any, client: Client, numbers: dict[str, str], has_script: bool
) -> None:
    """On a phone with scripts, and in a wide window without them."""
    width = PHONE if has_script else WIDE
    visitor.set_viewport_size(width)
    visitor.emulate_media(color_scheme="dark")
    visitor.goto(REVIEW)
    wait_for_invoice(visitor, "INV-1")
    keep_picture(visitor, f"review-{width['width']}-dark")
    assert visitor.evaluate("document.documentElement.scrollWidth") <= width["width"]
    visitor.get_by_text("Hold…").click()
    visitor.get_by_label("Reason").locator("visible=true").fill("Price above limit")
    visitor.get_by_role("button", name="Hold", exact=True).click()
    wait_for_invoice(visitor, "INV-2")
    visitor.get_by_text("Held: INV-1.").wait_for()
    visitor.get_by_text("Assign…").click()
    visitor.get_by_label("Assigned to").select_option(label="Robin Hale")
    visitor.get_by_role("button", name="Assign", exact=True).click()
    visitor.get_by_text("Assigned: INV-2.").wait_for()
    visitor.get_by_role("link", name="Next").click()
    wait_for_invoice(visitor, "INV-3")
    visitor.get_by_role("link", name="Held 1").click()
    wait_for_invoice(visitor, "INV-1")
    visitor.get_by_role("button", name="Release").click()
    visitor.get_by_text("No invoice is left in this part of the queue.").wait_for()
    keep_picture(visitor, f"review-empty-{width['width']}-dark")
    assert client.get(f"/invoices/{numbers['INV-1']}").json()["claim_status"] == "new"


@pytest.mark.parametrize("has_script", [True], indirect=True)
def test_keys_lead_through_the_tabs_and_escape_closes_a_form(visitor: Any, numbers: dict[str, str]) -> None:
    assert numbers
    visitor.set_viewport_size(WIDE)
    missing: list[str] = []
    visitor.on("response", lambda each: missing.append(each.url) if each.status == 404 else None)
    visitor.goto(REVIEW)
    wait_for_invoice(visitor, "INV-1")
    type_keys(visitor, "i")
    reason = visitor.get_by_label("Reason").locator("visible=true")
    reason.wait_for()
    type_keys(visitor, "[Escape]")
    reason.wait_for(state="detached")
    assert visitor.evaluate("document.activeElement.getAttribute('data-key')") == "i"
    type_keys(visitor, "h")
    top = "document.querySelector('.warning-card').getBoundingClientRect().top"
    bottom = "document.querySelector('.popover[open] .panel').getBoundingClientRect().bottom"
    assert visitor.evaluate(f"{bottom} <= {top}")
    keep_picture(visitor, "review-hold-1280")
    type_keys(visitor, "[Escape]", "n", then="INV-2")
    type_keys(visitor, "p", then="INV-1")
    type_keys(visitor, "b")
    visitor.get_by_role("link", name="Amounts don’t add up 5").wait_for()
    type_keys(visitor, "[Escape]", "3", then="INV-1")
    assert visitor.url.endswith("?assigned=nobody")
    visitor.wait_for_load_state("networkidle")
    assert missing == []


def test_an_invoice_without_a_document_has_a_field_for_one(visitor: Any, client: Client) -> None:
    invoice = client.create("/invoices", {"invoice_number": "INV-9", "received_at": "2026-11-01T01:00:00Z"})["id"]
    for size in (WIDE, PHONE):
        visitor.set_viewport_size(size)
        visitor.goto(f"{REVIEW}/{invoice}")
        wait_for_invoice(visitor, "INV-9")
        keep_picture(visitor, f"review-no-document-{size['width']}")
        assert visitor.evaluate("document.documentElement.scrollWidth") <= size["width"]
    file = {"name": "a.pdf", "mimeType": "application/pdf", "buffer": text_pdf(pages=1)}
    visitor.get_by_label("Add a document").set_input_files(file)
    visitor.get_by_role("button", name="Add", exact=True).click()
    visitor.get_by_text("Document added.").wait_for()
    visitor.get_by_role("img", name="Page 1 of the document").wait_for()
