"""All records that match a list, on any of its pages: what is confirmed, what is changed, and what isn't."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.console.lists import page as list_page
from plankeeper.console.lists import selection
from support.client import Client
from support.console import Browser, main_text
from support.form_helpers import form_fields
from support.importing import import_records
from support.server import RunningServer

LIST = "/console/participants"
SET, IGNORE = f"{LIST}/selected/account-manager", "/console/invoices/selected/ignore-warning"
MATCHING = f"{SET}?all=1&list=status%3DActive"
COUNT = 101
Import = Callable[[str, list[dict[str, Any]]], list[str]]


@pytest.fixture
def add(server: RunningServer, plan_manager_id: UUID) -> Import:
    """Imports records and returns their ids."""

    def import_all(resource: str, rows: list[dict[str, Any]]) -> list[str]:
        new = [{"id": str(uuid7()), **each} for each in rows]
        assert not server.run(import_records(server, plan_manager_id, resource, new)).errors
        return [each["id"] for each in new]

    return import_all


@pytest.fixture
def people(add: Import) -> list[str]:
    """The ids of 101 active participants, in the order of their names, besides one that isn't active."""
    add("participants", [{"last_name": "Other", "status": "Lead"}])
    return add("participants", [{"last_name": f"P{n:03}", "status": "Active"} for n in range(COUNT)])


@pytest.fixture
def managed(server: RunningServer, plan_manager_id: UUID) -> Callable[[str | None], int]:
    """The number of participants of an account manager."""
    statement = """
        select count(*) from participants
        where plan_manager_id = $1 and account_manager_id is not distinct from $2::uuid
    """
    return lambda manager: server.run(server.db.one(int, statement, plan_manager_id, manager))


@pytest.fixture
def events(server: RunningServer, plan_manager_id: UUID) -> Callable[[str], int]:
    """The number of events of a type."""
    statement = "select count(*) from events where plan_manager_id = $1 and type = $2"
    return lambda type_: server.run(server.db.one(int, statement, plan_manager_id, type_))


def bar(browser: Browser, path: str) -> str:
    return browser.get(path).text.partition("data-selection>")[2].partition("</form>")[0]


def test_a_list_of_several_pages_offers_all_that_match(owner: Browser, people: list[str]) -> None:
    found = bar(owner, f"{LIST}?status=Active")
    assert "Select all 101 that match" in found
    assert 'name="list" value="status=Active"' in found
    assert "that match" not in bar(owner, f"{LIST}?status=Lead")


def test_all_that_match_are_counted_changed_and_undone_together(
    owner: Browser, client: Client, people: list[str], manager_id: str, managed: Callable[[str | None], int],
    events: Callable[[str], int],
) -> None:  # fmt: skip
    page = owner.get(MATCHING).text
    assert "Set the account manager of 101 participants" in page
    assert "All participants that match: Status: Active." in main_text(page)
    assert "And 1 more. View all in the list" in main_text(page)
    assert page.count(f'class="lead"><a href="{LIST}/') == 100
    form = form_fields(owner, MATCHING)
    assert "id" not in form
    done = owner.submit(SET, {**form, "account_manager": manager_id})
    assert "Account manager set: 101 participants" in done.text
    assert "And 1 more." in done.text
    assert (managed(manager_id), managed(None), events("participant.updated")) == (COUNT, 1, COUNT)
    [undo] = {*re.findall(r'href="(/console/activity/[0-9a-f-]+/request)"', done.text)}
    assert "101 records get their previous values back." in owner.get(undo).text
    assert "Undone: 101 changes" in owner.submit(undo).text
    assert (managed(manager_id), events("participant.updated")) == (0, 2 * COUNT)


def test_a_form_that_is_sent_again_changes_nothing(
    owner: Browser, people: list[str], manager_id: str, managed: Callable[[str | None], int],
    events: Callable[[str], int],
) -> None:  # fmt: skip
    form = {**form_fields(owner, MATCHING), "account_manager": manager_id}
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda _: owner.submit(SET, form), range(2)))
    assert any("Account manager set: 101 participants" in each.text for each in answers)
    assert (managed(manager_id), events("participant.updated")) == (COUNT, COUNT)
    again = owner.submit(SET, form)
    assert (again.status_code, "or your changes are saved already" in again.text) == (409, True)
    assert "Morgan Lee" in again.text
    assert events("participant.updated") == COUNT


