"""The pages of runs of statements: started, looked at, tried again, printed; and their settings."""

import io
import re
from collections.abc import Callable

import pypdfium2
import pytest

from plankeeper.resources.office_settings import store
from support.client import Client
from support.console import Account, Browser, main_text
from support.server import RunningServer
from support.statement_runs import ADDRESS, MONTH, StatementOffice

PAGE = "/console/statements"
SETTINGS = "/console/settings/statements"


@pytest.fixture
def office(server: RunningServer, client: Client) -> StatementOffice:
    return StatementOffice(server, client)


def test_a_run_is_started_and_tried_again(office: StatementOffice, manager: Callable[..., Browser]) -> None:
    browser = manager()
    assert "There are no runs yet." in main_text(browser.get(PAGE).text)
    posted = office.participant("Ana", postal_statement=True, **ADDRESS)
    failed = office.participant("Bo", postal_statement=True)
    started = browser.submit(PAGE, {"month": MONTH})
    page = started.headers["location"]
    run = {"id": page.rpartition("/")[2]}
    office.ended(run)
    text = main_text(browser.get(page).text)
    assert "Statements for March 2026 Ended 2 plans 1 failed" in text
    assert "All 2 Failed 1 To print 1" in text
    assert "Bo Hale Failed It is to be sent by post, and the participant has no postal address." in text
    assert "Ana Hale" not in main_text(browser.get(f"{page}?state=failed").text)
    office.client.put(f"/participants/{failed}", ADDRESS).raise_for_status()
    item = office.items(run)[failed]["id"]
    assert browser.submit(f"{page}/retry", {"item_id": item}).headers["location"] == page
    office.ended(run)
    assert {each["state"] for each in office.items(run).values()} == {"to_print"}
    assert "March 2026 Ended 0 2 0" in main_text(browser.get(PAGE).text)
    assert posted


def test_letters_are_printed_and_marked_as_posted(office: StatementOffice, manager: Callable[..., Browser]) -> None:
    browser = manager()
    ids = [office.participant(name, postal_statement=True, **ADDRESS) for name in ("Ana", "Bo")]
    run = office.ended(office.start())
    page = f"{PAGE}/{run['id']}"
    file = browser.get(f"{page}/print-file?part=1")
    assert file.headers["content-type"] == "application/pdf"
    assert file.headers["content-disposition"] == 'attachment; filename="statements-2026-03-1.pdf"'
    document = pypdfium2.PdfDocument(io.BytesIO(file.content))
    pages = [each.get_textpage().get_text_range() for each in document]
    addresses = [each for each in pages if "Wattle Street" in each and "Statement" not in each]
    assert [re.findall(r"(\w+) Hale", each) for each in addresses] == [["Ana"], ["Bo"]]
    assert "12 Wattle Street" in pages[0]
    assert "Ballarat VIC 3350" in pages[0]
    assert "Statement for March 2026" in pages[1]
    for part in ("2", "²", "0", "12345"):
        assert browser.get(f"{page}/print-file", params={"part": part}).status_code == 404
    until = re.findall(r'name="until" value="([^"]+)"', browser.get(page).text)
    browser.submit(f"{page}/posted", {"until": until[0]})
    assert {each["state"] for each in office.items(run).values()} == {"sent"}
    assert "Print file" not in main_text(browser.get(page).text)
    [statement] = office.client.get(f"/participants/{ids[0]}/statements").json()["data"]
    sent = [(each["way"], each["recipient"]) for each in statement["sent"]]
    assert sent == [("post", "Ana Hale, 12 Wattle Street, Ballarat VIC 3350")]


def test_viewers_only_look(
    office: StatementOffice, new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    office.participant(postal_statement=True)
    run = office.ended(office.start())
    viewer = new_browser(new_account("viewer"))
    for page in (PAGE, f"{PAGE}/{run['id']}"):
        response = viewer.get(page)
        assert response.status_code == 200
        assert 'action="/console/statements' not in response.text


def test_the_settings(owner: Browser, server: RunningServer, office: StatementOffice) -> None:
    assert "No run starts by itself." in main_text(owner.get(PAGE).text)
    form = {
        "statement_day": "3", "statement_email": "help@example.com", "statement_phone": "02 5550 0000",
        "statement_dispute": "Call us.",
    }  # fmt: skip
    assert owner.submit(SETTINGS, form).headers["location"] == SETTINGS
    saved = server.run(store.get(server.db, office.plan_manager_id))
    assert (saved.statement_day, saved.statement_email, saved.statement_dispute) == (3, "help@example.com", "Call us.")
    assert saved.statement_day_set_on
    assert "The next run starts by itself on 3 " in main_text(owner.get(PAGE).text)
    participant = office.participant()
    statement = office.client.create(f"/participants/{participant}/statements", {"month": MONTH})
    assert statement["office"] == {
        "name": "Test plan manager", "abn": None, "email": "help@example.com", "phone": "02 5550 0000",
        "dispute": "Call us.",
    }  # fmt: skip
    wrong = owner.submit(SETTINGS, {"statement_day": "29", "statement_email": "nobody"})
    assert wrong.status_code == 422
    text = main_text(wrong.text)
    assert "must be a number from 1 to 28, or empty" in text
    assert "must be an email address, or empty" in text
