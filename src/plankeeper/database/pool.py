"""A pool of connections, each acquired for one statement or one transaction; the last one released is reused first.

asyncpg's own pool starts a task for each release and checks the connection several times. That takes 57 to 72 µs of
processor time: 17 % of a list of 20, 12 % of a get over one connection.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import asyncpg

Connection = Any  # asyncpg's, which has no types that pyright accepts in strict mode

# A session plans each statement once, or for its values. Sending the setting costs as much as a short statement.
SET_CUSTOM_PLAN = "set plan_cache_mode = force_custom_plan"
SET_GENERIC_PLAN = "set plan_cache_mode = force_generic_plan"
MAX_IDLE_SECONDS = 300.0  # after this, a firewall may have dropped the connection

# After these errors the state of the connection is unknown, or its server has become read-only.
_FATAL_ERRORS = (
    asyncio.CancelledError,
    TimeoutError,
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.ReadOnlySQLTransactionError,
)


class PoolStats(NamedTuple):
    """The current use of a pool."""

    open: int
    in_use: int
    waiting: int


class _Waiter(NamedTuple):
    """A queued request for a connection, with its deadline on the loop's clock."""

    connection: "asyncio.Future[Connection | None]"
    deadline: float


class PoolExhaustedError(Exception):
    """No connection became available in time."""


class Pool:
    """At most `size` connections, opened on demand. Waiting for one fails after `timeout` seconds."""

    __slots__ = ("_connect", "_connections", "_custom", "_expiry", "_idle", "_open", "_size", "_timeout", "_waiters")

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int, timeout: float) -> None:
        self._connect = connect
        self._size = size
        self._timeout = timeout
        self._open = 0  # open connections, and those being opened
        self._connections: set[Connection] = set()
        self._custom: set[Connection] = set()  # those whose sessions plan statements for their values
        self._idle: list[tuple[Connection, float]] = []
        self._waiters: deque[_Waiter] = deque()
        self._expiry: asyncio.TimerHandle | None = None  # one timer for all waiters: each has the same timeout

    async def fetch(self, statement: str, *values: object) -> list[Any]:
        return await self._fetch(await self._acquire(), statement, values)

    async def fetch_planned(self, statement: str, *values: object) -> list[Any]:
        """As `fetch`, with a plan for these values."""
        return await self._fetch(await self._acquire(custom_plan=True), statement, values)

    async def _fetch(self, connection: Connection, statement: str, values: Sequence[object]) -> list[Any]:
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
        """Acquire a connection. Raises PoolExhaustedError and the errors of connecting."""
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
        waiting = sum(not each.connection.done() for each in self._waiters)
        return PoolStats(self._open, self._open - len(self._idle), waiting)

    def terminate(self) -> None:
        """Close all connections immediately, including those in use."""
        for connection in self._connections:
            connection.terminate()

    async def _acquire(self, *, custom_plan: bool = False) -> Connection:
        connection = await self._take(custom_plan)
        if (connection in self._custom) != custom_plan:
            await self._set_plan_mode(connection, custom_plan)
        return connection

    async def _take(self, custom_plan: bool) -> Connection:
        """A free connection, preferably one whose session plans statements in this way already.

        The first one that plans statements for their values is an additional one, so that requests one after the other
        don't change the setting of the only connection back and forth.
        """
        while self._idle and (not custom_plan or self._custom or self._open >= self._size):
            connection, idle_since = self._idle.pop(self._preferred(custom_plan))
            if not connection.is_closed() and time.monotonic() - idle_since < MAX_IDLE_SECONDS:
                return connection
            self._discard(connection)
        if self._open < self._size:
            self._open += 1
            return await self._open_connection()
        return await self._wait() or await self._open_connection()

    def _preferred(self, custom_plan: bool) -> int:
        """The position of the idle connection to use: the last one released that plans in this way, or the last one."""
        for position in range(len(self._idle) - 1, -1, -1):
            if (self._idle[position][0] in self._custom) == custom_plan:
                return position
        return -1

    async def _set_plan_mode(self, connection: Connection, custom_plan: bool) -> None:
        try:
            await connection.execute(SET_CUSTOM_PLAN if custom_plan else SET_GENERIC_PLAN)
        except BaseException:
            self._discard(connection)
            raise
        self._custom ^= {connection}

    async def _open_connection(self) -> Connection:
        """Open a connection in a slot that is already counted."""
        try:
            connection = await self._connect()
        except BaseException:
            self._free_slot()
            raise
        self._connections.add(connection)
        return connection

    async def _wait(self) -> Connection | None:
        """The next released connection, or null if a slot without a connection became free."""
        loop = asyncio.get_running_loop()
        waiter = _Waiter(loop.create_future(), loop.time() + self._timeout)
        self._waiters.append(waiter)
        if self._expiry is None:
            self._expiry = loop.call_at(waiter.deadline, self._reject_expired)
        try:
            return await waiter.connection
        except asyncio.CancelledError:
            released = waiter.connection
            if released.done() and not released.cancelled() and not released.exception():
                self._hand_over(released.result())  # the release and the cancellation coincided: pass it on
            raise

    def _reject_expired(self) -> None:
        """Fail the waiters whose deadline has passed. They are in the order of their deadlines."""
        loop = asyncio.get_running_loop()
        while self._waiters and (self._waiters[0].connection.done() or self._waiters[0].deadline <= loop.time()):
            waiter = self._waiters.popleft().connection
            if not waiter.done():
                message = f"no connection became available within {self._timeout:g} s"
                waiter.set_exception(PoolExhaustedError(message))
        self._expiry = loop.call_at(self._waiters[0].deadline, self._reject_expired) if self._waiters else None

    def _release(self, connection: Connection) -> None:
        if connection.is_closed() or connection.is_in_transaction():
            self._discard(connection)
        else:
            self._hand_over(connection)

    def _hand_over(self, connection: Connection | None) -> None:
        """Pass a connection, or a slot without one, to the longest waiter; otherwise keep it or free the slot."""
        while self._waiters:
            waiter = self._waiters.popleft().connection
            if not waiter.done():
                waiter.set_result(connection)
                return
        if connection is None:
            self._open -= 1
        else:
            self._idle.append((connection, time.monotonic()))

    def _discard(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._custom.discard(connection)
        connection.terminate()
        self._free_slot()

    def _free_slot(self) -> None:
        self._hand_over(None)


def _terminate_after(connection: Connection, error: BaseException) -> None:
    # An argument of the wrong type is also an interface error, raised before anything is sent.
    if not isinstance(error, asyncpg.DataError):
        connection.terminate()
