"""Migrations in steps: they can be repeated, and don't block anyone for long."""

import asyncio
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from plankeeper.database import schema
from plankeeper.database.client import Database
from plankeeper.database.migrations import steps
from support import next_release
from support.cluster import SharedCluster, as_owner, execute
from support.database_dumps import dump
from support.server import RunningServer, readiness

VERSIONS = Path(schema.__file__).parent / "migrations" / "versions"
# The first schema, in plain SQL. Servers can serve while a later revision is applied.
FIRST = "0001"
PLAN_MANAGERS = [UUID(int=1), UUID(int=2)]
ROWS = 5  # participants of each plan manager


class InterruptedMigrationError(Exception):
    """The migration ends here."""


@pytest.fixture
def dsn(cluster: SharedCluster) -> Iterator[str]:
    """A database with a few participants."""
    dsn = as_owner(cluster.new_database())
    for each in PLAN_MANAGERS:
        add_participants(dsn, each)
    yield dsn
    cluster.drop(dsn)


def add_participants(dsn: str, plan_manager: UUID) -> None:
    execute(
        dsn,
        f"insert into plan_managers (id, name) values ('{plan_manager}', 'Test')",
        f"""
        insert into participants (plan_manager_id, id, state, status, approval_required, created_at, is_pace_plan,
            postal_statement, participant_receives_statements)
        select '{plan_manager}', gen_random_uuid(), case when number > 2 then 'NSW' end, 'Active', false, now(), false,
            false, false
        from generate_series(1, {ROWS}) number
        """,
    )


