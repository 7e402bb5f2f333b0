"""The buffer of the request log: requests are collected, written once a second, dropped if too many wait, deleted."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import store as api_key_store
from plankeeper.access.request_log import buffer, store
from plankeeper.access.request_log.buffer import (
    MAX_PENDING,
    MAX_TRIMS_PER_RUN,
    RequestLogBuffer,
    RequestLogRetention,
    build_batches,
)
from plankeeper.access.request_log.schemas import MAX_KEPT_REQUESTS, LoggedRequest, RequestBatchInsert
from plankeeper.access.tokens import hash_token
from plankeeper.core.context import RequestRecord
from plankeeper.database import write_buffer
from plankeeper.database.client import Database
from plankeeper.database.write_buffer import FLUSH_INTERVAL
from support.client import PREFIX, Client
from support.cluster import SharedCluster
from support.server import RunningServer, wait_until

ZONE = ZoneInfo("UTC")
ReadLog = Callable[[UUID | str], list[LoggedRequest]]

pytestmark = pytest.mark.usefixtures("soon_written")


@pytest.fixture
def logged_requests(server: RunningServer) -> ReadLog:
    """The logged requests of a plan manager, oldest first."""

    def read(plan_manager_id: UUID | str) -> list[LoggedRequest]:
        batches = server.run(store.list_latest(server.db, UUID(str(plan_manager_id)), None, 100_000))
        return [request for batch in reversed(batches) for request in batch.requests]

    return read


def request_record(owner: UUID, number: int = 0, path: bytes = b"/x") -> RequestRecord:
    at, request_id = 1_790_000_000.0 + number, b"r%d" % number
    return (owner, at, "key", "GET", "/x", path, 200, 0.00123, request_id, None, b"curl/8", None)


def test_each_request_is_logged_without_its_content(
    server: RunningServer, api: Client, other: Client, logged_requests: ReadLog
) -> None:
    started = datetime.now(UTC)
    key = server.run(api_key_store.get_by_hash(server.db, hash_token(api.key)))
    assert key
    path = f"/participants/{uuid7()}"
    responses = [
        api.get("/participants", email="zebulonia@quartermaine.example"),
        api.get(path),
        api.post("/note-types", {"note_type": "Zebulonia"}),
        api.request("GET", "/participants", headers={"X-Plan-Manager-Id": str(uuid7())}),
        api.send("GET", "/participants"),
        api.get("/nothing/of/ours"),
        other.get("/providers"),
    ]
    wait_until(
        lambda: len(logged_requests(api.plan_manager_id)) == 3 and len(logged_requests(other.plan_manager_id)) == 1
    )
    found = logged_requests(api.plan_manager_id)
    assert [each.error_code for each in found] == [None, "not_found", None]
    assert [(each.method, each.route, each.path, each.status, each.request_id, each.key_id) for each in found] == [
        ("GET", f"{PREFIX}/participants", f"{PREFIX}/participants", 200, request_id(responses[0]), str(key.id)),
        ("GET", f"{PREFIX}/participants/{{participant_id}}", PREFIX + path, 404, request_id(responses[1]), str(key.id)),
        ("POST", f"{PREFIX}/note-types", f"{PREFIX}/note-types", 201, request_id(responses[2]), str(key.id)),
    ]
    for each in found:
        assert started - timedelta(seconds=1) < each.responded_at < datetime.now(UTC) + timedelta(seconds=1)
        assert 0 < each.duration_ms < 10_000
    owner = UUID(api.plan_manager_id)
    stored = server.run(
        server.db.rows(str, "select requests::text from api_request_batches where plan_manager_id = $1", owner)
    )
    assert not any("Zebulonia" in each or "quartermaine" in each for each in stored)


def request_id(response: Any) -> str:
    return response.headers["x-request-id"]


def test_an_unusual_path_is_logged_unchanged(api: Client, logged_requests: ReadLog) -> None:
    odd = "/participants/%00%22%3Cscript%3E%F0%9F%90%A8" + "x" * 600
    assert api.get(odd).status_code == 400
    (found,) = wait_until(lambda: logged_requests(api.plan_manager_id))
    assert found.path == (PREFIX + odd)[:500]


class BatchCounts(Struct):
    rows: int
    requests: int


def test_requests_of_one_second_are_one_row(
    server: RunningServer, api: Client, logged_requests: ReadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_buffer, "FLUSH_INTERVAL", FLUSH_INTERVAL)
    for _ in range(50):
        api.get("/participants")
    wait_until(lambda: len(logged_requests(api.plan_manager_id)) == 50)
    statement = "select count(*) as rows, sum(count) as requests from api_request_batches where plan_manager_id = $1"
    counted = server.run(server.db.one(BatchCounts, statement, UUID(api.plan_manager_id)))
    assert (counted.requests, counted.rows < 10) == (50, True)


def test_a_stopping_worker_flushes_its_buffer(
    cluster: SharedCluster,
    new_plan_manager: Callable[[], UUID],
    new_key: Callable[..., str],
    logged_requests: ReadLog,
    monkeypatch: Any,
) -> None:
    async def nothing(_self: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(buffer.RequestLogBuffer, "watch", nothing)  # of this server: the others watch already
    owner = new_plan_manager()
    running = RunningServer(cluster.dsn).start()
    client = Client(running.url, new_key(owner), owner)
    client.get("/participants")
    client.http.close()
    assert logged_requests(owner) == []
    running.stop()
    assert [each.path for each in logged_requests(owner)] == [f"{PREFIX}/participants"]


@pytest.fixture
def server_without_log(cluster: SharedCluster) -> Iterator[RunningServer]:
    running = RunningServer(cluster.dsn, request_log_retention=None).start()
    yield running
    running.stop()


def test_nothing_is_stored_when_the_log_is_off(
    cluster: SharedCluster,
    server_without_log: RunningServer,
    new_plan_manager: Callable[[], UUID],
    new_key: Callable[..., str],
    logged_requests: ReadLog,
) -> None:
    owner = new_plan_manager()
    client = Client(server_without_log.url, new_key(owner), owner)
    client.get("/participants")
    client.http.close()
    server_without_log.stop()
    assert logged_requests(owner) == []


def test_under_overload_the_newest_requests_of_each_plan_manager_are_written() -> None:
    flood, quiet = uuid7(), uuid7()
    batches = build_batches(
        [request_record(flood, number) for number in range(MAX_KEPT_REQUESTS + 7)] + [request_record(quiet)]
    )
    assert {each.plan_manager_id: each.count for each in batches} == {flood: MAX_KEPT_REQUESTS, quiet: 1}
    requests = json.loads(batches[0].requests)
    assert (requests[0][7], requests[-1][7]) == ("r7", f"r{MAX_KEPT_REQUESTS + 6}")
    assert requests[0] == [1_790_000_007.0, "key", "GET", "/x", "/x", 200, 1.23, "r7", None, "curl/8", [], 0]


async def test_without_a_database_a_bounded_number_of_requests_is_buffered(
    server: RunningServer, cluster: SharedCluster, new_plan_manager: Callable[[], UUID]
) -> None:
    owner = new_plan_manager()
    away = Database("postgresql://nobody@127.0.0.1:1/nothing")
    gathered = RequestLogBuffer(away, ZONE)
    async with away.open():
        for number in range(MAX_PENDING + 5):
            gathered.append(request_record(owner, number))
        await gathered.flush()
        gathered.append(request_record(owner, MAX_PENDING + 5))
        await gathered.close()
    async with Database(cluster.dsn).open() as db:
        gathered._db = db  # noqa: SLF001 - the database is back
        await gathered.flush()
        await gathered.flush()
        (batch,) = await store.list_latest(db, owner, None, 10)
    assert len(batch.requests) == MAX_KEPT_REQUESTS
    assert (batch.requests[0].request_id, batch.requests[-1].request_id) == (
        f"r{MAX_PENDING + 6 - MAX_KEPT_REQUESTS}",
        f"r{MAX_PENDING + 5}",
    )
    assert len(gathered._pending) == 0  # noqa: SLF001 - what was written waits no more


async def test_unwritable_batches_are_dropped_and_logged(cluster: SharedCluster, caplog: Any) -> None:
    async with Database(cluster.dsn).open() as db:
        gathered = RequestLogBuffer(db, ZONE)
        gathered.append(request_record(uuid7()))
        await gathered.flush()
        await gathered.flush()
    assert [each.getMessage() for each in caplog.records] == ["requests cannot be written to the request log"]


def new_batch(owner: UUID, age: timedelta, count: int) -> RequestBatchInsert:
    return RequestBatchInsert(owner, uuid7(), datetime.now(UTC) - age, count, "[]")


async def batch_counts(db: Database, *owners: UUID) -> list[list[int]]:
    statement = "select count from api_request_batches where plan_manager_id = $1 order by id"
    return [await db.rows(int, statement, owner) for owner in owners]


async def test_requests_beyond_the_retention_or_the_newest_ten_thousand_are_deleted(
    cluster: SharedCluster, new_plan_manager: Callable[[], UUID]
) -> None:
    busy, quiet, soon = new_plan_manager(), new_plan_manager(), timedelta(seconds=1)
    days = timedelta(days=7)
    async with Database(cluster.dsn).open() as db:
        async with db.transaction() as tx:
            rows = [new_batch(busy, soon, 4000) for _ in range(5)]
            rows += [
                new_batch(quiet, days + soon, 1),
                new_batch(quiet, days - timedelta(hours=1), 2),
                new_batch(quiet, soon, 3),
            ]
            await store.insert(tx, rows)
        chore = RequestLogRetention(7)
        active = await store.list_active(db, 1e9)  # those of other tests too
        for _ in range(len(active) // MAX_TRIMS_PER_RUN + 1):
            await chore(db)
        assert await batch_counts(db, busy, quiet) == [[4000, 4000, 4000], [2, 3]]
        # Within the same minute nobody is counted again; from the next look on there is one.
        async with db.transaction() as tx:
            await store.insert(tx, [new_batch(busy, timedelta(0), 9000)])
        await chore(db)
        assert await batch_counts(db, busy) == [[4000, 4000, 4000, 9000]]
        await store.trim(db, busy, MAX_KEPT_REQUESTS)
        assert await batch_counts(db, busy, quiet) == [[4000, 9000], [2, 3]]
        assert busy in await store.list_active(db, 60)
        assert quiet not in await store.list_active(db, 0.0)


async def test_stored_requests_are_deleted_when_the_log_is_off(
    cluster: SharedCluster, new_plan_manager: Callable[[], UUID]
) -> None:
    owner = new_plan_manager()
    async with Database(cluster.dsn).open() as db:
        async with db.transaction() as tx:
            await store.insert(tx, [new_batch(owner, timedelta(seconds=1), 1)])
        await RequestLogRetention(0)(db)
        assert await batch_counts(db, owner) == [[]]
