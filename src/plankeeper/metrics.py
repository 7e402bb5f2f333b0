"""`/metrics` for Prometheus: what all workers of this server counted, and gauges of now."""

import asyncio
import os
from typing import Any, Protocol

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Gauge,
    generate_latest,
    multiprocess,
)

from plankeeper.database.client import Database, Queries
from plankeeper.events import store as event_store
from plankeeper.webhooks.figures import ATTEMPTS

_multiprocess: Any = multiprocess  # its functions have no types that a strict check can use

POOL_OPEN = Gauge("plankeeper_pool_connections", "Database connections that workers hold.", multiprocess_mode="livesum")
POOL_LENT = Gauge("plankeeper_pool_lent", "Of these, those in use.", multiprocess_mode="livesum")
POOL_WAITING = Gauge("plankeeper_pool_waiting", "Requests that wait for a connection.", multiprocess_mode="livesum")
INSIDE = Gauge("plankeeper_requests_inside", "Requests that workers are working on.", multiprocess_mode="livesum")
EVENT_LAG = Gauge(
    "plankeeper_event_lag_seconds", "The age of the oldest event without a position; 0 where there is none.",
    multiprocess_mode="livemax",
)  # fmt: skip
EVENTS_WAITING = Gauge("plankeeper_events_waiting", "Events without a position.", multiprocess_mode="livemax")


class Inside(Protocol):
    """Whatever knows how many requests are being worked on."""

    inside: int


async def watch(db: Database, admission: Inside) -> None:
    """Until cancelled: look once a second."""
    while True:
        usage = db.usage
        POOL_OPEN.set(usage.open)
        POOL_LENT.set(usage.lent)
        POOL_WAITING.set(usage.waiting)
        INSIDE.set(admission.inside)
        await asyncio.sleep(1)


async def watch_events(session: Queries) -> None:
    """How far the sequencer is behind."""
    found = await event_store.get_backlog(session)
    EVENTS_WAITING.set(found.waiting)
    EVENT_LAG.set(found.oldest_age_seconds)


def registry() -> CollectorRegistry:
    """Of all worker processes where they share a folder (PROMETHEUS_MULTIPROC_DIR), else of this process."""
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        shared = CollectorRegistry()
        multiprocess.MultiProcessCollector(shared)
        return shared
    return REGISTRY


def forget(pid: int | None) -> None:
    """Drop the gauges of a worker that is gone."""
    _multiprocess.mark_process_dead(pid)


def text() -> bytes:
    return generate_latest(registry())


# Counted by the process that sends, shown by whichever is asked.
SENT = ATTEMPTS
CONTENT_TYPE = CONTENT_TYPE_LATEST
