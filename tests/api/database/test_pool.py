"""Statements, transactions, savepoints, snapshots and sessions on a real database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from decimal import Decimal
from typing import Any, LiteralString
from urllib.parse import urlsplit

import asyncpg
import pytest
from msgspec import Struct

from plankeeper.database.client import Database, Executor, Transaction
from plankeeper.database.errors import constraint_violation, is_unavailable
from support.cluster import SharedCluster, execute


class Thing(Struct):
    """A row of the table `things`."""

    id: int
    name: str | None


class RollbackError(Exception):
    pass


@pytest.fixture
async def db(cluster: SharedCluster) -> AsyncIterator[Database]:
    """One connection alone, so that whatever is left on it is met again; a table of its own."""
    async with Database(cluster.owner_dsn, pool_size=1).open() as opened:
        await opened.execute("create table things (id integer primary key, name text check (name <> ''))")
        yield opened
        await opened.execute("drop table things")


async def insert_things(run: Executor, *ids: int) -> None:
    for ident in ids:
        await run.execute("insert into things (id, name) values ($1, $2)", ident, f"thing {ident}")


async def thing_ids(run: Executor) -> list[int]:
    return await run.rows(int, "select id from things order by id")


async def insert_and_fail(db: Database, *ids: int) -> None:
    async with db.transaction() as tx:
        await insert_things(tx, *ids)
        raise RollbackError


async def wait_for_sleep(run: Executor) -> None:
    """A statement sleeps in the database: a cancellation that comes before it has begun is lost."""
    async with asyncio.timeout(60):
        while not await run.one(
            bool,
            """
            select exists (
                select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'
            )
            """,
        ):
            await asyncio.sleep(0.01)


async def test_rows_one_and_one_or_none(db: Database) -> None:
    await insert_things(db, 1, 2)
    everything = "select id, name from things order by id"
    assert await db.rows(Thing, everything) == [Thing(1, "thing 1"), Thing(2, "thing 2")]
    assert await db.one(Thing, everything) == Thing(1, "thing 1")
    assert await db.one(int, "select count(*) from things") == 2
    assert await db.one_or_none(Thing, "select id, name from things where id = $1", 2) == Thing(2, "thing 2")
    assert await db.one_or_none(Thing, "select id, name from things where id = $1", 3) is None
    with pytest.raises(LookupError):
        await db.one(Thing, "select id, name from things where id = $1", 3)


async def test_a_transaction_commits_on_exit(db: Database, cluster: SharedCluster) -> None:
    async with Database(cluster.owner_dsn).open() as beside:
        async with db.transaction() as tx:
            await insert_things(tx, 1)
            assert await thing_ids(beside) == []
        assert await thing_ids(beside) == [1]


async def test_a_transaction_is_rolled_back_by_an_exception(db: Database) -> None:
    with pytest.raises(RollbackError):
        await insert_and_fail(db, 1, 2)
    assert await thing_ids(db) == []


async def test_a_constraint_violation_rolls_back_and_names_the_constraint(db: Database) -> None:
    async def violate() -> None:
        async with db.transaction() as tx:
            await insert_things(tx, 1)
            await tx.execute("insert into things (id, name) values (2, '')")

    with pytest.raises(asyncpg.CheckViolationError) as raised:
        await violate()
    assert constraint_violation(raised.value).constraint == "things_name_check"
    assert await thing_ids(db) == []
    await insert_things(db, 1)
    with pytest.raises(asyncpg.UniqueViolationError) as raised_again:
        await insert_things(db, 1)
    assert constraint_violation(raised_again.value) == ("things_pkey", "Key (id)=(1) already exists.")


async def test_a_deferred_constraint_violation_is_raised_at_commit(db: Database) -> None:
    await db.execute("alter table things add constraint once unique (name) deferrable initially deferred")

    async def violate() -> None:
        async with db.transaction() as tx:
            await tx.execute("insert into things (id, name) values (1, 'same'), (2, 'same')")

    with pytest.raises(asyncpg.UniqueViolationError) as raised:
        await violate()
    assert constraint_violation(raised.value).constraint == "once"
    assert await thing_ids(db) == []


async def test_a_savepoint_rolls_back_and_the_transaction_continues(db: Database) -> None:
    async def roll_back(tx: Transaction) -> None:
        async with tx.savepoint():
            await insert_things(tx, 2)
            raise RollbackError

    async with db.transaction() as tx:
        await insert_things(tx, 1)
        with pytest.raises(RollbackError):
            await roll_back(tx)
        async with tx.savepoint():
            await insert_things(tx, 3)
        with pytest.raises(asyncpg.UniqueViolationError):
            async with tx.savepoint():
                await insert_things(tx, 1)
        await insert_things(tx, 4)
    assert await thing_ids(db) == [1, 3, 4]


async def test_a_snapshot_is_consistent_and_read_only(db: Database, cluster: SharedCluster) -> None:
    await insert_things(db, 1)
    async with Database(cluster.owner_dsn).open() as beside, db.transaction(snapshot=True) as tx:
        assert await thing_ids(tx) == [1]
        await insert_things(beside, 2)
        assert await thing_ids(beside) == [1, 2]
        assert await thing_ids(tx) == [1]
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            async with tx.savepoint():
                await insert_things(tx, 3)
    assert await thing_ids(db) == [1, 2]


async def test_a_plain_transaction_sees_commits_of_others(db: Database, cluster: SharedCluster) -> None:
    async with Database(cluster.owner_dsn).open() as beside, db.transaction() as tx:
        assert await thing_ids(tx) == []
        await insert_things(beside, 1)
        assert await thing_ids(tx) == [1]


async def test_rows_are_bulk_inserted_and_streamed(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.insert_rows("things", Thing, (Thing(number, None) for number in range(2500)))
        statement: LiteralString = "select id, name from things where id >= $1 order by id"
        batches = [each async for each in tx.stream(Thing, statement, 10)]
    assert [len(each) for each in batches] == [1000, 1000, 490]
    assert [thing for each in batches for thing in each] == [Thing(number, None) for number in range(10, 2500)]


async def test_a_stream_that_is_left_early_leaves_a_clean_connection(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.insert_rows("things", Thing, (Thing(number, None) for number in range(2500)))
        async with aclosing(tx.stream(Thing, "select id, name from things order by id")) as batches:
            first = await anext(batches)
        assert len(first) == 1000
        assert len(await thing_ids(tx)) == 2500


async def test_a_cancelled_transaction_is_rolled_back_and_leaves_a_clean_connection(
    db: Database, cluster: SharedCluster
) -> None:
    async def work() -> None:
        async with db.transaction() as tx:
            await insert_things(tx, 1)
            await tx.execute("select pg_sleep(60)")

    working = asyncio.create_task(work())
    async with Database(cluster.owner_dsn).open() as beside:
        await wait_for_sleep(beside)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert await thing_ids(db) == []
    async with db.transaction() as tx:
        await insert_things(tx, 2)
    assert await thing_ids(db) == [2]


async def test_a_waiting_request_gets_the_connection_of_a_cancelled_one(db: Database, cluster: SharedCluster) -> None:
    holding = asyncio.create_task(db.execute("select pg_sleep(60)"))
    waiting = asyncio.create_task(thing_ids(db))
    async with Database(cluster.owner_dsn).open() as beside:
        await wait_for_sleep(beside)
    assert not waiting.done()
    holding.cancel()
    assert await asyncio.wait_for(waiting, 10) == []
    with pytest.raises(asyncio.CancelledError):
        await holding


async def test_a_database_that_allows_no_connections_is_unavailable(cluster: SharedCluster, empty_dsn: str) -> None:
    name = urlsplit(empty_dsn).path.removeprefix("/")
    execute(cluster.dsn_of("postgres"), f"alter database {name} allow_connections false")
    with pytest.raises(asyncpg.CannotConnectNowError) as raised:
        async with Database(empty_dsn).open() as db:
            await db.one(int, "select 1")
    assert is_unavailable(raised.value)


async def test_a_slow_statement_is_cancelled_and_the_connection_stays_usable(cluster: SharedCluster) -> None:
    async with Database(cluster.owner_dsn, pool_size=1, statement_timeout=1).open() as db:
        pid = await db.one(int, "select pg_backend_pid()")
        with pytest.raises(asyncpg.QueryCanceledError) as raised:
            await db.execute("select pg_sleep(5)")
        assert is_unavailable(raised.value)
        async with db.transaction() as tx:
            assert await tx.one(int, "select pg_backend_pid()") == pid


async def test_a_connection_that_dies_is_replaced(db: Database, cluster: SharedCluster) -> None:
    pid = await db.one(int, "select pg_backend_pid()")
    async with Database(cluster.owner_dsn).open() as beside:
        await beside.execute("select pg_terminate_backend($1::int)", pid)

    async def is_served() -> bool:
        try:
            return await db.one(int, "select pg_backend_pid()") != pid
        except Exception as error:
            if not is_unavailable(error):
                raise
            return False

    async with asyncio.timeout(60):
        while not await is_served():
            await asyncio.sleep(0.01)


async def test_a_session_uses_a_dedicated_connection_that_is_closed_afterwards(db: Database) -> None:
    async with db.dedicated_connection() as session:
        pid = await session.one(int, "select pg_backend_pid()")
        assert await db.one(int, "select pg_backend_pid()") != pid
        assert await session.one(bool, "select pg_try_advisory_lock(1)") is True
        assert await db.one(bool, "select pg_try_advisory_lock(1)") is False
    async with asyncio.timeout(60):
        while await db.one(bool, "select exists (select from pg_stat_activity where pid = $1)", pid):
            await asyncio.sleep(0.01)
    assert await db.one(bool, "select pg_try_advisory_xact_lock(1)") is True


async def test_database_unavailability_is_distinguished_from_other_errors(db: Database) -> None:
    away: list[Exception] = [
        ConnectionRefusedError(), TimeoutError(), asyncpg.CannotConnectNowError(), asyncpg.TooManyConnectionsError(),
        asyncpg.AdminShutdownError(), asyncpg.ConnectionDoesNotExistError(), asyncpg.DeadlockDetectedError(),
    ]  # fmt: skip
    ours: list[Exception] = [ValueError(), KeyError(), asyncpg.UndefinedTableError(), asyncpg.UniqueViolationError()]
    assert [is_unavailable(each) for each in (*away, *ours)] == [True] * len(away) + [False] * len(ours)
    wrong: Any = "no number"
    with pytest.raises(asyncpg.DataError) as raised:
        await db.one_or_none(Thing, "select id, name from things where id = $1", wrong)
    assert not is_unavailable(raised.value)


async def test_decimals_and_timestamps_are_read_back_unchanged(db: Database) -> None:
    amount = Decimal("123456789012.1234567890")
    assert await db.one(Decimal, "select $1::numeric", amount) == amount
    assert await db.one(str, "show timezone") == "UTC"


PLAN_MODE: LiteralString = "select current_setting('plan_cache_mode')"


async def test_only_lists_are_planned_for_their_values(db: Database) -> None:
    for runner in (db, db):
        assert await runner.rows(str, PLAN_MODE, custom_plan=True) == ["force_custom_plan"]
        assert await runner.rows(str, PLAN_MODE) == ["force_generic_plan"]
    async with db.transaction() as tx:
        assert await tx.rows(str, PLAN_MODE, custom_plan=True) == ["force_custom_plan"]
        assert await tx.rows(str, PLAN_MODE) == ["force_generic_plan"]
    with pytest.raises(asyncpg.DivisionByZeroError):
        await db.rows(int, "select 1 / 0", custom_plan=True)
    async with db.transaction() as tx:
        with pytest.raises(asyncpg.DivisionByZeroError):
            async with tx.savepoint():
                await tx.rows(int, "select 1 / 0", custom_plan=True)
        assert await tx.rows(str, PLAN_MODE) == ["force_generic_plan"]
    assert await db.rows(str, PLAN_MODE) == ["force_generic_plan"]


async def test_lists_use_the_connection_that_plans_for_values_already(cluster: SharedCluster) -> None:
    statements: list[str] = []

    def observe(statement: str, _seconds: float, _error: BaseException | None) -> None:
        statements.append(statement)

    async with Database(cluster.dsn, pool_size=2, on_statement=observe).open() as db:
        await asyncio.gather(db.rows(str, PLAN_MODE), db.rows(str, PLAN_MODE))  # opens both
        for _ in range(3):
            await db.rows(str, PLAN_MODE, custom_plan=True)
            await db.rows(str, PLAN_MODE)
    assert [each for each in statements if each != PLAN_MODE] == ["set plan_cache_mode = force_custom_plan"]
