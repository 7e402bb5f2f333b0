"""The list of activity: views are hidden, types and people have names, days are a filter, and imports are one entry."""

import csv
import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.console.activity import source
from plankeeper.console.lists import query as list_query
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.events import store
from plankeeper.events.recorder import record_events
from plankeeper.events.schemas import HistoryEvent
from support.client import Client
from support.console import Browser
from support.importing import import_records
from support.imports import confirm, import_path, upload
from support.server import RunningServer, wait_until
from support.webhooks import EventSubject

ACTIVITY = "/console/activity"


def titles(page: str) -> list[str]:
    """The text of each entry, with the name of its record."""
    found = re.findall(r'<span class="what">(.*?)</span>\s*<span class="soft">', page, re.DOTALL)
    return [unescape(re.sub(r"<[^>]+>", "", each)) for each in found]


def page_link(page: str, rel: str) -> str | None:
    found = re.search(rf'href="([^"]+)" rel="{rel}"', page)
    return unescape(found[1]) if found else None


def summary(page: str) -> str:
    return unescape("".join(re.findall(r'class="list-summary">([^<]*)<', page)))


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
    assert (len(re.findall(">Person [0-9]", page)), "and 10 more." in page) == (source.MAX_GROUP_NAMES, True)


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
    monkeypatch.setattr(source, "EVENTS_PER_ROW", 1)
    monkeypatch.setattr(list_query, "PAGE_SIZES", (3, 100))
    first = owner.get(link).text
    second = owner.get(page_link(first, "next") or "").text
    assert titles(first) + titles(second) == [*undone, "Participant changed · Anna"]
    assert {summary(first), summary(second)} == {"6 events"}


def test_a_page_ends_at_its_limits_and_the_next_one_continues(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        client.create("/providers", {"entity_name": f"Provider {number}"})
    wait_for(owner, "Provider added · Provider 4")
    monkeypatch.setattr(list_query, "PAGE_SIZES", (2, 100))
    for events_per_row in (1, 3):
        monkeypatch.setattr(source, "EVENTS_PER_ROW", events_per_row)
        for filters in ("type=provider.*", "type=provider.*&actor=api_key", "type=provider.created&person=test"):
            pages = [owner.get(f"{ACTIVITY}?{filters}").text]
            while url := page_link(pages[-1], "next"):
                pages.append(owner.get(url).text)
            listed = [title for page in pages for title in titles(page)]
            assert listed == [f"Provider added · Provider {number}" for number in reversed(range(5))]
            assert {summary(page) for page in pages} == {"5 events"}
            back = owner.get(page_link(pages[2], "prev") or "").text
            assert (titles(back), page_link(back, "next") is not None) == (titles(pages[1]), True)
            assert titles(owner.get(page_link(back, "prev") or "").text) == titles(pages[0])
            assert page_link(pages[0], "prev") is None


def test_a_page_in_the_middle_of_an_import_leads_to_what_was_before_it(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create("/providers", {"entity_name": "Amber"})
    rows = [{"id": str(uuid7()), "entity_name": f"Provider {number}"} for number in range(5)]
    assert not server.run(import_records(server, plan_manager_id, "providers", rows)).errors
    client.create("/providers", {"entity_name": "Birch"})
    filters = "?type=provider.*"
    assert "Events before this import" not in wait_for(owner, "Provider added · Birch", filters)
    monkeypatch.setattr(source, "EVENTS_PER_ROW", 1)
    monkeypatch.setattr(list_query, "PAGE_SIZES", (3, 100))
    page = owner.get(ACTIVITY + filters).text
    assert titles(page) == ["Provider added · Birch", "2 providers added · more on the next page"]
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
    wrong = owner.get(f"{ACTIVITY}?from=31/2/2026")
    assert (wrong.status_code, "Date: “From” isn’t a date." in unescape(wrong.text), titles(wrong.text)) == (
        422,
        True,
        [],
    )


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


def event_links(page: str, title: str) -> list[str]:
    """The addresses of the events whose titles begin with a text."""
    to_link = r'(?:(?!<details>).)*?href="(/console/activity/[0-9a-f-]{36})[^"]*">View event<'
    return re.findall(f'<span class="what">{title}{to_link}', page, re.DOTALL)


def test_an_event_page_has_labels_and_folds_ids_away(owner: Browser, client: Client) -> None:
    id_ = client.create("/participants", {"first_name": "Ann", "date_of_birth": "1975-06-22"})["id"]
    client.put(f"/participants/{id_}", {"participant_number": "430205409", "date_of_birth": None})
    page = wait_for(owner, "Participant changed")
    assert ("NDIS number" in page, "430 205 409" in page, "22 Jun 1975" in page) == (True, True, True)
    [event] = event_links(page, "Participant changed")
    shown, _, technical = owner.get(event).text.partition('<details class="technical">')
    assert ("430 205 409" in shown, "not set" in shown, id_ in technical, "participant.updated" in technical) == (
        True, True, True, True,
    )  # fmt: skip
    assert f'href="{event}/undo">Undo</a>' in shown


def test_chips_name_the_filters_and_presets_set_the_days(owner: Browser) -> None:
    query = {"type": "participant.*", "actor": "user", "from": "1/2/2026", "to": "3/2/2026", "views": "1"}
    page = owner.get(ACTIVITY, params=query).text
    found = re.findall(r'<li><a href="([^"]+)"><span class="unseen">Remove the filter </span>([^<]+) <span', page)
    assert [text for _, text in found] == [
        "Type of change: Participant: all", "Made by: People", "Date: 1 Feb 2026 – 3 Feb 2026",
        "With invoice views",
    ]  # fmt: skip
    assert unescape(found[2][0]) == f"{ACTIVITY}?type=participant.%2A&actor=user&views=1"
    assert '<option value="today">Today<' in page
    page = owner.get(ACTIVITY, params={"date": "today"}).text
    assert ('<option value="today" selected>Today<' in page, "</span>Date: today <" in page) == (True, True)
    both = owner.get(ACTIVITY, params={"date": "today", "from": "1/2/2026"}).text  # the days outweigh the period
    assert ("</span>Date: from 1 Feb 2026 <" in both, '<option value="today">Today<' in both) == (True, True)
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
    assert "Participant added: Ann" in owner.get("/console").text
    assert len(read) == 2
    assert max(read) <= 5  # the participant, the key, the sign-in and what belongs to them


def test_other_plan_managers_have_their_own_activity(
    server: RunningServer, owner: Browser, client: Client, new_client: Callable[..., Client],
    new_plan_manager: Callable[[], UUID], plan_manager_id: UUID,
) -> None:  # fmt: skip
    foreign = new_client(new_plan_manager())
    record = foreign.create("/participants", {"first_name": "Zed"})["id"]
    client.create("/participants", {"first_name": "Ann"})
    wait_for(owner, "Participant added · Ann")
    query = "select event_id from event_order where plan_manager_id = $1 order by position limit 1"
    theirs = wait_until(lambda: server.run(server.db.one_or_none(UUID, query, UUID(foreign.plan_manager_id))))
    for filters in ("type=participant.*", f"type=participant.*&before={theirs}", f"type=participant.*&after={theirs}"):
        page = owner.get(f"{ACTIVITY}?{filters}").text
        assert (set(titles(page)) <= {"Participant added · Ann"}, "Zed" in page) == (True, False)
        assert summary(page) in ("", "1 event")
    assert titles(owner.get(f"{ACTIVITY}?resource_id={record}").text) == []


def test_the_file_has_the_events_of_the_list_in_words(owner: Browser, client: Client) -> None:
    person = client.create("/participants", {"first_name": "Ann", "phone_number": "0400 000 001"})["id"]
    client.put(f"/participants/{person}", {"phone_number": "0400 000 002", "city": "=Hobart"})
    page = wait_for(owner, "Participant changed", f"?resource_id={person}")
    assert (titles(page), summary(page)) == (["Participant changed · Ann", "Participant added · Ann"], "2 events")
    [link] = re.findall(r'href="([^"]+)"><span class="long">Download </span>CSV', page)
    content = owner.get(unescape(link)).content.decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(content, newline="")))
    assert [f"{each['Change']} · {each['Record']}" for each in rows] == titles(page)
    assert [each["Made by"] for each in rows] == ["test", "test"]
    assert "Phone: 0400 000 001 → 0400 000 002" in rows[0]["Changed fields"]


