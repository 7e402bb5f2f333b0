"""The review queue: decisions lead to the next invoice, and nobody decides about an invoice of a colleague."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from support import factories
from support.client import Client
from support.console import Account, Browser, main_text
from support.form_helpers import form_fields, require_linked_errors
from support.server import RunningServer

REVIEW = "/console/review"
Put = Callable[..., str]


@pytest.fixture
def record_ids(client: Client) -> dict[str, str]:
    return {
        "participant": client.create("/participants", {"first_name": "Ann", "last_name": "Lee"})["id"],
        "provider": client.create("/providers", {"entity_name": "Amber & Sons", "abn": "51824753556"})["id"],
    }


@pytest.fixture
def import_invoice(server: RunningServer, client: Client, record_ids: dict[str, str]) -> Put:
    """Import an invoice with a wrong total, received on a day."""

    def import_one(number: str, day: int, **values: Any) -> str:
        received = {"invoice_number": number, "received_at": f"2026-01-{day:02}T00:00:00Z", "total": 99}
        return factories.import_invoice(server, client, record_ids, **(received | values))

    return import_one


@pytest.fixture
def own_account(new_account: Callable[..., Account]) -> Account:
    return new_account("owner")


@pytest.fixture
def owner(new_browser: Callable[..., Browser], own_account: Account) -> Browser:
    return new_browser(own_account)


@pytest.fixture
def sign_in_as(new_browser: Callable[..., Browser], new_account: Callable[..., Account]) -> Callable[[str], Browser]:
    return lambda role: new_browser(new_account(role))


def shown(browser: Browser, response: Any) -> tuple[str, str]:
    """The invoice to which a response leads through redirects, and the words of its page."""
    while response.status_code == 303:
        path = response.headers["location"]
        response = browser.get(path)
    assert response.status_code == 200, main_text(response.text)
    found = re.search(r"<title>Review invoice (.*?) · Plankeeper", response.text)
    return found[1] if found else "", main_text(response.text)


def open_queue(browser: Browser, query: str = "") -> str:
    return shown(browser, browser.get(f"{REVIEW}{query}"))[0]


def test_each_decision_leads_to_the_next_invoice_and_can_be_undone(
    owner: Browser, client: Client, import_invoice: Put
) -> None:
    first, second, third = (import_invoice(f"INV-{day}", day) for day in (1, 2, 3))
    number, page = shown(owner, owner.get(REVIEW))
    assert number == "INV-1"
    for words in ("To review 3", "Mine 0", "Unassigned 3", "Held 0", "with 1 open warning", "Late: by the service"):
        assert words in page
    held = owner.submit(f"{REVIEW}/{first}/hold", {"reason": "Price above limit"})
    assert held.headers["location"] == f"{REVIEW}?after={first}"
    next_page = owner.get(held.headers["location"])
    assert next_page.headers["location"] == f"{REVIEW}/{second}"
    text = owner.get(next_page.headers["location"]).text
    assert "Held: INV-1." in main_text(text)
    undo = re.search(r'<a href="([^"]+)" data-key="u">Undo</a>', text)
    assert undo
    assert owner.submit(undo[1], form_fields(owner, undo[1])).status_code == 303
    assert client.get(f"/invoices/{first}").json()["claim_status"] == "new"
    number, page = shown(owner, owner.submit(f"{REVIEW}/{second}/request-approval"))
    assert (number, "Asked for approval of INV-2." in page) == ("INV-3", True)
    assert client.get(f"/invoices/{second}").json()["approval_status"] == "pending"
    assert shown(owner, owner.submit(f"{REVIEW}/{third}/cancel", {"reason": "Billed twice"}))[0] == "INV-1"
    assert open_queue(owner, "?queue=approval") == "INV-2"


def test_a_missing_reason_is_asked_for_again(owner: Browser, import_invoice: Put) -> None:
    ident = import_invoice("INV-1", 1)
    for path in ("hold", "cancel", "warnings/check_total/ignore"):
        response = owner.submit(f"{REVIEW}/{ident}/{path}", {"reason": " "})
        assert (response.status_code, "must have 1 to 10000 characters" in response.text) == (422, True), path
        if path.endswith("/ignore"):
            assert require_linked_errors(response.text)


def test_a_warning_is_ignored_and_restored(owner: Browser, client: Client, import_invoice: Put) -> None:
    ident, _ = import_invoice("INV-1", 1), import_invoice("INV-2", 2)
    number, page = shown(
        owner, owner.submit(f"{REVIEW}/{ident}/warnings/check_total/ignore", {"reason": "The provider rounds"})
    )
    assert (number, "ignored on INV-1." in page) == ("INV-2", True)
    assert client.get(f"/invoices/{ident}").json()["errors"] is False
    page = main_text(owner.get(f"{REVIEW}/{ident}").text)
    assert "The provider rounds" in page
    assert "No open warnings." in page
    assert shown(owner, owner.submit(f"{REVIEW}/{ident}/warnings/check_total/warn"))[0] == "INV-1"
    again = shown(owner, owner.submit(f"{REVIEW}/{ident}/warnings/check_total/warn"))[1]
    assert "Nothing was changed: the invoice no longer has this warning." in again


def test_an_invoice_that_is_assigned_to_oneself_stays(
    owner: Browser, import_invoice: Put, new_account: Callable[..., Account], own_account: Account
) -> None:
    ident, _ = import_invoice("INV-1", 1), import_invoice("INV-2", 2)
    mine = {"assigned_to": str(own_account.account_id)}
    assert shown(owner, owner.submit(f"{REVIEW}/{ident}/assign", mine))[0] == "INV-1"
    assert open_queue(owner, "?assigned=me") == "INV-1"
    assert open_queue(owner, "?assigned=nobody") == "INV-2"
    colleague = {"assigned_to": str(new_account("manager").account_id)}
    number, page = shown(owner, owner.submit(f"{REVIEW}/{ident}/assign", colleague))
    assert (number, "Assigned: INV-1." in page) == ("INV-2", True)
    number, page = shown(owner, owner.get(f"{REVIEW}?assigned={colleague['assigned_to']}"))
    assert (number, "Rejected 0 Robin Hale" in page) == ("INV-1", True)


def test_an_invoice_that_a_colleague_looks_at_can_only_be_read(
    owner: Browser, client: Client, import_invoice: Put, sign_in_as: Callable[[str], Browser]
) -> None:
    ident, _ = import_invoice("INV-1", 1), import_invoice("INV-2", 2)
    colleague = sign_in_as("manager")
    assert open_queue(colleague) == "INV-1"
    assert open_queue(owner) == "INV-2"
    page = owner.get(f"{REVIEW}/{ident}").text
    assert "looks at this invoice at the moment, so you can only read it." in main_text(page)
    assert f'action="{REVIEW}/{ident}/' not in page
    refused = shown(owner, owner.submit(f"{REVIEW}/{ident}/hold", {"reason": "No"}))[1]
    assert "Nothing was changed: a colleague looks at this invoice by now." in refused
    assert client.get(f"/invoices/{ident}").json()["claim_status"] == "new"
    assert owner.submit(f"{REVIEW}/{ident}/lease").status_code == 409
    assert colleague.submit(f"{REVIEW}/{ident}/lease").status_code == 204
    assert open_queue(colleague, f"?after={ident}") == "INV-2"


def test_a_viewer_reads_the_queue_and_takes_nothing(
    owner: Browser, import_invoice: Put, sign_in_as: Callable[[str], Browser]
) -> None:
    ident = import_invoice("INV-1", 1)
    viewer = sign_in_as("viewer")
    assert open_queue(viewer) == "INV-1"
    assert f'action="{REVIEW}/{ident}/' not in viewer.get(f"{REVIEW}/{ident}").text
    assert viewer.submit(f"{REVIEW}/{ident}/hold", {"reason": "No"}).status_code == 403
    assert open_queue(owner) == "INV-1"


def test_an_empty_queue_says_what_was_done_today(owner: Browser, import_invoice: Put) -> None:
    assert "No invoice waits for you. Invoices with an open warning" in main_text(owner.get(REVIEW).text)
    ident = import_invoice("INV-1", 1)
    page = shown(owner, owner.submit(f"{REVIEW}/{ident}/cancel", {"reason": "Twice"}))[1]
    assert "No invoice waits for you. You have worked on 1 invoice today." in page
    assert "No invoice is left in this part of the queue." in main_text(owner.get(f"{REVIEW}?queue=held").text)


def test_a_corrected_invoice_is_shown_in_the_queue_again(owner: Browser, import_invoice: Put) -> None:
    ident = import_invoice("INV-1", 1)
    page = owner.get(f"{REVIEW}/{ident}?warning=check_total").text
    link = re.search(rf'href="(/console/invoices/{ident}/edit\?review=[^"]*)"', page)
    assert link
    form = form_fields(owner, link[1]) | {"total": "1234.50"}
    saved = owner.submit(link[1], form)
    assert saved.headers["location"] == f"{REVIEW}/{ident}?warning=check_total"
    assert "Nothing is left to check. Next: claim it." in shown(owner, saved)[1]


def test_a_line_has_the_budget_of_its_component(
    owner: Browser, client: Client, import_invoice: Put, record_ids: dict[str, str]
) -> None:
    component = {"name": "Daily life", "kind": "stated", "categories": [1], "amount": 5000}
    plan = {"start_date": "2025-07-01", "end_date": "2026-06-30", "components": [component]}
    client.create(f"/participants/{record_ids['participant']}/plans", plan)
    ident = import_invoice("INV-1", 1)
    page = main_text(owner.get(f"{REVIEW}/{ident}").text)
    assert "Daily life: $3,765.50 available of $5,000.00" in page


def test_the_first_page_of_the_next_document_is_drawn_without_showing_it(
    server: RunningServer, owner: Browser, client: Client, import_invoice: Put
) -> None:
    first, second = import_invoice("INV-1", 1), import_invoice("INV-2", 2)
    factories.upload_document(client, second)
    page = owner.get(f"{REVIEW}/{first}").text
    assert f'data-prepare="{REVIEW}/{second}/prepare"' in page
    prepared = owner.submit(f"{REVIEW}/{second}/prepare")
    assert (prepared.status_code, prepared.content) == (204, b"")
    image = owner.get(f"/console/invoices/{second}/document/pages/1")
    assert image.headers["content-type"] == "image/svg+xml"


def test_the_service_standard_is_set_by_owners(
    owner: Browser, import_invoice: Put, sign_in_as: Callable[[str], Browser]
) -> None:
    path = "/console/settings/service-standard"
    wrong = owner.submit(path, {"days_to_claim": "61", "days_to_pay": "two"})
    assert (wrong.status_code, wrong.text.count("must be a whole number from 0 to 60")) == (422, 4)
    saved = owner.submit(path, {"days_to_claim": "60", "days_to_pay": "3"})
    assert "Service standard saved." in main_text(owner.get(saved.headers["location"]).text)
    again = owner.submit(path, {"days_to_claim": "60", "days_to_pay": "3"})
    assert "Nothing was changed." in main_text(owner.get(again.headers["location"]).text)
    assert sign_in_as("manager").get(path).status_code == 403
    ident = import_invoice("INV-1", 5)
    page = main_text(owner.get(f"/console/invoices/{ident}").text)
    assert "Late: by the service standard, it should have been claimed by" in page
