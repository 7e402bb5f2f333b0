"""Which plan managers a periodic task has still to visit."""

import time
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.events import order_store


class DuePlanManagers:
    """The plan managers that are due: all of them, once the list is empty and `interval` seconds have passed."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._due: list[UUID] = []
        self._listed_at: float | None = None

    async def refresh(self, db: Executor) -> list[UUID]:
        """The list of those that are due, from which a task removes the ones that it visits."""
        now = time.monotonic()
        if not self._due and (self._listed_at is None or now - self._listed_at >= self._interval):
            self._due, self._listed_at = await order_store.list_plan_managers(db), now
        return self._due
