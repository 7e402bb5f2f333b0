"""Retention of the bin: a maximum age."""

from datetime import UTC, datetime, timedelta

from plankeeper.bin import store
from plankeeper.database.client import Database
from plankeeper.events.due_plan_managers import DuePlanManagers
from plankeeper.http.parsing import uuid7_lower_bound

CHECK_INTERVAL = 600.0  # seconds between two looks at all plan managers
BATCH_SIZE = 1000  # entries of one plan manager per second


class BinRetention:
    """A periodic task: deletes the expired entries of one plan manager a second."""

    def __init__(self, days: int) -> None:
        self._retention = timedelta(days=days)
        self._due = DuePlanManagers(CHECK_INTERVAL)

    async def __call__(self, db: Database) -> None:
        due = await self._due.refresh(db)
        if due:
            before_id = uuid7_lower_bound(datetime.now(UTC) - self._retention)
            await store.purge(db, due.pop(), before_id, BATCH_SIZE)
