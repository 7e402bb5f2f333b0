"""The length and the lag of the queue of events, measured independently of the sequencers."""

import time
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from plankeeper.database.citus import Nodes
from plankeeper.database.client import Executor
from plankeeper.events import order_store
from plankeeper.events.schemas import QueueState

MAX_ROWS = 100_000  # rows of the queue that are counted: up to ten million events


class Backlog(NamedTuple):
    """The number of events without a position, and for how many seconds they have been waiting without progress."""

    event_count: int
    lag_seconds: float


class BacklogMonitor:
    """Measures for how long the first row of each plan manager's queue has been waiting.

    The lag counts from when this monitor first saw the row: the ids and times of a long import are those of its writes,
    but its events can be sequenced only after its commit. A long queue that makes progress has no lag.
    """

    def __init__(self) -> None:
        self._nodes = Nodes()
        self._first_seen: dict[UUID, tuple[UUID, float]] = {}

    async def measure(self, db: Executor) -> Backlog:
        queues = await order_store.queue_states(db, self._nodes, MAX_ROWS)
        return Backlog(sum(queue.event_count for queue in queues), self._update(queues, time.monotonic()))

    def _update(self, queues: Sequence[QueueState], now: float) -> float:
        seen: dict[UUID, tuple[UUID, float]] = {}
        for queue in queues:
            first_id, since = self._first_seen.get(queue.plan_manager_id, (None, now))
            seen[queue.plan_manager_id] = (queue.first_id, since if first_id == queue.first_id else now)
        self._first_seen = seen
        return now - min((since for _, since in seen.values()), default=now)
