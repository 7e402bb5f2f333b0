"""The sequencer's next step: events that have their place become deliveries to the endpoints that want them."""

from collections.abc import Iterable
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.webhooks import delivery_queue, endpoint_store

MAX_PENDING = 500  # deliveries that may wait for a worker, of one endpoint


class FanOut:
    """Remembers who has events that are no deliveries yet, so that a quiet database is not searched for them."""

    def __init__(self) -> None:
        self._pending: set[UUID] = set()

    async def start(self, session: Executor) -> None:
        """The one before may have stopped between an event's place and its deliveries."""
        self._pending.update(await endpoint_store.plan_managers_with_endpoints(session))

    async def handle(self, session: Executor, plan_manager_ids: Iterable[UUID]) -> bool:
        """Whether any endpoint went on: it may have more before it."""
        self._pending.update(plan_manager_ids)
        if not self._pending:
            return False
        progress = await delivery_queue.fan_out(session, list(self._pending), MAX_PENDING)
        self._pending = {each.plan_manager_id for each in progress}
        return any(each.has_moved for each in progress)
