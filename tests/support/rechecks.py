"""Checks of queued invoices: at once, because a server leaves out the newest rows for a while, or by a server."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.resources.claims.service import resolve_flags
from plankeeper.resources.invoices import recheck_store
from plankeeper.resources.invoices.rechecks import RecheckWorker
from support.server import RunningServer

MAX_ID = UUID(int=2**128 - 1)


class PromptWorker(RecheckWorker):
    """A worker that finds also the newest rows, and that works while `stop_server_rechecks` stops the servers' own."""

    _check_plan_manager = RecheckWorker._check_plan_manager  # noqa: SLF001

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, resolve_flags, timedelta(seconds=-1), pause=0)


def stop_server_rechecks(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, the servers of this process check no invoice, not even in a turn that is under way."""

    async def do_nothing(*_: object) -> bool:
        return False

    monkeypatch.setattr(RecheckWorker, "_check_plan_manager", do_nothing)


async def recheck(db: Database, settings: Settings) -> None:
    """Check all that is queued. One turn, also one of a server, can leave some of it."""
    worker = PromptWorker(settings)
    while await recheck_store.list_plan_managers(db, MAX_ID):
        await worker(db)


def recheck_at_once(server: RunningServer) -> None:
    server.run(recheck(server.db, server.settings))


def wait_for_rechecks(dsn: str) -> None:
    """Wait until a server that uses the database has checked all that is queued."""

    async def wait() -> None:
        async with Database(dsn).open() as db:
            while await recheck_store.list_plan_managers(db, MAX_ID):
                await asyncio.sleep(0.2)

    asyncio.run(asyncio.wait_for(wait(), 120))
