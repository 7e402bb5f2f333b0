"""Claim batches in the console: the list, make one, its page, its file, submit, cancel."""

import html
import re
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from plankeeper.console.claims import pages
from plankeeper.resources.claims import service
from support.claims import Office, set_office
from support.console import Browser, main_text

LIST = "/console/claims"


def next_page(page: str) -> str:
    """The address of the next page."""
    [found] = re.findall(r'href="([^"]+)" rel="next"', page)
    return html.unescape(found)


def make_batch(browser: Browser) -> str:
    """The path of a new batch of all lines that can be claimed."""
    response = browser.submit(f"{LIST}/new")
    assert response.status_code == 303, response.text
    return response.headers["location"]


def test_only_people_who_make_claims_have_the_menu_and_the_pages(
    office: Office, manager: Callable[..., Browser]
) -> None:
    batch = office.batch(office.invoice("A1"))
    paths = (LIST, f"{LIST}.csv", f"{LIST}/new", f"{LIST}/{batch['id']}")
    link = f'href="{LIST}"'
    for permissions, is_allowed in ((("make_payments", "override_blocks"), False), (("make_claims",), True)):
        browser = manager(*permissions)
        assert (link in browser.get("/console").text) is is_allowed
        assert {browser.get(path).status_code for path in paths} == ({200} if is_allowed else {403})
        for action in ("file", "submit", "cancel"):
            response = browser.submit(f"{LIST}/{batch['id']}/{action}")
            assert (response.status_code == 403) is not is_allowed


def test_an_empty_list_says_what_to_do(owner: Browser) -> None:
    page = main_text(owner.get(LIST).text)
    assert "There are no claim batches yet. Make one" in page
    assert "There is nothing to claim: no invoice waits for a claim." in main_text(owner.get(f"{LIST}/new").text)
    response = owner.submit(f"{LIST}/new")
    assert response.status_code == 422
    assert 'href="#all"' in response.text


def test_the_preview_says_what_goes_in_and_what_is_left_out(office: Office, owner: Browser) -> None:
    office.invoice("IN-1")
    office.invoice("SAME", office.line(service_date_from="2026-01-14"))
    held = office.invoice("HELD-1", office.line(service_date_from="2026-01-12"))
    office.client.post(f"/invoices/{held['id']}/hold", {"reason": "Wrong hours"}).raise_for_status()
    office.invoice("NO-ITEM", office.line(service_item_number=None, service_date_from="2026-01-11"))
    text = main_text(owner.get(f"{LIST}/new").text)
    assert "$581.98 2 lines" in text
    assert re.search(r"On hold 1 line · \$290.99 The invoice is on hold. Review the held invoices", text)
    assert re.search(r"Without a support item 1 line · \$290.99 .* NO-ITEM line 1", text)
    assert f'href="/console/invoices/{held["id"]}"' in owner.get(f"{LIST}/new").text
    assert office.client.get("/claim-batches").json()["data"] == []


def test_a_batch_is_made_downloaded_submitted(office: Office, owner: Browser) -> None:
    invoice = office.invoice("A1", office.line(), office.line(service_date_from="2026-01-14"))
    path = make_batch(owner)
    page = owner.get(path).text
    text = main_text(page)
    assert "Claim batch B000001 made with 2 lines." in text
    assert "Claim batch B000001 Draft" in text
    assert "Claimed $581.98 2 lines" in text
    assert "A1_2" in text
    assert f'href="/console/invoices/{invoice["id"]}"' in page
    assert "Next: download the file" in text
    assert "Downloaded not yet" in text
    file = owner.submit(f"{path}/file")
    assert 'filename="' in file.headers["content-disposition"]
    assert file.text == office.client.get(f"{path.replace('/console/claims', '/claim-batches')}/file").text
    text = main_text(owner.get(path).text)
    assert re.search(r"File downloaded .* by .*\. Next: upload it to the agency’s portal, and mark the batch", text)
    assert "File of a claim batch downloaded" in text
    assert "doesn’t stop the claims" in main_text(owner.get(f"{path}/cancel").text)
    refused = owner.submit(f"{path}/cancel", {"reason": "Wrong line"})
    assert (refused.status_code, "Confirm that the file hasn’t been uploaded" in refused.text) == (422, True)
    assert owner.submit(f"{path}/submit").headers["location"] == path
    text = main_text(owner.get(path).text)
    assert "Claim batch B000001 Submitted" in text
    assert "Record results" in text
    again = owner.submit(f"{path}/submit")
    assert again.status_code == 409
    assert "The claim batch is submitted, so it can't be submitted." in main_text(again.text)
    assert [each["claim_status"] for each in office.read(invoice)["line_items"]] == ["pending", "pending"]


