"""A plan manager of one's own and a key for it, in any database with the schema."""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import asyncpg
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import service
from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database


class Credentials(NamedTuple):
    """The headers that authenticate a client."""

    plan_manager_id: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", "X-Plan-Manager-Id": self.plan_manager_id}


def create_credentials(dsn: str, scopes: Sequence[str] = ("read", "write")) -> Credentials:
    return asyncio.run(_create_credentials(dsn, scopes))


async def _create_credentials(dsn: str, scopes: Sequence[str]) -> Credentials:
    async with Database(dsn).open() as db:
        async with db.transaction() as tx:
            plan_manager = await plan_managers.insert(tx, uuid7(), "Faults")
        assert plan_manager is not None
        # Not in one transaction: on Citus, rows of a key would wait for the plan manager's on another connection.
        async with db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager.id, Settings.read({}), SYSTEM)
            key = await service.create(ctx, "faults", [plan_manager.id], scopes, None)
        return Credentials(str(plan_manager.id), key)


def query(dsn: str, statement: str, *values: object) -> list[Any]:
    """The rows of a statement, on a connection of its own. Waits until PostgreSQL has recovered from a kill."""

    async def work() -> list[Any]:
        async with asyncio.timeout(60):
            while True:
                try:
                    connection: Any = await asyncpg.connect(dsn, timeout=10)
                    break
                except asyncpg.CannotConnectNowError:
                    await asyncio.sleep(0.1)
        try:
            return await connection.fetch(statement, *values)
        finally:
            await connection.close()

    return asyncio.run(work())