def test_nobody_changes_what_the_page_did_not_count(
    owner: Browser, client: Client, people: list[str], manager_id: str, managed: Callable[[str | None], int]
) -> None:
    changes: list[Callable[[], object]] = [
        lambda: client.create("/participants", {"last_name": "New", "status": "Active"}),
        lambda: client.delete(f"/participants/{people[0]}"),
        lambda: client.put(f"/participants/{people[COUNT - 1]}", {"account_manager_id": manager_id}),
    ]
    for change, count in zip(changes, (102, 101, 101), strict=True):
        form = {**form_fields(owner, MATCHING), "account_manager": manager_id}
        before = managed(manager_id)
        change()
        number = managed(manager_id)
        page = owner.submit(SET, form)
        assert page.status_code == 409
        assert f"matched before, {count} now. Nothing was changed" in page.text
        assert f"Set the account manager of {count} participants" in page.text
        assert 'value="Morgan Lee"' in page.text
        assert managed(manager_id) == number <= before + 1
    client.put(f"/participants/{people[1]}", {"city": "Hobart"})  # which isn't what the page shows
    form = {**form_fields(owner, MATCHING), "account_manager": manager_id}
    client.put(f"/participants/{people[2]}", {"city": "Hobart"})
    assert "Account manager set: 100 participants" in owner.submit(SET, form).text
    assert managed(manager_id) == 101


def test_a_form_without_what_its_page_counted_changes_nothing(
    owner: Browser, people: list[str], manager_id: str, events: Callable[[str], int]
) -> None:
    form = {"all": "1", "list": "status=Active", "account_manager": manager_id}
    for matched in ({}, {"matched": "101."}, {"matched": f"{'9' * 5000}.{'0' * 64}"}):
        assert owner.submit(SET, form | matched).status_code == 409
    assert events("participant.updated") == 0


@pytest.mark.parametrize("lists", [[], ["status=Active", ""], ["status=%ff"], ["plan_end=x", "plan_end_from=nonsense"]])
def test_a_list_that_is_unclear_is_not_taken_for_all_records(
    owner: Browser, people: list[str], lists: list[str]
) -> None:
    for path in (SET, f"{LIST}/selected.csv"):
        response = owner.get(path, params={"all": "1", "list": lists})
        assert (response.status_code, "P000" in response.text) == (400, False)


def test_an_invalid_filter_is_not_left_out(owner: Browser, people: list[str]) -> None:
    response = owner.get(SET, params={"all": "1", "list": "plan_end_from=nonsense"})
    assert (response.status_code, "P000" in response.text) == (400, False)


def test_more_than_can_be_changed_at_once_has_to_be_filtered(
    owner: Browser, people: list[str], manager_id: str, monkeypatch: pytest.MonkeyPatch, events: Callable[[str], int]
) -> None:
    form = {**form_fields(owner, MATCHING), "account_manager": manager_id}
    for module in (selection, list_page):
        monkeypatch.setattr(module, "MAX_MATCHING", 100)
    found = bar(owner, f"{LIST}?status=Active")
    assert "To select all that match, filter the list to 100 participants or fewer." in found
    assert 'name="all"' not in found
    for response in (owner.get(MATCHING), owner.submit(SET, form)):
        assert response.status_code == 400
        assert "At most 100 participants can be changed at once, and more match. Filter the list" in response.text
    assert events("participant.updated") == 0


def test_all_participants_without_a_filter_are_named_so(owner: Browser, people: list[str]) -> None:
    page = main_text(owner.get(SET, params={"all": "1", "list": ""}).text)
    assert "Set the account manager of 102 participants" in page
    assert "All participants: no filter is set." in page


