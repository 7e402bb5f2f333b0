"""Invoice view sessions in the console: started, continued by heartbeats, ended, with plausible times."""

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.resources.invoice_view_sessions import service
from plankeeper.resources.invoice_view_sessions.service import Durations, clamp
from support.client import Client
from support.console import Account, Browser
from support.resources import times_of
from support.server import RunningServer, wait_until
from support.sweeps import sweep

ZERO_REPORT = {"active_ms": "0", "engaged_ms": "0", "idle_count": "0"}


@pytest.fixture
def invoice_id(client: Client, import_rows: Callable[..., Any]) -> str:
    ident = str(uuid7())
    assert not import_rows(client, "invoices", [{"id": ident, "invoice_number": "INV-1"}]).errors
    return ident


@pytest.fixture
def account(new_account: Callable[..., Account]) -> Account:
    return new_account("viewer")


@pytest.fixture
def viewer(new_browser: Callable[..., Browser], account: Account) -> Browser:
    return new_browser(account)


@pytest.fixture
def session_id(viewer: Browser, invoice_id: str) -> str:
    response = viewer.submit(f"/console/invoices/{invoice_id}/view-session")
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert list(response.json()) == ["id"]
    return response.json()["id"]


@pytest.fixture
def age_session(server: RunningServer) -> Callable[..., None]:
    """Lets a session have begun so many seconds earlier, and been heard of so many seconds ago."""
    statement = """
        update invoice_view_sessions set session_started = session_started - $2::interval,
            last_heartbeat = last_heartbeat - $3::interval
        where id = $1
    """

    def shift(session_id: str, started_ago: int, heartbeat_ago: int = 0) -> None:
        times = timedelta(seconds=started_ago), timedelta(seconds=heartbeat_ago)
        server.run(server.db.execute(statement, session_id, *times))

    return shift


def report(viewer: Browser, session_id: str, step: str = "heartbeat", **values: int) -> int:
    form = ZERO_REPORT | {name: str(value) for name, value in values.items()}
    response = viewer.submit(f"/console/view-sessions/{session_id}/{step}", form)
    assert response.content == b"" or response.status_code not in (204, 409)
    return response.status_code


def get_session(client: Client, session_id: str) -> dict[str, Any]:
    response = client.get(f"/invoice-view-sessions/{session_id}")
    assert response.status_code == 200
    return response.json()


def durations(session: dict[str, Any]) -> tuple[int, int, int, int]:
    names = ("duration_seconds", "active_duration_seconds", "engaged_duration_seconds", "idle_count")
    return tuple(session[name] for name in names)  # type: ignore[return-value]


def events(client: Client, session_id: str) -> list[Any]:
    return client.get("/events", resource_id=session_id, after="0").json()["data"]


def test_a_session_starts_for_the_viewing_account(
    client: Client, account: Account, invoice_id: str, session_id: str
) -> None:
    session = get_session(client, session_id)
    assert session == {
        "id": session_id, "invoice_id": invoice_id, "user_id": str(account.account_id), "user_name": "Robin Hale",
        "session_started": session["created_at"], "session_ended": None, "last_heartbeat": session["created_at"],
        "duration_seconds": 0, **times_of(session), "active_duration_seconds": 0,
        "engaged_duration_seconds": 0, "idle_count": 0,
    }  # fmt: skip


def test_opening_the_page_alone_starts_no_session(viewer: Browser, client: Client, invoice_id: str) -> None:
    here = f"/console/invoices/{invoice_id}"
    assert viewer.http.head(here).status_code == viewer.get(here).status_code == 200
    assert viewer.get(f"{here}/view-session").status_code == 405
    assert client.get("/invoice-view-sessions").json()["data"] == []


def test_a_heartbeat_updates_the_durations_without_an_event(
    client: Client, viewer: Browser, session_id: str, age_session: Callable[..., None]
) -> None:
    age_session(session_id, 300)
    assert report(viewer, session_id, active_ms=200_999, engaged_ms=100_500, idle_count=2) == 204
    session = get_session(client, session_id)
    assert session["session_ended"] is None
    assert session["last_heartbeat"] > session["created_at"]
    assert session["duration_seconds"] in range(300, 330)
    assert durations(session)[1:] == (200, 100, 2)
    wait_until(lambda: events(client, session_id))
    assert [each["type"] for each in events(client, session_id)] == ["invoice_view_session.started"]


def test_closing_ends_the_session_with_the_last_durations(
    client: Client, account: Account, viewer: Browser, session_id: str, age_session: Callable[..., None]
) -> None:
    age_session(session_id, 120)
    assert report(viewer, session_id, active_ms=30_000, engaged_ms=20_000) == 204
    assert report(viewer, session_id, "end", active_ms=90_000, engaged_ms=60_000, idle_count=1) == 204
    session = get_session(client, session_id)
    assert session["session_ended"] == session["last_heartbeat"]
    assert durations(session)[1:] == (90, 60, 1)
    assert session["duration_seconds"] == total_seconds(session)
    began, ended = wait_until(lambda: len(found := events(client, session_id)) == 2 and found)
    assert [each["type"] for each in (began, ended)] == ["invoice_view_session.started", "invoice_view_session.ended"]
    assert {each["actor"]["id"] for each in (began, ended)} == {str(account.account_id)}
    assert (ended["data"], ended["previous"]["session_ended"]) == (session, None)


def total_seconds(session: dict[str, Any]) -> int:
    lasted = datetime.fromisoformat(session["session_ended"]) - datetime.fromisoformat(session["session_started"])
    return int(lasted.total_seconds())


