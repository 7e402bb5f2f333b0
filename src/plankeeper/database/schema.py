"""The schema's version: the revision that the code expects, the revision of a database, and migrations."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
from msgspec import Struct

from plankeeper.database.client import Executor

_MIGRATIONS = Path(__file__).with_name("migrations")

# The revision that the code expects: the number of the last migration.
LATEST_REVISION = max(path.name for path in (_MIGRATIONS / "versions").glob("*.py"))[:4]

CURRENT_REVISION = "select version_num from alembic_version"
CURRENT_VERSION = """
    select version_num as revision, oldest_compatible from alembic_version cross join schema_compatibility
"""
# Of the index that a migration creates now.
INDEX_PROGRESS = """
    select format('%s, %s %%', phase, coalesce(100 * blocks_done / nullif(blocks_total, 0), 0))
    from pg_stat_progress_create_index where datname = current_database() limit 1
"""


class SchemaVersion(Struct, frozen=True):
    """A database's revision, and the oldest LATEST_REVISION of a server that works with it."""

    revision: str
    oldest_compatible: str

    @property
    def is_compatible(self) -> bool:
        """Whether this program works with the schema: it is the expected one, or a newer one that declares so."""
        return self.revision >= LATEST_REVISION >= self.oldest_compatible

    @property
    def is_newer(self) -> bool:
        return self.revision > LATEST_REVISION


@dataclass
class MigrationProgress:
    """The current step of a migration. The migration changes it, and its caller shows it."""

    revisions: list[str] = field(default_factory=list[str])
    completed: int = 0
    step: str = ""

    def start(self, revisions: list[str]) -> None:
        self.revisions, self.completed, self.step = revisions, 0, ""

    def complete_revision(self) -> None:
        self.completed, self.step = self.completed + 1, ""

    def describe(self) -> str:
        revision = self.revisions[self.completed] if self.completed < len(self.revisions) else "Migrating the schema"
        return f"{revision}: {self.step}" if self.step else revision


class MigrationLockError(Exception):
    """Another transaction held a lock for too long. The migration can be run again."""


async def current_revision(db: Executor) -> str | None:
    """The latest migration applied to the database; null if there is none."""
    try:
        return await db.one_or_none(str, CURRENT_REVISION)
    except asyncpg.UndefinedTableError:
        return None


async def current_version(db: Executor) -> SchemaVersion | None:
    """The version of the database's schema; null if it has none."""
    try:
        return await db.one_or_none(SchemaVersion, CURRENT_VERSION)
    except asyncpg.UndefinedTableError:
        return None


def migrate(dsn: str, revision: str = "head") -> None:
    """Migrate a database to a revision, by default to the expected one. Concurrent calls wait for each other."""
    asyncio.run(upgrade(dsn, MigrationProgress(), revision))


async def upgrade(dsn: str, progress: MigrationProgress, revision: str = "head") -> None:
    """Like `migrate`, with progress. Raises MigrationLockError, and asyncpg's errors."""
    # Imported here so that a server with an up-to-date schema doesn't load Alembic and SQLAlchemy.
    from alembic import command
    from alembic.config import Config
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["progress"] = progress
    engine = create_async_engine("postgresql+asyncpg://", async_creator=lambda: _connect(dsn), poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            config.attributes["connection"] = connection.sync_connection
            await connection.run_sync(lambda _: command.upgrade(config, revision))
    except DBAPIError as error:
        # SQLAlchemy's error has asyncpg's as the cause of its cause.
        raise (error.orig.__cause__ if error.orig else None) or error from None


async def _connect(dsn: str) -> Any:
    connect: Any = asyncpg.connect  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return await connect(dsn, timeout=5, server_settings={"application_name": "plankeeper migrate"})


async def index_progress(db: Executor) -> str | None:
    """The progress of the index that a migration creates now; null if it creates none."""
    return await db.one_or_none(str, INDEX_PROGRESS)


async def server_version(db: Executor) -> str:
    """PostgreSQL's version as a number, such as 180006 for 18.6."""
    return await db.one(str, "show server_version_num")
