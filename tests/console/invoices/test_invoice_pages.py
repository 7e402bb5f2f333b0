"""Invoices in the console: the list, one invoice, warnings that are ignored and count again."""

import re
from collections.abc import Callable
from functools import partial
from html import unescape
from typing import Any
from uuid import UUID

import pytest

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.resources.invoices import recheck_store
from plankeeper.resources.invoices.rechecks import check_next
from support import factories
from support.client import Client
from support.console import Account, Browser
from support.factories import INVOICE_LINE
from support.server import RunningServer, wait_until

INVOICES = "/console/invoices"
SCRIPT = "<script>alert(1)</script>"
Put = Callable[..., str]


@pytest.fixture
def record_ids(client: Client) -> dict[str, str]:
    """A participant and a provider."""
    return {
        "participant": client.create("/participants", {"first_name": "Ann", "last_name": "Lee"})["id"],
        "provider": client.create("/providers", {"entity_name": "Amber & Sons", "abn": "51824753556"})["id"],
    }


@pytest.fixture
def import_invoice(server: RunningServer, client: Client, record_ids: dict[str, str]) -> Put:
    """Imports an invoice without warnings, except for what the values cause: its id."""
    return partial(factories.import_invoice, server, client, record_ids)


def listed_numbers(browser: Browser, **query: str) -> list[str]:
    """The numbers of the invoices on a page of the list."""
    link = r'<a href="/console/invoices/[0-9a-f-]{36}\?list=[^"]*">([^<]+)</a>'
    return re.findall(link, browser.get(INVOICES, params=query).text)


def warning_state(client: Client, ident: str) -> tuple[bool, list[str], list[str]]:
    invoice = client.get(f"/invoices/{ident}").json()
    return invoice["errors"], invoice["state_management"]["errors"], invoice["state_management"]["ignored_errors"]


def test_an_invoice_is_shown_with_its_lines_and_warnings_explained(owner: Browser, import_invoice: Put) -> None:
    line = INVOICE_LINE | {"description": "Lawn mowing", "unit_price": 617.255, "claim_status": "on_hold"}
    ident = import_invoice(invoice_date="2099-01-01", tax=10, line_items=[line], s3_key="a/b.pdf")
    page = owner.get(f"{INVOICES}/{ident}").text
    for text in (
        "Invoice INV-1", "1 Jan 2099", "Ann Lee", "Amber &amp; Sons", "Lawn mowing", "01_011_0107_1_1", "$617.255",
        "$1,234.50", "$10.00", "On hold", "a/b.pdf", "Check the date", "days in the future.",
        "Amounts don’t add up",
        "Line 1: 2 × $617.255 is $1,234.51, the invoice says $1,234.50.", "Expected $1,234.51",
        "Subtotal $1,234.50 plus tax $10.00 is $1,244.50, the invoice says $1,234.50.", "Expected $1,244.50",
    ):  # fmt: skip
        assert text in page
    assert "Possible duplicate" not in page
    bare = import_invoice(
        invoice_number=None, invoice_date=None, total=None, tax=None, subtotal=None, line_items=[], is_deleted=True
    )
    page = owner.get(f"{INVOICES}/{bare}").text
    for text in (
        "Invoice without number",
        "Deleted.",
        "It is neither claimed nor paid.",
        "This invoice has no lines.",
        "No invoice number",
    ):
        assert text in page


def test_an_invoice_on_hold_says_what_remains_to_do(owner: Browser, import_invoice: Put) -> None:
    remains = "Next: release it."
    held = import_invoice(invoice_number=None, claim_status="on_hold")
    here = f"{INVOICES}/{held}"
    assert "Next: settle 1 open warning (No invoice number), then release it." in owner.get(here).text
    assert owner.submit(f"{here}/warnings/missing_invoice_number/ignore", {"reason": "Agreed then"}).status_code == 303
    page = owner.get(here).text
    assert ("No open warnings." in page, remains in page) == (True, True)
    assert remains not in owner.get(f"{INVOICES}/{import_invoice(claim_status='paid')}").text


