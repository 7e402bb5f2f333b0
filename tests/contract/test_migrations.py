"""The way from an empty database to the expected schema: once, and all of it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from contract.sources import ROOT
from plankeeper.cli.progress import migrate_with_progress
from plankeeper.database import schema
from plankeeper.database.client import Database
from support.cluster import SharedCluster

MIGRATIONS = ROOT / "database" / "migrations"


@pytest.fixture
async def empty_dsn(cluster: SharedCluster) -> AsyncIterator[str]:
    """The address of a database that has nothing yet."""
    dsn = cluster.new_database(migrated=False)
    yield dsn
    cluster.drop(dsn)


async def schema_objects(dsn: str) -> list[Any]:
    """Every table, index, sequence and constraint, with the transaction that last wrote its entry."""
    connection: Any = await asyncpg.connect(dsn)
    try:
        return await connection.fetch(
            """
            select relname::text, oid::bigint, xmin::text from pg_class where relnamespace = 'public'::regnamespace
            union all
            select conname::text, oid::bigint, xmin::text from pg_constraint
            where connamespace = 'public'::regnamespace order by 1, 2
            """
        )
    finally:
        await connection.close()


def test_the_code_expects_the_newest_migration() -> None:
    from alembic.config import Config  # it takes half a second to load
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [schema.LATEST_REVISION]
    revisions = {each.revision for each in scripts.walk_revisions()}
    assert revisions == {Path(path).name.split("_", maxsplit=1)[0] for path in (MIGRATIONS / "versions").glob("*.py")}


async def test_an_empty_database_is_migrated_once_and_then_unchanged(empty_dsn: str) -> None:
    async with Database(empty_dsn).open() as db:
        assert await schema.current_revision(db) is None
        assert await migrate_with_progress(db, empty_dsn) is True
        assert await schema.current_revision(db) == schema.LATEST_REVISION
        made = await schema_objects(empty_dsn)
        assert len(made) > 50
        assert await migrate_with_progress(db, empty_dsn) is False
        assert await schema_objects(empty_dsn) == made


async def test_a_migration_that_fails_leaves_nothing_behind(empty_dsn: str) -> None:
    connection: Any = await asyncpg.connect(empty_dsn)
    await connection.execute("create table events (in_the_way integer)")
    before = await schema_objects(empty_dsn)
    with pytest.raises(asyncpg.DuplicateTableError):
        await schema.upgrade(empty_dsn, schema.MigrationProgress())
    assert await schema_objects(empty_dsn) == before
    await connection.close()
