"""Activity: filters by who did it, and what they let through as a CSV file."""

import csv
import io
import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from html import unescape
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from plankeeper.console.activity import source
from plankeeper.console.components.downloads import UTF8_BOM, csv_row
from plankeeper.console.lists import selection
from plankeeper.console.shell.concurrency import ConcurrencyLimit, SharedLimit, SharedLimitError
from plankeeper.core.errors import DomainError
from support.client import Client
from support.console import Account, Browser, create_account
from support.server import RunningServer, wait_until

ACTIVITY = "/console/activity"
COLUMNS = [
    "Time", "Change", "Record", "Changed fields", "Made by", "Person, key or system", "Event type", "Person or key ID",
    "Record ID", "Request ID", "Before", "After",
]  # fmt: skip


def read_csv(response: httpx.Response) -> list[dict[str, str]]:
    """The rows of a file as a spreadsheet would read them."""
    assert response.status_code == 200
    assert response.content.startswith(UTF8_BOM)
    assert response.content.endswith(b"\r\n")
    lines = list(csv.reader(io.StringIO(response.content.decode("utf-8-sig"), newline="")))
    assert lines[0] == COLUMNS
    return [dict(zip(COLUMNS, each, strict=True)) for each in lines[1:]]


def wait_for_csv(owner: Browser, count: int, query: str = "") -> list[dict[str, str]]:
    """The events of the file other than exports, once as many have positions. Each attempt is an export, too."""

    def read() -> list[dict[str, str]]:
        rows = read_csv(owner.get(f"{ACTIVITY}.csv{query}"))
        return [each for each in rows if each["Event type"] != "export.created"]

    return wait_until(lambda: len(rows := read()) >= count and rows)


def test_the_file_has_every_event_newest_first_with_before_and_after(
    owner: Browser, client: Client, plan_manager_id: UUID
) -> None:
    made_ = client.create("/note-types", {"note_type": 'Besuch – 訪問, "zwei"\nZeilen'})
    client.put(f"/note-types/{made_['id']}", {"note_type": "Visit"})
    rows = wait_for_csv(owner, 5)
    assert [each["Event type"] for each in rows] == [
        "note_type.updated", "note_type.created", "api_key.created", "account.signed_in", "account.joined",
    ]  # fmt: skip
    updated, created = rows[:2]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d", updated["Time"])
    assert (updated["Person, key or system"], updated["Made by"], updated["Record ID"]) == (
        "API key",
        "test",
        str(made_["id"]),
    )
    assert updated["Request ID"]
    assert json.loads(updated["Before"]) == {"note_type": 'Besuch – 訪問, "zwei"\nZeilen'}
    assert json.loads(updated["After"])["note_type"] == "Visit"
    assert (created["Before"], json.loads(created["After"])["note_type"]) == ("", 'Besuch – 訪問, "zwei"\nZeilen')


def test_the_file_continues_where_a_batch_ends(owner: Browser, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "EXPORT_BATCH_SIZE", 4)
    names = [f"Type {number}" for number in range(12)]
    for name in names:
        client.create("/note-types", {"note_type": name})
    rows = wait_for_csv(owner, 15)
    assert [json.loads(each["After"]).get("note_type") for each in rows][:12] == names[::-1]
    assert len({each["Time"] + each["Event type"] + each["Record ID"] for each in rows}) == 15
    exact = wait_for_csv(owner, 12, "?type=note_type.created")  # three whole parts, and nothing in a fourth
    assert len(exact) == 12


