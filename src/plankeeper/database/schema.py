"""The schema's version: what the code expects, what a database has, and the way from one to the other."""

import asyncio
from pathlib import Path

import asyncpg

from plankeeper.database.client import Executor

LATEST_REVISION = "0011"

_MIGRATIONS = Path(__file__).with_name("migrations")


CURRENT_REVISION = "select version_num from alembic_version"


async def current_revision(db: Executor) -> str | None:
    """The newest migration that the database has had; null where it has had none."""
    try:
        return await db.one_or_none(str, CURRENT_REVISION)
    except asyncpg.UndefinedTableError:
        return None


def migrate(dsn: str) -> None:
    """Bring a database to the expected schema. Two at once wait for each other: the second finds it done."""
    # Alembic and SQLAlchemy are loaded here alone: a server that is up to date does without them.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["dsn"] = dsn
    command.upgrade(config, "head")


async def migrate_if_needed(db: Executor, dsn: str) -> bool:
    """Migrate unless the schema is the expected one. True where something was done."""
    if await current_revision(db) == LATEST_REVISION:
        return False
    await asyncio.to_thread(migrate, dsn)
    return True


async def server_version(db: Executor) -> str:
    """PostgreSQL's version as a number: 180006 is 18.6."""
    return await db.one(str, "show server_version_num")
