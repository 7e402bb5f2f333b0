"""Migration 0017 on a database with events: their order, those without a position, and what endpoints have read."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from plankeeper.database import schema
from plankeeper.database.client import Database
from plankeeper.events import store
from plankeeper.events.sequencer import CONNECTION_SETTINGS, assign_positions
from plankeeper.events.store import FeedPage
from support.cluster import SharedCluster

ONE, OTHER, EMPTY = (UUID(f"017a5f00-0000-7000-8000-00000000000{number}") for number in (1, 2, 3))
NONE = "00000000-0000-0000-0000-000000000000"

FILL_SQL = """
insert into plan_managers (id, name) select id::uuid, 'Test' from unnest($1::text[]) id
"""
EVENTS_SQL = """
insert into events (plan_manager_id, id, type, created_at, actor_kind, resource_kind, resource_id, data, position,
    notify)
select $1, ('01900000-0000-7000-8000-' || to_char(n, 'FM000000000000'))::uuid,
    case when n % 2 = 0 then 'provider.created' else 'provider.updated' end,
    timestamptz '2026-01-01 10:00:30Z' + n * interval '20 seconds', 'system', 'provider', n::text, '{}',
    -- the order of commits: the second event before the first
    case when n <= $2 then $3 + case n when 1 then 2 when 2 then 1 else n end * 10 end, n % 50 <> 0
from generate_series(1, $4) n
"""
ENDPOINT_SQL = """
insert into webhook_endpoints (plan_manager_id, id, url, event_types, payload, active, created_at, secret,
    last_position)
values ($1, $1, 'https://example.com', '{*}', 'thin', true, now(), '', $2)
"""


@pytest.fixture(scope="module")
def dsn(cluster: SharedCluster) -> Iterator[str]:
    created = cluster.new_database(migrated=False)
    schema.migrate(created, "0016")
    asyncio.run(fill(created))
    schema.migrate(created)
    yield created
    cluster.drop(created)


async def fill(dsn: str) -> None:
    connection: Any = await asyncpg.connect(dsn)
    await connection.execute(FILL_SQL, [str(each) for each in (ONE, OTHER, EMPTY)])
    await connection.execute(EVENTS_SQL, ONE, 6, 100, 6 + 250)
    await connection.execute(EVENTS_SQL, OTHER, 3, 5000, 3)
    await connection.execute("select setval('event_positions', 9000)")
    for owner, position in ((ONE, 130), (OTHER, 9000), (EMPTY, 8000)):
        await connection.execute(ENDPOINT_SQL, owner, position)
    await connection.close()


@pytest.fixture
async def migrated(dsn: str) -> AsyncIterator[Database]:
    async with Database(dsn).open() as db:
        yield db


def event_id(number: int) -> UUID:
    return UUID(f"01900000-0000-7000-8000-{number:012}")


async def test_events_keep_their_positions(migrated: Database) -> None:
    statement = "select position from event_order where plan_manager_id = $1 order by position limit 6"
    assert await migrated.rows(int, statement, ONE) == [110, 120, 130, 140, 150, 160]
    assert await migrated.rows(int, statement, OTHER) == [5010, 5020, 5030]
    ids = [event_id(number) for number in (2, 1, 3, 4, 5, 6)]
    assert [each.id for each in await store.list_page(migrated, ONE, FeedPage(NONE), None, 6)] == ids
    after_first = await store.list_page(migrated, ONE, FeedPage(str(ids[0])), ["provider.created"], 2)
    assert [each.id for each in after_first] == [event_id(4), event_id(6)]


async def test_events_without_a_position_are_queued_and_get_the_next_ones(migrated: Database) -> None:
    sizes = "select cardinality(event_ids) from event_queue order by notify, id"
    assert await migrated.rows(int, sizes) == [5, 100, 100, 45]
    async with migrated.dedicated_connection(**CONNECTION_SETTINGS) as connection:
        batch = await assign_positions(connection, ONE, 5000)
    assert batch
    assert (batch.event_count, batch.has_more, batch.unknown_types) == (250, False, [])
    positions = "select position from event_order where plan_manager_id = $1 and position > 160 order by position"
    assert await migrated.rows(int, positions, ONE) == list(range(161, 161 + 250))
    silent = "select event_id from event_order where not notify order by event_id"
    assert await migrated.rows(UUID, silent) == [event_id(number) for number in (50, 100, 150, 200, 250)]


async def test_an_endpoint_has_read_no_further_than_the_feed(migrated: Database) -> None:
    """New positions continue after the newest event of the plan manager, which may be far below the old sequence."""
    statement = "select last_position from webhook_endpoints order by plan_manager_id"
    assert await migrated.rows(int, statement) == [130, 5030, 0]


async def test_minutes_are_marked_with_the_first_position_of_their_events(migrated: Database) -> None:
    statement = """
        select to_char(minute at time zone 'UTC', 'HH24:MI ') || position from event_marks
        where plan_manager_id = $1 order by minute limit 3
    """
    # The second event, at 10:01:10, has a lower position than the first, at 10:00:50: both minutes begin with it.
    assert await migrated.rows(str, statement, ONE) == ["10:00 110", "10:01 110", "10:02 150"]
