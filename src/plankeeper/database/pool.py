"""A pool of connections: lent for one statement or one transaction, the last returned first.

asyncpg's own pool starts a task for each return and looks at the connection several times: a third of the time that
the server spent on getting one row.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import asyncpg

Connection = Any  # asyncpg's: it has no types that a strict check can use

MAX_IDLE_SECONDS = 300.0  # seconds unused after which a connection is closed: a firewall may have forgotten it

# After these nobody knows what the connection is doing, or it leads to a server that takes no writes any more.
_FATAL_ERRORS = (
    asyncio.CancelledError,
    TimeoutError,
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.ReadOnlySQLTransactionError,
)


class PoolStats(NamedTuple):
    """How a pool is used now."""

    open: int
    in_use: int
    waiting: int


class PoolExhaustedError(Exception):
    """No connection became free in time."""


class Pool:
    """At most `size` connections, made when they are needed. Who waits for one gives up after `timeout` seconds."""

    __slots__ = ("_connect", "_connections", "_idle", "_open", "_size", "_timeout", "_waiters")

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int, timeout: float) -> None:
        self._connect = connect
        self._size = size
        self._timeout = timeout
        self._open = 0  # connections that there are, and places of those that are being made
        self._connections: set[Connection] = set()
        self._idle: list[tuple[Connection, float]] = []
        self._waiters: deque[asyncio.Future[Connection | None]] = deque()

    async def fetch(self, statement: str, *values: object) -> list[Any]:
        connection = await self._acquire()
        try:
            return await connection.fetch(statement, *values)
        except _FATAL_ERRORS as error:
            _terminate_after(connection, error)
            raise
        finally:
            self._release(connection)

    async def fetchrow(self, statement: str, *values: object) -> Any:
        connection = await self._acquire()
        try:
            return await connection.fetchrow(statement, *values)
        except _FATAL_ERRORS as error:
            _terminate_after(connection, error)
            raise
        finally:
            self._release(connection)

    async def execute(self, statement: str, *values: object) -> None:
        async with self.acquire() as connection:
            await connection.execute(statement, *values)

    @asynccontextmanager
    async def acquire(self) -> AsyncGenerator[Connection]:
        """A connection for a while; raises PoolExhaustedError, and what connecting raises."""
        connection = await self._acquire()
        try:
            yield connection
        except _FATAL_ERRORS as error:
            _terminate_after(connection, error)
            raise
        finally:
            self._release(connection)

    @property
    def stats(self) -> PoolStats:
        waiting = sum(not waiter.done() for waiter in self._waiters)
        return PoolStats(self._open, self._open - len(self._idle), waiting)

    def terminate(self) -> None:
        """Drop all connections, whatever they are doing."""
        for connection in self._connections:
            connection.terminate()

    async def _acquire(self) -> Connection:
        while self._idle:
            connection, idle_since = self._idle.pop()
            if not connection.is_closed() and time.monotonic() - idle_since < MAX_IDLE_SECONDS:
                return connection
            self._discard(connection)
        if self._open < self._size:
            self._open += 1
            return await self._open_connection()
        return await self._wait() or await self._open_connection()

    async def _open_connection(self) -> Connection:
        """A new connection for a place that is already counted."""
        try:
            connection = await self._connect()
        except BaseException:
            self._free_slot()
            raise
        self._connections.add(connection)
        return connection

    async def _wait(self) -> Connection | None:
        """The next connection that is given back, or null where a place became free instead."""
        waiter: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(self._timeout):
                return await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():  # both came in the same moment: somebody else needs it
                self._hand_over(waiter.result())
            if isinstance(error, TimeoutError):
                raise PoolExhaustedError(f"no connection became free in {self._timeout:g} s") from None
            raise

    def _release(self, connection: Connection) -> None:
        if connection.is_closed() or connection.is_in_transaction():
            self._discard(connection)
        else:
            self._hand_over(connection)

    def _hand_over(self, connection: Connection | None) -> None:
        """A connection, or a counted place without one, to who waits longest; else it is kept, or is none."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        if connection is None:
            self._open -= 1
        else:
            self._idle.append((connection, time.monotonic()))

    def _discard(self, connection: Connection) -> None:
        self._connections.discard(connection)
        connection.terminate()
        self._free_slot()

    def _free_slot(self) -> None:
        self._hand_over(None)


def _terminate_after(connection: Connection, error: BaseException) -> None:
    # An argument of the wrong type is an interface error too, found before anything was sent.
    if not isinstance(error, asyncpg.DataError):
        connection.terminate()
