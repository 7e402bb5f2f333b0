"""The link to approve an invoice in Chromium: mail, page, decision, with and without JavaScript, on both widths."""

import os
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from support.chromium import ACTION_TIMEOUT, axe_violations
from support.client import Client
from support.cluster import SharedCluster
from support.console import create_account, fill_sign_in_form, wait_until_signed_in
from support.factories import create_client, upload_document
from support.outbox import MailingServer, mailing_server
from support.pdf_files import pdf_file
from support.tls_front import PUBLIC_URL, TlsFront

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 900}
LINES = [
    {
        "description": f"{what}, at home", "service_item_number": "01_019_0120_1_1", "quantity": 2, "unit_price": 60,
        "total_price": 120, "service_date_from": "2026-01-05", "service_date_to": "2026-01-05",
    }
    for what in ("Gardening", "Cleaning")
]  # fmt: skip


@pytest.fixture(scope="module")
def mailing(cluster: SharedCluster) -> Iterator[MailingServer]:
    with mailing_server(cluster) as found:
        yield found


@pytest.fixture
def api(mailing: MailingServer) -> Iterator[Client]:
    client = mailing.server.run(create_client(mailing.server))
    yield client
    client.http.close()


@pytest.fixture
def context(chromium: Any, public_front: TlsFront, mailing: MailingServer, has_script: bool) -> Iterator[Any]:
    """A browser at the public host: a phone with scripts, or a wide window without them."""
    public_front.lead_to(mailing.server.url)
    opened = chromium.new_context(
        base_url=PUBLIC_URL, ignore_https_errors=True, reduced_motion="reduce", viewport=PHONE if has_script else WIDE,
        java_script_enabled=has_script, bypass_csp=has_script,
    )  # fmt: skip
    opened.set_default_timeout(ACTION_TIMEOUT)
    yield opened
    opened.close()


def new_invoice(api: Client, email: str) -> dict[str, Any]:
    person = {"first_name": "Sam", "last_name": "Okafor", "email": email, "approval_required": True}
    participant = api.create("/participants", person)
    provider = api.create("/providers", {"entity_name": "Green Thumb", "abn": "51824753556"})
    body = {
        "invoice_number": "G-1", "invoice_date": "2026-01-06", "total": 240, "tax": 0, "subtotal": 240,
        "participant_id": participant["id"], "pm_provider_id": provider["id"], "line_items": LINES,
    }  # fmt: skip
    invoice = api.create("/invoices", body)
    upload_document(api, invoice["id"], pdf_file([b"<</Type/Catalog/Pages 2 0 R>>", PAGE_TREE, PAGE]))
    return invoice


PAGE_TREE = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]>>"


def check(page: Any, name: str, *, has_script: bool) -> None:
    """Axe-core finds nothing on a phone, light and dark, and the page isn't wider than either screen."""
    if folder := os.environ.get("SCREENSHOTS"):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{folder}/{name}-{scheme}.png", full_page=True)
    if not has_script:
        return
    assert [each["id"] for each in axe_violations(page)] == []
    for size in (WIDE, PHONE):
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), size


def test_a_person_approves_or_rejects_and_the_office_sees_it(
    context: Any, mailing: MailingServer, api: Client, has_script: bool
) -> None:
    name = "phone-script" if has_script else "wide-plain"
    email = f"{name}-{api.plan_manager_id}@example.com"
    invoice, page = new_invoice(api, email), context.new_page()
    [link] = mailing.mail.wait_for(email).links
    page.goto(link)
    page.get_by_role("heading", name="Green Thumb bills $240.00").wait_for()
    assert page.locator(".document-pages img").count() == 1
    check(page, f"link-{name}", has_script=has_script)
    page.get_by_label("What is wrong?").fill("Nobody came on that day")
    page.get_by_role("button", name="Reject the invoice").click()
    page.get_by_role("heading", name="The invoice is rejected").wait_for()
    check(page, f"closed-{name}", has_script=has_script)
    # The office asks again after a correction, and the person approves.
    owner = mailing.server.run(create_account(mailing.server, UUID(api.plan_manager_id), "owner"))
    office = context.new_page()
    fill_sign_in_form(office, owner.email)
    wait_until_signed_in(office)
    office.goto(f"/console/invoices/{invoice['id']}")
    card = office.locator("section", has=office.get_by_role("heading", name="Approval", exact=True)).last
    card.get_by_text("Nobody came on that day").wait_for()
    card.get_by_role("button", name="Ask for approval").click()
    card.get_by_text(email).first.wait_for()
    [second] = mailing.mail.wait_for(email, 2).links
    office.reload()
    check(office, f"office-{name}", has_script=has_script)
    page.goto(second)
    page.get_by_role("button", name="Approve the invoice").click()
    page.get_by_role("heading", name="The invoice is approved").wait_for()
    office.reload()
    office.get_by_text("Used to decide").first.wait_for()
    office.goto("/console/settings/approval")
    office.get_by_label("Remind after days").fill("3")
    office.get_by_role("button", name="Save").click()
    check(office, f"settings-{name}", has_script=has_script)
    page.goto("/console/approvals/nothing")
    check(page, f"wrong-{name}", has_script=has_script)
