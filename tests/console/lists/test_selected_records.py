"""Several records of a list at once: set the account manager, ignore a warning, download them."""

import csv
import io
import re
from collections.abc import Callable
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.console import Account, Browser
from support.importing import import_records
from support.server import RunningServer

PARTICIPANTS, INVOICES = "/console/participants/selected", "/console/invoices/selected"
SET, IGNORE = f"{PARTICIPANTS}/account-manager", f"{INVOICES}/ignore-warning"


@pytest.fixture
def people(client: Client) -> list[str]:
    """The ids of three participants."""
    return [client.create("/participants", {"first_name": name})["id"] for name in ("Ada", "Bea", "Cleo")]


@pytest.fixture
def invoices(server: RunningServer, plan_manager_id: UUID, people: list[str]) -> list[str]:
    """The ids of three invoices, of which two have a date in the future."""
    rows: list[dict[str, Any]] = [
        {"id": str(uuid7()), "invoice_number": f"INV-{number}", "participant_id": people[0], "invoice_date": day}
        for number, day in enumerate(("2099-01-01", "2099-01-02", "2026-01-15"))
    ]
    assert not server.run(import_records(server, plan_manager_id, "invoices", rows)).errors
    return [each["id"] for each in rows]


def event_count(server: RunningServer, plan_manager_id: UUID, type_: str) -> int:
    statement = "select count(*) from events where plan_manager_id = $1 and type = $2"
    return server.run(server.db.one(int, statement, plan_manager_id, type_))


def outcomes(page: str) -> list[tuple[str, str]]:
    """The records and their results."""
    rows = re.findall(r"<tr>\s*<td(.*?)</tr>", page, re.DOTALL)
    cells = [re.findall(r">([^<>]+)</a></td>\s*<td[^>]*>([^<]*)</td>", each) for each in rows]
    return [(unescape(name), unescape(result)) for found in cells for name, result in found]


def fields(page: str, path: str) -> dict[str, list[str]]:
    """The hidden fields of the form that posts to a path."""
    [form] = re.findall(rf'<form method="post" action="{path}".*?</form>', page, re.DOTALL)
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form):
        found.setdefault(name, []).append(unescape(value))
    del found["csrf"]
    return found