def test_a_warning_is_ignored_with_a_reason_and_restored(
    server: RunningServer, new_browser: Callable[..., Browser], new_account: Callable[..., Account], client: Client,
    plan_manager_id: UUID, import_invoice: Put,
) -> None:  # fmt: skip
    person = new_account("manager")
    manager, ident = new_browser(person), import_invoice(invoice_date="2099-01-01")
    here = f"{INVOICES}/{ident}"
    step = f"{here}/warnings/check_dates"
    assert warning_state(client, ident) == (True, ["check_dates"], [])
    assert f'action="{step}/ignore"' in manager.get(here).text
    assert "days in the future." in manager.get(f"{step}/ignore").text
    assert (
        manager.submit(f"{step}/ignore", {"reason": f" Agreed with\r\nthe plan {SCRIPT} "}).headers["location"] == here
    )
    assert warning_state(client, ident) == (False, ["check_dates"], ["check_dates"])
    page = manager.get(here).text
    assert ("” ignored." in page, "No open warnings." in page) == (True, True)
    assert "Agreed with\nthe plan &lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert ("Robin Hale, <time" in page, SCRIPT in page) == (True, False)
    assert listed_numbers(manager, warning="any") == []

    assert manager.submit(f"{step}/warn").headers["location"] == here
    assert warning_state(client, ident) == (True, ["check_dates"], [])
    assert "Agreed with" not in manager.get(here).text

    events = wait_until(lambda: len(found := update_events(client, ident)) == 2 and found)
    assert [each["actor"] for each in events] == [
        {"kind": "user", "id": str(person.account_id), "name": "Robin Hale"}
    ] * 2
    assert events[0]["previous"] == {
        "errors": True,
        "state_management": {"errors": ["check_dates"], "ignored_errors": []},
    }
    assert events[0]["data"]["state_management"]["ignored_errors"] == ["check_dates"]
    assert (events[1]["data"], events[1]["data"]["errors"]) == (client.get(f"/invoices/{ident}").json(), True)


def update_events(client: Client, ident: str) -> list[Any]:
    types = ("invoice.warning_ignored", "invoice.warning_restored")
    found = client.get("/events", resource_id=ident, after="0").json()["data"]
    return [each for each in found if each["type"] in types]


def test_a_reason_is_removed_when_its_warning_is_restored(owner: Browser, client: Client, import_invoice: Put) -> None:
    ident = import_invoice(invoice_date="2099-01-01", tax=10)
    for code in ("check_dates", "check_total"):
        form = {"reason": f"Why {code}"}
        assert owner.submit(f"{INVOICES}/{ident}/warnings/{code}/ignore", form).status_code == 303
    assert owner.submit(f"{INVOICES}/{ident}/warnings/check_dates/warn").status_code == 303
    # A file that ignores it brings no reason, and not the old one back.
    import_invoice(
        id=ident, invoice_date="2099-01-01", tax=10, state_management={"ignored_errors": ["check_dates", "check_total"]}
    )
    page = owner.get(f"{INVOICES}/{ident}").text
    assert ("Why check_dates" in page, "Why check_total" in page) == (False, True)


def test_one_warning_of_two_is_ignored(owner: Browser, client: Client, import_invoice: Put) -> None:
    ident = import_invoice(invoice_date="2099-01-01", total=1300)
    assert owner.submit(f"{INVOICES}/{ident}/warnings/check_dates/ignore", {"reason": "Known to us"}).status_code == 303
    assert warning_state(client, ident) == (True, ["check_total", "check_dates"], ["check_dates"])
    assert listed_numbers(owner, warning="any") == ["INV-1"]


@pytest.mark.parametrize("reason", ["", "  \n ", "x" * 10_001])
def test_a_reason_is_required_and_has_a_maximum_length(
    owner: Browser, client: Client, import_invoice: Put, reason: str
) -> None:
    ident = import_invoice(invoice_date="2099-01-01")
    response = owner.submit(f"{INVOICES}/{ident}/warnings/check_dates/ignore", {"reason": reason})
    assert (response.status_code, "Reason must have 1 to 10000 characters" in response.text) == (422, True)
    assert reason.strip() in response.text
    assert warning_state(client, ident) == (True, ["check_dates"], [])
    longest = "\r\n".join(["x" * 499, "y" * 500])
    assert owner.submit(f"{INVOICES}/{ident}/warnings/check_dates/ignore", {"reason": longest}).status_code == 303


