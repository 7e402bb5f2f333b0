"""Background tasks of API and webhook workers: one of them is the event sequencer and runs the periodic tasks."""

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from plankeeper import metrics
from plankeeper.accounts import store as account_store
from plankeeper.accounts.policy import SESSION_RETENTION
from plankeeper.api_keys import service
from plankeeper.database.client import Database, Executor
from plankeeper.events import sequencer
from plankeeper.events import store as event_store
from plankeeper.http.parsing import uuid7_lower_bound
from plankeeper.idempotency.store import purge as purge_idempotency_records
from plankeeper.import_files.store import purge as purge_import_files
from plankeeper.invoice_view_sessions import service as viewing
from plankeeper.mail.sender import purge as purge_mails
from plankeeper.participants.store import compact_counts
from plankeeper.rate_limits.store import purge as purge_rate_limits
from plankeeper.request_log.retention import RequestLogRetention
from plankeeper.settings import Settings
from plankeeper.webhooks import delivery_queue
from plankeeper.webhooks.fan_out import FanOut


def exit_with_parent() -> None:
    """Stop this process when its supervisor dies, so that it does not keep the port."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        asyncio.get_running_loop().add_reader(parent.sentinel, os.kill, os.getpid(), signal.SIGTERM)


async def run_background_tasks(db: Database, settings: Settings) -> None:
    """Run the event sequencer and its periodic tasks, or stand by to take over, until cancelled."""

    async def warn_of_expiry(_db: object) -> None:
        await service.record_expiry_warnings(db, settings)

    async def end_views(_db: object) -> None:
        await viewing.end_stale(db, settings)

    periodic_tasks = [
        compact_counts,
        purge_idempotency_records,
        purge_rate_limits,
        purge_import_files,
        purge_mails,
        warn_of_expiry,
        end_views,
        EveryMinute(purge_ended_sessions),
        metrics.watch_events,
        *_purge_tasks(settings),
    ]
    await sequencer.run(db, periodic_tasks, FanOut())


async def purge_ended_sessions(db: Executor) -> None:
    """Delete sessions that ended long ago. Signing in deletes only those of the same account."""
    await account_store.purge_sessions(db, datetime.now(UTC) - SESSION_RETENTION)


class EveryMinute:
    """A periodic task that needs no index for its statement, because it runs once a minute instead of every second."""

    def __init__(self, task: Callable[[Executor], Awaitable[object]]) -> None:
        self._task = task
        self._next_run = 0.0

    async def __call__(self, db: Executor) -> None:
        now = time.monotonic()
        if now >= self._next_run:
            self._next_run = now + 60
            await self._task(db)


def _purge_tasks(settings: Settings) -> list[Callable[[Executor], Awaitable[object]]]:
    # A retention of 0 days deletes the requests that were logged before the log was disabled.
    purges: list[Callable[[Executor], Awaitable[object]]] = [RequestLogRetention(settings.request_log_retention or 0)]
    if settings.event_retention:
        retention = timedelta(days=settings.event_retention)
        purges.append(lambda session: event_store.purge(session, uuid7_lower_bound(datetime.now(UTC) - retention)))
    if settings.delivery_retention:
        days = settings.delivery_retention
        purges.append(lambda session: delivery_queue.purge(session, days))
    return purges
