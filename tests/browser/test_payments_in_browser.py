"""A payment run in Chromium, from what it would pay to a returned payment and the reconciliation."""

import os
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from support.client import Client
from support.payments import PayingOffice
from support.server import RunningServer

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture
def office(server: RunningServer, plan_manager_id: UUID, new_client: Callable[..., Client]) -> PayingOffice:
    """An office with lines that can be paid, and others that are left out."""
    client = new_client(plan_manager_id, scopes=("read", "write", "claims", "payments"))
    found = PayingOffice(server, client)
    found.invoices([(f"2026/{number}", ["40.00", "60.50"]) for number in range(440, 444)])
    found.invoice("1250.00", number="CB-77", pm_provider_id=found.provider_with("Café Blau Allied Health Pty Ltd"))
    found.invoice("18.20", number="R1", is_reimbursement=True)
    poor = client.create("/providers", {"entity_name": "Northern Rivers Gardening and Home Maintenance"})["id"]
    found.invoice("55.00", "20.00", number="NR-1", pm_provider_id=poor)
    held = found.invoice("8.00", number="HELD")
    client.post(f"/invoices/{held}/hold", {"reason": "A question"}).raise_for_status()
    return found


def keep_picture(page: Any, name: str) -> None:
    """Check the width of both screens, and keep pictures in the folder that PICTURES names, light and dark."""
    size = page.viewport_size
    for each in (PHONE, WIDE):
        page.set_viewport_size(each)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, each)
    page.set_viewport_size(size)
    if folder := os.environ.get("PICTURES"):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{folder}/pcon-{name}-{size['width']}-{scheme}.png", full_page=True)
        page.emulate_media(color_scheme="light")


def test_a_run_is_made_downloaded_paid_and_a_payment_returned(
    new_visitor: Callable[[str], Any], office: PayingOffice, has_script: bool
) -> None:
    """In a wide window with scripts, and on a phone without them."""
    page = new_visitor("owner")
    page.set_viewport_size(WIDE if has_script else PHONE)
    page.goto("/console/payments")
    keep_picture(page, "empty")
    page.get_by_role("link", name="Make a payment run").first.click()
    page.get_by_role("heading", name="$1,670.20 to 3 payees").wait_for()
    page.get_by_text("The payee has no bank details.").click()
    page.get_by_role("link", name="Northern Rivers Gardening and Home Maintenance").wait_for()
    keep_picture(page, "new")
    page.get_by_role("button", name="Make the run").click()
    page.get_by_role("heading", name="Payment run P000001 · $1,670.20").wait_for()
    page.wait_for_load_state("load")
    keep_picture(page, "draft")
    download_file(page, has_script=has_script)
    page.get_by_text("Cancel this run").click()
    page.get_by_label("The file hasn’t been sent to the bank").wait_for()
    keep_picture(page, "downloaded")
    page.get_by_label("The bank paid on").fill("16 Oct 2026")
    page.get_by_role("button", name="Mark as paid").click()
    page.get_by_text("The bank paid on 16 Oct 2026.").wait_for()
    keep_picture(page, "paid")
    return_payment(page)
    page.goto("/console/payments/reconciliation?from=2026-10-01&to=2026-10-31")
    page.get_by_role("heading", name="Whose money it is 11 lines").wait_for()
    keep_picture(page, "reconciliation")
    page.goto("/console/payments")
    page.get_by_role("link", name="P000001").wait_for()
    keep_picture(page, "list")
    assert office.client.get("/payment-runs").json()["data"][0]["returned"] == 1


def download_file(page: Any, *, has_script: bool) -> None:
    """Download the file: with JavaScript, the page says at once what comes next."""
    with page.expect_download() as started:
        page.get_by_role("button", name="Download the ABA file").click()
    assert started.value.suggested_filename == "P000001.aba"
    if not has_script:
        page.reload()
    page.get_by_text("Next: upload it to your bank").wait_for()


def return_payment(page: Any) -> None:
    """Record that the bank returned the payment to the first payee, on the way by the advices to print."""
    page.get_by_role("link", name="Print 3 remittance advices").click()
    page.get_by_role("heading", name="Remittance advices of P000001 to print").wait_for()
    keep_picture(page, "advices")
    page.go_back()
    page.get_by_role("link", name="Amber Physio").click()
    page.get_by_text("Record that the bank returned this payment").click()
    page.get_by_label("Returned on").fill("17 Oct 2026")
    page.get_by_label("Reason").fill("The account is closed")
    keep_picture(page, "payment")
    page.get_by_role("button", name="Record the return").click()
    page.get_by_text("The bank returned this payment on 17 Oct 2026").wait_for()
    keep_picture(page, "returned")
