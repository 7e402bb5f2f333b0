"""Undoing the changes of one request together, and the page with all of them."""

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.console.activity import undo
from support.client import Client
from support.console import Account, Browser
from support.form_helpers import event_summaries
from support.importing import import_records
from support.server import RunningServer, wait_until

SET = "/console/participants/selected/account-manager"
IGNORE = "/console/invoices/selected/ignore-warning"
LINK = re.compile(r'href="(/console/activity/[0-9a-f-]+/request)"')
NAMES = ("Ada", "Bea", "Cleo", "Dee")


@pytest.fixture
def people(client: Client) -> dict[str, str]:
    return {name: client.create("/participants", {"first_name": name})["id"] for name in NAMES}


@pytest.fixture
def undo_path(owner: Browser, people: dict[str, str], manager_id: str) -> str:
    """The link on the page that says what was changed."""
    page = owner.submit(SET, {"id": list(people.values()), "account_manager": manager_id}).text
    assert "Undo all 4 changes" in page
    [path] = LINK.findall(page)
    return path


def managers(client: Client, people: dict[str, str]) -> dict[str, str | None]:
    found = {name: client.get(f"/participants/{id_}") for name, id_ in people.items()}
    return {name: each.json()["account_manager"]["name"] for name, each in found.items() if each.status_code == 200}


def batch_in_activity(browser: Browser, type_: str, count: int) -> str:
    """The link of an entry with so many events, which are listed once they have positions."""
    read = lambda: browser.get(f"/console/activity?type={type_}").text  # noqa: E731 - read until it is complete
    wait_until(lambda: f"{count} participants" in read())
    [path] = LINK.findall(read())
    return path


def result(page: str, heading: str) -> list[tuple[str, str]]:
    _, _, rest = page.partition(f"<h2>{heading} (")
    return re.findall(r'class="lead"><a[^>]*>([^<]+)</a></td>\s*<td[^>]*>([^<]*)</td>', rest.partition("</table>")[0])


def test_a_change_of_several_records_is_undone_and_done_again(
    server: RunningServer, owner: Browser, client: Client, people: dict[str, str], undo_path: str
) -> None:
    page = owner.get(undo_path).text
    assert "<h1>4 participants changed</h1>" in page
    assert "4 records get their previous values back." in page
    assert page.count('Account manager: <span class="was">Morgan Lee</span> → <span class="is">not set</span>') == 4
    done = owner.submit(undo_path).text
    assert "Undone: 4 changes" in done
    assert sorted(result(done, "Changed")) == [(name, "Account manager: Morgan Lee → not set") for name in NAMES]
    assert managers(client, people) == dict.fromkeys(NAMES)
    assert event_summaries(server, people["Ada"])[1:] == ["participant.updated by user Robin Hale"] * 2
    assert "There is nothing to undo." in owner.get(undo_path).text
    [again] = LINK.findall(done)
    assert again != undo_path
    owner.submit(again)
    assert managers(client, people) == dict.fromkeys(NAMES, "Morgan Lee")


def test_records_that_have_changed_since_are_left_out(
    owner: Browser, client: Client, people: dict[str, str], undo_path: str
) -> None:
    owner.submit(SET, {"id": people["Ada"], "no_account_manager": "true"})
    client.put(f"/participants/{people['Bea']}", {"city": "Hobart"})  # another field
    client.delete(f"/participants/{people['Cleo']}")
    page = owner.get(undo_path).text
    assert "2 records get their previous values back. 2 records are left out" in page
    done = owner.submit(undo_path).text
    assert "Undone: 2 changes" in done
    assert result(done, "Not changed") == [("Cleo", "was deleted"), ("Ada", "is as it was before")]
    assert managers(client, people) == {"Ada": None, "Bea": None, "Dee": None}
    assert client.get(f"/participants/{people['Bea']}").json()["city"] == "Hobart"


