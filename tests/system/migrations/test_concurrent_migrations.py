"""Programs that migrate one database at the same time."""

import asyncio
import os
import subprocess
import sys
from typing import Any

import asyncpg

from plankeeper.database import schema
from plankeeper.database.client import Database
from support.cluster import SharedCluster

LOCK = 7_526_541_001  # of database/migrations/env.py


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


async def test_of_two_concurrent_migrations_one_runs_and_the_other_waits(cluster: SharedCluster) -> None:
    empty_dsn = cluster.new_database(migrated=False)
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
    cluster.drop(empty_dsn)
