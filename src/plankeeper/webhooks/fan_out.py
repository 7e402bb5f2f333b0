"""The sequencer's next step: events that have their place become deliveries to the endpoints that want them."""

from collections.abc import Iterable
from uuid import UUID

from plankeeper.database.client import Queries
from plankeeper.webhooks import delivery_queue, endpoint_store

MOST_DUE = 500  # deliveries that may wait for a worker, of one endpoint


class FanOut:
    """Remembers who has events that are no deliveries yet, so that a quiet database is not searched for them."""

    def __init__(self) -> None:
        self._behind: set[UUID] = set()

    async def begin(self, session: Queries) -> None:
        """The one before may have stopped between an event's place and its deliveries."""
        self._behind.update(await endpoint_store.with_endpoints(session))

    async def follow(self, session: Queries, plan_manager_ids: Iterable[UUID]) -> bool:
        """Whether any endpoint went on: it may have more before it."""
        self._behind.update(plan_manager_ids)
        if not self._behind:
            return False
        found = await delivery_queue.fan_out(session, list(self._behind), MOST_DUE)
        self._behind = {each.plan_manager_id for each in found}
        return any(each.has_moved for each in found)