def test_an_invoice_says_why_the_next_batch_leaves_it_out(office: Office, owner: Browser) -> None:
    hint = "The next claim batch leaves this out."
    invoice = office.invoice("A1", office.line(quantity=1, unit_price=10.005, total_price=10.01))
    page = main_text(owner.get(f"/console/invoices/{invoice['id']}").text)
    assert (
        f"{hint} Line 1: the quantity times the unit price, in cents as the file has it, isn’t $10.01."
        " Enter a quantity of 1 and the whole price, or correct the amount."
    ) in page
    other = office.invoice("A2", office.line(service_date_from="2026-01-10", service_date_to="2026-01-10"))
    assert hint not in owner.get(f"/console/invoices/{other['id']}").text


def test_the_list_filters_by_state_and_has_a_file(office: Office, owner: Browser) -> None:
    first, second = office.batch(office.invoice("A1")), office.batch(office.invoice("A2"))
    office.client.post(f"/claim-batches/{first['id']}/submit").raise_for_status()
    text = main_text(owner.get(LIST).text)
    assert text.index(second["number"]) < text.index(first["number"])
    drafts = main_text(owner.get(f"{LIST}?state=draft").text)
    assert second["number"] in drafts
    assert first["number"] not in drafts
    assert first["number"] in owner.get(f"{LIST}.csv").text


def test_a_cancellation_says_what_becomes_of_the_lines(office: Office, owner: Browser) -> None:
    invoice = office.invoice("A1")
    path = make_batch(owner)
    assert "is unlocked, and can be changed and claimed again" in main_text(owner.get(f"{path}/cancel").text)
    assert owner.submit(f"{path}/cancel").status_code == 303
    text = main_text(owner.get(path).text)
    assert ("Next: make another batch" in text, "Download file" in text) == (True, False)
    assert office.read(invoice)["line_items"][0]["open_claim_batch"] is None
    again = make_batch(owner)
    owner.submit(f"{again}/submit")
    assert "return to the state that they had before" in main_text(owner.get(f"{again}/cancel").text)
    response = owner.submit(f"{again}/cancel", {"reason": " "})
    assert response.status_code == 422
    assert 'href="#not_uploaded"' in response.text
    assert 'href="#reason"' in response.text
    assert owner.submit(f"{again}/cancel", {"reason": "Wrong line", "not_uploaded": "true"}).status_code == 303
    text = main_text(owner.get(again).text)
    assert "Cancelled: Wrong line." in text
    assert "This batch can’t be cancelled any more" in main_text(owner.get(f"{again}/cancel").text)
    assert office.read(invoice)["claim_status"] == "new"


