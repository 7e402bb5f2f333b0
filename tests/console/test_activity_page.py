"""Activity: filters by who did it, and what they let through as a CSV file."""

import csv
import io
import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any
from uuid import UUID

import httpx
import pytest

from console.people import Browser, Person, made
from plankeeper.console.concurrency import ConcurrencyLimit
from plankeeper.console.csv_export import UTF8_BOM, csv_row
from plankeeper.console.pages import activity
from plankeeper.http.errors import ApiError
from support.client import Client
from support.server import RunningServer, wait_until

ACTIVITY = "/console/activity"
COLUMNS = [
    "at", "type", "actor_kind", "actor_id", "actor_name", "resource_kind", "resource_id", "request_id", "before",
    "after",
]  # fmt: skip


@pytest.fixture
def client(server: RunningServer, new_key: Callable[..., str], plan_manager_id: UUID) -> Any:
    opened = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    yield opened
    opened.http.close()


def sheet(answer: httpx.Response) -> list[dict[str, str]]:
    """The rows of a file as a spreadsheet would read them."""
    assert answer.status_code == 200
    assert answer.content.startswith(UTF8_BOM)
    assert answer.content.endswith(b"\r\n")
    found = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))
    assert found[0] == COLUMNS
    return [dict(zip(COLUMNS, each, strict=True)) for each in found[1:]]


def settled(owner: Browser, count: int, query: str = "") -> list[dict[str, str]]:
    """The file, once so many events have their places."""
    return wait_until(lambda: len(rows := sheet(owner.get(f"{ACTIVITY}.csv{query}"))) >= count and rows)


def test_the_file_has_every_event_newest_first_with_before_and_after(
    owner: Browser, client: Client, plan_manager_id: UUID
) -> None:
    made_ = client.made("/note-types", {"note_type": 'Besuch – 訪問, "zwei"\nZeilen'})
    client.put(f"/note-types/{made_['id']}", {"note_type": "Visit"})
    rows = settled(owner, 5)
    assert [each["type"] for each in rows] == [
        "note_type.updated", "note_type.created", "api_key.created", "account.signed_in", "account.joined",
    ]  # fmt: skip
    updated, created = rows[:2]
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", updated["at"])
    assert (updated["actor_kind"], updated["actor_name"], updated["resource_id"]) == (
        "api_key",
        "test",
        str(made_["id"]),
    )
    assert updated["request_id"]
    assert json.loads(updated["before"]) == {"note_type": 'Besuch – 訪問, "zwei"\nZeilen'}
    assert json.loads(updated["after"])["note_type"] == "Visit"
    assert (created["before"], json.loads(created["after"])["note_type"]) == ("", 'Besuch – 訪問, "zwei"\nZeilen')


def test_the_file_goes_on_where_a_part_ends(owner: Browser, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "EXPORT_BATCH_SIZE", 4)
    names = [f"Type {number}" for number in range(12)]
    for name in names:
        client.made("/note-types", {"note_type": name})
    rows = settled(owner, 15)
    assert [json.loads(each["after"]).get("note_type") for each in rows][:12] == names[::-1]
    assert len({each["at"] + each["type"] + each["resource_id"] for each in rows}) == 15
    exact = settled(owner, 12, "?type=note_type.created")  # three whole parts, and nothing in a fourth
    assert len(exact) == 12


def test_the_file_has_its_name_its_headers_and_is_linked_with_the_filters(owner: Browser) -> None:
    wait_until(lambda: "Account signed in" in owner.get(ACTIVITY).text)
    page = owner.get(f"{ACTIVITY}?type=account.signed_in&actor=user").text
    link = re.search(r'href="([^"]+)">Export as CSV', page)
    assert link
    assert unescape(link[1]) == f"{ACTIVITY}.csv?type=account.signed_in&actor=user"
    answer = owner.get(unescape(link[1]))
    assert [each["type"] for each in sheet(answer)] == ["account.signed_in"]
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert re.fullmatch(r'attachment; filename="activity-20\d\d-\d\d-\d\d\.csv"', answer.headers["content-disposition"])
    assert "content-length" not in answer.headers
    head = owner.http.head(unescape(link[1]))
    assert (head.status_code, head.content) == (200, b"")


