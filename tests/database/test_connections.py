"""The pool lends each connection to one at a time, loses none, and makes no more than it may."""

import asyncio
import random
from typing import Any

import asyncpg
import pytest

from plankeeper.database import pool as connections
from plankeeper.database.client import Database
from plankeeper.database.pool import Pool, PoolExhaustedError
from plankeeper.embedded_postgres.cluster import Cluster


class Fake:
    """A connection that knows whether two use it at once."""

    def __init__(self) -> None:
        self.closed = self.in_use = self.in_transaction = False

    async def fetch(self, statement: str, *_values: object) -> list[Any]:
        assert not self.in_use
        assert not self.closed
        self.in_use = True
        try:
            await asyncio.sleep(random.random() / 500)
            if statement == "break":
                self.closed = True
                raise asyncpg.ConnectionDoesNotExistError
            if statement == "refuse":
                raise asyncpg.UniqueViolationError
        finally:
            self.in_use = False
        return [statement]

    def is_closed(self) -> bool:
        return self.closed

    def is_in_transaction(self) -> bool:
        return self.in_transaction

    def terminate(self) -> None:
        self.closed = True


class Server:
    """Makes connections, now and then none."""

    def __init__(self, failing: float = 0) -> None:
        self.failing = failing
        self.made: list[Fake] = []

    @property
    def open(self) -> int:
        return sum(not each.closed for each in self.made)

    async def connect(self) -> Fake:
        await asyncio.sleep(0.001)
        if random.random() < self.failing:
            raise ConnectionRefusedError
        self.made.append(Fake())
        return self.made[-1]


async def test_the_connection_returned_last_is_lent_first() -> None:
    server = Server()
    pool = Pool(server.connect, 3, 1)
    await asyncio.gather(*(pool.fetch("one") for _ in range(3)))
    assert len(server.made) == 3
    async with pool.acquire() as first:
        pass
    async with pool.acquire() as second:
        assert second is first


async def test_no_more_than_the_size_are_made_and_who_waits_gets_its_turn() -> None:
    server = Server()
    pool = Pool(server.connect, 2, 5)
    answers = await asyncio.gather(*(pool.fetch(str(number)) for number in range(50)))
    assert answers == [[str(number)] for number in range(50)]
    assert len(server.made) == 2


async def test_who_waits_too_long_is_refused_and_nobody_else_is_harmed() -> None:
    server = Server()
    pool = Pool(server.connect, 1, 0.02)
    async with pool.acquire():
        with pytest.raises(PoolExhaustedError, match=r"no connection became free in 0\.02 s"):
            await pool.fetch("one")
    assert await pool.fetch("two") == ["two"]
    assert len(server.made) == 1


@pytest.mark.parametrize("left", ["closed", "in_transaction"])
async def test_a_connection_that_cannot_be_used_again_is_replaced(left: str) -> None:
    server = Server()
    pool = Pool(server.connect, 1, 1)
    async with pool.acquire() as connection:
        setattr(connection, left, True)
        waiting = asyncio.create_task(pool.fetch("waited"))
        await asyncio.sleep(0)
    assert await waiting == ["waited"]
    assert len(server.made) == 2
    assert server.open == 1


@pytest.mark.parametrize(
    "error, kept",
    [
        (asyncpg.UniqueViolationError(), True),
        (asyncpg.DataError(), True),
        (ValueError(), True),
        (TimeoutError(), False),
        (asyncio.CancelledError(), False),
        (asyncpg.ReadOnlySQLTransactionError(), False),
        (asyncpg.InternalClientError(), False),
    ],
)
async def test_a_connection_is_kept_after_an_error_that_says_nothing_against_it(
    error: BaseException, kept: bool
) -> None:
    server = Server()
    pool = Pool(server.connect, 1, 1)
    with pytest.raises(type(error)):
        async with pool.acquire():
            raise error
    assert await pool.fetch("again") == ["again"]
    assert len(server.made) == (1 if kept else 2)


async def test_a_connection_long_unused_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    pool = Pool(server.connect, 1, 1)
    await pool.fetch("one")
    monkeypatch.setattr(connections, "MAX_IDLE_SECONDS", -1.0)
    await pool.fetch("two")
    assert [each.closed for each in server.made] == [True, False]


async def test_a_server_that_refuses_is_told_to_everybody_who_waits() -> None:
    pool = Pool(Server(failing=1).connect, 2, 5)
    answers = await asyncio.gather(*(pool.fetch("one") for _ in range(20)), return_exceptions=True)
    assert all(isinstance(each, ConnectionRefusedError) for each in answers)


@pytest.mark.parametrize("seed", range(20))
async def test_nothing_is_lost_whatever_happens(seed: int) -> None:
    """Cancellations, broken connections, failing connects and impatience, all at once."""
    random.seed(seed)
    server = Server(failing=0.2)
    pool = Pool(server.connect, 3, 0.01)

    async def client() -> None:
        asking = asyncio.create_task(pool.fetch(random.choice(["ask", "ask", "ask", "break", "refuse"])))
        if random.random() < 0.3:
            await asyncio.sleep(random.random() / 200)
            asking.cancel()
        await asyncio.wait([asking])
        assert server.open <= 3

    await asyncio.gather(*(client() for _ in range(100)))
    server.failing = 0
    answers = await asyncio.gather(*(pool.fetch(str(number)) for number in range(3)))
    assert len(answers) == 3
    assert server.open == 3
    pool.terminate()
    assert server.open == 0


async def test_a_statement_that_is_cancelled_leaves_a_pool_that_works(cluster: Cluster) -> None:
    async with Database(cluster.dsn, pool_size=1).open() as db:
        for _ in range(5):
            asleep = asyncio.create_task(db.one(str, "select pg_sleep(10)::text"))
            await asyncio.sleep(0.02)
            asleep.cancel()
            await asyncio.wait([asleep])
            assert await db.one(int, "select 7") == 7