def test_a_warning_that_no_longer_exists_cannot_be_ignored(owner: Browser, client: Client, import_invoice: Put) -> None:
    ident = import_invoice(invoice_date="2099-01-01")
    here = f"{INVOICES}/{ident}"
    assert owner.submit(f"{here}/warnings/check_dates/ignore", {"reason": "First"}).status_code == 303
    wait_until(lambda: len(update_events(client, ident)) == 1)
    for code in ("check_dates", "check_total"):
        assert owner.submit(f"{here}/warnings/{code}/ignore", {"reason": "Second"}).headers["location"] == here
        assert "Nothing was changed" in owner.get(here).text
        assert owner.get(f"{here}/warnings/{code}/ignore").headers["location"] == here
    assert owner.submit(f"{here}/warnings/check_total/warn").headers["location"] == here
    for code in ("no_such_code", "%3Cscript%3E"):
        assert owner.get(f"{here}/warnings/{code}/ignore").status_code == 404
        assert owner.submit(f"{here}/warnings/{code}/ignore", {"reason": "x"}).status_code == 404
    assert warning_state(client, ident) == (False, ["check_dates"], ["check_dates"])
    page = owner.get(here).text
    assert ("First" in page, "Second" in page, len(update_events(client, ident))) == (True, False, 1)


def test_ignored_warnings_survive_a_recheck_and_an_import(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID, import_invoice: Put
) -> None:
    ident = import_invoice(invoice_date="2099-01-01")
    assert owner.submit(f"{INVOICES}/{ident}/warnings/check_dates/ignore", {"reason": "Agreed"}).status_code == 303

    async def check_all() -> int:
        async with server.db.transaction() as tx:
            return (await check_next(WriteContext(tx, plan_manager_id, server.settings, SYSTEM), recheck_store.FIRST))[
                1
            ]

    assert server.run(check_all()) == 0
    import_invoice(id=ident, invoice_date="2099-01-01", claim_status="pending")
    assert warning_state(client, ident) == (False, ["check_dates"], ["check_dates"])
    assert "Agreed" in owner.get(f"{INVOICES}/{ident}").text
    # A file that says what is ignored has the last word.
    import_invoice(id=ident, invoice_date="2099-01-01", state_management={"ignored_errors": []})
    assert warning_state(client, ident) == (True, ["check_dates"], [])
    page = owner.get(f"{INVOICES}/{ident}").text
    assert ("Agreed" in page, "Check the date" in page) == (False, True)


def test_warnings_ignored_by_a_file_have_no_reason_and_can_be_restored(
    owner: Browser, client: Client, import_invoice: Put
) -> None:
    ident = import_invoice(state_management={"ignored_errors": ["check_dates", "<odd> code"]})
    page = owner.get(f"{INVOICES}/{ident}").text
    assert (page.count("Imported as ignored"), "&lt;odd&gt; code" in page, "Unknown warning" in page) == (
        2,
        True,
        True,
    )
    for action in re.findall(r'action="([^"]+/warn)"', page):
        assert owner.submit(unescape(action)).status_code == 303
    assert warning_state(client, ident) == (False, [], [])


def test_a_viewer_sees_no_links_to_changes(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], import_invoice: Put
) -> None:
    ident = import_invoice(invoice_date="2099-01-01", state_management={"ignored_errors": ["check_total"]})
    viewer = new_browser(new_account("viewer"))
    page = viewer.get(f"{INVOICES}/{ident}").text
    assert ("Check the date" in page, "/ignore" in page, "Restore" in page) == (True, False, False)