def test_the_file_has_a_name_and_headers_and_its_link_keeps_the_filters(owner: Browser) -> None:
    wait_until(lambda: 'class="what">Signed in' in owner.get(ACTIVITY).text)
    page = owner.get(f"{ACTIVITY}?type=account.signed_in&actor=user").text
    link = re.search(r'href="([^"]+)"><span class="long">Download </span>CSV', page)
    assert link
    assert unescape(link[1]) == f"{ACTIVITY}.csv?type=account.signed_in&actor=user"
    response = owner.get(unescape(link[1]))
    assert [each["Event type"] for each in read_csv(response)] == ["account.signed_in"]
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert re.fullmatch(
        r'attachment; filename="activity-20\d\d-\d\d-\d\d\.csv"', response.headers["content-disposition"]
    )
    assert "content-length" not in response.headers
    head = owner.http.head(unescape(link[1]))
    assert (head.status_code, head.content) == (200, b"")


def event_count(page: str) -> int:
    """How many events the page lists: each can be unfolded, like the menus above."""
    return page.partition('class="events"')[2].count("<summary>")


def test_actor_filters_apply_to_the_page_and_the_file(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID
) -> None:
    note = client.create("/note-types", {"note_type": "Visit"})
    wait_until(lambda: event_count(owner.get(ACTIVITY).text) == 4)
    cases = {
        "actor=user": ["account.signed_in"],
        "actor=api_key": ["note_type.created"],
        "actor=system": ["api_key.created", "account.joined"],
        "": ["note_type.created", "api_key.created", "account.signed_in", "account.joined"],
        "person=TEST": ["note_type.created"],
        "person=robin": ["account.signed_in"],
        "actor=user&person=test": [],
        f"resource_id={note['id']}&actor=api_key&person=test": ["note_type.created"],
        f"resource_id={note['id']}&actor=user": [],
    }
    for query, types in cases.items():
        page = owner.get(f"{ACTIVITY}?{query}").text
        assert event_count(page) == len(types), query
        assert ("No events match." in page, ".csv" in page) == (not types, bool(types))
    for query, types in cases.items():
        rows = read_csv(owner.get(f"{ACTIVITY}.csv?{query}"))
        assert [each["Event type"] for each in rows if each["Event type"] != "export.created"] == types, query


def test_unknown_filters_are_marked_and_list_nothing(owner: Browser) -> None:
    for query in ("actor=nobody", "type=nothing", "from=32/1/2026", "import=x", "date=ever"):
        page = owner.get(f"{ACTIVITY}?{query}")
        assert (page.status_code, "There is a problem" in page.text, event_count(page.text)) == (422, True, 0)
        assert owner.get(f"{ACTIVITY}.csv?{query}").status_code == 400


def test_the_file_has_no_events_of_another_plan_manager(
    owner: Browser, new_browser: Callable[..., Browser], new_account: Callable[..., Account],
    new_plan_manager: Callable[[], UUID],
) -> None:  # fmt: skip
    foreign = new_account("owner", new_plan_manager())
    theirs = new_browser(foreign)
    wait_for_csv(theirs, 2)
    wait_for_csv(owner, 2)
    response = owner.get(f"{ACTIVITY}.csv")
    assert (foreign.email in response.text, str(foreign.account_id) in response.text) == (False, False)
    assert read_csv(owner.get(f"{ACTIVITY}.csv?resource_id={foreign.account_id}")) == []


def test_no_cell_is_a_formula(server: RunningServer, owner: Browser, plan_manager_id: UUID) -> None:
    for text in ("=1+1", "+1", "-1", "@sum(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", "＋1", "－1", "＠sum(A1)"):
        assert next(csv.reader(io.StringIO(csv_row([text, "x"]).decode(), newline=""))) == [f"'{text}", "x"]
    assert csv_row(["1=2", None, "a,b"]) == b'1=2,,"a,b"\r\n'
    sly = server.run(create_account(server, plan_manager_id, "manager", '=HYPERLINK("https://evil.example","Click")'))
    browser = Browser(server.url)
    assert browser.sign_in(sly).status_code == 303
    rows = wait_for_csv(browser, 1, "?type=account.signed_in&resource_id=" + str(sly.account_id))
    assert rows[0]["Made by"] == '\'=HYPERLINK("https://evil.example","Click")'
    browser.http.close()


