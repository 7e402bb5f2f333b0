"""Puts committed events in order: one sequencer among all servers and workers, elected by an advisory lock."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from plankeeper.database.pool import Database, Queries, unavailable
from plankeeper.events import store

log = logging.getLogger("plankeeper")

PERIOD = 0.1  # seconds between two looks at the outbox
BATCH = 5000
CHORES_PERIOD = 1.0  # seconds


Chore = Callable[[Queries], Awaitable[object]]


async def run(db: Database, chores: Sequence[Chore] = ()) -> None:
    """Until cancelled: be the sequencer, or stand by to become it. The database may come and go.

    `chores` are what else one server of all must do every second.
    """
    while True:
        try:
            async with db.session() as session:
                await _serve(session, chores)
        except Exception as error:
            if not unavailable(error):
                log.exception("the sequencer failed, and starts again")
        await asyncio.sleep(1)


async def _serve(session: Queries, chores: Sequence[Chore]) -> None:
    while not await store.lead(session):  # noqa: ASYNC110 - it is PostgreSQL that knows
        await asyncio.sleep(0.5)
    done = time.monotonic()
    while True:
        if await store.sequence(session, BATCH) < BATCH:
            await asyncio.sleep(PERIOD)
        if time.monotonic() - done > CHORES_PERIOD:
            for chore in chores:
                await chore(session)
            done = time.monotonic()
