"""Create the deliveries of sequenced events, for the endpoints that receive their types."""

from collections.abc import Iterable
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.webhooks import delivery_queue, endpoint_store

MAX_PENDING = 500  # deliveries of one endpoint that wait for a worker


class FanOut:
    """Remembers the plan managers that have events without deliveries, so that an idle database is not queried."""

    def __init__(self) -> None:
        self._pending: set[UUID] = set()

    async def start(self, db: Executor) -> None:
        """Check every plan manager: the previous sequencer may have stopped between an event and its deliveries."""
        self._pending.update(await endpoint_store.plan_managers_with_endpoints(db))

    async def handle(self, db: Executor, plan_manager_ids: Iterable[UUID]) -> bool:
        """Return whether any endpoint advanced, so that more events may be left for it."""
        self._pending.update(plan_manager_ids)
        if not self._pending:
            return False
        progress = await delivery_queue.fan_out(db, list(self._pending), MAX_PENDING)
        self._pending = {each.plan_manager_id for each in progress}
        return any(each.has_moved for each in progress)