def test_an_event_leads_back_to_its_page_of_the_list(owner: Browser, client: Client) -> None:
    client.create("/participants", {"first_name": "Ann"})
    page = wait_for(owner, "Participant added", "?type=participant.*&size=100")
    [link] = re.findall(r'href="(/console/activity/[0-9a-f-]{36}\?list=[^"]+)">View event', page)
    assert f'href="{ACTIVITY}?type=participant.%2A&amp;size=100"' in owner.get(unescape(link)).text


def test_views_and_density_of_the_activity_are_saved(owner: Browser) -> None:
    view = {"list": "activity", "query": "actor=user&date=today", "name": "People today", "is_shared": "true"}
    assert owner.submit("/console/views", view).headers["location"] == f"{ACTIVITY}?actor=user&date=today"
    assert ">People today</a>" in owner.get(ACTIVITY).text
    settings = {"list": "activity", "density": "comfortable"}
    assert owner.submit("/console/list-settings", settings).headers["location"] == ACTIVITY
    wait_until(lambda: 'class="events comfortable"' in owner.get(ACTIVITY).text)
    assert owner.get(f"{ACTIVITY}.csv").text.count(",Made by,") == 1  # the columns of the file stay


def test_entries_stand_under_days_in_words(owner: Browser) -> None:
    assert owner.get("/console/participants.csv").status_code == 200
    assert owner.submit(
        "/console/settings/webhooks",
        {"url": "https://example.com/hooks", "event_types": ["*"], "payload": "thin"},
    ).status_code == 200  # fmt: skip
    wait_for(owner, "Data downloaded · Participants")
    page = wait_for(owner, "Webhook")
    wait_for(owner, "Signed in")
    assert re.findall(r'<h2 class="day" id="day-1">(\w+)</h2>', page) == ["Today"]
    assert (page.count('<section aria-labelledby="day-'), "· participants" in page) == (1, False)
    [event] = event_links(page, "Webhook")
    assert "Event and resource ID only" in owner.get(event).text
    assert ">thin<" not in owner.get("/console/settings/webhooks").text
