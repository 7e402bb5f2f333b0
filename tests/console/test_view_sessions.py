"""Invoice view sessions that the console keeps: begun, kept by heartbeats, ended; figures that can be true."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from console.people import Browser, Person
from plankeeper.invoice_view_sessions import service
from plankeeper.invoice_view_sessions.rules import Durations, clamp
from support.client import Client
from support.server import RunningServer, wait_until

HELD = {"active_ms": "0", "engaged_ms": "0", "idle_count": "0"}


@pytest.fixture
def api(new_client: Callable[..., Client], plan_manager_id: UUID) -> Client:
    return new_client(plan_manager_id)


@pytest.fixture
def invoice_id(api: Client, import_rows: Callable[..., Any]) -> str:
    ident = str(uuid7())
    assert not import_rows(api, "invoices", [{"id": ident, "invoice_number": "INV-1"}]).bad
    return ident


@pytest.fixture
def person(new_person: Callable[..., Person]) -> Person:
    return new_person("viewer")


@pytest.fixture
def viewer(new_browser: Callable[..., Browser], person: Person) -> Browser:
    return new_browser(person)


@pytest.fixture
def session_id(viewer: Browser, invoice_id: str) -> str:
    answer = viewer.send(f"/console/invoices/{invoice_id}/view-session")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert list(answer.json()) == ["id"]
    return answer.json()["id"]


@pytest.fixture
def age(server: RunningServer) -> Callable[..., None]:
    """Lets a session have begun so many seconds earlier, and been heard of so many seconds ago."""
    statement = """
        update invoice_view_sessions set session_started = session_started - $2::interval,
            last_heartbeat = last_heartbeat - $3::interval
        where id = $1
    """

    def work(session_id: str, begun: int, heard: int = 0) -> None:
        times = timedelta(seconds=begun), timedelta(seconds=heard)
        server.run(server.db.execute(statement, session_id, *times))

    return work


def told(viewer: Browser, session_id: str, step: str = "heartbeat", **figures: int) -> int:
    sent = HELD | {name: str(value) for name, value in figures.items()}
    answer = viewer.send(f"/console/view-sessions/{session_id}/{step}", sent)
    assert answer.content == b"" or answer.status_code not in (204, 409)
    return answer.status_code


def read(api: Client, session_id: str) -> dict[str, Any]:
    answer = api.get(f"/invoice-view-sessions/{session_id}")
    assert answer.status_code == 200
    return answer.json()


def figures(session: dict[str, Any]) -> tuple[int, int, int, int]:
    names = ("duration_seconds", "active_duration_seconds", "engaged_duration_seconds", "idle_count")
    return tuple(session[name] for name in names)  # type: ignore[return-value]


def events(api: Client, session_id: str) -> list[Any]:
    return api.get("/events", resource_id=session_id, after="0").json()["data"]


def test_a_session_begins_for_the_account_that_looks(
    api: Client, person: Person, invoice_id: str, session_id: str
) -> None:
    session = read(api, session_id)
    assert session == {
        "id": session_id, "invoice_id": invoice_id, "user_id": str(person.account_id), "user_name": "Robin Hale",
        "session_started": session["created_at"], "session_ended": None, "last_heartbeat": session["created_at"],
        "duration_seconds": 0, "created_at": session["created_at"], "active_duration_seconds": 0,
        "engaged_duration_seconds": 0, "idle_count": 0,
    }  # fmt: skip


def test_looking_at_the_page_alone_begins_nothing(viewer: Browser, api: Client, invoice_id: str) -> None:
    here = f"/console/invoices/{invoice_id}"
    assert viewer.http.head(here).status_code == viewer.get(here).status_code == 200
    assert viewer.get(f"{here}/view-session").status_code == 405
    assert api.get("/invoice-view-sessions").json()["data"] == []


def test_a_heartbeat_brings_the_figures_and_no_event(
    api: Client, viewer: Browser, session_id: str, age: Callable[..., None]
) -> None:
    age(session_id, 300)
    assert told(viewer, session_id, active_ms=200_999, engaged_ms=100_500, idle_count=2) == 204
    session = read(api, session_id)
    assert session["session_ended"] is None
    assert session["last_heartbeat"] > session["created_at"]
    assert session["duration_seconds"] in range(300, 330)
    assert figures(session)[1:] == (200, 100, 2)
    wait_until(lambda: events(api, session_id))
    assert [each["type"] for each in events(api, session_id)] == ["invoice_view_session.started"]


def test_closing_ends_it_with_the_last_figures(
    api: Client, person: Person, viewer: Browser, session_id: str, age: Callable[..., None]
) -> None:
    age(session_id, 120)
    assert told(viewer, session_id, active_ms=30_000, engaged_ms=20_000) == 204
    assert told(viewer, session_id, "end", active_ms=90_000, engaged_ms=60_000, idle_count=1) == 204
    session = read(api, session_id)
    assert session["session_ended"] == session["last_heartbeat"]
    assert figures(session)[1:] == (90, 60, 1)
    assert session["duration_seconds"] == seconds_of(session)
    began, ended = wait_until(lambda: len(found := events(api, session_id)) == 2 and found)
    assert [each["type"] for each in (began, ended)] == ["invoice_view_session.started", "invoice_view_session.ended"]
    assert {each["actor"]["id"] for each in (began, ended)} == {str(person.account_id)}
    assert (ended["data"], ended["previous"]["session_ended"]) == (session, None)


def seconds_of(session: dict[str, Any]) -> int:
    lasted = datetime.fromisoformat(session["session_ended"]) - datetime.fromisoformat(session["session_started"])
    return int(lasted.total_seconds())


def test_an_ended_session_is_not_begun_again(api: Client, viewer: Browser, session_id: str) -> None:
    assert told(viewer, session_id, "end") == 204
    ended = read(api, session_id)
    for step in ("heartbeat", "end"):
        assert told(viewer, session_id, step, active_ms=1000) == 409
    assert read(api, session_id) == ended


def test_figures_are_never_more_than_can_be_and_never_less_than_before(
    api: Client, viewer: Browser, session_id: str, age: Callable[..., None]
) -> None:
    assert told(viewer, session_id, active_ms=3_600_000, engaged_ms=3_600_000, idle_count=9) == 204
    assert max(figures(read(api, session_id))) < 30
    age(session_id, 600)
    assert told(viewer, session_id, active_ms=100_000, engaged_ms=400_000, idle_count=99) == 204
    assert figures(read(api, session_id))[1:] == (100, 100, 10)
    assert told(viewer, session_id, active_ms=50_000, engaged_ms=10_000, idle_count=0) == 204
    assert figures(read(api, session_id))[1:] == (100, 100, 10)


@pytest.mark.parametrize(
    "sent, elapsed, before, kept",
    [
        ((0, 0, 0), 0, (0, 0, 0), (0, 0, 0)),
        ((1_999, 999, 0), 60, (0, 0, 0), (1, 0, 0)),
        ((9_000, 8_000, 1), 5, (0, 0, 0), (5, 5, 0)),
        ((9_000, 1_000, 1), -5, (3, 2, 1), (3, 2, 1)),
        ((10_000, 20_000, 1), 60, (3, 2, 1), (10, 10, 1)),
        ((10**12, 10**12, 10**12), 3600, (3, 2, 1), (3600, 3600, 60)),
        ((0, 0, 0), 3600, (3, 2, 1), (3, 2, 1)),
    ],
)
def test_what_is_possible(
    sent: tuple[int, int, int], elapsed: int, before: tuple[int, int, int], kept: tuple[int, int, int]
) -> None:
    assert clamp(*sent, timedelta(seconds=elapsed), Durations(*before)) == kept


@pytest.mark.parametrize("wrong", ["", "-1", "1.5", "1e3", "x", "٣", "1" * 13, "NaN", "+1", "1_0"])
@pytest.mark.parametrize("name", HELD)
def test_a_figure_is_a_whole_number(api: Client, viewer: Browser, session_id: str, name: str, wrong: str) -> None:
    before = read(api, session_id)
    answer = viewer.send(f"/console/view-sessions/{session_id}/heartbeat", HELD | {name: wrong})
    assert (answer.status_code, name in answer.text) == (400, True)
    assert viewer.send(f"/console/view-sessions/{session_id}/heartbeat", {}).status_code == 400
    assert read(api, session_id) == before


def test_only_who_began_a_session_keeps_it(
    api: Client, session_id: str, new_browser: Callable[..., Browser], new_person: Callable[..., Person],
    new_plan_manager: Callable[[], UUID],
) -> None:  # fmt: skip
    before = read(api, session_id)
    for other in (new_person("owner"), new_person("owner", new_plan_manager())):
        browser = new_browser(other)
        for step in ("heartbeat", "end"):
            assert told(browser, session_id, step) == 404
    assert read(api, session_id) == before


def test_an_imported_session_is_nobodys_to_keep_or_to_end(
    server: RunningServer, api: Client, viewer: Browser, person: Person, invoice_id: str,
    import_rows: Callable[..., Any],
) -> None:  # fmt: skip
    row = {
        "id": str(uuid7()), "invoice_id": invoice_id, "user_id": str(person.account_id), "user_name": "Robin Hale",
        "session_started": "2026-03-01T00:00:00Z",
    }  # fmt: skip
    assert not import_rows(api, "invoice-view-sessions", [row]).bad
    before = read(api, row["id"])
    for step in ("heartbeat", "end"):
        assert told(viewer, row["id"], step) == 404
    server.run(service.end_stale(server.db, server.settings))
    assert read(api, row["id"]) == before


def test_no_session_begins_on_what_is_another_plan_managers(
    api: Client, invoice_id: str, new_browser: Callable[..., Browser], new_person: Callable[..., Person],
    new_plan_manager: Callable[[], UUID],
) -> None:  # fmt: skip
    stranger = new_browser(new_person("owner", new_plan_manager()))
    assert stranger.send(f"/console/invoices/{invoice_id}/view-session").status_code == 404
    assert api.get("/invoice-view-sessions").json()["data"] == []


def test_silence_ends_a_session_where_it_was_last_heard_of(
    server: RunningServer, api: Client, viewer: Browser, session_id: str, age: Callable[..., None]
) -> None:
    age(session_id, 90)
    assert told(viewer, session_id, active_ms=80_000, engaged_ms=70_000, idle_count=1) == 204
    server.run(service.end_stale(server.db, server.settings))
    assert read(api, session_id)["session_ended"] is None
    age(session_id, 61, 61)
    # The sequencer's process does it too, every second.
    server.run(service.end_stale(server.db, server.settings))
    session = wait_until(lambda: (found := read(api, session_id))["session_ended"] and found)
    assert session["session_ended"] == session["last_heartbeat"]
    assert figures(session)[1:] == (80, 70, 1)
    ended = wait_until(lambda: len(found := events(api, session_id)) == 2 and found[1])
    assert (ended["type"], ended["actor"]["kind"]) == ("invoice_view_session.ended", "system")
    assert ended["data"] == session
    assert told(viewer, session_id) == 409


def test_the_chores_end_silent_sessions(api: Client, session_id: str, age: Callable[..., None]) -> None:
    age(session_id, 100, 61)
    wait_until(lambda: read(api, session_id)["session_ended"], 20)


def test_a_heartbeat_that_comes_too_late_ends_the_session(
    server: RunningServer, api: Client, viewer: Browser, session_id: str, age: Callable[..., None]
) -> None:
    age(session_id, 100, 61)
    silent = read(api, session_id)["last_heartbeat"]
    assert told(viewer, session_id, active_ms=90_000) == 409
    session = read(api, session_id)
    assert (session["session_ended"], session["active_duration_seconds"]) == (silent, 0)
    ended = wait_until(lambda: len(found := events(api, session_id)) == 2 and found[1])
    assert ended["actor"]["kind"] == "system"


def test_nobody_begins_sessions_without_end(viewer: Browser, invoice_id: str) -> None:
    found = [viewer.send(f"/console/invoices/{invoice_id}/view-session").status_code for _ in range(62)]
    assert found == [200] * service.MAX_STARTS_PER_MINUTE + [429] * 2
