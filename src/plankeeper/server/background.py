"""Background tasks of workers: all sequence events, one runs the periodic tasks, one of each server measures."""

import asyncio
import logging
import multiprocessing
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from plankeeper.access.access_log import store as access_records
from plankeeper.access.accounts import password_reset
from plankeeper.access.accounts.sessions import SessionRetention
from plankeeper.access.api_keys import service
from plankeeper.access.request_log.buffer import RequestLogRetention
from plankeeper.core.settings import Settings
from plankeeper.database import stored_counts
from plankeeper.database.client import Database
from plankeeper.database.errors import is_unavailable
from plankeeper.events.retention import AgeRetention, EventRetention
from plankeeper.events.sequencer import Sequencer
from plankeeper.http.idempotency.store import purge as purge_idempotency_records
from plankeeper.http.rate_limits.store import purge as purge_rate_limits
from plankeeper.imports.file_store import ImportRetention
from plankeeper.imports.file_store import purge as purge_import_files
from plankeeper.mail.sender import purge as purge_mails
from plankeeper.privacy import financial_records
from plankeeper.resources.claims.service import resolve_flags
from plankeeper.resources.documents import service as documents
from plankeeper.resources.invoice_view_sessions import service as viewing
from plankeeper.resources.invoices.approval_reminders import ApprovalReminders
from plankeeper.resources.invoices.rechecks import RecheckWorker
from plankeeper.resources.participants import plans
from plankeeper.resources.statement_runs.worker import StatementRuns
from plankeeper.resources.trash import store as trash_store
from plankeeper.server import monitoring
from plankeeper.webhooks import attempts, delivery_queue
from plankeeper.webhooks.fan_out import FanOut

log = logging.getLogger("plankeeper")

PERIODIC_TASK_INTERVAL = 1.0  # seconds
ACCESS_RECORD_BATCH_SIZE, TRASH_BATCH_SIZE = 5000, 1000  # expired rows of one plan manager per second

PeriodicTask = Callable[[Database], Awaitable[object]]


def exit_with_parent() -> None:
    """Stop this process when its supervisor dies, so that the port is released."""
    parent, loop = multiprocessing.parent_process(), asyncio.get_running_loop()

    def stop(sentinel: int) -> None:
        loop.remove_reader(sentinel)  # it stays readable
        os.kill(os.getpid(), signal.SIGTERM)

    if parent is not None:
        loop.add_reader(parent.sentinel, stop, parent.sentinel)


def report_lost_connections_once() -> None:
    """Keep asyncio from reporting, as an error, a lost connection that another task has already reported."""

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Exception) and is_unavailable(error):
            log.warning("a connection to the database was lost", exc_info=error)
        else:
            loop.default_exception_handler(context)

    asyncio.get_running_loop().set_exception_handler(handle)


async def run_background_tasks(db: Database, settings: Settings) -> None:
    """Sequence events, create deliveries, and run the periodic tasks or stand by to take over, until cancelled."""
    fan_out = FanOut(db)
    sequencer = Sequencer(db, fan_out.notify)

    def with_settings(run: Callable[[Database, Settings], Awaitable[object]]) -> PeriodicTask:
        return lambda _db: run(db, settings)

    periodic_tasks = [
        fan_out.find_lagging,
        stored_counts.compact,
        purge_idempotency_records,
        purge_rate_limits,
        purge_mails,
        password_reset.purge,
        with_settings(service.record_expiry_warnings),
        with_settings(viewing.end_stale),
        with_settings(plans.switch_due),
        RecheckWorker(settings, resolve_flags),
        ApprovalReminders(settings),
        StatementRuns(settings),
        with_settings(documents.delete_due_objects),
        with_settings(financial_records.erase_due),
        *_purge_tasks(settings),
    ]
    async with asyncio.TaskGroup() as group:
        group.create_task(sequencer.run())
        group.create_task(fan_out.run())
        group.create_task(monitoring.run(db))
        group.create_task(run_periodic_tasks(db, sequencer, periodic_tasks))


async def run_periodic_tasks(db: Database, sequencer: Sequencer, tasks: Sequence[PeriodicTask]) -> None:
    """Run the tasks every second while this process is the leader of all servers' processes, until cancelled."""
    while True:
        await asyncio.sleep(PERIODIC_TASK_INTERVAL)
        for task in tasks:
            if sequencer.is_leader:
                await _run_periodic_task(db, task)


async def _run_periodic_task(db: Database, task: PeriodicTask) -> None:
    """Log errors, so that other tasks continue: on Citus, queries of all nodes fail while one is unavailable."""
    try:
        await task(db)
    except Exception as error:
        if not is_unavailable(error):
            log.exception("a periodic task failed")


def _purge_tasks(settings: Settings) -> list[PeriodicTask]:
    # A retention of 0 days deletes the requests that were logged before the log was disabled.
    hours = settings.import_file_retention
    purges: list[PeriodicTask] = [
        RequestLogRetention(settings.request_log_retention or 0),
        lambda db: purge_import_files(db, hours),
        attempts.purge,
        ImportRetention(hours, settings.rejected_row_retention, settings.import_record_retention),
    ]
    if settings.event_retention:
        purges.append(EventRetention(settings.event_retention))
    if settings.delivery_retention:
        days = settings.delivery_retention
        purges.append(lambda session: delivery_queue.purge(session, days))
    if settings.access_record_retention:
        purges.append(AgeRetention(settings.access_record_retention, access_records.purge, ACCESS_RECORD_BATCH_SIZE))
    if settings.trash_retention:
        purges.append(AgeRetention(settings.trash_retention, trash_store.purge, TRASH_BATCH_SIZE))
    if settings.session_retention:
        purges.append(SessionRetention(settings.session_retention))
    return purges
