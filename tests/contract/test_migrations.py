"""The way from an empty database to the expected schema: once, all of it, and by one program at a time."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import asyncpg
import pytest
from uuid_utils.compat import uuid7

from contract.sources import ROOT
from plankeeper.access.accounts import invitations, member_store
from plankeeper.access.accounts.schemas import Invitation
from plankeeper.access.api_keys import service as api_keys
from plankeeper.access.api_keys import store as api_keys_store
from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.cli.progress import migrate_with_progress
from plankeeper.core.context import SYSTEM, Actor, WriteContext
from plankeeper.core.settings import Settings
from plankeeper.database import schema
from plankeeper.database.client import Database
from plankeeper.events.recorder import record_event
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


PERSON_EMAIL, SYSTEM_EMAIL = "user@example.com", "system@example.com"


async def invite_as_person(ctx: WriteContext, person: UUID) -> None:
    """Store an invitation that a person created, with its event."""
    now = datetime.now(UTC)
    invitation = Invitation(uuid7(), PERSON_EMAIL, None, "viewer", "Robin", person, now, now)
    await member_store.upsert_invitation(ctx.tx, ctx.plan_manager_id, invitation, b"hash")
    await record_event(ctx, "account.invited", None, invitation)


async def test_existing_keys_and_invitations_get_their_creators_from_the_events(cluster: SharedCluster) -> None:
    """Migration 0012 on keys and invitations that a person, and the operator, created before."""
    from alembic.script import ScriptDirectory  # it takes half a second to load

    migration: Any = ScriptDirectory(str(MIGRATIONS)).get_revision("0012").module
    statements = [each for each in migration.STATEMENTS.split(";\n\n") if "\nupdate " in f"\n{each}"][:2]
    person, dsn = uuid7(), cluster.new_database()
    async with Database(dsn).open() as db:
        async with db.transaction() as tx:
            plan_manager = await plan_managers.insert(tx, uuid7(), "Test plan manager")
            assert plan_manager
            for actor in (Actor("user", str(person), "Robin"), SYSTEM):
                ctx = WriteContext(tx, plan_manager.id, Settings.read({}), actor)
                await api_keys.create(ctx, actor.kind, [plan_manager.id], ["read"], None)
                if actor is SYSTEM:
                    await invitations.invite(ctx, SYSTEM_EMAIL, "viewer")
                else:
                    await invite_as_person(ctx, person)
        await db.execute("update api_keys set created_by_account_id = null")
        await db.execute("update account_invitations set invited_by_account_id = null")
        for statement in statements:
            await db.execute(cast("Any", statement))
        keys = await api_keys_store.list_by_plan_manager(db, plan_manager.id)
        invited = await member_store.list_pending_invitations(db, plan_manager.id)
    cluster.drop(dsn)
    assert {each.name: each.created_by_account_id for each in keys} == {"user": person, "system": None}
    assert {each.email: each.invited_by_account_id for each in invited} == {
        PERSON_EMAIL: person,
        SYSTEM_EMAIL: None,
    }