def test_filters_by_who_did_it_hold_for_the_page_and_the_file(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID
) -> None:
    note = client.made("/note-types", {"note_type": "Visit"})
    assert len(settled(owner, 4)) == 4
    for query, types in {
        "actor=user": ["account.signed_in"],
        "actor=api_key": ["note_type.created"],
        "actor=system": ["api_key.created", "account.joined"],
        "actor=nobody": ["note_type.created", "api_key.created", "account.signed_in", "account.joined"],
        "name=TEST": ["note_type.created"],
        "name=robin+hale": ["account.signed_in"],
        "name=robin": [],
        "actor=user&name=test": [],
        f"resource_id={note['id']}&actor=api_key&name=test": ["note_type.created"],
        f"resource_id={note['id']}&actor=user": [],
    }.items():
        assert [each["type"] for each in sheet(owner.get(f"{ACTIVITY}.csv?{query}"))] == types, query
        page = owner.get(f"{ACTIVITY}?{query}").text
        assert page.count("<summary>") == len(types), query
        assert ("Nothing is like that" in page, "Export as CSV" in page) == (not types, bool(types))


def test_the_file_has_nothing_of_another_plan_manager(
    owner: Browser, new_browser: Callable[..., Browser], new_person: Callable[..., Person],
    new_plan_manager: Callable[[], UUID],
) -> None:  # fmt: skip
    foreign = new_person("owner", new_plan_manager())
    theirs = new_browser(foreign)
    settled(theirs, 2)
    settled(owner, 2)
    answer = owner.get(f"{ACTIVITY}.csv")
    assert (foreign.email in answer.text, str(foreign.account_id) in answer.text) == (False, False)
    assert sheet(owner.get(f"{ACTIVITY}.csv?resource_id={foreign.account_id}")) == []


def test_no_cell_is_a_formula(server: RunningServer, owner: Browser, plan_manager_id: UUID) -> None:
    for text in ("=1+1", "+1", "-1", "@sum(A1)", "\t=1", "\r=1"):
        assert next(csv.reader(io.StringIO(csv_row([text, "x"]).decode(), newline=""))) == [f"'{text}", "x"]
    assert csv_row(["1=2", None, "a,b"]) == b'1=2,,"a,b"\r\n'
    sly = server.run(made(server, plan_manager_id, "viewer", '=HYPERLINK("https://evil.example","Click")'))
    browser = Browser(server.url)
    assert browser.sign_in(sly).status_code == 303
    rows = settled(browser, 1, "?type=account.signed_in&resource_id=" + str(sly.account_id))
    assert rows[0]["actor_name"] == '\'=HYPERLINK("https://evil.example","Click")'
    browser.http.close()


def test_a_browser_that_leaves_ends_the_file(
    server: RunningServer, owner: Browser, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing more is read for it, and the server goes on."""
    settled(owner, 3)
    parts = list[int]()

    async def endless(*_: Any) -> Any:
        while True:
            parts.append(1)
            yield b"x" * 100_000

    monkeypatch.setattr(activity, "export_chunks", endless)
    with owner.http.stream("GET", f"{ACTIVITY}.csv") as answer:
        assert next(answer.iter_raw())
    monkeypatch.undo()

    def still() -> bool:
        before = len(parts)
        assert owner.get(ACTIVITY).status_code == 200
        return len(parts) == before

    wait_until(still)


def test_an_event_names_what_it_is_about_and_leads_to_it(owner: Browser, plan_manager_id: UUID) -> None:
    made = owner.send("/console/participants", {"first_name": "Ann", "last_name": "Lee"}).headers["location"]
    wait_until(lambda: "· Ann Lee<" in owner.get("/console/activity").text)
    assert f'<a href="{made}">Ann Lee</a>' in owner.activity("?type=participant.created")


def test_a_worker_sends_few_files_at_a_time(owner: Browser) -> None:
    for _ in range(6):  # each place is given back
        assert owner.get("/console/activity.csv").status_code == 200
    places = ConcurrencyLimit(1)
    with places, pytest.raises(ApiError) as refused:
        places.require_available()
    assert refused.value.status == 503