def test_a_full_file_offers_the_next_batch(office: Office, owner: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_LINES", 1)
    office.invoice("A1")
    office.invoice("A2", office.line(service_date_from="2026-01-14"))
    assert "1 line ($290.99) is for the next batch" in main_text(owner.get(f"{LIST}/new").text)
    page = owner.get(make_batch(owner)).text
    assert "The file is full. 1 line was left for the next batch." in main_text(page)
    assert f'<a href="{LIST}/new">Make the next batch</a>' in page
    assert "Claim batch B000002 made with 1 line." in main_text(owner.get(make_batch(owner)).text)


def test_warned_lines_are_listed_before_and_after(office: Office, owner: Browser) -> None:
    office.invoice("A1")
    office.invoice("A2")
    before = owner.get(f"{LIST}/new").text
    for page in (before, owner.get(make_batch(owner)).text):
        text = main_text(page)
        assert "Included, with a warning" in text
        assert "A2 line 1" in text


def test_a_missing_registration_number_leads_to_the_settings(office: Office, owner: Browser) -> None:
    set_office(office.server, office.client, registration_number=None)
    office.invoice("A1")
    page = owner.get(f"{LIST}/new").text
    assert "No line can be claimed now." in main_text(page)
    assert 'href="/console/settings/claims-and-payments">Enter it in the settings' in page
    response = owner.submit(f"{LIST}/new")
    assert response.status_code == 422
    assert "must have a line that can be claimed" in response.text


def test_pages_of_lines_and_states(office: Office, owner: Browser) -> None:
    lines: list[dict[str, Any]] = [
        office.line(quantity=number, unit_price=1, total_price=number) for number in range(1, 61)
    ]
    office.invoice("A1", *lines)
    path = make_batch(owner)
    first = owner.get(path).text
    assert "1–50 of 60" in main_text(first)
    assert "51–60 of 60" in main_text(owner.get(f"{path}?page=2").text)
    assert "51–60 of 60" in main_text(owner.get(f"{path}?page=99").text)
    assert "1–50 of 60" in main_text(owner.get(f"{path}?page=x&state=nothing").text)


def test_the_lines_that_go_in_are_listed_in_pages(office: Office, owner: Browser) -> None:
    lines = [office.line(quantity=number, unit_price=1, total_price=number) for number in range(1, 61)]
    office.invoice("A1", *lines)
    office.invoice("A2", lines[0])
    page = owner.get(f"{LIST}/new").text
    text = main_text(page)
    assert "$1,831.00 61 lines, 2 of them with a warning" in text
    assert "What goes in" in text
    assert f'<a href="{LIST}/new/lines">Show all 61 lines</a>' in page
    first = owner.get(f"{LIST}/new/lines").text
    text = main_text(first)
    assert "A1 line 1 Possible duplicate line No name Amber Physio 15_056_0128_1_3 $1.00" in text
    assert ("A1 line 50" in text, "A1 line 51" in text) == (True, False)
    text = main_text(owner.get(next_page(first)).text)
    assert ("A1 line 51" in text, "A1 line 60" in text, "A2 line 1" in text) == (True, True, True)
    assert ("A1 line 50" in text, "First page" in text, "Next page" in text) == (False, True, False)
    text = main_text(owner.get(f"{LIST}/new/lines?warning=line_duplicate").text)
    assert ("A1 line 1 " in text, "A2 line 1 " in text, "A1 line 2" in text) == (True, True, False)
    for wrong in ("after=x", f"after={office.provider}.{office.provider}", "warning=x"):
        assert "A1 line 1 " in main_text(owner.get(f"{LIST}/new/lines?{wrong}").text)


def test_the_pages_of_a_new_batch_are_what_it_contains(office: Office, owner: Browser) -> None:
    """Each line of a preview is on one page, that of the lines that go in or that of its reason."""
    day = iter(range(1, 29))
    number = 0

    def add(**values: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        return office.invoice(f"N{number}", office.line(service_date_from=f"2025-12-{next(day):02}", **values))

    for _ in range(3):
        add()
        add(service_item_number=None)
        held = add()
        office.client.post(f"/invoices/{held['id']}/hold", {"reason": "Wrong hours"}).raise_for_status()
    dry_run = office.client.post("/claim-batches", {"all": True}, params={"dry_run": "true"}).json()
    shown = re.compile(r'<td class="lead" data-label="Invoice"><span><a class="break" href="/console/invoices/([^"]+)"')
    left_out = {
        reason: shown.findall(owner.get(f"{LIST}/new/left-out?reason={reason}").text)
        for reason in ("missing_item", "held", "blocking_warning", "batch_full")
    }
    expected = {
        name: [each["invoice_id"] for each in dry_run["left_out"] if each["reason"] == name] for name in left_out
    }
    assert left_out == expected
    assert len(expected["held"]) == 3
    included = shown.findall(owner.get(f"{LIST}/new/lines").text)
    batch = office.batch()
    claims = shown.findall(owner.get(f"{LIST}/{batch['id']}").text)
    assert (included, len(included)) == (claims[:3], dry_run["lines"])
    assert owner.get(f"{LIST}/new/left-out?reason=x").headers["location"] == f"{LIST}/new"


def test_the_pages_of_a_batch_that_gets_full_are_what_it_contains(
    office: Office, owner: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "SEARCHED_AT_ONCE", 2)
    shown = re.compile(r'<td class="lead" data-label="Invoice"><span><a class="break" href="/console/invoices/([^"]+)"')

    def walk(path: str) -> list[str]:
        page = owner.get(path).text
        return shown.findall(page) + (walk(next_page(page)) if 'rel="next"' in page else [])

    complete = list[str]()
    for day, is_complete in enumerate((True, False, True, False, False, True, False, True, False), 1):
        item = {} if is_complete else {"service_item_number": None}
        invoice = office.invoice(f"A{day}", office.line(service_date_from=f"2025-12-0{day}", **item))
        complete += [invoice["id"]] if is_complete else []
    held = office.invoice("HELD", office.line(service_date_from="2025-12-20"))
    office.client.post(f"/invoices/{held['id']}/hold", {"reason": "Wrong hours"}).raise_for_status()
    for max_lines, page_size in product((2, 3, 4, 8, 9), (1, 2, 50)):
        monkeypatch.setattr(service, "MAX_LINES", max_lines)
        monkeypatch.setattr(pages, "PAGE_SIZE", page_size)
        dry_run = office.client.post("/claim-batches", {"all": True}, params={"dry_run": "true"}).json()
        for reason in ("missing_item", "held", "batch_full"):
            expected = [each["invoice_id"] for each in dry_run["left_out"] if each["reason"] == reason]
            assert walk(f"{LIST}/new/left-out?reason={reason}") == expected, (max_lines, page_size, reason)
        included = walk(f"{LIST}/new/lines")
        assert (included, dry_run["lines"]) == (complete[:max_lines], len(included)), (max_lines, page_size)


def test_a_long_group_has_pages_of_its_own(office: Office, owner: Browser) -> None:
    amounts = range(1, 53)
    office.invoice(
        "A1",
        office.line(),
        *(office.line(service_item_number=None, quantity=each, unit_price=1, total_price=each) for each in amounts),
    )
    page = owner.get(f"{LIST}/new").text
    assert f'href="{LIST}/new/left-out?reason=missing_item" aria-label="Show all 52' in page
    first = owner.get(f"{LIST}/new/left-out?reason=missing_item").text
    assert ("A1 line 51" in main_text(first), "A1 line 53" in main_text(first)) == (True, False)
    text = main_text(owner.get(next_page(first)).text)
    assert ("A1 line 51" in text, "A1 line 52" in text, "A1 line 53" in text) == (False, True, True)
    batch = make_batch(owner)
    assert f'<a href="{batch}/left-out">52 lines left out</a>' in owner.get(batch).text
    path = f"{batch}/left-out"
    assert "1–50 of 52" in main_text(owner.get(f"{path}?reason=missing_item").text)
    assert "51–52 of 52" in main_text(owner.get(f"{path}?reason=missing_item&page=2").text)
    for each in (page, owner.get(f"{path}?reason=x").text):
        assert "Without a support item 52 lines · $1,378.00" in main_text(each)


def test_another_office_sees_no_batch(
    office: Office, new_plan_manager: Any, new_account: Any, new_browser: Callable[..., Browser]
) -> None:
    batch = office.batch(office.invoice("A1"))
    stranger = new_browser(new_account("owner", new_plan_manager()))
    for path in ("", "/left-out", "/cancel", "/results", "/receipts"):
        assert stranger.get(f"{LIST}/{batch['id']}{path}").status_code == 404
    for action in ("file", "submit", "cancel", "receipts"):
        assert stranger.submit(f"{LIST}/{batch['id']}/{action}").status_code == 404
