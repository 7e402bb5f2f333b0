"""The order of the feed: every committed event gets one position, and no page skips one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, suppress
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.json import to_json
from plankeeper.database.client import Database, Transaction
from plankeeper.events import order_store
from plankeeper.events.recorder import record_event
from plankeeper.resources.providers import store as providers
from plankeeper.resources.providers.schemas import Provider
from support.client import Client
from support.server import RunningServer, wait_until

pytestmark = pytest.mark.usefixtures("frequent_sweeps")

T = TypeVar("T")

WRITERS = 16
WRITES_PER_WRITER = 6


class FeedReader:
    """Follows the feed from its beginning; `seen` has the resource of every event in the order of the feed."""

    def __init__(self, client: Client, limit: int = 100) -> None:
        self._client, self._limit = client, limit
        self._after = "0"
        self.seen: list[str] = []

    def read_page(self) -> None:
        """One page more, which may be empty."""
        page = self._client.get("/events", type="provider.created", after=self._after, limit=str(self._limit)).json()
        self.seen += [each["resource"]["id"] for each in page["data"]]
        if page["data"]:
            self._after = page["data"][-1]["id"]

    def has_read(self, ident: UUID) -> bool:
        self.read_page()
        return str(ident) in self.seen


@pytest.fixture
async def db(server: RunningServer) -> AsyncIterator[Database]:
    """A way to the database beside the server's."""
    async with Database(server.dsn).open() as opened:
        yield opened


class _RollbackError(Exception):
    pass


@asynccontextmanager
async def rolled_back(db: Database) -> AsyncGenerator[Transaction]:
    """A transaction that is rolled back at its end."""
    with suppress(_RollbackError):
        async with db.transaction() as tx:
            yield tx
            raise _RollbackError


async def wait_for(query: Callable[[], Awaitable[T]], condition: Callable[[T], object]) -> T:
    """Repeat until the result is true; fails after some seconds."""
    async with asyncio.timeout(60):
        while not condition(result := await query()):
            await asyncio.sleep(0)
    return result


@pytest.fixture
def second_server(server: RunningServer) -> Iterator[RunningServer]:
    running = RunningServer(server.dsn).start()
    yield running
    running.stop()


async def create_provider(tx: Transaction, server: RunningServer, client: Client) -> UUID:
    """A new provider with its event, as the route writes them."""
    now = datetime.now(UTC)
    provider = Provider(id=uuid7(), created_at=now, updated_at=now)
    ctx = WriteContext(tx, UUID(client.plan_manager_id), server.settings, SYSTEM)
    await providers.upsert(tx, ctx.plan_manager_id, to_json([provider]))
    await record_event(ctx, "provider.created", None, provider)
    return provider.id


async def lock_holders(db: Database) -> list[int]:
    """The sessions that hold the lock of the process that runs the periodic tasks."""
    return await db.rows(
        int,
        """
        select pid from pg_locks
        where locktype = 'advisory' and granted
                and database = (select oid from pg_database where datname = current_database())
                and ((classid::bigint << 32) | objid::bigint) = 7526541002
        """,
    )


async def test_an_event_that_commits_late_is_not_skipped(server: RunningServer, api: Client, db: Database) -> None:
    walker = FeedReader(api)
    async with db.transaction() as slow:
        early = await create_provider(slow, server, api)
        async with db.transaction() as quick:
            late = await create_provider(quick, server, api)
        assert early < late
        wait_until(lambda: walker.has_read(late))
        assert walker.seen == [str(late)]
    wait_until(lambda: walker.has_read(early))
    assert walker.seen == [str(late), str(early)]


async def test_transactions_that_commit_in_reverse_order_are_all_sequenced(
    server: RunningServer, api: Client, db: Database
) -> None:
    walker = FeedReader(api, limit=1)

    async def nested(depth: int) -> list[UUID]:
        async with db.transaction() as tx:
            own = await create_provider(tx, server, api)
            inner = await nested(depth - 1) if depth else []
            if inner:
                wait_until(lambda: walker.has_read(inner[-1]))
        return [*inner, own]

    committed = await nested(6)
    assert committed == sorted(committed, reverse=True)
    wait_until(lambda: walker.has_read(committed[-1]))
    assert walker.seen == [str(ident) for ident in committed]
    # Whoever walks later meets them in the same order, however the pages fall.
    again = FeedReader(api, limit=2)
    for _ in range(4):
        again.read_page()
    assert again.seen == walker.seen


async def test_an_event_that_is_rolled_back_never_appears(server: RunningServer, api: Client, db: Database) -> None:
    async with rolled_back(db) as tx:
        await create_provider(tx, server, api)
    async with db.transaction() as tx:
        stored = await create_provider(tx, server, api)
    walker = FeedReader(api)
    wait_until(lambda: walker.has_read(stored))
    assert walker.seen == [str(stored)]


def test_a_feed_reader_with_concurrent_writers_reads_each_event_once(server: RunningServer, api: Client) -> None:
    walker = FeedReader(api, limit=7)

    def write(_writer: int) -> list[str]:
        beside = Client(server.url, api.key, api.plan_manager_id)
        with closing(beside.http):
            return [beside.create("/providers", {})["id"] for _ in range(WRITES_PER_WRITER)]

    with ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(write, writer) for writer in range(WRITERS)]
        while not all(each.done() for each in writing):
            walker.read_page()
    made = [ident for each in writing for ident in each.result()]
    assert len(set(made)) == WRITERS * WRITES_PER_WRITER
    wait_until(lambda: walker.read_page() or len(walker.seen) >= len(made))
    again = FeedReader(api, limit=1000)
    again.read_page()
    assert sorted(walker.seen) == sorted(made)
    assert again.seen == walker.seen
    for each in writing:
        # One writer's events stand in the order of its requests: each was committed before the next was sent.
        assert [ident for ident in walker.seen if ident in each.result()] == each.result()


async def test_one_process_of_all_servers_runs_the_periodic_tasks(second_server: RunningServer, db: Database) -> None:
    leading = await wait_for(lambda: lock_holders(db), len)
    assert len(leading) == 1
    async with db.dedicated_connection() as session:
        assert await order_store.try_lead(session) is False
    assert await lock_holders(db) == leading


async def test_another_process_takes_over_when_the_leader_loses_its_session(
    second_server: RunningServer, server: RunningServer, api: Client, db: Database
) -> None:
    leading = await wait_for(lambda: lock_holders(db), len)
    await db.execute("select pg_terminate_backend($1::int)", leading[0])
    async with db.transaction() as tx:
        written = await create_provider(tx, server, api)
    walker = FeedReader(api)
    wait_until(lambda: walker.has_read(written))
    now_leading = await wait_for(lambda: lock_holders(db), len)
    assert len(now_leading) == 1
    assert now_leading != leading