def test_stored_text_is_shown_as_text(owner: Browser, client: Client, import_invoice: Put) -> None:
    who = client.create("/participants", {"first_name": SCRIPT})["id"]
    by = client.create("/providers", {"entity_name": SCRIPT})["id"]
    line = {"service_item_number": SCRIPT, "description": SCRIPT}
    ident = import_invoice(
        invoice_number=SCRIPT, participant_id=who, pm_provider_id=by, s3_key=SCRIPT, email_message_id=SCRIPT,
        line_items=[line],
    )  # fmt: skip
    for path in (INVOICES, f"{INVOICES}/{ident}", f"{INVOICES}/{ident}/warnings/check_item_code/ignore"):
        page = owner.get(path).text
        assert (SCRIPT in page, "&lt;script&gt;alert(1)" in page) == (False, True), path


def test_every_warning_of_the_catalogue_can_be_ignored(owner: Browser, client: Client, import_invoice: Put) -> None:
    ident = import_invoice(
        invoice_number=None, participant_id=None, pm_provider_id=None, invoice_date=None, line_items=[{}]
    )
    codes = warning_state(client, ident)[1]
    assert len(codes) >= 5
    for code in codes:
        assert owner.submit(f"{INVOICES}/{ident}/warnings/{code}/ignore", {"reason": "Known to us"}).status_code == 303
    assert warning_state(client, ident) == (False, codes, codes)


def test_a_duplicate_is_compared_with_the_earlier_invoice(
    owner: Browser, client: Client, import_invoice: Put, record_ids: dict[str, str]
) -> None:
    other = client.create("/participants", {"first_name": "Bo"})["id"]
    first = import_invoice(claim_status="paid", created_at="2026-01-16T00:00:00Z", s3_key="2026/first.pdf")
    same = import_invoice(created_at="2026-01-17T00:00:00Z", s3_key="2026/same.pdf")
    changed = import_invoice(
        created_at="2026-01-18T00:00:00Z", participant_id=other, total=1300, tax=65.5,
        line_items=[INVOICE_LINE | {"description": "Care"}],
    )  # fmt: skip
    assert "Earlier invoice" not in owner.get(f"{INVOICES}/{first}").text
    page = owner.get(f"{INVOICES}/{same}").text
    assert "An earlier invoice from this provider has the same number." in page
    assert "Invoice date, participant, amounts and lines are the same." in page
    assert (f'href="{INVOICES}/{first}"' in page, ">differs<" in page) == (True, False)
    assert compared_row(page, "Document") == ("same.pdf", "first.pdf")
    assert compared_row(page, "Claim status") == ("New", "Paid")
    page = owner.get(f"{INVOICES}/{changed}").text
    assert (page.count('class="compared grid"'), "4 differences" in page) == (2, True)
    assert compared_row(page, "Participant") == ("Bo", "Ann Lee")
    assert compared_row(page, "Line 1") == (
        "Care · 01_011_0107_1_1 · 2 × $617.25 · $1,234.50", "01_011_0107_1_1 · 2 × $617.25 · $1,234.50",
    )  # fmt: skip
    assert page.index(f'href="{INVOICES}/{same}"') < page.index(f'href="{INVOICES}/{first}"')


def compared_row(page: str, label: str) -> tuple[str, ...]:
    """The first row with a label in a comparison: the texts of both invoices."""
    row = page.partition(f'<th scope="row">{label}')[2].partition("</tr>")[0]
    return tuple(unescape(text) for text in re.findall(r'<span class="break">([^<]*)</span>', row))


def test_a_warning_that_the_last_check_found_may_no_longer_apply(
    owner: Browser, client: Client, import_invoice: Put, record_ids: dict[str, str]
) -> None:
    ident = import_invoice(invoice_date="2020-01-01", participant_id=record_ids["participant"])
    assert warning_state(client, ident)[1] == []
    client.put(f"/participants/{record_ids['participant']}", {"plan_start_date": "2025-07-01"})
    import_invoice(id=ident, invoice_date="2020-01-01")
    page = owner.get(f"{INVOICES}/{ident}").text
    assert "The invoice is dated 1 Jan 2020, 2,008 days before the plan starts (1 Jul 2025)." in page
    client.put(f"/participants/{record_ids['participant']}", {"plan_start_date": None})
    assert "This was found by the last check, and no longer applies." in owner.get(f"{INVOICES}/{ident}").text