def test_all_participants_of_an_account_manager_are_reassigned(
    owner: Browser, add: Import, people: list[str], manager_id: str, managed: Callable[[str | None], int]
) -> None:
    rows = [{"first_name": "Ming", "last_name": "Chen", "email": "ming@example.com", "active": False}]
    [other] = add("account-managers", rows)
    form = form_fields(owner, MATCHING)
    owner.submit(SET, {**form, "account_manager": manager_id})
    for path in ("/console/account-managers", f"/console/account-managers/{manager_id}/edit"):
        [link] = [
            each.replace("&amp;", "&")
            for each in re.findall(rf'<a href="({SET}[^"]+)"', owner.get(path).text)
            if manager_id in each
        ]
    assert "Reassign all of Morgan Lee’s participants" in owner.get(path).text
    page = main_text(owner.get(link).text)
    assert "Set the account manager of 101 participants" in page
    assert "All participants that match: Account manager: Morgan Lee." in page
    owner.submit(f"/console/account-managers/{other}/activate")
    assert "101 participants" in owner.submit(SET, {**form_fields(owner, link), "account_manager": other}).text
    assert (managed(manager_id), managed(other)) == (0, COUNT)
    assert "No participants match." in owner.get(link).text
    owner.submit(f"/console/account-managers/{other}/deactivate")
    assert "101 participants" in owner.get(link.replace(manager_id, other)).text


def test_a_warning_of_all_invoices_that_match_is_ignored_once_and_comes_back(
    owner: Browser, client: Client, add: Import, events: Callable[[str], int]
) -> None:
    ids = add("invoices", [{"invoice_number": f"N{n:03}", "claim_status": "on_hold"} for n in range(COUNT)])
    path = f"{IGNORE}?all=1&list=claim_status%3Don_hold"
    page = owner.get(path).text
    assert "Ignore a warning of 101 invoices" in page
    code = client.get(f"/invoices/{ids[0]}").json()["state_management"]["errors"][0]
    assert re.search(rf'value="{code}"[^>]*>[^<]+\(101 invoices\)', page)
    form = {**form_fields(owner, path), "code": code, "reason": "Checked it"}
    before = events("invoice.warning_ignored")
    done = owner.submit(IGNORE, form).text
    assert "ignored: 101 invoices" in done
    assert events("invoice.warning_ignored") == before + COUNT
    assert owner.submit(IGNORE, form).status_code == 409
    assert events("invoice.warning_ignored") == before + COUNT
    [undo] = {*re.findall(r'href="(/console/activity/[0-9a-f-]+/request)"', done)}
    assert "Undone: 101 changes" in owner.submit(undo).text
    assert client.get(f"/invoices/{ids[0]}").json()["state_management"]["ignored_errors"] == []


def test_a_search_is_evaluated_again(
    owner: Browser, people: list[str], manager_id: str, managed: Callable[[str | None], int]
) -> None:
    form = form_fields(owner, f"{SET}?all=1&list=q%3DP00")
    assert "10 participants" in owner.submit(SET, {**form, "account_manager": manager_id}).text
    assert managed(manager_id) == 10


def test_the_file_of_all_that_match_is_that_of_the_list(owner: Browser, people: list[str]) -> None:
    text = owner.get(f"{LIST}/selected.csv", params={"all": "1", "list": "status=Active&sort=-name"}).text
    assert text == owner.get(f"{LIST}.csv?status=Active&sort=-name").text
    assert list(dict.fromkeys(re.findall(r"P\d{3}", text))) == [f"P{n:03}" for n in reversed(range(COUNT))]


def test_all_rows_of_the_longest_page_are_changed(
    owner: Browser, people: list[str], manager_id: str, managed: Callable[[str | None], int]
) -> None:
    form = form_fields(owner, f"{SET}?{'&'.join(f'id={each}' for each in people[:100])}")
    assert "100 participants" in owner.submit(SET, {**form, "account_manager": manager_id}).text
    assert managed(manager_id) == 100


def test_records_of_another_plan_manager_never_match(owner: Browser, other: Client, manager_id: str) -> None:
    foreign = other.create("/participants", {"last_name": "Xanthippe", "status": "Active"})["id"]
    assert "No participants match." in owner.get(MATCHING).text
    form = {"all": "1", "list": "status=Active", "account_manager": manager_id}
    assert "Xanthippe" not in owner.submit(SET, form).text
    assert other.get(f"/participants/{foreign}").json()["account_manager"]["name"] is None
