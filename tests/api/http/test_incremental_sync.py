"""Reading what has changed: `updated_since` with the `Synced-Until` of an earlier read never misses a row."""

import time
from collections.abc import Generator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from uuid_utils.compat import uuid7

from plankeeper.database import commit_watermark
from support.client import Client
from support.cluster import as_owner
from support.server import RunningServer, wait_until

INSERT = """
    insert into participants (
        plan_manager_id, id, status, created_at, approval_required, is_pace_plan, postal_statement,
        participant_receives_statements
    )
    values ($1, $2, 'Active', now(), false, false, false, false)
"""
LISTS = ("/participants", "/providers", "/invoices")


@pytest.fixture(autouse=True)
def without_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The transactions of these tests are shorter than the margin, which would hide an error."""
    monkeypatch.setattr(commit_watermark, "MARGIN", timedelta(0))
    monkeypatch.setattr(commit_watermark, "SAMPLE_INTERVAL", 0.1)


@pytest.fixture
def other_session(server: RunningServer) -> Generator[Any]:
    """A connection of another role, which the serving role can't observe."""
    connection: Any = server.run(asyncpg.connect(as_owner(server.dsn)))
    yield connection
    server.run(connection.close())


def synced_until(api: Client, path: str = "/participants", **params: Any) -> datetime:
    response = api.get(path, **params)
    assert response.status_code == 200
    return datetime.fromisoformat(response.headers["synced-until"])


def changed_ids(api: Client, since: datetime) -> set[str]:
    page = api.get("/participants", updated_since=since.isoformat(), limit=1000, after="0").json()
    return {each["id"] for each in page["data"]}


def wait_until_synced(api: Client, since: datetime) -> None:
    wait_until(lambda: synced_until(api) > since)


@pytest.mark.parametrize("path", LISTS)
def test_the_header_follows_the_clock(api: Client, path: str) -> None:
    before = datetime.now(UTC)
    wait_until(lambda: synced_until(api, path) > before)
    assert synced_until(api, path, updated_since="2026-01-01T00:00:00Z") < datetime.now(UTC) + timedelta(seconds=5)


def test_an_open_transaction_of_another_role_holds_it_back(
    server: RunningServer, api: Client, other_session: Any
) -> None:
    participant_id = uuid7()
    server.run(other_session.execute("begin"))
    server.run(other_session.execute(INSERT, UUID(api.plan_manager_id), participant_id))
    written_at = datetime.now(UTC)
    other = api.create("/participants", {"last_name": "Meanwhile"})["id"]
    wait_for_samples()
    held = synced_until(api)
    assert held < written_at
    assert changed_ids(api, held) == {other}
    server.run(other_session.execute("commit"))
    assert changed_ids(api, held) == {other, str(participant_id)}
    wait_until_synced(api, written_at)
    assert changed_ids(api, synced_until(api)) == set()


def test_a_prepared_transaction_holds_it_back(server: RunningServer, api: Client, other_session: Any) -> None:
    participant_id, name = uuid7(), str(uuid7())
    server.run(other_session.execute("begin"))
    server.run(other_session.execute(INSERT, UUID(api.plan_manager_id), participant_id))
    written_at = datetime.now(UTC)
    server.run(other_session.execute(f"prepare transaction '{name}'"))
    try:
        wait_for_samples()
        held = synced_until(api)
        assert held < written_at
    finally:
        server.run(other_session.execute(f"commit prepared '{name}'"))
    assert changed_ids(api, held) == {str(participant_id)}


def test_a_long_read_does_not_hold_it_back(server: RunningServer, api: Client, other_session: Any) -> None:
    server.run(other_session.execute("begin isolation level repeatable read"))
    server.run(other_session.fetch("select count(*) from participants"))
    wait_until_synced(api, datetime.now(UTC))
    server.run(other_session.execute("commit"))


def test_what_is_unknown_selects_at_least_as_much_again(
    server: RunningServer, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as a transaction is open that is older than the server, it knows nothing."""

    async def know_nothing(_self: commit_watermark.CommitWatermark) -> None:
        pass

    monkeypatch.setattr(commit_watermark.CommitWatermark, "watch", know_nothing)
    fresh = RunningServer(server.dsn).start()
    client = Client(fresh.url, api.key, api.plan_manager_id)
    with closing(client.http):
        assert synced_until(client) == datetime(1970, 1, 1, tzinfo=UTC)
        since = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
        assert synced_until(client, updated_since="2026-03-01T19:30:00+10:00") == since
    fresh.stop()


def wait_for_samples() -> None:
    """Until the server has sampled at least twice."""
    time.sleep(3 * commit_watermark.SAMPLE_INTERVAL)