def test_the_list_has_a_box_for_each_row_and_a_bar_with_the_actions(
    owner: Browser, people: list[str], new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    page = owner.get("/console/participants").text
    assert set(re.findall(r'name=id value=(\S+) aria-label="(\w+)"', page)) == {
        (people[0], "Ada"),
        (people[1], "Bea"),
        (people[2], "Cleo"),
    }
    assert re.findall(r'formaction="([^"]+)"', page) == [SET, f"{PARTICIPANTS}.csv", f"{PARTICIPANTS}.xlsx"]
    viewer = new_browser(new_account("viewer"))
    files = [f"{PARTICIPANTS}.csv", f"{PARTICIPANTS}.xlsx"]
    assert re.findall(r'formaction="([^"]+)"', viewer.get("/console/participants").text) == files


def test_each_account_manager_is_set_with_an_event_and_a_link_to_undo_it(
    server: RunningServer, plan_manager_id: UUID, owner: Browser, client: Client, people: list[str], manager_id: str
) -> None:
    page = owner.get(SET, params={"id": people[:2], "list": "status=Active"}).text
    assert "Set the account manager of 2 participants" in page
    form = fields(page, SET)
    assert form.pop("account_manager_id") == [""]
    assert form == {"list": ["status=Active"], "id": people[:2], "seen": [f"{each}:" for each in people[:2]]}
    page = owner.submit(SET, {**form, "account_manager": manager_id}).text
    assert outcomes(page) == [("Ada", "none → Morgan Lee"), ("Bea", "none → Morgan Lee")]
    assert "Account manager set: 2 participants" in page
    assert 'data-once="/console/participants?status=Active"' in page
    managers = [client.get(f"/participants/{each}").json()["account_manager"]["name"] for each in people]
    assert managers == ["Morgan Lee", "Morgan Lee", None]
    assert event_count(server, plan_manager_id, "participant.updated") == 2
    [undo, _] = re.findall(r'href="(/console/activity/[0-9a-f-]+/undo)"', page)
    assert owner.get(undo).status_code == 200
    again = owner.submit(SET, {"id": people, "account_manager": manager_id}).text
    assert outcomes(again) == [
        ("Ada", "already Morgan Lee"),
        ("Bea", "already Morgan Lee"),
        ("Cleo", "none → Morgan Lee"),
    ]
    assert outcomes(owner.submit(SET, {"id": people[0], "no_account_manager": "true"}).text) == [
        ("Ada", "Morgan Lee → none")
    ]


def test_what_somebody_else_changed_meanwhile_is_left_alone(
    owner: Browser, client: Client, people: list[str], manager_id: str
) -> None:
    form = fields(owner.get(SET, params={"id": people}).text, SET)
    client.put(f"/participants/{people[0]}", {"account_manager_id": manager_id})
    client.delete(f"/participants/{people[2]}")
    page = owner.submit(SET, {**form, "account_manager": manager_id}).text
    assert outcomes(page) == [("Ada", "changed by someone else"), ("Bea", "none → Morgan Lee")]
    assert "1 of the selected records no longer exists." in page


def test_only_active_account_managers_can_be_chosen_by_name(
    server: RunningServer, plan_manager_id: UUID, owner: Browser, people: list[str], manager_id: str
) -> None:
    rows = [
        {"id": str(uuid7()), "first_name": "Morgan", "last_name": last, "active": is_active}
        for last, is_active in (("Gone", False), ("Leeson", True))
    ]
    assert not server.run(import_records(server, plan_manager_id, "account-managers", rows)).errors
    assert "<select" not in owner.get(SET, params={"id": people[:1]}).text.partition("<main")[2]
    unclear = owner.submit(SET, {"id": people[:1], "account_manager": "morgan"})
    choices = re.findall(r'name="account_manager_choice" value="([^"]+)"> (Morgan \w+)', unclear.text)
    assert (unclear.status_code, dict(choices)) == (422, {manager_id: "Morgan Lee", rows[1]["id"]: "Morgan Leeson"})
    for text in ("Morgan Gone", rows[0]["id"]):
        gone = owner.submit(SET, {"id": people[:1], "account_manager": text})
        assert (gone.status_code, "No active account manager matches" in gone.text) == (422, True)
    both = owner.submit(SET, {"id": people[:1], "account_manager": "Morgan Lee", "no_account_manager": "true"})
    assert (both.status_code, "while “No account manager” is ticked" in both.text) == (422, True)
    chosen = {"account_manager": "morgan", "account_manager_choice": rows[1]["id"]}
    assert outcomes(owner.submit(SET, {"id": people[:1], **chosen}).text) == [("Ada", "none → Morgan Leeson")]
    assert outcomes(owner.submit(SET, {"id": people[1:2], "account_manager": "Morgan Lee"}).text) == [
        ("Bea", "none → Morgan Lee")
    ]


def test_errors_stand_beside_their_fields(owner: Browser, people: list[str], invoices: list[str]) -> None:
    for choice in ("", "nonsense", str(uuid7())):
        response = owner.submit(SET, {"id": people, "account_manager": choice})
        assert (response.status_code, 'id="account_manager-error"' in response.text) == (422, True)
        assert fields(response.text, SET)["id"] == people
    response = owner.submit(IGNORE, {"id": invoices, "code": "check_dates", "reason": ""})
    assert (response.status_code, 'id="reason-error"' in response.text) == (422, True)
    response = owner.submit(IGNORE, {"id": invoices, "code": "nonsense", "reason": "Known"})
    assert (response.status_code, 'id="code-error"' in response.text) == (422, True)


def test_nothing_and_too_much_can_be_selected(owner: Browser) -> None:
    for path, noun in ((SET, "participants"), (IGNORE, "invoices")):
        assert f"No {noun} are selected." in owner.get(path).text
        response = owner.get(path, params={"id": [str(uuid7()) for _ in range(101)]})
        assert (response.status_code, f"You can select at most 100 {noun} at once." in response.text) == (400, True)


def test_a_warning_is_ignored_with_a_reason_and_brought_back(
    server: RunningServer, plan_manager_id: UUID, owner: Browser, invoices: list[str]
) -> None:
    page = owner.get(IGNORE, params={"id": invoices}).text
    choices = dict(re.findall(r'<option value="(\w+)"[^>]*>([^<]+)</option>', page))
    code = "check_dates"
    assert "(2 invoices)" in choices[code]
    before = event_count(server, plan_manager_id, "invoice.warning_ignored")
    page = owner.submit(IGNORE, {"id": invoices, "code": code, "reason": "Known\r\nto us"}).text
    assert outcomes(page) == [
        ("INV-2", "doesn’t have this warning, or it is ignored already"),
        ("INV-0", "ignored"),
        ("INV-1", "ignored"),
    ]
    assert event_count(server, plan_manager_id, "invoice.warning_ignored") == before + 2
    assert "Known\nto us" in owner.get(f"/console/invoices/{invoices[0]}").text
    [restore, _] = re.findall(r'<form method="post" action="(/console/invoices/[^"]+/warn)"', page)
    assert owner.submit(restore).status_code == 303
    again = outcomes(owner.submit(IGNORE, {"id": invoices[:2], "code": code, "reason": "Known"}).text)
    assert again == [("INV-1", "doesn’t have this warning, or it is ignored already"), ("INV-0", "ignored")]


def test_the_selected_rows_are_downloaded_in_their_order(
    owner: Browser, client: Client, people: list[str], invoices: list[str]
) -> None:
    text = owner.get(f"{PARTICIPANTS}.csv", params={"id": [people[2], people[0]]}).text
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    assert [each["Name"] for each in rows] == ["Cleo", "Ada"]
    text = owner.get(f"{INVOICES}.csv", params={"id": invoices[:1]}).text
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    assert [(each["Number"], each["Participant"]) for each in rows] == [("INV-0", "Ada")]
    provider_id = client.create("/providers", {"entity_name": "Amber Care"})["id"]
    text = owner.get("/console/providers/selected.csv", params={"id": provider_id}).text
    assert [each["Name"] for each in csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))] == ["Amber Care"]
    assert "participants" in owner.activity("?type=export.created")


def test_viewers_change_nothing(
    people: list[str], invoices: list[str], new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    viewer = new_browser(new_account("viewer"))
    for path, ids in ((SET, people), (IGNORE, invoices)):
        assert viewer.get(path, params={"id": ids}).status_code == 403
        assert viewer.submit(path, {"id": ids}).status_code == 403
    assert viewer.get(f"{PARTICIPANTS}.csv", params={"id": people}).status_code == 200


def test_records_of_another_plan_manager_are_not_there(owner: Browser, other: Client, manager_id: str) -> None:
    foreign = other.create("/participants", {"first_name": "Xanthippe"})["id"]
    for path in (SET, f"{PARTICIPANTS}.csv"):
        assert "Xanthippe" not in owner.get(path, params={"id": foreign}).text
    page = owner.submit(SET, {"id": foreign, "account_manager": manager_id}).text
    assert (outcomes(page), "Nothing was changed" in page) == ([], True)
    assert other.get(f"/participants/{foreign}").json()["account_manager"]["name"] is None
