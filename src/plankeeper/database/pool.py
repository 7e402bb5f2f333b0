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

STALE = 300.0  # seconds unused after which a connection is closed: a firewall may have forgotten it

# After these nobody knows what the connection is doing, or it leads to a server that takes no writes any more.
_SPOILT = (
    asyncio.CancelledError,
    TimeoutError,
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.ReadOnlySQLTransactionError,
)


class Usage(NamedTuple):
    """How a pool is used now."""

    open: int
    lent: int
    waiting: int


class PoolExhaustedError(Exception):
    """No connection became free in time."""


class Pool:
    """At most `size` connections, made when they are needed. Who waits for one gives up after `patience` seconds."""

    __slots__ = ("_connect", "_idle", "_made", "_open", "_patience", "_size", "_waiting")

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int, patience: float) -> None:
        self._connect = connect
        self._size = size
        self._patience = patience
        self._open = 0  # connections that there are, and places of those that are being made
        self._made: set[Connection] = set()
        self._idle: list[tuple[Connection, float]] = []
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()

    async def fetch(self, statement: str, *values: object) -> list[Any]:
        connection = await self._take()
        try:
            return await connection.fetch(statement, *values)
        except _SPOILT as error:
            _close(connection, error)
            raise
        finally:
            self._give_back(connection)

    async def fetchrow(self, statement: str, *values: object) -> Any:
        connection = await self._take()
        try:
            return await connection.fetchrow(statement, *values)
        except _SPOILT as error:
            _close(connection, error)
            raise
        finally:
            self._give_back(connection)

    async def execute(self, statement: str, *values: object) -> None:
        async with self.lent() as connection:
            await connection.execute(statement, *values)

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[Connection]:
        """A connection for a while; raises PoolExhaustedError, and what connecting raises."""
        connection = await self._take()
        try:
            yield connection
        except _SPOILT as error:
            _close(connection, error)
            raise
        finally:
            self._give_back(connection)

    @property
    def usage(self) -> Usage:
        waiting = sum(not turn.done() for turn in self._waiting)
        return Usage(self._open, self._open - len(self._idle), waiting)

    def terminate(self) -> None:
        """Drop all connections, whatever they are doing."""
        for connection in self._made:
            connection.terminate()

    async def _take(self) -> Connection:
        while self._idle:
            connection, since = self._idle.pop()
            if not connection.is_closed() and time.monotonic() - since < STALE:
                return connection
            self._drop(connection)
        if self._open < self._size:
            self._open += 1
            return await self._make()
        return await self._wait() or await self._make()

    async def _make(self) -> Connection:
        """A new connection for a place that is already counted."""
        try:
            connection = await self._connect()
        except BaseException:
            self._leave_place()
            raise
        self._made.add(connection)
        return connection

    async def _wait(self) -> Connection | None:
        """The next connection that is given back, or null where a place became free instead."""
        turn: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._patience):
                return await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # both came in the same moment: somebody else needs it
                self._pass_on(turn.result())
            if isinstance(error, TimeoutError):
                raise PoolExhaustedError(f"no connection became free in {self._patience:g} s") from None
            raise

    def _give_back(self, connection: Connection) -> None:
        if connection.is_closed() or connection.is_in_transaction():
            self._drop(connection)
        else:
            self._pass_on(connection)

    def _pass_on(self, connection: Connection | None) -> None:
        """A connection, or a counted place without one, to who waits longest; else it is kept, or is none."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return
        if connection is None:
            self._open -= 1
        else:
            self._idle.append((connection, time.monotonic()))

    def _drop(self, connection: Connection) -> None:
        self._made.discard(connection)
        connection.terminate()
        self._leave_place()

    def _leave_place(self) -> None:
        self._pass_on(None)


def _close(connection: Connection, error: BaseException) -> None:
    # An argument of the wrong type is an interface error too, found before anything was sent.
    if not isinstance(error, asyncpg.DataError):
        connection.terminate()
