"""`/metrics` for Prometheus: what all workers of this server counted, and gauges of now."""

import asyncio
import os
from typing import Any, Protocol

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    generate_latest,
    multiprocess,
)

from plankeeper.database.client import Database, Executor
from plankeeper.events import store as event_store

_multiprocess: Any = multiprocess  # its functions have no types that a strict check can use

POOL_OPEN = Gauge(
    "plankeeper_db_pool_connections", "Database connections that workers hold.", multiprocess_mode="livesum"
)
POOL_IN_USE = Gauge("plankeeper_db_pool_connections_in_use", "Of these, those in use.", multiprocess_mode="livesum")
POOL_WAITERS = Gauge("plankeeper_db_pool_waiters", "Requests that wait for a connection.", multiprocess_mode="livesum")
REQUESTS_IN_FLIGHT = Gauge(
    "plankeeper_http_requests_in_flight", "Requests that workers are working on.", multiprocess_mode="livesum"
)
EVENT_LAG = Gauge(
    "plankeeper_event_sequencing_lag_seconds",
    "The age of the oldest event without a position; 0 where there is none.",
    multiprocess_mode="livemax",
)
EVENTS_UNSEQUENCED = Gauge("plankeeper_events_unsequenced", "Events without a position.", multiprocess_mode="livemax")
WEBHOOK_ATTEMPTS = Counter("plankeeper_webhook_attempts", "Attempts to send a webhook.", ["outcome"])


class InFlightCounter(Protocol):
    """Whatever knows how many requests are being worked on."""

    in_flight: int


async def watch(db: Database, admission: InFlightCounter) -> None:
    """Until cancelled: look once a second."""
    while True:
        stats = db.stats
        POOL_OPEN.set(stats.open)
        POOL_IN_USE.set(stats.in_use)
        POOL_WAITERS.set(stats.waiting)
        REQUESTS_IN_FLIGHT.set(admission.in_flight)
        await asyncio.sleep(1)


async def watch_events(session: Executor) -> None:
    """How far the sequencer is behind."""
    backlog = await event_store.get_backlog(session)
    EVENTS_UNSEQUENCED.set(backlog.waiting)
    EVENT_LAG.set(backlog.oldest_age_seconds)


def registry() -> CollectorRegistry:
    """Of all worker processes where they share a folder (PROMETHEUS_MULTIPROC_DIR), else of this process."""
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        shared = CollectorRegistry()
        multiprocess.MultiProcessCollector(shared)
        return shared
    return REGISTRY


def forget_worker(pid: int | None) -> None:
    """Drop the gauges of a worker that is gone."""
    _multiprocess.mark_process_dead(pid)


def render() -> bytes:
    return generate_latest(registry())


CONTENT_TYPE = CONTENT_TYPE_LATEST
