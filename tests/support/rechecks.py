"""Checks of queued invoices: at once, because a server leaves out the newest rows for a while, or by a server."""

import asyncio
from datetime import timedelta
from uuid import UUID

from plankeeper.database.client import Database
from plankeeper.resources.claims.service import resolve_flags
from plankeeper.resources.invoices import recheck_store
from plankeeper.resources.invoices.rechecks import RecheckWorker
from support.server import RunningServer, wait_until

MAX_ID = UUID(int=2**128 - 1)


class PromptWorker(RecheckWorker):
    """A worker that finds also the newest rows, while a test replaces the call of the server's own."""

    __call__ = RecheckWorker.__call__

    def __init__(self, server: RunningServer) -> None:
        super().__init__(server.settings, resolve_flags, timedelta(seconds=-1), pause=0)


def recheck_at_once(server: RunningServer) -> None:
    """Check all that is queued: one of the server's turns can hold some of it."""

    async def check() -> bool:
        await PromptWorker(server)(server.db)
        return not await recheck_store.list_plan_managers(server.db, MAX_ID)

    wait_until(lambda: server.run(check()))


def wait_for_rechecks(dsn: str) -> None:
    """Wait until a server that uses the database has checked all that is queued."""

    async def wait() -> None:
        async with Database(dsn).open() as db:
            while await recheck_store.list_plan_managers(db, MAX_ID):
                await asyncio.sleep(0.2)

    asyncio.run(asyncio.wait_for(wait(), 120))
