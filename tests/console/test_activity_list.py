"""The list of activity: views are hidden, types and people have names, days are a filter, and imports are one entry."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.console.pages import activity
from plankeeper.events import store
from plankeeper.events.recorder import record_events
from plankeeper.events.schemas import HistoryEvent
from plankeeper.http.context import SYSTEM, WriteContext
from support.client import Client
from support.console import Browser
from support.importing import import_records
from support.imports import confirm, import_path, upload
from support.server import RunningServer, wait_until
from support.webhooks import EventSubject

ACTIVITY = "/console/activity"


def titles(page: str) -> list[str]:
    """What each entry says, with the name of its record."""
    found = re.findall(r'<span class="what">(.*?)</span>\s*<span class="soft">', page, re.DOTALL)
    return [unescape(re.sub(r"<[^>]+>", "", each)) for each in found]


def wait_for(owner: Browser, title: str, query: str = "") -> str:
    """The page once an entry begins with a title: it takes the sequencer a moment."""
    page = ""

    def has_title() -> bool:
        nonlocal page
        page = owner.get(ACTIVITY + query).text
        return any(each.startswith(title) for each in titles(page))

    wait_until(has_title)
    return page


def test_views_are_hidden_until_they_are_asked_for(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID
) -> None:
    invoice = {"id": str(uuid7()), "invoice_number": "INV-7"}
    view = {"id": str(uuid7()), "invoice_id": invoice["id"], "user_id": "u", "user_name": "Robin Hale"}
    view["session_started"] = "2026-01-02T03:04:05Z"
    for resource, row in (("invoices", invoice), ("invoice-view-sessions", view)):
        assert not server.run(import_records(server, plan_manager_id, resource, [row])).errors
    client.create("/participants", {"first_name": "Ann"})
    assert titles(wait_for(owner, "Participant added"))[:2] == ["Participant added · Ann", "Invoice received · INV-7"]
    shown = titles(owner.get(f"{ACTIVITY}?views=1").text)
    assert shown[:3] == ["Participant added · Ann", "Invoice opened · Robin Hale", "Invoice received · INV-7"]
    assert titles(owner.get(f"{ACTIVITY}?type=invoice_view_session.*").text) == ["Invoice opened · Robin Hale"]
    rows = owner.get(f"{ACTIVITY}.csv").text
    assert ("invoice_view_session" in rows, "participant.created" in rows) == (False, True)
    assert "invoice_view_session.started" in owner.get(f"{ACTIVITY}.csv?views=1").text


def test_records_of_one_import_are_one_entry(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID
) -> None:
    rows = [{"id": str(uuid7()), "first_name": f"Person {number}"} for number in range(30)]
    assert not server.run(import_records(server, plan_manager_id, "participants", rows)).errors
    one = client.create("/participants", {"first_name": "Ann"})["id"]
    client.create(f"/participants/{one}/team-members", {"first_name": "Pat"})
    client.create(f"/participants/{one}/team-members", {"first_name": "Kim"})
    client.delete(f"/participants/{one}")
    page = wait_for(owner, "Participant deleted")
    assert titles(page)[:6] == [
        "Participant deleted · Ann", "2 team members removed", "Team member added · Kim", "Team member added · Pat",
        "Participant added · Ann", "30 participants added",
    ]  # fmt: skip
    assert (len(re.findall(">Person [0-9]", page)), "and 10 more." in page) == (activity.MAX_GROUP_NAMES, True)


def test_an_import_leads_to_its_changes_and_those_of_its_undo(
    owner: Browser, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = client.create("/participants", {"first_name": "Ann", "participant_number": "430205409"})["id"]
    path = import_path(upload(owner, b"First name,NDIS number\nAnna,430205409\nBo,430205410\nCy,430205411\n"))
    confirm(owner, path)
    client.put(f"/participants/{client.create('/participants', {'first_name': 'Di'})['id']}", {"last_name": "Evans"})
    [link] = set(re.findall(rf'href="({ACTIVITY}\?import=[^"]+)"', owner.get(path).text))
    assert titles(owner.get(link).text) == ["2 participants added", "Participant changed · Anna"]
    assert "people.csv</a>, by Robin Hale." in owner.get(link).text
    assert link in wait_for(owner, "2 participants added", "?type=participant.created")
    for query, found in (
        ("type=participant.updated", ["Participant changed · Anna"]),
        (f"participant={person}", ["Participant changed · Anna"]),
        ("actor=api_key", []),
        ("person=robin&actor=user", ["2 participants added", "Participant changed · Anna"]),
    ):
        assert titles(owner.get(f"{link}&{query}").text) == found, query
    assert owner.submit(f"{path}/undo").status_code == 303
    undone = ["Participant changed · Ann", "2 participants deleted", "2 participants added"]
    assert titles(owner.get(link).text) == [*undone, "Participant changed · Anna"]
    assert owner.get(link.replace("?", ".csv?")).text.count("\r\n") == 7  # a head, six events
    monkeypatch.setattr(activity, "MAX_PAGE_EVENTS", 3)
    first = owner.get(link).text
    [older] = re.findall(r'href="([^"]+)">Older events', first)
    assert titles(first) + titles(owner.get(unescape(older)).text) == [*undone, "Participant changed · Anna"]


def test_a_page_ends_at_its_limits_and_the_next_one_continues(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        client.create("/providers", {"entity_name": f"Provider {number}"})
    wait_for(owner, "Provider added · Provider 4")
    for name, limit in (("PAGE_SIZE", 2), ("MAX_PAGE_EVENTS", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(activity, name, limit)
            found, url = list[str](), f"{ACTIVITY}?type=provider.*"
            while url:
                page = owner.get(unescape(url)).text
                assert 0 < len(titles(page)) <= 2
                found += titles(page)
                url = next(iter(re.findall(r'href="([^"]+)">Older events', page)), "")
        assert found == [f"Provider added · Provider {number}" for number in reversed(range(5))]


def test_a_page_in_the_middle_of_an_import_leads_to_what_was_before_it(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create("/providers", {"entity_name": "Amber"})
    rows = [{"id": str(uuid7()), "entity_name": f"Provider {number}"} for number in range(5)]
    assert not server.run(import_records(server, plan_manager_id, "providers", rows)).errors
    client.create("/providers", {"entity_name": "Birch"})
    query = "?type=provider.*"
    assert "Events before this import" not in wait_for(owner, "Provider added · Birch", query)
    monkeypatch.setattr(activity, "MAX_PAGE_EVENTS", 3)
    page = owner.get(ACTIVITY + query).text
    assert titles(page) == ["Provider added · Birch", "2 providers added"]
    [link] = re.findall(r'href="([^"]+)">Events before this import', page)
    assert titles(owner.get(unescape(link)).text) == ["Provider added · Amber"]


def test_days_are_a_filter(owner: Browser, client: Client) -> None:
    client.create("/participants", {"first_name": "Ann"})
    wait_for(owner, "Participant added")
    today = datetime.now(UTC).date()
    near = {"from": today - timedelta(days=1), "to": today + timedelta(days=1)}
    cases = {
        f"?from={near['from']:%d/%m/%Y}": True,
        f"?to={near['to']:%d/%m/%Y}": True,
        f"?from={near['from']}&to={near['to']}": True,
        f"?from={today + timedelta(days=2)}": False,
        f"?to={today - timedelta(days=2)}": False,
        f"?from={today + timedelta(days=2)}&actor=api_key": False,
        f"?to={near['to']}&actor=api_key": True,
    }
    for query, is_found in cases.items():
        page = owner.get(ACTIVITY + query).text
        assert ("Participant added · Ann" in titles(page)) is is_found, query
        assert ("participant.created" in owner.get(f"{ACTIVITY}.csv{query}").text) is is_found, query
    wrong = owner.get(f"{ACTIVITY}?from=31/2/2026").text
    assert ("31 Feb 2026 doesn’t exist" in unescape(wrong), "Participant added · Ann" in titles(wrong)) == (True, True)


def test_people_and_participants_are_found_by_name(owner: Browser, client: Client) -> None:
    client.create("/participants", {"first_name": "Ann", "last_name": "Lee"})
    client.create("/participants", {"first_name": "Ann", "last_name": "Leeds"})
    owner.submit("/console/participants", {"first_name": "Bo", "last_name": "Chen", "status": "Active"})
    wait_for(owner, "Participant added · Bo Chen")
    assert titles(owner.get(f"{ACTIVITY}?participant=Ann+Lee").text) == ["Participant added · Ann Lee"]
    unclear = owner.get(f"{ACTIVITY}?participant=Ann").text
    links = [unescape(each) for each in re.findall(r'href="(/console/activity\?participant=[^"]+)"', unclear)]
    assert {tuple(titles(owner.get(each).text)) for each in links} == {
        ("Participant added · Ann Lee",), ("Participant added · Ann Leeds",),
    }  # fmt: skip
    assert titles(owner.get(f"{ACTIVITY}?person=robin&type=participant.*").text) == ["Participant added · Bo Chen"]


def test_an_event_page_has_labels_and_folds_ids_away(owner: Browser, client: Client) -> None:
    id_ = client.create("/participants", {"first_name": "Ann", "date_of_birth": "1975-06-22"})["id"]
    client.put(f"/participants/{id_}", {"participant_number": "430205409", "date_of_birth": None})
    page = wait_for(owner, "Participant changed")
    assert ("NDIS number" in page, "430 205 409" in page, "22 Jun 1975" in page) == (True, True, True)
    link = r'href="(/console/activity/[0-9a-f-]{36})">View event<span class="unseen">: Participant changed'
    [event] = re.findall(link, page)
    shown, _, technical = owner.get(event).text.partition('<details class="technical">')
    assert ("430 205 409" in shown, "not set" in shown, id_ in technical, "participant.updated" in technical) == (
        True, True, True, True,
    )  # fmt: skip
    assert f'href="{event}/undo">Undo</a>' in shown


def test_chips_name_the_filters_and_presets_set_the_days(owner: Browser) -> None:
    query = {"type": "participant.*", "actor": "user", "from": "1/2/2026", "to": "32/2/2026", "views": "1"}
    page = owner.get(ACTIVITY, params=query).text
    found = re.findall(r'<li><a href="([^"]+)"><span class="unseen">Remove the filter </span>([^<]+) <span', page)
    assert [text for _, text in found] == [
        "Type: Participant: all", "Made by: People", "From 1 Feb 2026", "With views of invoices",
    ]  # fmt: skip
    assert unescape(found[2][0]) == f"{ACTIVITY}?type=participant.%2A&actor=user&views=1&to=32%2F2%2F2026"
    presets = re.search(r'<p class="presets">(.*?)</p>', page, re.DOTALL)
    assert presets
    first = unescape(re.findall(r'<a href="([^"]+)"', presets[1])[0])
    assert re.fullmatch(
        r"/console/activity\?type=participant.%2A&actor=user&views=1&from=(\d{4}-\d\d-\d\d)&to=\1", first
    )
    assert '" aria-current="true">Today</a>' in owner.get(first).text
    assert 'class="chips"' not in owner.get(ACTIVITY).text


def test_many_hidden_events_are_not_read(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create("/participants", {"first_name": "Ann"})

    async def record_views() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            subjects = [EventSubject(uuid7()) for _ in range(20_000)]
            await record_events(ctx, [("invoice_view_session.started", None, each) for each in subjects])

    server.run(record_views())
    statement = "select count(*) from event_order where plan_manager_id = $1"
    wait_until(lambda: server.run(server.db.one(int, statement, plan_manager_id)) > 20_000)
    read: list[int] = []
    latest = store.latest

    async def counted(*values: Any) -> list[HistoryEvent]:
        found = await latest(*values)
        read.append(len(found))
        return found

    monkeypatch.setattr(store, "latest", counted)
    assert "Participant added · Ann" in titles(owner.get(ACTIVITY).text)
    assert "Participant created: Ann" in owner.get("/console").text
    assert len(read) == 2
    assert max(read) <= 5  # the participant, the key, the sign-in and what belongs to them
