"""The way to PostgreSQL: statements as literals in, structs out; transactions."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, LiteralString, NamedTuple, TypeVar

import asyncpg
from msgspec import Struct

from plankeeper.database.pool import Pool, PoolExhaustedError, Usage
from plankeeper.database.row_mapping import reader

T = TypeVar("T")
Runner = Any  # a Pool or asyncpg's Connection: both have fetch, fetchrow and execute
_asyncpg: Any = asyncpg  # its functions have no types that a strict check can use

# What is raised where the server is away, starting, stopping, full, too slow, or took another in our place.
_AWAY = (
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


def unavailable(error: Exception) -> bool:
    """Whether the database, and not the request or the code, is at fault: the same may succeed a moment later."""
    # asyncpg counts an argument of the wrong type as an interface error: that one is ours.
    return isinstance(error, _AWAY) and not isinstance(error, asyncpg.DataError | ValueError)


class Broken(NamedTuple):
    """A constraint that a statement broke: its name, and what PostgreSQL says of the key."""

    constraint: str
    detail: str


def broken(error: asyncpg.IntegrityConstraintViolationError) -> Broken:
    told: Any = error
    return Broken(str(told.constraint_name), str(told.detail))


class Queries:
    """Runs statements. A statement is a literal: it is never built from pieces."""

    __slots__ = ("_run",)

    def __init__(self, run: Runner) -> None:
        self._run = run

    async def rows(self, shape: type[T], statement: LiteralString, *values: object) -> list[T]:
        read = reader(shape)
        return [read(record) for record in await self._run.fetch(statement, *values)]

    async def one_or_none(self, shape: type[T], statement: LiteralString, *values: object) -> T | None:
        record = await self._run.fetchrow(statement, *values)
        return None if record is None else reader(shape)(record)

    async def one(self, shape: type[T], statement: LiteralString, *values: object) -> T:
        """For a statement that always answers a row; raises LookupError where it does not."""
        found = await self.one_or_none(shape, statement, *values)
        if found is None:
            raise LookupError("the statement answered no row")
        return found

    async def execute(self, statement: LiteralString, *values: object) -> None:
        await self._run.execute(statement, *values)


class Transaction(Queries):
    """One transaction on one connection: committed by who opened it, never by a store."""

    async def insert_rows(self, table: str, shape: type[Struct], rows: Iterable[Struct]) -> None:
        """Append many rows at once (COPY); the table's columns are the struct's fields."""
        names = shape.__struct_fields__
        records = [[getattr(row, name) for name in names] for row in rows]
        await self._run.copy_records_to_table(table, records=records, columns=names)

    async def analyze(self, *tables: str, waits: bool = True) -> None:
        """Count what is in tables, with what this transaction wrote: a plan made for empty ones reads all there is.

        One transaction at a time counts a table, until it ends. Who does not wait goes on without.
        """
        await self._run.execute(f"analyze {'' if waits else '(skip_locked) '}{', '.join(tables)}")

    @asynccontextmanager
    async def savepoint(self) -> AsyncGenerator[None]:
        """What happens inside is undone by an exception, and the transaction goes on."""
        async with self._run.transaction():
            yield

    async def stream(self, shape: type[T], statement: LiteralString, *values: object) -> AsyncIterator[T]:
        """The rows of a statement, one after the other, however many they are."""
        read = reader(shape)
        async for record in self._run.cursor(statement, *values, prefetch=1000):
            yield read(record)


class Database(Queries):
    """A pool of connections. Reads run on it directly: one statement, one round trip, no transaction.

    It is used within `async with database.opened()`. Connections are made when they are needed, so that it opens
    while the server is away, and finds it again when it is back.
    """

    __slots__ = ("_dsn", "_patience", "_pool_size", "_timeout")

    def __init__(
        self, dsn: str, *, pool_size: int = 10, pool_timeout: float = 5, statement_timeout: float = 30
    ) -> None:
        super().__init__(None)
        self._dsn = dsn
        self._pool_size = pool_size
        self._patience = pool_timeout
        self._timeout = statement_timeout

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator["Database"]:
        options = _options(self._timeout)
        pool = Pool(lambda: _asyncpg.connect(self._dsn, **options), self._pool_size, self._patience)
        self._run = pool
        try:
            yield self
        finally:
            # Not a farewell to the server, which may be gone. Requests have been answered by now.
            pool.terminate()

    @property
    def usage(self) -> Usage:
        """How the pool is used; open databases only."""
        return self._run.usage

    @asynccontextmanager
    async def transaction(self, *, snapshot: bool = False) -> AsyncGenerator[Transaction]:
        """One transaction: committed at the end, rolled back by an exception. `snapshot`: read only, one moment."""
        how = {"isolation": "repeatable_read", "readonly": True} if snapshot else {}
        async with self._run.lent() as connection, connection.transaction(**how):
            yield Transaction(connection)

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[Queries]:
        """A connection of its own, outside the pool, for what a session holds (an advisory lock).

        It must be used every few seconds: PostgreSQL ends one that is silent for ten, so that a machine which has
        vanished does not keep its lock.
        """
        connection = await _asyncpg.connect(self._dsn, **_options(self._timeout, idle_session_timeout="10s"))
        try:
            yield Queries(connection)
        finally:
            connection.terminate()


def _options(command_timeout: float, **settings: str) -> dict[str, Any]:
    # Who waits for a row that another transaction holds gives up in time for everybody behind it in the pool.
    fixed = {
        "application_name": "plankeeper",
        "timezone": "UTC",
        "jit": "off",
        "random_page_cost": "1.1",
        # Each statement is written for one way of answering it; planning it anew for its values took half its time.
        "plan_cache_mode": "force_generic_plan",
    }
    lock = {"lock_timeout": f"{min(5.0, command_timeout / 2):g}s" if command_timeout <= 60 else "0"}
    return {"timeout": 5, "command_timeout": command_timeout, "server_settings": fixed | lock | settings}
