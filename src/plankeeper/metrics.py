"""Metrics for Prometheus: counters and gauges of all workers of this server."""

import asyncio
import logging
import os
import time
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
from prometheus_client.registry import Collector

from plankeeper.database.client import Database, is_unavailable
from plankeeper.events.backlog import BacklogMonitor
from plankeeper.http.instrumentation import DurationHistogramCollector

log = logging.getLogger("plankeeper")

_multiprocess: Any = multiprocess  # the library does not annotate it

REST_PER_MEASUREMENT = 20  # a measurement that takes longer is repeated less often

POOL_OPEN = Gauge("plankeeper_db_pool_connections", "Open database connections.", multiprocess_mode="livesum")
POOL_IN_USE = Gauge("plankeeper_db_pool_connections_in_use", "Connections in use.", multiprocess_mode="livesum")
POOL_WAITERS = Gauge("plankeeper_db_pool_waiters", "Requests waiting for a connection.", multiprocess_mode="livesum")
REQUESTS_IN_FLIGHT = Gauge(
    "plankeeper_http_requests_in_flight", "Requests being processed.", multiprocess_mode="livesum"
)
EVENT_LAG = Gauge(
    "plankeeper_event_sequencing_lag_seconds",
    "How long events have been waiting for a position without any progress; 0 if none are.",
    multiprocess_mode="livemax",
)
EVENTS_UNSEQUENCED = Gauge("plankeeper_events_unsequenced", "Events without a position.", multiprocess_mode="livemax")
MAIL_ATTEMPTS = Counter("plankeeper_mail_attempts", "Attempts to send a mail.", ["outcome"])
WEBHOOK_ATTEMPTS = Counter("plankeeper_webhook_attempts", "Attempts to send a webhook.", ["outcome"])


class InFlightCounter(Protocol):
    """Has the number of requests being processed."""

    in_flight: int


async def watch(db: Database, admission: InFlightCounter) -> None:
    """Update the gauges once a second, until cancelled."""
    while True:
        stats = db.stats
        POOL_OPEN.set(stats.open)
        POOL_IN_USE.set(stats.in_use)
        POOL_WAITERS.set(stats.waiting)
        REQUESTS_IN_FLIGHT.set(admission.in_flight)
        await asyncio.sleep(1)


async def watch_events(db: Database) -> None:
    """Update the gauges of the events without a position once a second, until cancelled.

    Every server does this, so that the gauges also show that no sequencer is running anywhere.
    """
    monitor = BacklogMonitor()
    while True:
        started = time.monotonic()
        try:
            backlog = await monitor.measure(db)
            EVENTS_UNSEQUENCED.set(backlog.event_count)
            EVENT_LAG.set(backlog.lag_seconds)
        except Exception as error:
            if not is_unavailable(error):
                log.exception("cannot measure the queue of events")
        await asyncio.sleep(max(1.0, REST_PER_MEASUREMENT * (time.monotonic() - started)))


def registry() -> CollectorRegistry:
    """The metrics of all workers if they share a directory (PROMETHEUS_MULTIPROC_DIR), otherwise of this process."""
    source: Collector = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        source = _multiprocess.MultiProcessCollector(None)
    exposed = CollectorRegistry()
    exposed.register(DurationHistogramCollector(source))
    return exposed


def forget_worker(pid: int | None) -> None:
    """Drop the gauges of a worker that has exited."""
    _multiprocess.mark_process_dead(pid)


def render() -> bytes:
    return generate_latest(registry())


CONTENT_TYPE = CONTENT_TYPE_LATEST