def test_an_ended_session_cannot_be_resumed(client: Client, viewer: Browser, session_id: str) -> None:
    assert report(viewer, session_id, "end") == 204
    ended = get_session(client, session_id)
    for step in ("heartbeat", "end"):
        assert report(viewer, session_id, step, active_ms=1000) == 409
    assert get_session(client, session_id) == ended


def test_durations_are_plausible_and_never_decrease(
    client: Client, viewer: Browser, session_id: str, age_session: Callable[..., None]
) -> None:
    assert report(viewer, session_id, active_ms=3_600_000, engaged_ms=3_600_000, idle_count=9) == 204
    assert max(durations(get_session(client, session_id))) < 30
    age_session(session_id, 600)
    assert report(viewer, session_id, active_ms=100_000, engaged_ms=400_000, idle_count=99) == 204
    assert durations(get_session(client, session_id))[1:] == (100, 100, 10)
    assert report(viewer, session_id, active_ms=50_000, engaged_ms=10_000, idle_count=0) == 204
    assert durations(get_session(client, session_id))[1:] == (100, 100, 10)


@pytest.mark.parametrize(
    "sent, elapsed, before, clamped",
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
def test_reports_are_clamped(
    sent: tuple[int, int, int], elapsed: int, before: tuple[int, int, int], clamped: tuple[int, int, int]
) -> None:
    assert clamp(*sent, timedelta(seconds=elapsed), Durations(*before)) == clamped


@sweep("name, wrong", product(ZERO_REPORT, ["", "-1", "1.5", "1e3", "x", "٣", "1" * 13, "NaN", "+1", "1_0"]))
def test_a_duration_must_be_a_whole_number(
    client: Client, viewer: Browser, session_id: str, name: str, wrong: str
) -> None:
    before = get_session(client, session_id)
    response = viewer.submit(f"/console/view-sessions/{session_id}/heartbeat", ZERO_REPORT | {name: wrong})
    assert (response.status_code, name in response.text) == (400, True)
    assert viewer.submit(f"/console/view-sessions/{session_id}/heartbeat", {}).status_code == 400
    assert get_session(client, session_id) == before


def test_only_the_viewer_can_continue_a_session(
    client: Client, session_id: str, new_browser: Callable[..., Browser], new_account: Callable[..., Account],
    new_plan_manager: Callable[[], UUID],
) -> None:  # fmt: skip
    before = get_session(client, session_id)
    for other in (new_account("owner"), new_account("owner", new_plan_manager())):
        browser = new_browser(other)
        for step in ("heartbeat", "end"):
            assert report(browser, session_id, step) == 404
    assert get_session(client, session_id) == before


def test_an_imported_session_cannot_be_continued_or_ended(
    server: RunningServer, client: Client, viewer: Browser, account: Account, invoice_id: str,
    import_rows: Callable[..., Any],
) -> None:  # fmt: skip
    row = {
        "id": str(uuid7()), "invoice_id": invoice_id, "user_id": str(account.account_id), "user_name": "Robin Hale",
        "session_started": "2026-03-01T00:00:00Z",
    }  # fmt: skip
    assert not import_rows(client, "invoice-view-sessions", [row]).errors
    before = get_session(client, row["id"])
    for step in ("heartbeat", "end"):
        assert report(viewer, row["id"], step) == 404
    server.run(service.end_stale(server.db, server.settings))
    assert get_session(client, row["id"]) == before


def test_a_timed_out_session_ends_at_its_last_heartbeat(
    server: RunningServer, client: Client, viewer: Browser, session_id: str, age_session: Callable[..., None]
) -> None:
    age_session(session_id, 90)
    assert report(viewer, session_id, active_ms=80_000, engaged_ms=70_000, idle_count=1) == 204
    server.run(service.end_stale(server.db, server.settings))
    assert get_session(client, session_id)["session_ended"] is None
    age_session(session_id, 61, 61)
    # The sequencer's process does it too, every second.
    server.run(service.end_stale(server.db, server.settings))
    session = wait_until(lambda: (found := get_session(client, session_id))["session_ended"] and found)
    assert session["session_ended"] == session["last_heartbeat"]
    assert durations(session)[1:] == (80, 70, 1)
    ended = wait_until(lambda: len(found := events(client, session_id)) == 2 and found[1])
    assert (ended["type"], ended["actor"]["kind"]) == ("invoice_view_session.ended", "system")
    assert ended["data"] == session
    assert report(viewer, session_id) == 409


def test_the_periodic_task_ends_timed_out_sessions(
    client: Client, session_id: str, age_session: Callable[..., None]
) -> None:
    age_session(session_id, 100, 61)
    wait_until(lambda: get_session(client, session_id)["session_ended"])


def test_a_late_heartbeat_ends_the_session(
    server: RunningServer, client: Client, viewer: Browser, session_id: str, age_session: Callable[..., None]
) -> None:
    age_session(session_id, 100, 61)
    silent = get_session(client, session_id)["last_heartbeat"]
    assert report(viewer, session_id, active_ms=90_000) == 409
    session = get_session(client, session_id)
    assert (session["session_ended"], session["active_duration_seconds"]) == (silent, 0)
    ended = wait_until(lambda: len(found := events(client, session_id)) == 2 and found[1])
    assert ended["actor"]["kind"] == "system"


def test_the_number_of_sessions_is_limited(viewer: Browser, invoice_id: str) -> None:
    found = [viewer.submit(f"/console/invoices/{invoice_id}/view-session").status_code for _ in range(62)]
    assert found == [200] * service.MAX_STARTS_PER_MINUTE + [429] * 2
