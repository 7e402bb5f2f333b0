"""Deletes rows whose ids, which are in order of time, are older than a retention."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.database.client import Database, Executor
from plankeeper.events.due_plan_managers import DuePlanManagers

CHECK_INTERVAL = 600.0  # seconds between two looks at all plan managers

Purge = Callable[[Executor, UUID, UUID, int], Awaitable[None]]
"""Deletes the rows of a plan manager with ids lower than one, up to a limit."""


class AgeRetention:
    """A periodic task: deletes up to `batch_size` expired rows of one plan manager a second."""

    def __init__(self, days: int, purge: Purge, batch_size: int) -> None:
        self._retention, self._purge, self._batch_size = timedelta(days=days), purge, batch_size
        self._due = DuePlanManagers(CHECK_INTERVAL)

    async def __call__(self, db: Database) -> None:
        due = await self._due.refresh(db)
        if due:
            before_id = uuid7_lower_bound(datetime.now(UTC) - self._retention)
            await self._purge(db, due.pop(), before_id, self._batch_size)
