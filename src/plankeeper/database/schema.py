"""The schema's version: the revision that the code expects, the revision of a database, and migrations."""

import asyncio
from pathlib import Path

import asyncpg

from plankeeper.database.client import Executor

LATEST_REVISION = "0017"

_MIGRATIONS = Path(__file__).with_name("migrations")

CURRENT_REVISION = "select version_num from alembic_version"


async def current_revision(db: Executor) -> str | None:
    """The latest migration applied to the database; null if there is none."""
    try:
        return await db.one_or_none(str, CURRENT_REVISION)
    except asyncpg.UndefinedTableError:
        return None


def migrate(dsn: str) -> None:
    """Migrate a database to the expected schema. Concurrent calls wait for each other."""
    # Imported here so that a server with an up-to-date schema doesn't load Alembic and SQLAlchemy.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["dsn"] = dsn
    command.upgrade(config, "head")


async def migrate_if_needed(db: Executor, dsn: str) -> bool:
    """Migrate if the schema isn't the expected one, and return whether it did."""
    if await current_revision(db) == LATEST_REVISION:
        return False
    await asyncio.to_thread(migrate, dsn)
    return True


async def server_version(db: Executor) -> str:
    """PostgreSQL's version as a number, such as 180006 for 18.6."""
    return await db.one(str, "show server_version_num")
