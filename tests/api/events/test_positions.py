"""Positions: each committed event gets one, from any number of sequencers, and no event row is written twice."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest
from msgspec import Struct

from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.database.client import Database
from plankeeper.events import order_store, store
from plankeeper.events.backlog import BacklogMonitor
from plankeeper.events.retention import EventRetention
from plankeeper.events.schemas import EventFilter
from plankeeper.events.sequencer import CONNECTION_SETTINGS, Sequencer, assign_positions
from plankeeper.events.store import FeedPage
from plankeeper.privacy.schemas import LegalHold
from plankeeper.privacy.store import delete_hold, insert_hold
from support.cluster import SharedCluster, as_owner, execute
from support.quiet import QuietDatabase, quiet_database

START = "00000000-0000-0000-0000-000000000000"


@pytest.fixture(scope="module")
def dsn(cluster: SharedCluster) -> Iterator[str]:
    created = cluster.new_database()
    yield created
    cluster.drop(created)


@pytest.fixture
async def quiet(dsn: str) -> AsyncIterator[QuietDatabase]:
    async with quiet_database(dsn) as opened:
        yield opened


async def test_positions_continue_after_the_greatest_one_of_the_plan_manager(quiet: QuietDatabase) -> None:
    one, other = await quiet.new_plan_manager(), await quiet.new_plan_manager()
    first = await quiet.record(one, "provider.created", "provider.updated")
    await quiet.sequence(one)
    second = await quiet.record(one, "provider.deleted")
    foreign = await quiet.record(other, "provider.created")
    for each in (one, other):
        await quiet.sequence(each)
    assert await quiet.feed(one) == list(enumerate([*first, *second], 1))
    assert await quiet.feed(other) == [(1, foreign[0])]
    assert [await quiet.queued(each) for each in (one, other)] == [[], []]


class RowVersion(Struct):
    """Where a row is stored, and the transaction that wrote it."""

    place: str
    written_by: str


async def test_an_event_row_is_never_written_again(quiet: QuietDatabase) -> None:
    owner = await quiet.new_plan_manager()
    await quiet.record(owner, *["provider.created"] * 150)
    versions = "select ctid::text as place, xmin::text as written_by from events where plan_manager_id = $1 order by id"
    before = await quiet.db.rows(RowVersion, versions, owner)
    await quiet.sequence(owner)
    assert len(await quiet.feed(owner)) == 150
    assert await quiet.db.rows(RowVersion, versions, owner) == before


async def test_a_request_queues_one_row_and_an_import_one_per_hundred_events(quiet: QuietDatabase) -> None:
    owner = await quiet.new_plan_manager()
    await quiet.record(owner, "provider.created")
    await quiet.record(owner, "team_member.deleted", "team_member.deleted", "participant.deleted")
    imported = await quiet.record(owner, *["participant.created"] * 250)
    assert await quiet.queued(owner) == [1, 3, 100, 100, 50]
    await quiet.sequence(owner)
    assert [id_ for _, id_ in await quiet.feed(owner)][4:] == imported


async def test_the_feed_is_listed_by_type_from_the_order(quiet: QuietDatabase) -> None:
    owner = await quiet.new_plan_manager()
    mixed = await quiet.record(owner, "provider.created", "provider.updated", "provider.created")
    await quiet.sequence(owner)

    async def listed(types: str | None, after: object = START, limit: int = 10) -> list[UUID]:
        names = types.split() if types else None
        return [each.id for each in await store.list_page(quiet.db, owner, FeedPage(str(after)), names, limit)]

    assert await listed(None) == mixed
    assert await listed("provider.created") == [mixed[0], mixed[2]]
    assert await listed("provider.created", mixed[0]) == [mixed[2]]
    assert await listed("provider.updated", limit=1) == [mixed[1]]
    assert await listed("provider.updated provider.created") == mixed
    assert await listed("provider.updated provider.created", limit=2) == mixed[:2]
    assert await listed("provider.updated provider.created", mixed[1]) == mixed[2:]
    assert await listed("provider.deleted") == []
    created, hidden = EventFilter(types=["provider.created"]), EventFilter(hidden_types=["provider.created"])
    for latest in (
        await store.search_latest(quiet.db, owner, None, created, 2, 2),
        await store.latest(quiet.db, owner, None, created, 2),
    ):
        assert [each.id for each in latest] == [mixed[2], mixed[0]]
    for others in (
        await store.search_latest(quiet.db, owner, None, hidden, 3, 2),
        await store.latest(quiet.db, owner, mixed[2], hidden, 2),
    ):
        assert [each.id for each in others] == [mixed[1]]
    assert await store.scan_limit_id(quiet.db, owner, None, ["provider.created"], 2) == mixed[0]
    assert await store.scan_limit_id(quiet.db, owner, None, ["provider.created"], 3) is None


async def test_a_batch_ends_at_its_limit(quiet: QuietDatabase) -> None:
    owner = await quiet.new_plan_manager()
    ids = [id_ for _ in range(3) for id_ in await quiet.record(owner, *["provider.created"] * 2)]
    sizes: list[tuple[int, bool]] = []
    while not sizes or sizes[-1][1]:
        batch = await assign_positions(quiet.connection, owner, 3)
        assert batch
        sizes.append((batch.event_count, batch.has_more))
    assert sizes == [(4, True), (2, False)]
    assert await quiet.feed(owner) == list(enumerate(ids, 1))


async def test_a_plan_manager_that_another_sequencer_serves_is_left_to_it(quiet: QuietDatabase) -> None:
    busy, free = await quiet.new_plan_manager(), await quiet.new_plan_manager()
    for each in (busy, free):
        await quiet.record(each, "provider.created")
    async with quiet.db.transaction() as tx:
        assert await order_store.try_lock(tx, busy)
        assert await assign_positions(quiet.connection, busy, 10) is None
        assert (await assign_positions(quiet.connection, free, 10)) is not None
        assert (await quiet.feed(busy), len(await quiet.feed(free))) == ([], 1)
    await quiet.sequence(busy)
    assert len(await quiet.feed(busy)) == 1


async def test_concurrent_sequencers_give_each_event_one_position(quiet: QuietDatabase) -> None:
    owners = [await quiet.new_plan_manager() for _ in range(3)]
    recorded: dict[UUID, list[UUID]] = {owner: [] for owner in owners}
    is_writing = True

    async def write(owner: UUID) -> None:
        for number in range(20):
            recorded[owner] += await quiet.record(owner, *["provider.created"] * (1 + number % 3))

    async def sequence() -> None:
        async with quiet.db.dedicated_connection(**CONNECTION_SETTINGS) as connection:
            has_more = True
            while is_writing or has_more:
                batches = [await assign_positions(connection, owner, 5) for owner in owners]
                has_more = any(batch is None or batch.event_count for batch in batches)

    sequencing = [asyncio.create_task(sequence()) for _ in range(3)]
    await asyncio.gather(*(write(owner) for owner in owners for _ in range(2)))
    is_writing = False
    await asyncio.gather(*sequencing)
    for owner in owners:
        assert await quiet.queued(owner) == []
        feed = await quiet.feed(owner)
        assert [position for position, _ in feed] == list(range(1, len(recorded[owner]) + 1))
        assert sorted(id_ for _, id_ in feed) == sorted(recorded[owner])


async def test_a_long_queue_does_not_delay_another_plan_manager(
    quiet: QuietDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.events.sequencer.FAIR_BATCH_SIZE", 200)
    monkeypatch.setattr("plankeeper.events.sequencer.BATCH_SIZE", 300)
    assigned: list[UUID] = []
    sequencer = Sequencer(quiet.db, assigned.append)
    large, small = await quiet.new_plan_manager(), await quiet.new_plan_manager()
    await quiet.record(large, *["participant.created"] * 1200)
    await sequencer.run_round(quiet.connection)
    assert len(await quiet.feed(large)) == 500  # a turn as any other, and one in which nobody waits
    await quiet.record(small, "provider.created")
    await sequencer.run_round(quiet.connection)
    assert assigned == [large, large, small, large]
    for _ in range(2):
        await sequencer.run_round(quiet.connection)
    assert [len(await quiet.feed(each)) for each in (large, small)] == [1200, 1]


async def test_two_long_queues_take_turns(quiet: QuietDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plankeeper.events.sequencer.FAIR_BATCH_SIZE", 100)
    assigned: list[UUID] = []
    sequencer = Sequencer(quiet.db, assigned.append)
    one, two = await quiet.new_plan_manager(), await quiet.new_plan_manager()
    for each in (one, two):
        await quiet.record(each, *["participant.created"] * 300)
    for _ in range(3):
        await sequencer.run_round(quiet.connection)
    assert assigned == [one, two, one, two, one]


async def test_a_sequencer_hears_of_commits_only(quiet: QuietDatabase) -> None:
    heard: list[set[UUID]] = []
    quiet.db.on_feeds_changed = lambda plan_manager_ids: heard.append(set(plan_manager_ids))
    owner = await quiet.new_plan_manager()
    await quiet.record(owner, "provider.created", "provider.created")
    assert heard == [{owner}]
    with suppress(ZeroDivisionError):
        async with quiet.db.transaction() as tx:
            tx.changed_feeds.add(owner)
            raise ZeroDivisionError
    assert heard == [{owner}]


async def test_the_first_position_of_a_minute_is_marked_once(quiet: QuietDatabase, dsn: str) -> None:
    owner = await quiet.new_plan_manager()
    await quiet.record(owner, "provider.created", "provider.created")
    await quiet.sequence(owner)
    marks = "select position from event_marks where plan_manager_id = $1 order by minute"
    # An hour ago by the clock of the database; and the clock is put back after the second mark.
    earlier = f"update event_marks set minute = minute + {{}} * interval '1 hour' where plan_manager_id = '{owner}'"
    execute(dsn, earlier.format(-1))
    await quiet.record(owner, "provider.updated")
    await quiet.sequence(owner)
    assert await quiet.db.rows(int, marks, owner) == [1, 3]
    execute(dsn, earlier.format(2))
    await quiet.record(owner, "provider.deleted")
    await quiet.sequence(owner)
    assert await quiet.db.rows(int, marks, owner) == [1, 3]


async def test_the_backlog_is_measured_without_a_sequencer(quiet: QuietDatabase) -> None:
    monitor = BacklogMonitor()
    assert await monitor.measure(quiet.db) == (0, 0)
    owner = await quiet.new_plan_manager()
    await quiet.record(owner, "provider.created", "provider.created")
    assert await monitor.measure(quiet.db) == (2, 0)
    later = await monitor.measure(quiet.db)
    assert later.event_count == 2
    assert later.lag_seconds > 0
    # The lag counts from when a monitor first saw the row, whatever the age of the event.
    assert await BacklogMonitor().measure(quiet.db) == (2, 0)
    await quiet.record(owner, *["provider.created"] * 200)
    await assign_positions(quiet.connection, owner, 1)
    assert await monitor.measure(quiet.db) == (200, 0)  # it moves on
    await quiet.sequence(owner)
    assert await monitor.measure(quiet.db) == (0, 0)


async def test_retention_keeps_the_newest_position_and_events_without_one(quiet: QuietDatabase) -> None:
    owner = await quiet.new_plan_manager()
    await quiet.record(owner, *["provider.created"] * 5)
    await quiet.sequence(owner)
    waiting = await quiet.record(owner, "provider.updated")
    await EventRetention(-1)(quiet.db)
    assert [position for position, _ in await quiet.feed(owner)] == [5]
    assert await store.list_page(quiet.db, owner, FeedPage(START), None, 10) == []
    assert [await store.get(quiet.db, owner, waiting[0]) is not None, await quiet.queued(owner)] == [True, [1]]
    await quiet.sequence(owner)
    assert [position for position, _ in await quiet.feed(owner)] == [5, 6]
    # A position without its event takes no place on a page.
    assert [each.id for each in await store.list_page(quiet.db, owner, FeedPage(START), None, 1)] == waiting
    assert [each.id for each in await store.latest(quiet.db, owner, None, EventFilter(), 1)] == waiting
    await EventRetention(-1)(quiet.db)
    assert [position for position, _ in await quiet.feed(owner)] == [6]


async def test_retention_continues_with_others_after_a_plan_manager_fails(quiet: QuietDatabase, dsn: str) -> None:
    owners = [await quiet.new_plan_manager() for _ in range(3)]
    for each in owners:
        await quiet.record(each, "provider.created", "provider.updated")
        await quiet.sequence(each)
    retention = EventRetention(-1)
    async with (
        Database(as_owner(dsn)).open() as owner_db,
        owner_db.transaction() as tx,
        Database(dsn, statement_timeout=3).open() as impatient,
    ):
        await tx.execute("select id from events where plan_manager_id = $1 for update", owners[1])
        for _ in range(2):
            with suppress(asyncpg.LockNotAvailableError):
                await retention(impatient)
    assert [len(await quiet.feed(each)) for each in owners] == [1, 2, 1]


async def test_retention_keeps_the_events_of_a_participant_with_a_legal_hold(quiet: QuietDatabase) -> None:
    owner = await quiet.new_plan_manager()
    free, held, other, _newest = await quiet.record(
        owner, "participant.created", "participant.updated", "provider.created", "provider.updated"
    )
    await quiet.sequence(owner)
    event = await store.get(quiet.db, owner, held)
    assert event
    hold = LegalHold(UUID(event.resource.id), "a case", datetime.now(UTC), "Robin")
    async with quiet.db.transaction() as tx:
        await insert_hold(tx, owner, hold)
    await EventRetention(-1)(quiet.db)
    assert [await store.get(quiet.db, owner, each) is not None for each in (free, held, other)] == [False, True, False]
    assert [position for position, _ in await quiet.feed(owner)] == [2, 4]
    async with quiet.db.transaction() as tx:
        await delete_hold(tx, owner, hold.participant_id)
    await EventRetention(-1)(quiet.db)
    assert await store.get(quiet.db, owner, held) is None


async def test_retention_deletes_a_limited_number_of_events_at_once(quiet: QuietDatabase) -> None:
    owner = await quiet.new_plan_manager()
    ids = await quiet.record(owner, *["provider.created"] * 5)
    await quiet.sequence(owner)
    before_id = uuid7_lower_bound(datetime.now(UTC) + timedelta(days=1))
    async with quiet.db.transaction() as tx:
        assert await order_store.purge(tx, owner, before_id, 2) == 2
    assert [id_ for _, id_ in await quiet.feed(owner)] == ids[2:]
    assert len(await store.list_page(quiet.db, owner, FeedPage(START), None, 10)) == 3
