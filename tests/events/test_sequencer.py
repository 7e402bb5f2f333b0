"""The order of the feed: every committed event gets one place in it, and a walk never skips one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, suppress
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.database.client import Database, Transaction
from plankeeper.events import store
from plankeeper.events.recorder import record_event
from plankeeper.http.context import SYSTEM, WriteContext
from plankeeper.http.schemas import to_json
from plankeeper.providers import store as providers
from plankeeper.providers.schemas import Provider
from support.client import Client
from support.server import RunningServer, wait_until

T = TypeVar("T")

WRITERS = 16
EACH = 6


class Walker:
    """Follows the feed from its beginning; `seen` has the resource of every event in the order of the feed."""

    def __init__(self, client: Client, limit: int = 100) -> None:
        self._client, self._limit = client, limit
        self._after = "0"
        self.seen: list[str] = []

    def step(self) -> None:
        """One page more, which may be empty."""
        page = self._client.get("/events", type="provider.created", after=self._after, limit=str(self._limit)).json()
        self.seen += [each["resource"]["id"] for each in page["data"]]
        if page["data"]:
            self._after = page["data"][-1]["id"]

    def meets(self, ident: UUID) -> bool:
        self.step()
        return str(ident) in self.seen


@pytest.fixture
async def db(server: RunningServer) -> AsyncIterator[Database]:
    """A way to the database beside the server's."""
    async with Database(server.dsn).open() as opened:
        yield opened


class _Undone(Exception):
    pass


@asynccontextmanager
async def undone(db: Database) -> AsyncGenerator[Transaction]:
    """A transaction that is rolled back at its end."""
    with suppress(_Undone):
        async with db.transaction() as tx:
            yield tx
            raise _Undone


async def until(question: Callable[[], Awaitable[T]], answer: Callable[[T], object]) -> T:
    """Ask until the answer will do; fails after some seconds."""
    async with asyncio.timeout(10):
        while not answer(found := await question()):
            await asyncio.sleep(0)
    return found


@pytest.fixture
def second_server(server: RunningServer) -> Iterator[RunningServer]:
    running = RunningServer(server.dsn).start()
    yield running
    running.stop()


async def provider_in(tx: Transaction, server: RunningServer, client: Client) -> UUID:
    """A new provider with its event, as the route writes them."""
    made = Provider(id=uuid7(), created_at=datetime.now(UTC))
    call = WriteContext(tx, UUID(client.plan_manager_id), server.settings, SYSTEM)
    await providers.upsert(tx, call.plan_manager_id, to_json([made]))
    await record_event(call, "provider.created", None, made)
    return made.id


async def leaders(db: Database) -> list[int]:
    """The sessions that hold the sequencer's lock."""
    return await db.rows(
        int,
        """
        select pid from pg_locks
        where locktype = 'advisory' and granted and ((classid::bigint << 32) | objid::bigint) = 7526541002
        """,
    )


async def test_an_event_that_commits_late_is_not_skipped(server: RunningServer, api: Client, db: Database) -> None:
    walker = Walker(api)
    async with db.transaction() as slow:
        early = await provider_in(slow, server, api)
        async with db.transaction() as quick:
            late = await provider_in(quick, server, api)
        assert early < late
        wait_until(lambda: walker.meets(late))
        assert walker.seen == [str(late)]
    wait_until(lambda: walker.meets(early))
    assert walker.seen == [str(late), str(early)]


async def test_many_transactions_that_commit_in_the_opposite_order_are_all_met(
    server: RunningServer, api: Client, db: Database
) -> None:
    walker = Walker(api, limit=1)

    async def nested(depth: int) -> list[UUID]:
        async with db.transaction() as tx:
            own = await provider_in(tx, server, api)
            inner = await nested(depth - 1) if depth else []
            if inner:
                wait_until(lambda: walker.meets(inner[-1]))
        return [*inner, own]

    committed = await nested(6)
    assert committed == sorted(committed, reverse=True)
    wait_until(lambda: walker.meets(committed[-1]))
    assert walker.seen == [str(ident) for ident in committed]
    # Whoever walks later meets them in the same order, however the pages fall.
    again = Walker(api, limit=2)
    for _ in range(4):
        again.step()
    assert again.seen == walker.seen


async def test_an_event_that_is_rolled_back_never_appears(server: RunningServer, api: Client, db: Database) -> None:
    async with undone(db) as tx:
        await provider_in(tx, server, api)
    async with db.transaction() as tx:
        kept = await provider_in(tx, server, api)
    walker = Walker(api)
    wait_until(lambda: walker.meets(kept))
    assert walker.seen == [str(kept)]


def test_a_walker_beside_many_writers_meets_each_event_once(server: RunningServer, api: Client) -> None:
    walker = Walker(api, limit=7)

    def write(_writer: int) -> list[str]:
        beside = Client(server.url, api.key, api.plan_manager_id)
        with closing(beside.http):
            return [beside.made("/providers", {})["id"] for _ in range(EACH)]

    with ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(write, writer) for writer in range(WRITERS)]
        while not all(each.done() for each in writing):
            walker.step()
    made = [ident for each in writing for ident in each.result()]
    assert len(set(made)) == WRITERS * EACH
    wait_until(lambda: walker.step() or len(walker.seen) >= len(made))
    again = Walker(api, limit=1000)
    again.step()
    assert sorted(walker.seen) == sorted(made)
    assert again.seen == walker.seen
    for each in writing:
        # One writer's events stand in the order of its requests: each was committed before the next was sent.
        assert [ident for ident in walker.seen if ident in each.result()] == each.result()


async def test_one_sequencer_leads_however_many_servers_there_are(second_server: RunningServer, db: Database) -> None:
    leading = await until(lambda: leaders(db), len)
    assert len(leading) == 1
    async with db.dedicated_connection() as session:
        assert await store.try_lead(session) is False
    assert await leaders(db) == leading


async def test_when_the_leaders_session_dies_another_takes_over(
    second_server: RunningServer, server: RunningServer, api: Client, db: Database
) -> None:
    leading = await until(lambda: leaders(db), len)
    await db.execute("select pg_terminate_backend($1)", leading[0])
    async with db.transaction() as tx:
        written = await provider_in(tx, server, api)
    walker = Walker(api)
    wait_until(lambda: walker.meets(written))
    now_leading = await leaders(db)
    assert len(now_leading) == 1
    assert now_leading != leading


async def test_positions_are_given_in_batches_by_ascending_id(server: RunningServer, api: Client, db: Database) -> None:
    async def waiting() -> int:
        return await db.one(int, "select count(*) from events where position is null")

    await until(waiting, lambda count: count == 0)
    async with undone(db) as tx:
        made = [str(await provider_in(tx, server, api)) for _ in range(5)]
        for size in (2, 2, 1, 0):
            assert sum(each.events for each in await store.assign_positions(tx, 2)) == size
            placed = await tx.rows(
                str,
                """
                select resource_id from events
                where plan_manager_id = $1 and type = 'provider.created' and position is not null order by position
                """,
                api.plan_manager_id,
            )
            assert placed == made[: len(placed)]
        assert placed == made
