"""The way from an empty database to the expected schema: once, all of it, and by one program at a time."""

import asyncio
import os
import subprocess
import sys
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
LOCK = 7_526_541_001  # of database/migrations/env.py


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


async def version(dsn: str) -> str | None:
    async with Database(dsn).open() as db:
        return await schema.current_revision(db)


def start_migration(dsn: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "plankeeper", "migrate"],
        env={**os.environ, "PLANKEEPER_DATABASE_URL": dsn},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


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
        schema_is_current = start_migration(empty_dsn)
        output, _ = schema_is_current.communicate(timeout=120)
        assert (schema_is_current.returncode, await schema_objects(empty_dsn)) == (0, made), output


async def test_of_two_concurrent_migrations_one_runs_and_the_other_waits(empty_dsn: str) -> None:
    connection: Any = await asyncpg.connect(empty_dsn)
    await connection.execute("select pg_advisory_lock($1)", LOCK)
    programs = [start_migration(empty_dsn), start_migration(empty_dsn)]
    # They ask for the lock again and again: a statement that waits would block `create index concurrently`.
    asking = """
        select pid from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and query like '%pg_try_advisory_lock%'
    """
    waiting = set[int]()
    while len(waiting) < 2:
        assert [program.poll() for program in programs] == [None, None]
        waiting |= {each["pid"] for each in await connection.fetch(asking)}
        await asyncio.sleep(0.02)
    assert await version(empty_dsn) is None
    await connection.execute("select pg_advisory_unlock($1)", LOCK)
    for program in programs:
        output, _ = program.communicate(timeout=120)
        assert program.returncode == 0, output
    assert await version(empty_dsn) == schema.LATEST_REVISION
    assert await connection.fetchval("select count(*) from permissions") == 6
    assert await connection.fetchval("select count(*) from alembic_version") == 1
    await connection.close()


async def test_a_migration_that_fails_leaves_nothing_behind(empty_dsn: str) -> None:
    connection: Any = await asyncpg.connect(empty_dsn)
    await connection.execute("create table events (in_the_way integer)")
    before = await schema_objects(empty_dsn)
    program = start_migration(empty_dsn)
    output, _ = program.communicate(timeout=120)
    assert program.returncode != 0, output
    assert await schema_objects(empty_dsn) == before
    await connection.close()
