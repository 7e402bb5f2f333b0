"""What goes on beside requests, in every server and every worker: one of them all is the sequencer, with its chores."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from plankeeper import metrics
from plankeeper.api_keys import service
from plankeeper.database.client import Database, Executor
from plankeeper.events import sequencer
from plankeeper.events import store as event_store
from plankeeper.http.parsing import uuid7_lower_bound
from plankeeper.idempotency.store import purge as purge_idempotency_records
from plankeeper.import_files.store import purge as purge_import_files
from plankeeper.invoice_view_sessions import service as viewing
from plankeeper.participants.totals import compact_counts
from plankeeper.rate_limits.store import purge as purge_rate_limits
from plankeeper.request_log.retention import RequestLogRetention
from plankeeper.settings import Settings
from plankeeper.webhooks import delivery_queue
from plankeeper.webhooks.fan_out import FanOut


def exit_with_parent() -> None:
    """A process whose supervisor was killed must not go on, and hold the port."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        asyncio.get_running_loop().add_reader(parent.sentinel, os.kill, os.getpid(), signal.SIGTERM)


async def run_background_tasks(db: Database, settings: Settings) -> None:
    """Until cancelled: be the sequencer, or stand by to become it."""

    async def warn_of_expiry(_session: object) -> None:
        await service.record_expiry_warnings(db, settings)

    async def end_views(_session: object) -> None:
        await viewing.end_stale(db, settings)

    periodic_tasks = [
        compact_counts,
        purge_idempotency_records,
        purge_rate_limits,
        purge_import_files,
        warn_of_expiry,
        end_views,
        metrics.watch_events,
        *_purge_tasks(settings),
    ]
    await sequencer.run(db, periodic_tasks, FanOut())


def _purge_tasks(settings: Settings) -> list[Callable[[Executor], Awaitable[object]]]:
    # Where no requests are kept, those go that were.
    purges: list[Callable[[Executor], Awaitable[object]]] = [RequestLogRetention(settings.request_log_retention or 0)]
    if settings.event_retention:
        retention = timedelta(days=settings.event_retention)
        purges.append(lambda session: event_store.purge(session, uuid7_lower_bound(datetime.now(UTC) - retention)))
    if settings.delivery_retention:
        days = settings.delivery_retention
        purges.append(lambda session: delivery_queue.purge(session, days))
    return purges
