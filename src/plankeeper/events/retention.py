"""Retention of events: a maximum age."""

import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

from plankeeper.database.client import Database
from plankeeper.events import order_store
from plankeeper.http.parsing import uuid7_lower_bound

CHECK_INTERVAL = 60.0  # seconds between two looks at all plan managers
BATCH_SIZE = 1000  # events in one transaction
MAX_BATCHES_PER_RUN = 5


class EventRetention:
    """A periodic task: deletes up to 5,000 expired events a second, plan manager by plan manager."""

    def __init__(self, days: int) -> None:
        self._retention = timedelta(days=days)
        self._due: list[UUID] = []
        self._checked_at: float | None = None

    async def __call__(self, db: Database) -> None:
        now = time.monotonic()
        if not self._due and (self._checked_at is None or now - self._checked_at >= CHECK_INTERVAL):
            self._due, self._checked_at = await order_store.list_plan_managers(db), now
        before_id = uuid7_lower_bound(datetime.now(UTC) - self._retention)
        full_batches = 0
        while self._due and full_batches < MAX_BATCHES_PER_RUN:
            plan_manager_id = self._due.pop()  # before an error of its node: the next run continues with the others
            async with db.transaction() as tx:
                deleted = await order_store.purge(tx, plan_manager_id, before_id, BATCH_SIZE)
            if deleted == BATCH_SIZE:
                self._due.append(plan_manager_id)
                full_batches += 1
