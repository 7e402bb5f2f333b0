"""Puts committed events in order: one sequencer among all servers and workers, elected by an advisory lock."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol
from uuid import UUID

from plankeeper.database.client import Database, Queries, unavailable
from plankeeper.events import store

log = logging.getLogger("plankeeper")

PERIOD = 0.05  # seconds between two looks at the outbox
BATCH = 5000
CHORES_PERIOD = 1.0  # seconds


Chore = Callable[[Queries], Awaitable[object]]


class Follower(Protocol):
    """What is done with events as soon as they have their places, by the sequencer itself."""

    async def begin(self, session: Queries) -> None:
        """The sequencer is a new one."""

    async def follow(self, session: Queries, plan_manager_ids: Iterable[UUID]) -> bool:
        """These have new events: whether something was done, and more may be left."""
        ...


async def run(db: Database, chores: Sequence[Chore] = (), follower: Follower | None = None) -> None:
    """Until cancelled: be the sequencer, or stand by to become it. The database may come and go.

    `chores` are what else one server of all must do every second.
    """
    while True:
        try:
            async with db.session() as session:
                await _serve(session, chores, follower)
        except Exception as error:
            if not unavailable(error):
                log.exception("the sequencer failed, and starts again")
        await asyncio.sleep(1)


async def _serve(session: Queries, chores: Sequence[Chore], follower: Follower | None) -> None:
    while not await store.lead(session):  # noqa: ASYNC110 - it is PostgreSQL that knows
        await asyncio.sleep(0.5)
    done = time.monotonic()
    if follower:
        await follower.begin(session)
    while True:
        placed = await store.sequence(session, BATCH)
        more = follower and await follower.follow(session, [each.plan_manager_id for each in placed])
        if sum(each.events for each in placed) < BATCH and not more:
            await asyncio.sleep(PERIOD)
        if time.monotonic() - done > CHORES_PERIOD:
            for chore in chores:
                await chore(session)
            done = time.monotonic()
