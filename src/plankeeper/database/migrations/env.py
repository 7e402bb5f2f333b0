"""Alembic's entry point: runs the migrations in one transaction over asyncpg, one program at a time."""

import asyncio
from typing import Any

import asyncpg
from alembic import context
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

# Any fixed number: the holder of this advisory lock runs the migrations.
_LOCK = 7_526_541_001


def run(connection: Connection) -> None:
    connection.execute(text("select pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()


async def _connect() -> Any:
    connect: Any = asyncpg.connect  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    connection = await connect(context.config.attributes["dsn"], timeout=5)
    # Citus then changes all shards over one connection for each node, so that a statement sees the changes of the one
    # before. Elsewhere, the setting has no effect.
    await connection.execute("set citus.multi_shard_modify_mode to 'sequential'")
    return connection


async def main() -> None:
    engine = create_async_engine("postgresql+asyncpg://", async_creator=_connect, poolclass=NullPool)
    async with engine.begin() as connection:
        await connection.run_sync(run)
    await engine.dispose()


asyncio.run(main())
