"""The fan-out: the deliveries of events, for endpoints that have read the feed to different positions."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.webhooks import delivery_queue
from plankeeper.webhooks.fan_out import FanOut, Progress, fan_out
from support.cluster import SharedCluster
from support.quiet import QuietDatabase, quiet_database

COMPLETE = Progress(has_moved=True, is_complete=True)
IDLE = Progress(has_moved=False, is_complete=True)
TYPES = ("provider.created", "provider.updated", "participant.created")


@pytest.fixture(scope="module")
def dsn(cluster: SharedCluster) -> Iterator[str]:
    created = cluster.new_database()
    yield created
    cluster.drop(created)


@pytest.fixture
async def quiet(dsn: str) -> AsyncIterator[QuietDatabase]:
    async with quiet_database(dsn) as opened:
        yield opened


async def new_endpoint(quiet: QuietDatabase, owner: UUID, *event_types: str, position: int = 0) -> UUID:
    id_ = uuid7()
    await quiet.db.execute(
        """
        insert into webhook_endpoints (plan_manager_id, id, url, event_types, payload, active, created_at, secret,
            last_position)
        values ($1, $2, 'https://example.com', $3, 'thin', true, now(), '', $4)
        """,
        owner, id_, list(event_types), position,
    )  # fmt: skip
    return id_


async def deliveries(quiet: QuietDatabase, endpoint_id: UUID) -> list[UUID]:
    """The events that an endpoint receives, in the order of the ids of their deliveries."""
    statement = "select event_id from webhook_deliveries where webhook_endpoint_id = $1 order by id"
    return await quiet.db.rows(UUID, statement, endpoint_id)


async def positions(quiet: QuietDatabase) -> list[int]:
    return await quiet.db.rows(int, "select last_position from webhook_endpoints order by id")


async def test_each_endpoint_receives_the_types_that_it_subscribes_to(quiet: QuietDatabase) -> None:
    owner = await quiet.new_plan_manager()
    every = await new_endpoint(quiet, owner, "*")
    some = await new_endpoint(quiet, owner, "provider.*", "participant.updated")
    one = await new_endpoint(quiet, owner, "participant.created", position=2)
    ids = [*await quiet.record(owner, *TYPES), *await quiet.record(owner, "provider.deleted")]
    assert await fan_out(quiet.db, owner) == IDLE
    await quiet.sequence(owner)
    assert await fan_out(quiet.db, owner) == COMPLETE
    assert await deliveries(quiet, every) == ids
    assert await deliveries(quiet, some) == [ids[0], ids[1], ids[3]]
    assert await deliveries(quiet, one) == [ids[2]]
    assert await positions(quiet) == [4, 4, 4]
    assert await fan_out(quiet.db, owner) == IDLE
    assert len(await deliveries(quiet, every)) == 4


async def test_events_without_notification_are_passed_over(quiet: QuietDatabase) -> None:
    owner = await quiet.new_plan_manager()
    endpoint = await new_endpoint(quiet, owner, "*")
    await quiet.record(owner, *TYPES, notify=False)
    [sent] = await quiet.record(owner, "provider.created")
    await quiet.sequence(owner)
    assert await fan_out(quiet.db, owner) == COMPLETE
    assert await deliveries(quiet, endpoint) == [sent]


async def test_an_endpoint_has_a_limited_number_of_due_deliveries(
    quiet: QuietDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.webhooks.fan_out.MAX_PENDING", 4)
    owner = await quiet.new_plan_manager()
    endpoint = await new_endpoint(quiet, owner, "*")
    ids = await quiet.record(owner, *["provider.created"] * 7)
    await quiet.sequence(owner)
    assert await fan_out(quiet.db, owner) == Progress(has_moved=True, is_complete=False)
    assert await deliveries(quiet, endpoint) == ids[:4]
    done = "update webhook_deliveries set status = 'succeeded' where event_id = any ($1)"
    await quiet.db.execute(done, ids[:2])
    assert await fan_out(quiet.db, owner) == Progress(has_moved=False, is_complete=False)  # half of them are left
    await quiet.db.execute(done, ids[:3])
    assert await fan_out(quiet.db, owner) == COMPLETE
    assert await deliveries(quiet, endpoint) == ids


async def test_more_events_than_one_transaction_reads_are_left_for_the_next(
    quiet: QuietDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.webhooks.fan_out.MAX_EVENTS", 2)
    owner = await quiet.new_plan_manager()
    endpoint = await new_endpoint(quiet, owner, "provider.updated")
    ids = await quiet.record(owner, "provider.created", "provider.created", "provider.updated")
    await quiet.sequence(owner)
    assert await fan_out(quiet.db, owner) == Progress(has_moved=True, is_complete=False)
    assert await fan_out(quiet.db, owner) == COMPLETE
    assert await deliveries(quiet, endpoint) == ids[2:]


async def test_a_locked_endpoint_delays_no_other(quiet: QuietDatabase) -> None:
    owner = await quiet.new_plan_manager()
    locked, free = await new_endpoint(quiet, owner, "*"), await new_endpoint(quiet, owner, "*")
    ids = await quiet.record(owner, "provider.created")
    await quiet.sequence(owner)
    async with quiet.db.transaction() as tx:
        await tx.execute("select from webhook_endpoints where id = $1 for update", locked)
        assert await fan_out(quiet.db, owner) == Progress(has_moved=True, is_complete=False)
        assert [await deliveries(quiet, each) for each in (locked, free)] == [[], ids]
    assert await fan_out(quiet.db, owner) == COMPLETE
    assert await deliveries(quiet, locked) == ids


async def test_inactive_endpoints_and_those_that_have_read_everything_are_not_behind(quiet: QuietDatabase) -> None:
    behind, current, inactive, empty = [await quiet.new_plan_manager() for _ in range(4)]
    for owner in (behind, current, inactive, empty):
        await new_endpoint(quiet, owner, "*")
    for owner in (behind, current, inactive):
        await quiet.record(owner, "provider.created")
        await quiet.sequence(owner)
    await fan_out(quiet.db, current)
    await quiet.db.execute("update webhook_endpoints set active = false where plan_manager_id = $1", inactive)
    task = FanOut(quiet.db)
    await task.find_lagging(quiet.db)
    assert set(task._due_at) == {behind}  # noqa: SLF001 - the plan managers that it has taken note of


async def test_deliveries_are_sent_in_the_order_of_the_feed(quiet: QuietDatabase) -> None:
    owner = await quiet.new_plan_manager()
    endpoint = await new_endpoint(quiet, owner, "*")
    late = await quiet.record(owner, "provider.created")
    early = await quiet.record(owner, "provider.created")
    # The second event got its position first: its transaction was the first to commit.
    rows = [(owner, 1, early[0]), (owner, 2, late[0])]
    for row in rows:
        await quiet.db.execute("insert into event_order values ($1, $2, $3, 1, true)", *row)
    for event_id in (late[0], early[0]):
        await quiet.db.execute(
            """
            insert into webhook_deliveries (plan_manager_id, id, webhook_endpoint_id, event_id, event_type, status,
                next_attempt_at, created_at)
            values ($1, time_ordered_uuid(), $2, $3, 'provider.created', 'pending', now(), now())
            """,
            owner, endpoint, event_id,
        )  # fmt: skip
    jobs = await delivery_queue.claim_due(quiet.db, [owner], {}, 8, 100, timedelta())
    assert [each.event.id for each in jobs] == [early[0], late[0]]
