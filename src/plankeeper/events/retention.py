"""Retention of events: a maximum age."""

from datetime import UTC, datetime, timedelta

from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.database.client import Database
from plankeeper.events import order_store
from plankeeper.events.due_plan_managers import DuePlanManagers

CHECK_INTERVAL = 60.0  # seconds between two looks at all plan managers
BATCH_SIZE = 1000  # events in one transaction
MAX_BATCHES_PER_RUN = 5


class EventRetention:
    """A periodic task: deletes up to 5,000 expired events a second, plan manager by plan manager."""

    def __init__(self, days: int) -> None:
        self._retention = timedelta(days=days)
        self._due = DuePlanManagers(CHECK_INTERVAL)

    async def __call__(self, db: Database) -> None:
        due = await self._due.refresh(db)
        before_id = uuid7_lower_bound(datetime.now(UTC) - self._retention)
        full_batches = 0
        while due and full_batches < MAX_BATCHES_PER_RUN:
            plan_manager_id = due.pop()  # before an error of its node: the next run continues with the others
            async with db.transaction() as tx:
                deleted = await order_store.purge(tx, plan_manager_id, before_id, BATCH_SIZE)
            if deleted == BATCH_SIZE:
                due.append(plan_manager_id)
                full_batches += 1
