"""What goes on beside requests, in every server and every worker: one of them all is the sequencer, with its chores."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from plankeeper import metrics
from plankeeper.api_keys import service
from plankeeper.database.client import Database, Queries
from plankeeper.events import sequencer
from plankeeper.events import store as event_store
from plankeeper.http.parsing import first_id_at
from plankeeper.idempotency.store import purge as forget_replays
from plankeeper.import_files.store import purge as forget_files
from plankeeper.invoice_view_sessions import service as viewing
from plankeeper.participants.totals import compact_counts
from plankeeper.rate_limits.store import purge as forget_quotas
from plankeeper.request_log.retention import Trimming
from plankeeper.settings import Settings
from plankeeper.webhooks import delivery_queue
from plankeeper.webhooks.fan_out import FanOut


def stop_with_parent() -> None:
    """A process whose supervisor was killed must not go on, and hold the port."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        asyncio.get_running_loop().add_reader(parent.sentinel, os.kill, os.getpid(), signal.SIGTERM)


async def sequence(db: Database, settings: Settings) -> None:
    """Until cancelled: be the sequencer, or stand by to become it."""

    async def warn_of_expiry(_session: object) -> None:
        await service.record_expiry_warnings(db, settings)

    async def end_views(_session: object) -> None:
        await viewing.end_stale(db, settings)

    chores = [
        compact_counts, forget_replays, forget_quotas, forget_files, warn_of_expiry, end_views, metrics.watch_events,
        *_purges(settings),
    ]  # fmt: skip
    await sequencer.run(db, chores, FanOut())


def _purges(settings: Settings) -> list[Callable[[Queries], Awaitable[object]]]:
    # Where no requests are kept, those go that were.
    purges: list[Callable[[Queries], Awaitable[object]]] = [Trimming(settings.request_log_retention or 0)]
    if settings.event_retention:
        kept = timedelta(days=settings.event_retention)
        purges.append(lambda session: event_store.purge(session, first_id_at(datetime.now(UTC) - kept)))
    if settings.delivery_retention:
        days = settings.delivery_retention
        purges.append(lambda session: delivery_queue.purge(session, days))
    return purges
