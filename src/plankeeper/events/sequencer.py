"""Assign positions to committed events. Any number of sequencers share the work, plan manager by plan manager."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from uuid import UUID

import asyncpg

from plankeeper.database.citus import Nodes
from plankeeper.database.client import Database, DedicatedConnection
from plankeeper.database.errors import is_unavailable
from plankeeper.events import order_store
from plankeeper.events.schemas import EventBatch

log = logging.getLogger("plankeeper")

MIN_REST = 0.05  # seconds between two rounds: the events of the meantime share one transaction
MAX_REST = 0.5
REST_PER_WORK = 5  # the pause after a round, as a multiple of its duration
MIN_SWEEP_INTERVAL, MAX_SWEEP_INTERVAL = 0.5, 1.0  # seconds
REST_PER_SWEEP = 20
FAIR_BATCH_SIZE = 500  # events of a plan manager in one turn while others wait
BATCH_SIZE = 5000  # and while no others do

# Positions that a crash of PostgreSQL loses would be assigned again in another order, and readers would skip events.
# The plans are the same whether the tables are empty or not.
CONNECTION_SETTINGS = {
    "synchronous_commit": "on",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
}


class Sequencer:
    """Assigns positions plan manager by plan manager, in fair turns.

    Its own process notifies it of committed events. It looks for all others in the queue. `on_assigned` is called
    with a plan manager whose events got positions.
    """

    def __init__(self, db: Database, on_assigned: Callable[[UUID], None]) -> None:
        self._db = db
        self._nodes = Nodes()
        self._on_assigned = on_assigned
        self._waiting: dict[UUID, None] = {}  # plan managers with events that no turn has seen yet
        self._backlogged: dict[UUID, None] = {}  # plan managers that need more than one turn
        self._notified = asyncio.Event()
        self._next_sweep = 0.0
        self.is_leader = False  # whether this process runs the periodic tasks
        db.on_feeds_changed = self.notify

    def notify(self, plan_manager_ids: Collection[UUID]) -> None:
        """Add plan managers with committed events."""
        self._waiting.update(dict.fromkeys(plan_manager_ids))
        self._notified.set()

    async def run(self) -> None:
        """Sequence events until cancelled. Retries while the database is unavailable."""
        while True:
            try:
                async with self._db.dedicated_connection(**CONNECTION_SETTINGS) as connection:
                    await self._run_on(connection)
            except Exception as error:
                if not is_unavailable(error):
                    log.exception("the event sequencer failed and restarts")
            finally:
                self.is_leader = False
            await asyncio.sleep(1)

    async def _run_on(self, connection: DedicatedConnection) -> None:
        while True:
            started = time.monotonic()
            if started >= self._next_sweep:
                await self._sweep(connection)
            locked = await self.run_round(connection)
            if not self._backlogged:
                await self._rest(time.monotonic() - started, locked)
            self.notify(locked)

    async def run_round(self, connection: DedicatedConnection) -> set[UUID]:
        """Give a turn to each plan manager with new events, and to one of those with many events.

        Returns the plan managers that another sequencer is serving.
        """
        waiting, self._waiting = self._waiting, {}
        self._notified.clear()
        locked = {each for each in waiting if not await self._take_turn(connection, each, FAIR_BATCH_SIZE)}
        for each in list(self._backlogged)[:1]:
            del self._backlogged[each]
            others_wait = self._backlogged or self._waiting
            if not await self._take_turn(connection, each, FAIR_BATCH_SIZE if others_wait else BATCH_SIZE):
                locked.add(each)
        return locked

    async def _sweep(self, connection: DedicatedConnection) -> None:
        """Try to become the leader, and look for events that other processes have committed."""
        started = time.monotonic()
        self.is_leader = self.is_leader or await order_store.try_lead(connection)
        self.notify(await order_store.plan_managers_with_queued_events(connection, self._nodes))
        now = time.monotonic()
        interval = min(max(REST_PER_SWEEP * (now - started), MIN_SWEEP_INTERVAL), MAX_SWEEP_INTERVAL)
        self._next_sweep = now + interval

    async def _take_turn(self, connection: DedicatedConnection, plan_manager_id: UUID, max_events: int) -> bool:
        """Assign positions to the next events of a plan manager. Returns False if another sequencer is doing so."""
        try:
            batch = await assign_positions(connection, plan_manager_id, max_events)
        except Exception as error:
            if not _concerns_some(connection, error):
                raise
            if not is_unavailable(error):
                log.exception("the events of a plan manager cannot be sequenced")
            return True  # the next sweep finds it again
        if batch is None:
            return False
        if batch.has_more:
            self._backlogged[plan_manager_id] = None
        if batch.event_count:
            self._on_assigned(plan_manager_id)
        return True

    async def _rest(self, worked: float, locked: Collection[UUID]) -> None:
        await asyncio.sleep(min(max(REST_PER_WORK * worked, MIN_REST), MAX_REST))
        if not locked:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._next_sweep - time.monotonic()):
                    await self._notified.wait()


def _concerns_some(connection: DedicatedConnection, error: Exception) -> bool:
    """Whether an error concerns only the statement, so that the connection can be used for other plan managers."""
    return isinstance(error, asyncpg.PostgresError) and not connection.is_closed


async def assign_positions(
    connection: DedicatedConnection, plan_manager_id: UUID, max_events: int
) -> EventBatch | None:
    """Assign the next positions of a plan manager, in one transaction. None if another sequencer is doing so."""
    while True:
        async with connection.transaction() as tx:
            if not await order_store.try_lock(tx, plan_manager_id):
                return None
            batch = await order_store.next_batch(tx, plan_manager_id, max_events)
            if not batch.unknown_types:
                if batch.queue_ids:
                    await order_store.insert_mark(tx, plan_manager_id)
                    await order_store.insert_positions(tx, plan_manager_id, batch.queue_ids)
                    await order_store.delete_queued(tx, plan_manager_id, batch.queue_ids)
                return batch
        for name in batch.unknown_types:
            await order_store.insert_type(connection, name)
