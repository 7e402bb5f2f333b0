"""Writes that wait for the next statement: sent together, seen by what follows, and all or nothing."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import UUID

import asyncpg
import pytest
from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.database.client import Database, Executor, Transaction
from plankeeper.database.combined_writes import MAX_WRITES, Write, combine
from plankeeper.database.connections import statement_name
from support.cluster import SharedCluster
from support.locks import wait_for_locks

OWNER = uuid7()
THING = Write(
    "new_thing as (select $2::integer as id, $3::text as name)",
    "insert into queued_things (owner, id, name) select $1, id, name from new_thing",
    parameters=3,
)
TAG = Write(
    "new_tag as (select $2::integer as thing, $3::text as tag)",
    "insert into queued_tags (owner, thing, tag) select $1::uuid, thing, tag from new_tag",
    parameters=3,
)
TABLES = """
    create table queued_things (
        owner uuid, id integer primary key, name text check (name <> ''), version integer not null default 1
    );
    create table queued_tags (owner uuid, thing integer, tag text)
"""


class Tag(Struct):
    owner: UUID
    thing: int
    tag: str


@pytest.fixture
def sent() -> list[str]:
    """The statements that were sent."""
    return []


@pytest.fixture
async def db(cluster: SharedCluster, sent: list[str]) -> AsyncIterator[Database]:
    def record(statement: str, _seconds: float, _error: BaseException | None) -> None:
        sent.append(statement)

    async with Database(cluster.owner_dsn, pool_size=1, on_statement=record).open() as opened:
        for each in TABLES.split(";"):
            await opened.execute(each)  # pyright: ignore[reportArgumentType]
        sent.clear()
        yield opened
        for table in ("queued_things", "queued_tags"):
            await opened.execute(f"drop table {table}")


async def stored(db: Executor) -> tuple[list[int], list[Tag]]:
    """The ids of the things, and the tags."""
    return (
        await db.rows(int, "select id from queued_things order by id"),
        await db.rows(Tag, "select owner, thing, tag from queued_tags order by thing, tag"),
    )


async def add(tx: Transaction, number: int, name: str = "A name") -> None:
    await tx.queue_write(THING, OWNER, number, name)
    await tx.queue_write(TAG, OWNER, number, f"tag {number}")


async def add_and_fail(tx: Transaction, number: int) -> None:
    await add(tx, number)
    _ = 1 / 0


async def write_and_fail(db: Database, *, reads_first: bool) -> None:
    async with db.transaction() as tx:
        if reads_first:
            await stored(tx)
        await add_and_fail(tx, 1)


async def violate_constraint(db: Database, *, reads_first: bool) -> None:
    async with db.transaction() as tx:
        if reads_first:
            await stored(tx)
        await tx.queue_write(TAG, OWNER, 1, "tag 1")
        await tx.queue_write(THING, OWNER, 1, "")


async def fail_in_savepoint(tx: Transaction, number: int) -> None:
    async with tx.savepoint():
        await add_and_fail(tx, number)


async def test_a_transaction_of_writes_alone_is_one_statement(db: Database, sent: list[str]) -> None:
    async with db.transaction() as tx:
        await add(tx, 1)
        assert sent == []
    assert sent == [combine((THING, TAG))]
    assert await stored(db) == ([1], [Tag(OWNER, 1, "tag 1")])


async def test_the_next_statement_sees_the_writes_before_it(db: Database, sent: list[str]) -> None:
    async with db.transaction() as tx:
        await add(tx, 1)
        assert await stored(tx) == ([1], [Tag(OWNER, 1, "tag 1")])
        await add(tx, 2)
    assert sent.count(combine((THING, TAG))) == 2
    assert (await stored(db))[0] == [1, 2]


async def test_an_exception_leaves_nothing(db: Database, sent: list[str]) -> None:
    for reads_first in (False, True):
        with pytest.raises(ZeroDivisionError):
            await write_and_fail(db, reads_first=reads_first)
    assert combine((THING, TAG)) not in sent
    assert await stored(db) == ([], [])


async def test_a_violated_constraint_undoes_all_of_it(db: Database) -> None:
    for reads_first in (False, True):
        with pytest.raises(asyncpg.CheckViolationError):
            await violate_constraint(db, reads_first=reads_first)
        assert await stored(db) == ([], [])


async def test_the_same_write_again_and_another_plan_manager_need_a_statement_of_their_own(
    db: Database, sent: list[str]
) -> None:
    other = uuid7()
    async with db.transaction() as tx:
        await add(tx, 1)
        await tx.queue_write(TAG, OWNER, 1, "again")
        await tx.queue_write(THING, other, 2, "A name")
        await tx.queue_write(TAG, other, 2, "tag 2")
    combined = [each for each in sent if each.startswith("with")]
    assert combined == [combine((THING, TAG)), combine((TAG,)), combine((THING, TAG))]
    tags = [Tag(OWNER, 1, "again"), Tag(OWNER, 1, "tag 1"), Tag(other, 2, "tag 2")]
    assert await stored(db) == ([1, 2], tags)


async def test_a_savepoint_keeps_the_writes_before_it_and_drops_its_own(db: Database) -> None:
    async with db.transaction() as tx:
        await add(tx, 1)
        with pytest.raises(ZeroDivisionError):
            await fail_in_savepoint(tx, 2)
        async with tx.savepoint():
            await add(tx, 3)
        await add(tx, 4)
    assert (await stored(db))[0] == [1, 3, 4]


async def test_a_dedicated_connection_sends_the_writes_of_its_transaction(db: Database) -> None:
    async with db.dedicated_connection() as connection, connection.transaction() as tx:
        await add(tx, 1)
    assert (await stored(db))[0] == [1]


async def test_a_transaction_without_statements_sends_nothing(db: Database, sent: list[str]) -> None:
    async with db.transaction():
        pass
    assert sent == []


def test_parameters_are_renumbered_from_the_highest_on() -> None:
    many = Write("", f"select $1, {', '.join(f'${number}' for number in range(2, 15))}", parameters=14)  # pyright: ignore[reportArgumentType]
    one = Write("first as (select $2)", "select $1, $2", parameters=2)
    statement = combine((one, many))
    assert statement == (
        "with first as (select $2), , first_write as (select $1, $2)"
        " select $1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15"
    )


def test_as_many_writes_as_there_are_names_are_combined() -> None:
    writes = tuple(Write(f"cte_{number} as (select $2)", "select $2", 2) for number in range(MAX_WRITES))
    statement = combine(writes)
    assert statement.count("_write as (") == MAX_WRITES - 1
    assert statement.endswith(f"select ${MAX_WRITES + 1}")


def test_a_combined_statement_has_the_names_of_its_writes() -> None:
    from plankeeper.events import store as events
    from plankeeper.resources.participants import store as participants

    statement = combine((participants.INSERT, events.INSERT))
    assert statement_name(statement) == "resources.participants.store.INSERT + events.store.INSERT"
    assert statement_name(combine((participants.INSERT,))) == "resources.participants.store.INSERT"


GUARDED = Write(
    "guarded as (update queued_things set name = $2, version = $3 + 1 where owner = $1 and version = $3 returning id)",
    "insert into queued_tags (owner, thing, tag) select $1, id, 'renamed' from guarded",
    parameters=3,
    changed="guarded",
)


CHANGE = "update queued_things set version = version + 1 where id = 1"


async def add_one(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.queue_write(THING, OWNER, 1, "A name")


class Renaming:
    """An attempt that renames the thing, and how often it ran. `before_write` runs first."""

    def __init__(self, before_write: Callable[[], Awaitable[None]] | None = None) -> None:
        self.before_write = before_write
        self.attempts = 0

    async def __call__(self, tx: Transaction) -> int:
        self.attempts += 1
        await tx.lock_row("select from queued_things where id = 1 for update")
        version = await tx.reader.one(int, "select version from queued_things where id = 1")
        if self.before_write and self.attempts == 1:
            await self.before_write()
        await tx.queue_write(GUARDED, OWNER, "Another name", version)
        await tx.queue_write(THING, OWNER, 2, "A second name")
        return version


async def test_a_write_of_a_row_that_is_unchanged_is_one_statement_without_a_lock(
    db: Database, sent: list[str]
) -> None:
    await add_one(db)
    sent.clear()
    assert await db.write(Renaming()) == 1
    assert sent == ["select version from queued_things where id = 1", combine((GUARDED, THING))]
    assert await stored(db) == ([1, 2], [Tag(OWNER, 1, "renamed")])


async def test_a_write_of_a_row_that_has_changed_starts_again_with_a_lock(db: Database, sent: list[str]) -> None:
    await add_one(db)

    async def change() -> None:
        await db.execute(CHANGE)

    renaming = Renaming(change)
    sent.clear()
    assert await db.write(renaming) == 2
    assert renaming.attempts == 2
    assert [each.split()[-1] for each in sent if each.startswith("select")] == ["1", "update", "1"]
    assert await stored(db) == ([1, 2], [Tag(OWNER, 1, "renamed")])


async def test_a_write_notices_a_change_for_which_it_waited(cluster: SharedCluster, db: Database) -> None:
    await add_one(db)
    renaming = Renaming()
    async with Database(cluster.owner_dsn, pool_size=1).open() as other:
        async with other.transaction() as tx:
            await tx.execute(CHANGE)
            waiting = asyncio.create_task(db.write(renaming))
            await wait_for_locks(tx)
            assert not waiting.done()
        assert await waiting == 2
    assert renaming.attempts == 2
    assert await stored(db) == ([1, 2], [Tag(OWNER, 1, "renamed")])


async def test_the_first_attempt_reads_without_a_transaction_until_it_writes(db: Database, sent: list[str]) -> None:
    await add_one(db)
    sent.clear()

    async def read_and_write(tx: Transaction) -> None:
        assert tx.reader is db
        await stored(tx.reader)
        assert (len(sent), db.stats.in_use) == (2, 0)
        await add(tx, 2)
        assert tx.reader is tx
        assert (await stored(tx.reader))[0] == [1, 2]

    await db.write(read_and_write)
    assert sent.count(combine((THING, TAG))) == 1


async def test_a_transaction_that_is_not_repeated_locks(db: Database, sent: list[str]) -> None:
    await add_one(db)
    sent.clear()
    async with db.transaction() as tx:
        assert tx.reader is tx
        await Renaming()(tx)
    assert sent[1] == "select from queued_things where id = 1 for update"


async def test_what_catches_a_violated_constraint_flushes_first(db: Database) -> None:
    async def write(tx: Transaction) -> str:
        try:
            await tx.queue_write(THING, OWNER, 1, "")
            await tx.flush()
        except asyncpg.CheckViolationError:
            return "rejected"
        return "written"

    assert await db.write(write) == "rejected"
    assert await stored(db) == ([], [])
