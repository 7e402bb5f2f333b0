"""Assign positions to committed events. An advisory lock elects one sequencer among all servers and workers."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol
from uuid import UUID

from plankeeper.database.client import Database, Executor, is_unavailable
from plankeeper.events import store

log = logging.getLogger("plankeeper")

POLL_INTERVAL = 0.05  # seconds between two polls
BATCH_SIZE = 5000
PERIODIC_TASK_INTERVAL = 1.0  # seconds


PeriodicTask = Callable[[Executor], Awaitable[object]]


class EventConsumer(Protocol):
    """Handles events as soon as they have a position, on the sequencer's connection."""

    async def start(self, db: Executor) -> None:
        """Prepare: called when a sequencer becomes the leader."""

    async def handle(self, db: Executor, plan_manager_ids: Iterable[UUID]) -> bool:
        """Handle the new events of plan managers, and return whether more may be left."""
        ...


async def run(db: Database, periodic_tasks: Sequence[PeriodicTask] = (), consumer: EventConsumer | None = None) -> None:
    """Sequence events until cancelled, or stand by to take over. Waits out failures of the database.

    The leader also runs `periodic_tasks` every second.
    """
    while True:
        try:
            async with db.dedicated_connection() as connection:
                await _run_as_leader(connection, periodic_tasks, consumer)
        except Exception as error:
            if not is_unavailable(error):
                log.exception("the event sequencer failed and restarts")
        await asyncio.sleep(1)


async def _run_as_leader(
    connection: Executor, periodic_tasks: Sequence[PeriodicTask], consumer: EventConsumer | None
) -> None:
    while not await store.try_lead(connection):  # noqa: ASYNC110 - only PostgreSQL knows the holder of the lock
        await asyncio.sleep(0.5)
    tasks_ran_at = time.monotonic()
    if consumer:
        await consumer.start(connection)
    while True:
        assigned = await store.assign_positions(connection, BATCH_SIZE)
        has_more = consumer and await consumer.handle(connection, [each.plan_manager_id for each in assigned])
        if sum(each.events for each in assigned) < BATCH_SIZE and not has_more:
            await asyncio.sleep(POLL_INTERVAL)
        if time.monotonic() - tasks_ran_at > PERIODIC_TASK_INTERVAL:
            for task in periodic_tasks:
                await task(connection)
            tasks_ran_at = time.monotonic()
