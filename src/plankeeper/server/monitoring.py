"""Measures the database for the metrics. One worker of each server does this, independently of the sequencer."""

import asyncio
import fcntl
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from plankeeper.access.api_keys import store as key_store
from plankeeper.access.api_keys.service import EXPIRY_WARNING_PERIOD
from plankeeper.core import metrics, server_folder
from plankeeper.core.context import current_request_id
from plankeeper.core.metrics import SLOW_STATEMENTS
from plankeeper.database import schema
from plankeeper.database.client import Database
from plankeeper.database.connections import OnStatement, statement_name
from plankeeper.database.errors import is_unavailable
from plankeeper.database.pool import PoolExhaustedError
from plankeeper.events.backlog import BacklogMonitor
from plankeeper.resources.invoices import rechecks
from plankeeper.webhooks import delivery_queue

log = logging.getLogger("plankeeper")

INTERVAL = 5.0  # seconds between two measurements
# Seconds after which the database counts as unreachable. Waiting for a connection of a busy pool fails earlier.
RESPONSE_TIMEOUT = 8.0
REST_PER_MEASUREMENT = 20  # a measurement of the queue that takes longer is repeated less often


async def run(db: Database) -> None:
    """Measure periodically, or stand by to take over from another worker of this server, until cancelled."""
    async with _only_on_this_server(), asyncio.TaskGroup() as group:
        group.create_task(_watch_events(db))
        group.create_task(_watch_database(db))


async def _watch_events(db: Database) -> None:
    """Update the gauges of the events without a position once a second.

    Every server does this, so that the gauges also show that no sequencer is running anywhere.
    """
    monitor = BacklogMonitor()
    while True:
        started = time.monotonic()
        try:
            backlog = await monitor.measure(db)
            metrics.EVENTS_UNSEQUENCED.set(backlog.event_count)
            metrics.EVENT_LAG.set(backlog.lag_seconds)
        except Exception as error:
            if not is_unavailable(error):
                log.exception("cannot measure the queue of events")
        await asyncio.sleep(max(1.0, REST_PER_MEASUREMENT * (time.monotonic() - started)))


async def _watch_database(db: Database) -> None:
    while True:
        await measure(db)
        await asyncio.sleep(INTERVAL)


async def measure(db: Database) -> None:
    """Update the gauges once. If the database is unavailable, only `plankeeper_database_up` changes."""
    try:
        async with asyncio.timeout(RESPONSE_TIMEOUT):
            await schema.current_revision(db)
        metrics.DATABASE_UP.set(1)
        backlog = await delivery_queue.get_backlog(db)
        recheck_lag = await rechecks.queue_age(db)
        keys = await key_store.list_expiring(db, datetime.now(UTC) + EXPIRY_WARNING_PERIOD)
    except PoolExhaustedError:
        return  # this worker is busy; the database may be available
    except Exception as error:
        metrics.DATABASE_UP.set(0)
        if not is_unavailable(error):
            log.exception("cannot measure the database")
        return
    metrics.DELIVERIES_WAITING.set(backlog.waiting)
    metrics.DELIVERY_LAG.set(backlog.lag_seconds)
    metrics.DELIVERIES_FAILING.set(backlog.failing)
    metrics.ENDPOINTS_FAILING.set(backlog.failing_endpoints)
    metrics.RECHECK_LAG.set(recheck_lag)
    metrics.KEYS_EXPIRING.set(len(keys))


@asynccontextmanager
async def _only_on_this_server() -> AsyncGenerator[None]:
    """Wait until no other worker of this server measures. A worker without others needs no lock."""
    folder = server_folder.path()
    if folder is None:
        yield
        return
    with (folder / "monitoring.lock").open("w") as lock:
        while not _try_lock(lock.fileno()):  # noqa: ASYNC110 - only the system knows the holder of the lock
            await asyncio.sleep(INTERVAL)
        yield


def _try_lock(descriptor: int) -> bool:
    """Lock a file until this process closes it or dies. False if another process holds the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def log_slow_statements(threshold_ms: int | None) -> OnStatement | None:
    """An observer of connections that logs statements from a duration on; None if there is no threshold."""
    if threshold_ms is None:
        return None
    threshold = threshold_ms / 1000

    def report(statement: str, seconds: float, error: BaseException | None) -> None:
        if seconds >= threshold:
            SLOW_STATEMENTS.inc()
            fields = {
                "statement": statement_name(statement),
                "duration_ms": round(seconds * 1000, 1),
                "request_id": current_request_id(),
            }
            log.warning("slow statement", extra=fields, exc_info=error)

    return report
