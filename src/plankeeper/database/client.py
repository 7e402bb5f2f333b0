"""The way to PostgreSQL: statements as literals in, structs out; transactions."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, LiteralString, NamedTuple, TypeVar

import asyncpg
from msgspec import Struct

from plankeeper.database.pool import Pool, PoolExhaustedError, PoolStats
from plankeeper.database.row_mapping import row_factory

T = TypeVar("T")
ConnectionLike = Any  # a Pool or asyncpg's Connection: both have fetch, fetchrow and execute
_asyncpg: Any = asyncpg  # its functions have no types that a strict check can use

# What is raised where the server is away, starting, stopping, full, too slow, or took another in our place.
_UNAVAILABLE = (
    OSError,
    TimeoutError,
    PoolExhaustedError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.QueryCanceledError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.DiskFullError,
    asyncpg.InternalClientError,
    asyncpg.TransactionRollbackError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.LockNotAvailableError,
    asyncpg.InvalidCachedStatementError,
)


def is_unavailable(error: Exception) -> bool:
    """Whether the database, and not the request or the code, is at fault: the same may succeed a moment later."""
    # asyncpg counts an argument of the wrong type as an interface error: that one is ours.
    return isinstance(error, _UNAVAILABLE) and not isinstance(error, asyncpg.DataError | ValueError)


class ConstraintViolation(NamedTuple):
    """A constraint that a statement broke: its name, and what PostgreSQL says of the key."""

    constraint: str
    detail: str


def constraint_violation(error: asyncpg.IntegrityConstraintViolationError) -> ConstraintViolation:
    untyped: Any = error
    return ConstraintViolation(str(untyped.constraint_name), str(untyped.detail))


class Executor:
    """Runs statements. A statement is a literal: it is never built from pieces."""

    __slots__ = ("_connection",)

    def __init__(self, connection: ConnectionLike) -> None:
        self._connection = connection

    async def rows(self, row_type: type[T], statement: LiteralString, *values: object) -> list[T]:
        make_row = row_factory(row_type)
        return [make_row(record) for record in await self._connection.fetch(statement, *values)]

    async def one_or_none(self, row_type: type[T], statement: LiteralString, *values: object) -> T | None:
        record = await self._connection.fetchrow(statement, *values)
        return None if record is None else row_factory(row_type)(record)

    async def one(self, row_type: type[T], statement: LiteralString, *values: object) -> T:
        """For a statement that always answers a row; raises LookupError where it does not."""
        row = await self.one_or_none(row_type, statement, *values)
        if row is None:
            raise LookupError("the statement answered no row")
        return row

    async def execute(self, statement: LiteralString, *values: object) -> None:
        await self._connection.execute(statement, *values)


class Transaction(Executor):
    """One transaction on one connection: committed by who opened it, never by a store."""

    async def insert_rows(self, table: str, row_type: type[Struct], rows: Iterable[Struct]) -> None:
        """Append many rows at once (COPY); the table's columns are the struct's fields."""
        names = row_type.__struct_fields__
        records = [[getattr(row, name) for name in names] for row in rows]
        await self._connection.copy_records_to_table(table, records=records, columns=names)

    async def analyze(self, *tables: str, wait: bool = True) -> None:
        """Count what is in tables, with what this transaction wrote: a plan made for empty ones reads all there is.

        One transaction at a time counts a table, until it ends. Who does not wait goes on without.
        """
        await self._connection.execute(f"analyze {'' if wait else '(skip_locked) '}{', '.join(tables)}")

    @asynccontextmanager
    async def savepoint(self) -> AsyncGenerator[None]:
        """What happens inside is undone by an exception, and the transaction goes on."""
        async with self._connection.transaction():
            yield

    async def stream(self, row_type: type[T], statement: LiteralString, *values: object) -> AsyncIterator[T]:
        """The rows of a statement, one after the other, however many they are."""
        make_row = row_factory(row_type)
        async for record in self._connection.cursor(statement, *values, prefetch=1000):
            yield make_row(record)


class Database(Executor):
    """A pool of connections. Reads run on it directly: one statement, one round trip, no transaction.

    It is used within `async with database.open()`. Connections are made when they are needed, so that it opens
    while the server is away, and finds it again when it is back.
    """

    __slots__ = ("_dsn", "_pool_size", "_pool_timeout", "_statement_timeout")

    def __init__(
        self, dsn: str, *, pool_size: int = 10, pool_timeout: float = 5, statement_timeout: float = 30
    ) -> None:
        super().__init__(None)
        self._dsn = dsn
        self._pool_size = pool_size
        self._pool_timeout = pool_timeout
        self._statement_timeout = statement_timeout

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["Database"]:
        options = _options(self._statement_timeout)
        pool = Pool(lambda: _asyncpg.connect(self._dsn, **options), self._pool_size, self._pool_timeout)
        self._connection = pool
        try:
            yield self
        finally:
            # Not a farewell to the server, which may be gone. Requests have been answered by now.
            pool.terminate()

    @property
    def stats(self) -> PoolStats:
        """How the pool is used; open databases only."""
        return self._connection.stats

    @asynccontextmanager
    async def transaction(self, *, snapshot: bool = False) -> AsyncGenerator[Transaction]:
        """One transaction: committed at the end, rolled back by an exception. `snapshot`: read only, one moment."""
        options = {"isolation": "repeatable_read", "readonly": True} if snapshot else {}
        async with self._connection.acquire() as connection, connection.transaction(**options):
            yield Transaction(connection)

    @asynccontextmanager
    async def dedicated_connection(self) -> AsyncGenerator[Executor]:
        """A connection of its own, outside the pool, for what a session holds (an advisory lock).

        It must be used every few seconds: PostgreSQL ends one that is silent for ten, so that a machine which has
        vanished does not keep its lock.
        """
        connection = await _asyncpg.connect(self._dsn, **_options(self._statement_timeout, idle_session_timeout="10s"))
        try:
            yield Executor(connection)
        finally:
            connection.terminate()


def _options(command_timeout: float, **settings: str) -> dict[str, Any]:
    # Who waits for a row that another transaction holds gives up in time for everybody behind it in the pool.
    defaults = {
        "application_name": "plankeeper",
        "timezone": "UTC",
        "jit": "off",
        "random_page_cost": "1.1",
        # Each statement is written for one way of answering it; planning it anew for its values took half its time.
        "plan_cache_mode": "force_generic_plan",
    }
    lock_settings = {"lock_timeout": f"{min(5.0, command_timeout / 2):g}s" if command_timeout <= 60 else "0"}
    return {"timeout": 5, "command_timeout": command_timeout, "server_settings": defaults | lock_settings | settings}
