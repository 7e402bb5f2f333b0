"""A plan manager of one's own and a key for it, in any database with the schema."""

import asyncio
from typing import Any, NamedTuple

import asyncpg
from uuid_utils.compat import uuid7

from plankeeper.api_keys import service
from plankeeper.database.client import Database
from plankeeper.http.context import SYSTEM, WriteContext
from plankeeper.plan_managers import store as plan_managers
from plankeeper.settings import Settings


class Access(NamedTuple):
    """What a client sends to be let in."""

    plan_manager_id: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", "X-Plan-Manager-Id": self.plan_manager_id}


def new_access(dsn: str) -> Access:
    return asyncio.run(_make(dsn))


async def _make(dsn: str) -> Access:
    async with Database(dsn).open() as db, db.transaction() as tx:
        made = await plan_managers.insert(tx, uuid7(), "Faults")
        assert made is not None
        call = WriteContext(tx, made.id, Settings.read({}), SYSTEM)
        return Access(str(made.id), await service.create(call, "faults", [made.id], ("read", "write"), None))


def ask(dsn: str, statement: str, *values: object) -> list[Any]:
    """The rows of a statement, on a connection of its own."""

    async def work() -> list[Any]:
        connection: Any = await asyncpg.connect(dsn, timeout=10)
        try:
            return await connection.fetch(statement, *values)
        finally:
            await connection.close()

    return asyncio.run(work())
