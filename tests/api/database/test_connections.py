"""The pool lends each connection to one at a time, loses none, and makes no more than it may."""

import asyncio
import random
from typing import Any

import asyncpg
import pytest

from plankeeper.database import pool as connections
from plankeeper.database.client import Database
from plankeeper.database.pool import Pool, PoolExhaustedError
from support.cluster import SharedCluster


class FakeConnection:
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


class FakeServer:
    """Makes connections, now and then none."""

    def __init__(self, failing: float = 0) -> None:
        self.failing = failing
        self.connections: list[FakeConnection] = []

    @property
    def open_count(self) -> int:
        return sum(not each.closed for each in self.connections)

    async def connect(self) -> FakeConnection:
        await asyncio.sleep(0.001)
        if random.random() < self.failing:
            raise ConnectionRefusedError
        self.connections.append(FakeConnection())
        return self.connections[-1]


async def test_the_connection_released_last_is_acquired_first() -> None:
    server = FakeServer()
    pool = Pool(server.connect, 3, 1)
    await asyncio.gather(*(pool.fetch("one") for _ in range(3)))
    assert len(server.connections) == 3
    async with pool.acquire() as first:
        pass
    async with pool.acquire() as second:
        assert second is first


async def test_the_pool_never_exceeds_its_size_and_waiters_are_served() -> None:
    server = FakeServer()
    pool = Pool(server.connect, 2, 5)
    responses = await asyncio.gather(*(pool.fetch(str(number)) for number in range(50)))
    assert responses == [[str(number)] for number in range(50)]
    assert len(server.connections) == 2


async def test_a_waiter_times_out_without_affecting_others() -> None:
    server = FakeServer()
    pool = Pool(server.connect, 1, 0.02)
    async with pool.acquire():
        with pytest.raises(PoolExhaustedError, match=r"no connection became available within 0\.02 s"):
            await pool.fetch("one")
    assert await pool.fetch("two") == ["two"]
    assert len(server.connections) == 1


async def test_each_waiter_times_out_also_if_it_comes_later() -> None:
    server = FakeServer()
    pool = Pool(server.connect, 1, 0.02)
    async with pool.acquire():
        waiters = list[asyncio.Task[Any]]()
        for number in range(3):
            waiters.append(asyncio.create_task(pool.fetch(str(number))))
            await asyncio.sleep(0.005)
        errors = await asyncio.gather(*waiters, return_exceptions=True)
        assert [type(each) for each in errors] == [PoolExhaustedError] * 3
        with pytest.raises(PoolExhaustedError):
            await pool.fetch("after them")
    assert await pool.fetch("released") == ["released"]


@pytest.mark.parametrize("state", ["closed", "in_transaction"])
async def test_an_unusable_connection_is_replaced(state: str) -> None:
    server = FakeServer()
    pool = Pool(server.connect, 1, 1)
    async with pool.acquire() as connection:
        setattr(connection, state, True)
        waiting = asyncio.create_task(pool.fetch("waited"))
        await asyncio.sleep(0)
    assert await waiting == ["waited"]
    assert len(server.connections) == 2
    assert server.open_count == 1


@pytest.mark.parametrize(
    "error, stored",
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
async def test_a_connection_is_kept_after_a_harmless_error(error: BaseException, stored: bool) -> None:
    server = FakeServer()
    pool = Pool(server.connect, 1, 1)
    with pytest.raises(type(error)):
        async with pool.acquire():
            raise error
    assert await pool.fetch("again") == ["again"]
    assert len(server.connections) == (1 if stored else 2)


async def test_an_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer()
    pool = Pool(server.connect, 1, 1)
    await pool.fetch("one")
    monkeypatch.setattr(connections, "MAX_IDLE_SECONDS", -1.0)
    await pool.fetch("two")
    assert [each.closed for each in server.connections] == [True, False]


async def test_a_failed_connection_is_reported_to_every_waiter() -> None:
    pool = Pool(FakeServer(failing=1).connect, 2, 5)
    responses = await asyncio.gather(*(pool.fetch("one") for _ in range(20)), return_exceptions=True)
    assert all(isinstance(each, ConnectionRefusedError) for each in responses)


@pytest.mark.parametrize("seed", range(20))
async def test_no_connection_leaks_under_random_operations(seed: int) -> None:
    """Cancellations, broken connections, failing connects and impatience, all at once."""
    random.seed(seed)
    server = FakeServer(failing=0.2)
    pool = Pool(server.connect, 3, 0.01)

    async def client() -> None:
        asking = asyncio.create_task(pool.fetch(random.choice(["ask", "ask", "ask", "break", "refuse"])))
        if random.random() < 0.3:
            await asyncio.sleep(random.random() / 200)
            asking.cancel()
        await asyncio.wait([asking])
        assert server.open_count <= 3

    await asyncio.gather(*(client() for _ in range(100)))
    server.failing = 0
    responses = await asyncio.gather(*(pool.fetch(str(number)) for number in range(3)))
    assert len(responses) == 3
    assert server.open_count == 3
    pool.terminate()
    assert server.open_count == 0


async def test_a_cancelled_statement_leaves_a_working_pool(cluster: SharedCluster) -> None:
    async with Database(cluster.dsn, pool_size=1).open() as db:
        for _ in range(5):
            asleep = asyncio.create_task(db.one(str, "select pg_sleep(10)::text"))
            await asyncio.sleep(0.02)
            asleep.cancel()
            await asyncio.wait([asleep])
            assert await db.one(int, "select 7") == 7
