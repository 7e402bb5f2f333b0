"""The day of a person who makes claims in Chromium: preview, batch, file, results, money, and what is taken back."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from support.chromium import ACTION_TIMEOUT, axe_violations
from support.claims import Office
from support.client import ALL_SCOPES, Client
from support.console import Account, add_session
from support.results import HEADER, results_csv
from support.server import RunningServer

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 900}


@pytest.fixture
def office(server: RunningServer, plan_manager_id: UUID, new_client: Callable[..., Client]) -> Office:
    return Office(server, new_client(plan_manager_id, scopes=ALL_SCOPES))


@pytest.fixture
def page(chromium: Any, server: RunningServer, new_account: Callable[..., Account]) -> Iterator[Any]:
    """An owner's page. Its policy lets axe-core in, which is a script."""
    context = chromium.new_context(base_url=server.url, viewport=PHONE, bypass_csp=True, reduced_motion="reduce")
    opened = context.new_page()
    opened.set_default_timeout(ACTION_TIMEOUT)
    add_session(context, server, new_account("owner"))
    yield opened
    context.close()


def check(page: Any, heading: str) -> None:
    """The page with this heading fits both screens, and axe-core finds nothing on a phone, light and dark."""
    page.get_by_role("heading", level=1, name=heading).wait_for()
    page.evaluate("document.querySelectorAll('main details').forEach(each => { each.open = true })")
    assert [each["id"] for each in axe_violations(page)] == []
    for size in (WIDE, PHONE):
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (heading, size)


def message(page: Any) -> str:
    return page.get_by_role("status").first.inner_text()


def results(office: Office, batch_number: str) -> bytes:
    """The agency's file: the first line paid, the second one in part, the third one rejected, and a row of another."""
    [batch] = [each for each in office.client.get("/claim-batches").json()["data"] if each["number"] == batch_number]
    claims = office.client.get(f"/claim-batches/{batch['id']}/lines").json()["data"]
    answers = (("SUCCESSFUL", 290.99, ""), ("SUCCESSFUL", 200, ""), ("ERROR", "", "C11: not in the plan"))
    rows = [
        dict(zip(HEADER, ("430000001", claim["reference"], amount, "900000", status, reason), strict=True))
        for claim, (status, amount, reason) in zip(claims, answers, strict=False)
    ]
    return results_csv([*rows, rows[0] | {"ClaimReference": "ELSEWHERE"}])


def enter_invoices(office: Office) -> None:
    """Four lines that can be claimed, and one that is held."""
    days = ("2026-01-12", "2026-01-13", "2026-01-14", "2026-01-15")
    office.invoice("A1", *(office.line(service_date_from=each, service_date_to=each) for each in days))
    held = office.invoice("HELD-1", office.line(service_date_from="2026-01-10", service_date_to="2026-01-10"))
    office.client.post(f"/invoices/{held['id']}/hold", {"reason": "Wrong hours"}).raise_for_status()


def test_from_a_claim_to_its_money(page: Any, office: Office) -> None:
    enter_invoices(office)
    make_batch(page)
    record_results(page, office)
    record_reversal(page)


def make_batch(page: Any) -> None:
    page.goto("/console/claims")
    check(page, "Claims")
    page.get_by_role("link", name="Make a claim batch").first.click()
    check(page, "Make a claim batch")
    assert "$1,163.96" in page.locator(".make-batch").inner_text()
    assert page.get_by_role("link", name="HELD-1", exact=True).is_visible()
    page.keyboard.press("m")
    check(page, "Claim batch B000001 Draft")
    with page.expect_download() as download:
        page.keyboard.press("d")
    assert download.value.suggested_filename.endswith(".csv")
    page.get_by_role("button", name="Mark as submitted").click()
    check(page, "Claim batch B000001 Submitted")
    page.get_by_role("link", name="Cancel batch").click()
    check(page, "Cancel claim batch B000001")
    page.get_by_role("link", name="Back", exact=True).click()


def record_results(page: Any, office: Office) -> None:
    page.get_by_role("link", name="Record results").click()
    check(page, "Record results of B000001")
    file = {"name": "results.csv", "mimeType": "text/csv", "buffer": results(office, "B000001")}
    page.get_by_label("Results file").set_input_files(file)
    page.get_by_role("button", name="Check file").click()
    check(page, "Check the results of B000001")
    assert page.get_by_text("No claim has the reference 'ELSEWHERE'.").is_visible()
    page.get_by_role("button", name="Record these results").click()
    check(page, "Results of B000001")
    assert message(page) == "Results recorded: 1 paid, 1 paid in part, 1 rejected."
    page.get_by_role("link", name="Back to the batch").click()
    check(page, "Claim batch B000001 Partly processed")
    page.get_by_role("link", name="Record money received").click()
    page.get_by_label("Amount, in dollars").fill("490.99")
    page.get_by_role("button", name="Record money").click()
    check(page, "Money received for B000001")


def record_reversal(page: Any) -> None:
    page.goto("/console/claims?state=part_processed")
    page.get_by_role("link", name="B000001").click()
    page.get_by_role("link", name="Line 4 of A1").click()
    check(page, "Claims of line 4 of A1 Pending")
    page.get_by_role("link", name="Record result").click()
    page.get_by_label("Result", exact=True).select_option("paid")
    page.get_by_label("Paid by the agency, in dollars").fill("290.99")
    check(page, "Record the result of line 4 of A1")
    page.get_by_role("button", name="Record result").click()
    check(page, "Claims of line 4 of A1 Payment ready")
    page.get_by_role("link", name="Record a reversal").click()
    page.get_by_label("Amount, in dollars").fill("50")
    check(page, "Record a reversal of line 4 of A1")
    page.get_by_role("button", name="Record reversal").click()
    check(page, "Claims of line 4 of A1 Partially ready")
    assert "Taken back by the agency" in page.locator("main").inner_text()
    page.goto("/console/recoveries")
    check(page, "To recover")