def test_a_conflict_is_named_with_the_value(
    server: RunningServer, plan_manager_id: UUID, owner: Browser, client: Client, people: dict[str, str], undo_path: str
) -> None:
    other = {"id": str(uuid7()), "first_name": "Kim", "last_name": "Ro", "email": "kim@example.com"}
    server.run(import_records(server, plan_manager_id, "account-managers", [other]))
    owner.submit(SET, {"id": people["Ada"], "account_manager": other["id"]})
    reason = "has changed since (Account manager: Kim Ro)"
    assert reason in owner.get(undo_path).text
    assert result(owner.submit(undo_path).text, "Not changed") == [("Ada", reason)]
    assert managers(client, people)["Ada"] == "Kim Ro"


def test_ignored_warnings_of_several_invoices_come_back(
    server: RunningServer, plan_manager_id: UUID, owner: Browser, client: Client
) -> None:
    invoices = [{"id": str(uuid7()), "invoice_number": f"INV-{n}", "claim_status": "on_hold"} for n in range(2)]
    assert not server.run(import_records(server, plan_manager_id, "invoices", invoices)).errors
    code = client.get(f"/invoices/{invoices[0]['id']}").json()["state_management"]["errors"][0]
    page = owner.submit(IGNORE, {"id": [each["id"] for each in invoices], "code": code, "reason": "Checked it"}).text
    [path] = LINK.findall(page)

    def ignored() -> list[Any]:
        found = [client.get(f"/invoices/{each['id']}").json() for each in invoices]
        return [each["state_management"]["ignored_errors"] for each in found]

    assert ignored() == [[code], [code]]
    assert "2 records get their previous values back." in owner.get(path).text
    assert "Undone: 2 changes" in owner.submit(path).text
    assert ignored() == [[], []]
    assert "There is nothing to undo." in owner.get(path).text


def test_a_bulk_request_of_the_api_is_undone_from_activity(
    owner: Browser, client: Client, people: dict[str, str]
) -> None:
    items = [{"id": id_, "city": "Perth"} for id_ in people.values()]
    assert client.post("/participants/bulk", {"items": items}).status_code == 200
    path = batch_in_activity(owner, "participant.updated", 4)
    assert "Undone: 4 changes" in owner.submit(path).text
    assert {client.get(f"/participants/{id_}").json()["city"] for id_ in people.values()} == {None}


def test_an_entry_of_activity_leads_to_all_its_records(
    owner: Browser, client: Client, new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    items = [{"first_name": f"Person {number}"} for number in range(30)]
    assert client.post("/participants/bulk", {"items": items}).status_code == 200
    path = batch_in_activity(owner, "participant.created", 30)
    entry = owner.get("/console/activity?type=participant.created").text
    assert "and 10 more." in entry
    assert "undo them" not in entry
    for browser in (owner, new_browser(new_account("viewer"))):
        page = browser.get(path).text
        assert len(re.findall(">Person [0-9]+</a>", page)) == 30
        assert "<button>Undo" not in page
    assert owner.submit(path).status_code == 404


def test_a_viewer_sees_the_changes_and_undoes_nothing(
    undo_path: str, client: Client, people: dict[str, str], new_browser: Callable[..., Browser],
    new_account: Callable[..., Account], new_plan_manager: Callable[[], UUID],
) -> None:  # fmt: skip
    viewer = new_browser(new_account("viewer"))
    page = viewer.get(undo_path).text
    assert 'Account manager: <span class="was">not set</span> → <span class="is">Morgan Lee</span>' in page
    assert viewer.submit(undo_path).status_code == 403
    stranger = new_browser(new_account("owner", new_plan_manager()))
    assert stranger.get(undo_path).status_code == 404
    assert stranger.submit(undo_path).status_code == 404
    assert set(managers(client, people).values()) == {"Morgan Lee"}


def test_only_the_latest_changes_of_a_request_are_undone_together(
    owner: Browser, client: Client, people: dict[str, str], undo_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plankeeper.console.activity import event_batch

    for module in (undo, event_batch):
        monkeypatch.setattr(module, "MAX_EVENTS", 3)
    assert "The others can only be undone one by one" in owner.get(undo_path).text
    assert "Undone: 3 changes" in owner.submit(undo_path).text
    assert sorted(map(str, managers(client, people).values())) == ["Morgan Lee", "None", "None", "None"]
