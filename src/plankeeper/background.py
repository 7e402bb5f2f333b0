"""What goes on beside requests, in every server and every worker: one of them all is the sequencer, with its chores."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from plankeeper import metrics
from plankeeper.api_keys import making
from plankeeper.database.pool import Database, Queries
from plankeeper.events import sequencer
from plankeeper.events import store as events
from plankeeper.idempotency.store import purge as forget_replays
from plankeeper.participants.totals import fold_totals
from plankeeper.rate_limits.store import purge as forget_quotas
from plankeeper.settings import Settings
from plankeeper.webhooks import queue
from plankeeper.webhooks.fanning import FanOut
from plankeeper.webhooks.rules import first_id_at


def stop_with_parent() -> None:
    """A process whose supervisor was killed must not go on, and hold the port."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        asyncio.get_running_loop().add_reader(parent.sentinel, os.kill, os.getpid(), signal.SIGTERM)


async def sequence(db: Database, settings: Settings) -> None:
    """Until cancelled: be the sequencer, or stand by to become it."""

    async def warn_of_expiry(_session: object) -> None:
        await making.warn(db, settings)

    chores = [fold_totals, forget_replays, forget_quotas, warn_of_expiry, metrics.watch_events, *_purges(settings)]
    await sequencer.run(db, chores, FanOut())


def _purges(settings: Settings) -> list[Callable[[Queries], Awaitable[object]]]:
    purges: list[Callable[[Queries], Awaitable[object]]] = []
    if settings.event_retention:
        kept = timedelta(days=settings.event_retention)
        purges.append(lambda session: events.purge(session, first_id_at(datetime.now(UTC) - kept)))
    if settings.delivery_retention:
        days = settings.delivery_retention
        purges.append(lambda session: queue.purge(session, days))
    return purges
