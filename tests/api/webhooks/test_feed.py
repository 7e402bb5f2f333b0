"""The feed and the deliveries under load, and their retention."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.database.citus import Nodes
from plankeeper.database.client import Database
from plankeeper.events import order_store
from plankeeper.events import store as event_store
from plankeeper.events.recorder import build_event, record_event
from plankeeper.webhooks import delivery_queue
from support.client import Client
from support.receiver import Receiver
from support.server import RunningServer, wait_until
from support.webhooks import (
    NO_OFFSET,
    EventSubject,
    NewEndpoint,
    emit_events,
    list_deliveries,
    poll_once,
    received_subject_ids,
    running_worker,
    wait_for_deliveries,
    wait_for_events,
)

pytestmark = pytest.mark.usefixtures("frequent_sweeps")

WRITERS = 16
EVENTS_PER_WRITER = 8
LONG_AGO = datetime.now(UTC) - timedelta(days=1000)  # and not so long that the server would delete it


class FeedReader:
    """Follows the feed on a connection of its own until it has met so many events; `limit` events a page."""

    def __init__(self, server: RunningServer, api: Client, limit: int) -> None:
        self._client, self._limit = Client(server.url, api.key, api.plan_manager_id), limit
        self.seen: list[str] = []

    def read_until(self, count: int) -> list[str]:
        after = "0"
        deadline = time.monotonic() + 30
        with closing(self._client.http):
            while len(self.seen) < count and time.monotonic() < deadline:
                page = self._client.get("/events", after=after, limit=self._limit).json()["data"]
                after = page[-1]["id"] if page else after
                self.seen += [each["resource"]["id"] for each in page if each["type"] == "note_type.created"]
        return self.seen


async def write_events(db: Database, server: RunningServer, api: Client, number: int) -> list[str]:
    """The writes of one writer: transactions that stay open for a while, and commit in another order."""
    ids: list[str] = []
    random_source = random.Random(number)
    for _ in range(EVENTS_PER_WRITER):
        async with db.transaction() as tx:
            thing = EventSubject(uuid7())
            await record_event(
                WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM), "note_type.created", None, thing
            )
            await tx.execute("select pg_sleep($1)", random_source.choice([0, 0, 0.002, 0.05]))
        ids.append(str(thing.id))
    return ids


def test_feed_readers_and_deliveries_see_each_event_once_in_one_order_under_concurrent_writes(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With one place the order of arrival is the order of the feed.
    monkeypatch.setattr("plankeeper.webhooks.worker.MAX_PER_ENDPOINT", 1)
    new_endpoint()

    async def write() -> list[list[str]]:
        async with Database(server.dsn, pool_size=WRITERS).open() as db, asyncio.TaskGroup() as group:
            writing = [group.create_task(write_events(db, server, api, number)) for number in range(WRITERS)]
        return [each.result() for each in writing]

    count = WRITERS * EVENTS_PER_WRITER
    walkers = [FeedReader(server, api, limit) for limit in (1, 3, 10, 1000)]
    with running_worker(server), ThreadPoolExecutor(len(walkers)) as pool:
        walking = [pool.submit(each.read_until, count) for each in walkers]
        written = server.run(write())
        walked = [each.result() for each in walking]
        wait_until(lambda: len(receiver.received) >= count)
    made = [ident for each in written for ident in each]
    assert made != sorted(made)
    assert sorted(walked[0]) == sorted(made)
    assert all(each == walked[0] for each in walked)
    assert received_subject_ids(receiver) == walked[0]
    for each in written:
        assert [ident for ident in walked[0] if ident in set(each)] == each


@pytest.fixture
async def db(server: RunningServer) -> AsyncIterator[Database]:
    async with Database(server.dsn).open() as opened:
        yield opened


async def record_old_events(db: Database, server: RunningServer, api: Client, count: int) -> list[str]:
    """The ids of events that are older than any that another test has made."""
    ids: list[str] = []
    async with db.transaction() as tx:
        for number in range(count):
            ctx = WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM)
            row = build_event(ctx, "note_type.created", None, EventSubject(uuid7()))
            assert row
            row.id, row.created_at = UUID(int=uuid7_lower_bound(LONG_AGO).int + number + 1), LONG_AGO
            row.id = UUID(int=row.id.int | 7 << 76 | 2 << 62)
            await event_store.insert(tx, row)
            ids.append(str(row.id))
    return ids


async def test_ids_of_deleted_events_are_no_cursors(server: RunningServer, api: Client, db: Database) -> None:
    old = await record_old_events(db, server, api, 5)
    wait_until(lambda: len(wait_for_events(api, "note_type.created", 5)) == 5)
    made = api.create("/note-types", {"note_type": "kept"})
    stored = wait_for_events(api, "note_type.created", 6)[-1]
    everything = wait_until(lambda: len(found := api.get("/events").json()["data"]) == 7 and found)
    newest = uuid7_lower_bound(LONG_AGO + timedelta(days=1))
    owner = UUID(api.plan_manager_id)

    async def purge(limit: int) -> int:
        async with db.transaction() as tx:
            return await order_store.purge(tx, owner, newest, limit)

    assert await purge(2) == 2
    assert [each["id"] for each in api.get("/events").json()["data"]] == [
        each["id"] for each in everything if each["id"] not in old[:2]
    ]
    assert await purge(1000) == 3
    assert await purge(1000) == 0
    left = api.get("/events").json()["data"]
    assert left == [each for each in everything if each["id"] not in old]
    assert left[-1] == stored
    assert stored["data"] == made
    for gone in old:
        assert api.get(f"/events/{gone}").status_code == 404
        assert api.get("/events", after=gone).status_code == 400


async def test_an_unsequenced_event_is_not_deleted(server: RunningServer, api: Client, db: Database) -> None:
    async with db.transaction() as tx:
        ctx = WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM)
        row = build_event(ctx, "note_type.created", None, EventSubject(uuid7()))
        assert row
        row.id = UUID(int=uuid7_lower_bound(LONG_AGO).int | 7 << 76 | 2 << 62)
        await event_store.insert(tx, row)
        before_id = uuid7_lower_bound(LONG_AGO + timedelta(days=1))
        assert await order_store.purge(tx, ctx.plan_manager_id, before_id, 1000) == 0
        assert await event_store.get(tx, ctx.plan_manager_id, row.id)


async def test_deliveries_are_deleted_by_age(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver, db: Database
) -> None:
    endpoint = new_endpoint()
    emit_events(server, api, 4)
    wait_for_deliveries(api, endpoint, 4)
    poll_once(server)
    pending = emit_events(server, api, 2)
    found = wait_for_deliveries(api, endpoint, 6)
    aged = [UUID(each["id"]) for each in found[:3]]
    older = "update webhook_deliveries set created_at = created_at - $1 * interval '1 day' where id = any ($2)"
    # Younger than the 30 days after which the server itself deletes them.
    await db.execute(older, 21, aged)
    await db.execute(older, 19, [UUID(found[3]["id"])])
    await delivery_queue.purge(db, 20, 2)
    assert len(list_deliveries(api, endpoint)) == 4
    await delivery_queue.purge(db, 20)
    left = list_deliveries(api, endpoint)
    assert [each["id"] for each in left] == [each["id"] for each in found[3:]]
    assert poll_once(server) == 2
    assert sorted(received_subject_ids(receiver)[4:]) == sorted(pending)


async def test_a_delivery_of_a_deleted_event_is_not_attempted(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver, db: Database
) -> None:
    endpoint = new_endpoint()
    [gone, stored] = emit_events(server, api, 2)
    wait_for_deliveries(api, endpoint, 2)
    server.execute_as_owner("delete from events where resource_id = $1", gone)
    assert len(await delivery_queue.list_due(db, Nodes(), {}, 8, timedelta(days=-1))) == 0
    # What is gone is put off like what is sent.
    assert [poll_once(server, NO_OFFSET), poll_once(server, NO_OFFSET)] == [1, 0]
    assert len(await delivery_queue.list_due(db, Nodes(), {}, 8, NO_OFFSET)) == 0
    assert received_subject_ids(receiver) == [stored]


def test_a_server_applies_retention(server: RunningServer, api: Client, new_endpoint: NewEndpoint) -> None:
    """The sequencer's chores purge by the settings: deliveries after 30 days where nothing else is said."""
    endpoint = new_endpoint()
    emit_events(server, api, 2)
    found = wait_for_deliveries(api, endpoint, 2)
    older = "update webhook_deliveries set created_at = created_at - interval '31 days' where id = $1"
    server.run(server.db.execute(older, UUID(found[0]["id"])))
    wait_until(lambda: list_deliveries(api, endpoint) == found[1:])


def test_an_endpoint_that_no_process_was_told_about_gets_its_events(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    """A process may die between the position of an event and its deliveries."""
    endpoint, paused = new_endpoint(), new_endpoint()
    emit_events(server, api, 3)
    for each in (endpoint, paused):
        wait_for_deliveries(api, each, 3)
    api.put(f"/webhook-endpoints/{paused['id']}", {"active": False})
    wait_for_events(api, "webhook_endpoint.updated")
    forgotten = "update webhook_endpoints set last_position = 0 where plan_manager_id = $1"
    server.run(server.db.execute(forgotten, api.plan_manager_id))
    wait_for_deliveries(api, endpoint, 6)
    assert len(list_deliveries(api, paused)) == 3


@pytest.mark.parametrize("since", ["0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z"])
def test_a_replay_from_an_implausible_time_is_rejected(api: Client, new_endpoint: NewEndpoint, since: str) -> None:
    response = api.post(f"/webhook-endpoints/{new_endpoint()['id']}/replay", {"since": since})
    assert (response.status_code, response.json()["errors"][0]["field"]) == (400, "since")