def test_a_disconnected_browser_ends_the_export(
    server: RunningServer, owner: Browser, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing more is read for it, and the server goes on."""
    wait_for_csv(owner, 3)
    parts = list[int]()

    async def endless(*_: Any) -> Any:
        while True:
            parts.append(1)
            yield b"x" * 100_000

    monkeypatch.setattr(selection, "csv_chunks", endless)
    with owner.http.stream("GET", f"{ACTIVITY}.csv") as response:
        assert next(response.iter_raw())
    monkeypatch.undo()

    def is_still_streaming() -> bool:
        before = len(parts)
        assert owner.get(ACTIVITY).status_code == 200
        return len(parts) == before

    wait_until(is_still_streaming)


def test_an_event_names_and_links_its_resource(owner: Browser, plan_manager_id: UUID) -> None:
    made = owner.submit("/console/participants", {"first_name": "Ann", "last_name": "Lee"}).headers["location"]
    assert f'<a href="{made}">Ann Lee</a>' in owner.activity("?type=participant.created")
    assert "· Ann Lee<" in owner.get("/console/activity").text


def test_a_worker_limits_concurrent_exports(owner: Browser) -> None:
    for _ in range(6):  # each place is given back
        assert owner.get("/console/activity.csv").status_code == 200
    places = ConcurrencyLimit(1)
    with places, pytest.raises(DomainError) as rejection:
        places.require_available()
    assert rejection.value.status == 503


A, B, C = uuid4(), uuid4(), uuid4()


def test_accounts_and_plan_managers_have_limits_before_the_worker() -> None:
    limit, (first, second, *others) = (
        SharedLimit("download", worker=4, plan_manager=2),
        [(uuid4(), each) for each in (A, A, A, B, B, C)],
    )
    with limit.slot(*first):
        with pytest.raises(SharedLimitError, match="of yours"):
            limit.require_available(*first)
        with limit.slot(*second):
            with pytest.raises(SharedLimitError, match="of this plan manager"):
                limit.require_available(*others[0])
            with limit.slot(*others[1]), limit.slot(*others[2]), pytest.raises(DomainError) as rejected:
                limit.require_available(*others[3])
            assert rejected.value.status == 503
        limit.require_available(*others[0])
    with pytest.raises(OSError, match="disconnected"), limit.slot(*first):
        raise OSError("disconnected")
    for each in (first, second, *others):
        limit.require_available(*each)


def test_one_manager_does_not_keep_the_exports_of_others_busy(
    owner: Browser,
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
    new_plan_manager: Callable[[], UUID],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manager = new_account("manager")
    greedy, colleague = new_browser(manager), new_browser(new_account("manager"))
    again, foreign = new_browser(manager), new_browser(new_account("manager", new_plan_manager()))

    async def endless(*_: Any) -> Any:
        while True:
            yield b"x" * 100_000

    with monkeypatch.context() as patch:
        patch.setattr(selection, "csv_chunks", endless)
        with ExitStack() as stack:

            def begin(browser: Browser) -> Any:
                """An export of which one chunk is read. Without the iterator, httpx closes the connection."""
                chunks = stack.enter_context(browser.http.stream("GET", f"{ACTIVITY}.csv")).iter_raw()
                assert next(chunks).startswith(b"x")
                return chunks

            held = [begin(greedy)]
            for browser in (greedy, again):  # the limit is the account's, not the session's
                with browser.http.stream("GET", f"{ACTIVITY}.csv") as rejected:
                    assert (rejected.status_code, rejected.headers["retry-after"]) == (429, "5")
                    assert "Another download of yours is in progress." in rejected.read().decode()
            held.append(begin(colleague))
            with owner.http.stream("GET", f"{ACTIVITY}.csv") as rejected:  # otherwise endless
                assert rejected.status_code == 429
            patch.undo()
            assert [foreign.get(f"{ACTIVITY}.csv").status_code for _ in range(3)] == [200, 200, 200]
    wait_until(lambda: owner.get(f"{ACTIVITY}.csv").status_code == 200)
