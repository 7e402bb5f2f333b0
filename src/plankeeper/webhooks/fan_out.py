"""Create the deliveries of sequenced events, for the endpoints that receive their types."""

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.database.citus import Nodes
from plankeeper.database.client import Database, Executor
from plankeeper.database.errors import is_unavailable
from plankeeper.events import order_store
from plankeeper.events.schemas import SequencedEvent
from plankeeper.webhooks import delivery_queue, endpoint_store
from plankeeper.webhooks.schemas import FanOutEndpoint

log = logging.getLogger("plankeeper")

MAX_PENDING = 500  # deliveries of one endpoint that wait for a worker
MAX_EVENTS = 2000  # events of the feed that one transaction reads
MIN_DELAY, MAX_DELAY = 0.05, 1.0  # seconds until a plan manager is tried again whose endpoints have no capacity


class FanOut:
    """Creates deliveries plan manager by plan manager. Any number of processes share the work.

    Its own process notifies it of the positions that it assigns. A periodic task looks for all others.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._nodes = Nodes()
        self._due_at: dict[UUID, float] = {}  # plan managers that may have events for their endpoints
        self._delays: dict[UUID, float] = {}
        self._notified = asyncio.Event()

    def notify(self, plan_manager_id: UUID) -> None:
        """Add a plan manager with new events."""
        self._due_at[plan_manager_id] = 0.0
        self._notified.set()

    async def find_lagging(self, db: Executor) -> None:
        """Add all plan managers that have events for their endpoints: the process that was notified may have died."""
        for each in await endpoint_store.plan_managers_behind(db, self._nodes):
            self._due_at.setdefault(each, 0.0)
        self._notified.set()

    async def run(self) -> None:
        """Create deliveries until cancelled. Retries while the database is unavailable."""
        while True:
            self._notified.clear()
            now = time.monotonic()
            for each in [id_ for id_, due_at in self._due_at.items() if due_at <= now]:
                del self._due_at[each]
                await self._handle(each)
            next_due_at = min(self._due_at.values(), default=now + MAX_DELAY)
            with suppress(TimeoutError):
                async with asyncio.timeout(next_due_at - time.monotonic()):
                    await self._notified.wait()
                    await asyncio.sleep(MIN_DELAY)

    async def _handle(self, plan_manager_id: UUID) -> None:
        """Create the deliveries of one plan manager. A failure, such as of its node on Citus, concerns no other."""
        try:
            self._plan_next(plan_manager_id, await fan_out(self._db, plan_manager_id))
        except Exception as error:
            if not is_unavailable(error):
                log.exception("cannot create webhook deliveries")
            self._due_at.setdefault(plan_manager_id, time.monotonic() + MAX_DELAY)

    def _plan_next(self, plan_manager_id: UUID, progress: "Progress") -> None:
        """Try again at once after progress, otherwise with growing delays, until the endpoints have read the feed."""
        delay = self._delays.pop(plan_manager_id, MIN_DELAY)
        if progress.is_complete:
            return
        if not progress.has_moved:
            self._delays[plan_manager_id] = min(2 * delay, MAX_DELAY)
        self._due_at.setdefault(plan_manager_id, 0.0 if progress.has_moved else time.monotonic() + delay)


@dataclass(frozen=True, slots=True)
class Progress:
    """The result of a fan-out: whether an endpoint advanced, and whether all have read the whole feed."""

    has_moved: bool
    is_complete: bool


async def fan_out(db: Database, plan_manager_id: UUID) -> Progress:
    """Create deliveries from the events of a plan manager, in the order of the feed, in one transaction.

    An endpoint has at most MAX_PENDING due deliveries. Further events stay in the feed, so that neither a burst of
    writes nor a slow endpoint fills the queue. The endpoint gets new deliveries when half of them are done, so that
    one transaction creates many.
    """
    active = await endpoint_store.count_active(db, plan_manager_id)
    if not active:
        return Progress(has_moved=False, is_complete=True)
    async with db.transaction() as tx:
        endpoints = await delivery_queue.lock_endpoints(tx, plan_manager_id, MAX_PENDING)
        ready = [each for each in endpoints if each.due < MAX_PENDING / 2]
        readings: list[Reading] = []
        for position, group in groupby(sorted(ready, key=_last_position), _last_position):
            events = await order_store.list_sequenced(tx, plan_manager_id, position, MAX_EVENTS)
            readings += [read_events(each, events) for each in group]
        deliveries = [delivery for reading in readings for delivery in reading.deliveries]
        if deliveries:
            await delivery_queue.insert_many(tx, plan_manager_id, with_ids(deliveries))
        positions = {each.endpoint_id: each.position for each in readings if each.has_moved}
        if positions:
            await delivery_queue.advance_endpoints(tx, plan_manager_id, positions)
    is_complete = len(readings) >= active and all(each.is_complete for each in readings)
    return Progress(has_moved=bool(positions), is_complete=is_complete)


def _last_position(endpoint: FanOutEndpoint) -> int:
    return endpoint.last_position


@dataclass(frozen=True, slots=True)
class Reading:
    """The events that an endpoint receives, and the position up to which it has read the feed."""

    endpoint_id: UUID
    deliveries: list[tuple[UUID, SequencedEvent]]
    position: int
    has_moved: bool
    is_complete: bool


def read_events(endpoint: FanOutEndpoint, events: Sequence[SequencedEvent]) -> Reading:
    """Read events until the endpoint has MAX_PENDING due deliveries."""
    deliveries: list[tuple[UUID, SequencedEvent]] = []
    subscribed, capacity, number = set(endpoint.event_types), MAX_PENDING - endpoint.due, 0
    for event in events:
        if len(deliveries) == capacity:
            break
        if event.notify and not subscribed.isdisjoint(("*", event.type, event.type.partition(".")[0] + ".*")):
            deliveries.append((endpoint.id, event))
        number += 1
    position = events[number - 1].position if number else endpoint.last_position
    is_complete = number == len(events) < MAX_EVENTS
    return Reading(endpoint.id, deliveries, position, number > 0, is_complete)


def with_ids(deliveries: Iterable[tuple[UUID, SequencedEvent]]) -> list[tuple[UUID, UUID, UUID, str]]:
    """The rows of deliveries, whose ids are in the order of the feed."""
    in_order = sorted(deliveries, key=lambda each: each[1].position)
    return [(uuid7(), endpoint_id, event.id, event.type) for endpoint_id, event in in_order]
