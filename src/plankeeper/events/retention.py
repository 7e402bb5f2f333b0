"""Retention of events: a maximum age."""

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.database.client import Database, Executor
from plankeeper.events import order_store


class PlanManagerSchedule:
    """The plan managers that are due: all of them, once the list is empty and `interval` seconds have passed."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._due: list[UUID] = []
        self._listed_at: float | None = None

    async def refresh(self, db: Executor) -> list[UUID]:
        """The plan managers that are due. A task removes those that it has processed."""
        now = time.monotonic()
        if not self._due and (self._listed_at is None or now - self._listed_at >= self._interval):
            self._due, self._listed_at = await order_store.list_plan_managers(db), now
        return self._due


CHECK_INTERVAL = 60.0  # seconds between two looks at all plan managers
BATCH_SIZE = 1000  # events in one transaction
MAX_BATCHES_PER_RUN = 5


class EventRetention:
    """A periodic task: deletes up to 5,000 expired events a second, plan manager by plan manager."""

    def __init__(self, days: int) -> None:
        self._retention = timedelta(days=days)
        self._due = PlanManagerSchedule(CHECK_INTERVAL)

    async def __call__(self, db: Database) -> None:
        due = await self._due.refresh(db)
        before_id = uuid7_lower_bound(datetime.now(UTC) - self._retention)
        full_batches = 0
        while due and full_batches < MAX_BATCHES_PER_RUN:
            plan_manager_id = due.pop()  # first: after an error of its node, the next run continues with the others
            async with db.transaction() as tx:
                deleted = await order_store.purge(tx, plan_manager_id, before_id, BATCH_SIZE)
            if deleted == BATCH_SIZE:
                due.append(plan_manager_id)
                full_batches += 1


AGE_CHECK_INTERVAL = 600.0  # seconds between two looks at all plan managers

Purge = Callable[[Executor, UUID, UUID, int], Awaitable[None]]
"""Deletes the rows of a plan manager with ids lower than one, up to a limit."""


class AgeRetention:
    """A periodic task: deletes up to `batch_size` expired rows of one plan manager a second."""

    def __init__(self, days: int, purge: Purge, batch_size: int) -> None:
        self._retention, self._purge, self._batch_size = timedelta(days=days), purge, batch_size
        self._due = PlanManagerSchedule(AGE_CHECK_INTERVAL)

    async def __call__(self, db: Database) -> None:
        due = await self._due.refresh(db)
        if due:
            before_id = uuid7_lower_bound(datetime.now(UTC) - self._retention)
            await self._purge(db, due.pop(), before_id, self._batch_size)