async def fetch(dsn: str, query: str) -> list[tuple[Any, ...]]:
    connection: Any = await asyncpg.connect(dsn)
    try:
        return [tuple(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()


async def wait_until_locked(migration: "asyncio.Task[None]", progress: schema.MigrationProgress) -> None:
    """Wait until a migration waits for a lock."""
    while "waiting for a lock" not in progress.describe():
        assert not migration.done(), migration
        await asyncio.sleep(0.01)


@pytest.fixture
def use_migration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Makes a revision the latest one: `use_migration(next_release.MIGRATION)`."""

    def use(code: str) -> None:
        monkeypatch.setattr(schema, "_MIGRATIONS", next_release.copy_migrations(tmp_path, code))
        monkeypatch.setattr(steps, "FIRST_PAUSE", 0.01)

    return use


async def upgrade(dsn: str) -> None:
    await schema.upgrade(dsn, schema.MigrationProgress())


def later_revisions() -> list[Path]:
    return sorted(path for path in VERSIONS.glob("*.py") if path.name[:4] > FIRST)


def before(revision: str, cluster: SharedCluster) -> str:
    """A new database with the revision before a revision."""
    if revision == next_release.REVISION:
        dsn = as_owner(cluster.new_database())
    else:
        dsn = cluster.new_database(migrated=False)
        [path] = VERSIONS.glob(f"{revision}_*.py")
        match = re.search(r'^down_revision = "(\d+)"', path.read_text(), re.MULTILINE)
        assert match
        schema.migrate(dsn, match[1])
    add_participants(dsn, PLAN_MANAGERS[0])
    return dsn


def interrupt_after(patch: pytest.MonkeyPatch, count: int) -> None:
    """Let a migration end after some of its steps."""
    completed, run_step = itertools.count(1), steps._retry  # noqa: SLF001 - each step calls it

    def run(attempt: Callable[[], Any]) -> Any:
        result = run_step(attempt)
        if next(completed) == count:
            raise InterruptedMigrationError
        return result

    patch.setattr(steps, "_retry", run)


@pytest.mark.parametrize("revision", [*(path.name[:4] for path in later_revisions()), next_release.REVISION])
def test_a_migration_that_was_interrupted_after_any_step_can_be_repeated(
    cluster: SharedCluster, use_migration: Callable[[str], None], revision: str
) -> None:
    if revision == next_release.REVISION:
        use_migration(next_release.MIGRATION)
    found: list[str] = []
    was_interrupted = True
    while was_interrupted:
        dsn = before(revision, cluster)
        with pytest.MonkeyPatch.context() as patch:
            interrupt_after(patch, len(found) + 1)
            try:
                schema.migrate(dsn, revision)
                was_interrupted = False
            except InterruptedMigrationError:
                pass
        if was_interrupted:
            schema.migrate(dsn, revision)
        found.append(dump(dsn, "--schema-only"))
        cluster.drop(dsn)
    assert len(found) > 1
    assert set(found) == {found[-1]}


async def test_a_migration_changes_the_rows_of_all_plan_managers(
    dsn: str, use_migration: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_migration(next_release.MIGRATION)
    monkeypatch.setattr(steps, "BATCH_SIZE", 2)
    await upgrade(dsn)
    assert await fetch(dsn, "select distinct region, coalesce(state, 'unknown') from participants order by 1") == [
        ("NSW", "NSW"),
        ("unknown", "unknown"),
    ]
    assert await fetch(dsn, "select convalidated from pg_constraint where conname = 'participants_region_check'") == [
        (True,)
    ]


async def test_an_index_that_was_interrupted_is_created_again(dsn: str, use_migration: Callable[[str], None]) -> None:
    use_migration(next_release.MIGRATION)
    with pytest.raises(asyncpg.UniqueViolationError):
        execute(dsn, "create unique index concurrently participants_by_region on participants (status)")
    index = "select indisvalid, pg_get_indexdef(indexrelid) like '%region, id)' from pg_index where indexrelid ="
    assert await fetch(dsn, f"{index} 'participants_by_region'::regclass") == [(False, False)]
    await upgrade(dsn)
    assert await fetch(dsn, f"{index} 'participants_by_region'::regclass") == [(True, True)]


async def test_a_migration_waits_for_a_lock_without_blocking_others(
    dsn: str, use_migration: Callable[[str], None]
) -> None:
    use_migration(next_release.MIGRATION)
    holder: Any = await asyncpg.connect(dsn)
    progress = schema.MigrationProgress()
    async with holder.transaction():
        await holder.execute("lock table participants in access share mode")  # as pg_dump does
        migration = asyncio.create_task(schema.upgrade(dsn, progress))
        await wait_until_locked(migration, progress)
        # Without a limit of its wait, this would wait behind it until the end of the transaction.
        await fetch(dsn, "update participants set status = 'Lead' returning id")
        assert not migration.done()
    await migration
    await holder.close()
    async with Database(dsn).open() as db:
        assert await schema.current_revision(db) == next_release.REVISION


PLAIN_SQL = f'''
"""Two tables with a remark, without steps."""

from alembic import op

revision = "{next_release.REVISION}"
down_revision = "{schema.LATEST_REVISION}"


def upgrade() -> None:
    op.execute("alter table providers add column remark text")
    op.execute("alter table participants add column remark text")
'''


async def test_a_revision_in_plain_sql_is_repeated_as_a_whole_while_it_lacks_a_lock(
    dsn: str, use_migration: Callable[[str], None]
) -> None:
    use_migration(PLAIN_SQL)
    progress, before = schema.MigrationProgress(), dump(dsn)
    holder: Any = await asyncpg.connect(dsn)
    async with holder.transaction():
        await holder.execute("lock table participants in access share mode")
        migration = asyncio.create_task(schema.upgrade(dsn, progress))
        await wait_until_locked(migration, progress)
        assert await asyncio.to_thread(dump, dsn) == before
    await migration
    await holder.close()
    async with Database(dsn).open() as db:
        assert await schema.current_revision(db) == next_release.REVISION


async def test_a_cancelled_migration_ends_while_it_waits_for_a_lock(
    dsn: str, use_migration: Callable[[str], None]
) -> None:
    use_migration(next_release.MIGRATION)
    holder: Any = await asyncpg.connect(dsn)
    progress = schema.MigrationProgress()
    async with holder.transaction():
        await holder.execute("lock table participants in access share mode")
        migration = asyncio.create_task(schema.upgrade(dsn, progress))
        await wait_until_locked(migration, progress)
        migration.cancel()
        with pytest.raises(asyncio.CancelledError):
            await migration
    await holder.close()
    await upgrade(dsn)  # the advisory lock is free


REQUIRING = f'''
"""The state of a participant, contracted."""

from plankeeper.database.migrations import steps

revision = "{next_release.REVISION}"
down_revision = "{schema.LATEST_REVISION}"


def upgrade() -> None:
    steps.require_servers("{next_release.REVISION}")
    steps.execute("drop table if exists rate_limits")
'''


@pytest.mark.parametrize("code,status", [(next_release.MIGRATION, 200), (REQUIRING, 503)])
def test_a_server_is_ready_on_a_newer_schema_unless_that_requires_newer_servers(
    dsn: str, use_migration: Callable[[str], None], code: str, status: int
) -> None:
    use_migration(code)
    server = RunningServer(dsn).start()
    try:
        assert readiness(server.url).status_code == 200
        schema.migrate(dsn)
        ready = readiness(server.url)
    finally:
        server.stop()
    assert ready.status_code == status
    if status == 503:
        expected = f"The database has schema {next_release.REVISION}, and this server requires {schema.LATEST_REVISION}"
        assert expected in ready.json()["detail"]
