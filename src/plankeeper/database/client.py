"""Runs SQL statements that consist of literals, returns structs, and manages transactions."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, LiteralString, TypeVar
from uuid import UUID

from asyncpg import SerializationError
from msgspec import Struct
from msgspec.structs import astuple

from plankeeper.database.combined_writes import MAX_WRITES, Write, combine
from plankeeper.database.connections import OnStatement, connect, connection_options, read_batches, statement_name
from plankeeper.database.errors import set_statement_name
from plankeeper.database.pool import SET_CUSTOM_PLAN, SET_GENERIC_PLAN, Pool, PoolStats
from plankeeper.database.row_mapping import row_factory

T = TypeVar("T")
ConnectionLike = Any  # a Pool or asyncpg's Connection: both have fetch, fetchrow and execute


class Executor:
    """Runs statements. A statement is composed only of literals: values are always parameters.

    `is_citus`: the database has the extension Citus, which requires other statements in some places.
    """

    __slots__ = ("_connection", "is_citus")

    def __init__(self, connection: ConnectionLike, *, is_citus: bool = False) -> None:
        self._connection = connection
        self.is_citus = is_citus

    async def rows(
        self, row_type: type[T], statement: LiteralString, *values: object, custom_plan: bool = False
    ) -> list[T]:
        """`custom_plan`: PostgreSQL plans the statement for these values, for a list; otherwise once for all values."""
        make_row = row_factory(row_type)
        fetch = self._fetch_planned if custom_plan and not self.is_citus else self._connection.fetch
        return [make_row(record) for record in await fetch(statement, *values)]

    async def _fetch_planned(self, statement: LiteralString, *values: object) -> Sequence[Any]:
        """The records of a statement with a custom plan. On Citus, PostgreSQL chooses: see `connections`."""
        await self._connection.execute(SET_CUSTOM_PLAN)
        records = await self._connection.fetch(statement, *values)
        await self._connection.execute(SET_GENERIC_PLAN)
        return records

    async def one_or_none(self, row_type: type[T], statement: LiteralString, *values: object) -> T | None:
        record = await self._connection.fetchrow(statement, *values)
        return None if record is None else row_factory(row_type)(record)

    async def one(self, row_type: type[T], statement: LiteralString, *values: object) -> T:
        """For a statement that always returns a row; raises LookupError if it doesn't."""
        row = await self.one_or_none(row_type, statement, *values)
        if row is None:
            raise LookupError("the statement returned no row")
        return row

    async def execute(self, statement: LiteralString, *values: object) -> None:
        await self._connection.execute(statement, *values)


class Transaction(Executor):
    """One transaction on one connection. The code that opened it commits it, never a store.

    It begins with its first statement. A transaction that consists of queued writes alone is a single statement, which
    PostgreSQL commits by itself.

    `changed_feeds` are the plan managers whose events it records. The database's listener gets them after the commit.
    """

    __slots__ = ("_begin", "_database", "_values", "_writes", "changed_feeds")

    def __init__(
        self,
        connection: ConnectionLike,
        *,
        is_citus: bool = False,
        begin: Callable[[], Awaitable[ConnectionLike]] | None = None,
        database: Executor | None = None,
    ) -> None:
        """`begin` returns the connection before the first statement. Without it, the transaction has begun.

        With `database`, it is the first attempt of `Database.write`, which locks nothing before it has begun.
        """
        super().__init__(connection, is_citus=is_citus)
        self._begin = begin
        self._database = database
        self._writes: list[Write] = []
        self._values: list[object] = []
        self.changed_feeds: set[UUID] = set()

    @property
    def reader(self) -> Executor:
        """The executor of reads without locks: the database until the first attempt begins, then the transaction."""
        return self._database if self._database and self._begin and not self._writes else self

    async def lock_row(self, statement: LiteralString, *values: object) -> None:
        """Lock the row that will be read with `reader` and updated, with `select ... for update`.

        The first attempt of `Database.write` doesn't lock it: its update fails if the row has another version then.
        """
        if self.reader is self:
            await self.execute(statement, *values)

    async def rows(
        self, row_type: type[T], statement: LiteralString, *values: object, custom_plan: bool = False
    ) -> list[T]:
        await self.prepare()
        return await super().rows(row_type, statement, *values, custom_plan=custom_plan)

    async def one_or_none(self, row_type: type[T], statement: LiteralString, *values: object) -> T | None:
        await self.prepare()
        return await super().one_or_none(row_type, statement, *values)

    async def execute(self, statement: LiteralString, *values: object) -> None:
        await self.prepare()
        await super().execute(statement, *values)

    async def queue_write(self, statement: Write, plan_manager_id: UUID, *values: object) -> None:
        """Queue a write. It is sent before the next statement or at the commit, together with other queued writes.

        So a violated constraint is raised there, not here: see `combined_writes`.
        """
        if self.is_citus:  # which plans no statement with writes of several tables
            await self.execute(statement.unchecked, plan_manager_id, *values)
            return
        if self._writes and (
            statement in self._writes or len(self._writes) == MAX_WRITES or self._values[0] != plan_manager_id
        ):
            await self.prepare()
        self._writes.append(statement)
        self._values += values if self._values else (plan_manager_id, *values)

    async def prepare(self) -> None:
        """Begin, and send the queued writes."""
        if self._begin:
            self._connection = await self._begin()
            self._begin = None
        await self.flush()

    async def flush(self) -> None:
        """Send the queued writes, in a transaction of their own if this one hasn't begun."""
        if self._writes:
            statement, values = combine(tuple(self._writes)), self._values
            self._writes, self._values = [], []
            try:
                await self._connection.execute(statement, *values)
            except Exception as error:
                set_statement_name(error, statement_name(statement))
                raise

    async def insert_rows(self, table: str, row_type: type[Struct], rows: Iterable[Struct]) -> None:
        """Insert many rows at once (COPY). The table's columns are the struct's fields."""
        await self.prepare()
        records = [astuple(row) for row in rows]
        await self._connection.copy_records_to_table(table, records=records, columns=row_type.__struct_fields__)

    async def analyze(self, *tables: str, wait: bool = True) -> None:
        """Update the planner's statistics of tables, including this transaction's rows.

        Otherwise a plan for empty tables would read all of their rows. PostgreSQL lets one transaction at a time
        analyse a table; without `wait`, tables that another transaction analyses are skipped.
        """
        await self.prepare()
        await self._connection.execute(_ANALYZE, tables, not wait)

    @asynccontextmanager
    async def savepoint(self) -> AsyncGenerator[None]:
        """An exception rolls back the statements inside; the transaction continues."""
        await self.prepare()
        async with self._connection.transaction():
            try:
                yield
            except BaseException:
                self._writes, self._values = [], []
                raise
            await self.flush()

    async def stream(self, row_type: type[T], statement: LiteralString, *values: object) -> AsyncGenerator[list[T]]:
        """The rows of a statement in batches. Close the generator (`aclosing`): until then, the connection is busy."""
        await self.prepare()
        make_row = row_factory(row_type)
        async with aclosing(read_batches(await self._connection.cursor(statement, *values))) as batches:
            async for records in batches:
                yield [make_row(record) for record in records]


class DedicatedConnection(Executor):
    """A connection outside the pool."""

    @property
    def is_closed(self) -> bool:
        return self._connection.is_closed()

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        """A transaction in which each statement sees everything committed before it; an exception rolls it back."""
        async with self._connection.transaction(isolation="read_committed"):
            tx = Transaction(self._connection, is_citus=self.is_citus)
            yield tx
            await tx.flush()


def _ignore(_plan_manager_ids: Collection[UUID]) -> None:
    """The default listener, which does nothing."""


class Database(Executor):
    """A pool of connections. Reads run on it directly: one statement, one round trip, no transaction.

    Use it within `async with database.open()`. Connections open on demand, so opening succeeds while the server is
    unreachable, and statements succeed again as soon as it is back.
    """

    __slots__ = (
        "_dsn",
        "_has_connected",
        "_on_statement",
        "_pool_size",
        "_pool_timeout",
        "_statement_timeout",
        "on_feeds_changed",
    )

    def __init__(
        self,
        dsn: str,
        *,
        pool_size: int = 10,
        pool_timeout: float = 5,
        statement_timeout: float = 30,
        on_statement: OnStatement | None = None,
    ) -> None:
        """`on_statement` is called after each statement of all connections."""
        super().__init__(None)
        self._on_statement = on_statement
        self._dsn = dsn
        self._pool_size = pool_size
        self._pool_timeout = pool_timeout
        self._statement_timeout = statement_timeout
        self._has_connected = False
        self.on_feeds_changed: Callable[[Collection[UUID]], None] = _ignore

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["Database"]:
        options = connection_options(self._statement_timeout)
        pool = Pool(lambda: self._connect(options), self._pool_size, self._pool_timeout)
        self._connection = pool
        try:
            yield self
        finally:
            # Without a graceful close, because the server may be unreachable. All responses have been sent by now.
            pool.terminate()

    async def _fetch_planned(self, statement: LiteralString, *values: object) -> Sequence[Any]:
        return await self._connection.fetch_planned(statement, *values)

    @property
    def stats(self) -> PoolStats:
        """The current use of the pool. The database must be open."""
        return self._connection.stats

    async def write(self, attempt: Callable[[Transaction], Awaitable[T]]) -> T:
        """The result of `attempt`, which reads and writes in a transaction that is committed here.

        The first attempt reads records without locks, on the database, and writes under the condition that they still
        have the versions that were read. If one has changed, the second attempt starts from the beginning with locks.
        """
        try:
            async with self._open_transaction(locks=False) as tx:
                return await attempt(tx)
        except SerializationError:
            async with self._open_transaction() as tx:
                return await attempt(tx)

    @asynccontextmanager
    async def transaction(self, *, snapshot: bool = False) -> AsyncGenerator[Transaction]:
        """A transaction; an exception rolls it back. `snapshot`: read-only, repeatable read."""
        options: dict[str, Any] = {"isolation": "repeatable_read", "readonly": True} if snapshot else {}
        async with self._open_transaction(**options) as tx:
            if snapshot:
                await tx.prepare()
            yield tx

    @asynccontextmanager
    async def _open_transaction(self, *, locks: bool = True, **options: Any) -> AsyncGenerator[Transaction]:
        # Only a connection shows whether the database has Citus, where rows are always locked.
        is_lazy = not locks and self._has_connected and not self.is_citus
        async with AsyncExitStack() as stack:
            acquired = None if is_lazy else await stack.enter_async_context(self._connection.acquire())

            async def begin() -> ConnectionLike:
                connection = acquired or await stack.enter_async_context(self._connection.acquire())
                await stack.enter_async_context(connection.transaction(**options))
                return connection

            database = self if is_lazy else None
            tx = Transaction(acquired or self._connection, is_citus=self.is_citus, begin=begin, database=database)
            yield tx
            await tx.flush()
        if tx.changed_feeds:
            self.on_feeds_changed(tx.changed_feeds)

    @asynccontextmanager
    async def dedicated_connection(self, **settings: str) -> AsyncGenerator[DedicatedConnection]:
        """A connection outside the pool, for the resources of a session, such as an advisory lock or `settings`.

        Use it every few seconds: PostgreSQL closes it after ten idle seconds, so that a machine that has failed
        releases its lock.
        """
        options = connection_options(self._statement_timeout, idle_session_timeout="10s", **settings)
        connection = await self._connect(options)
        try:
            yield DedicatedConnection(connection, is_citus=self.is_citus)
        finally:
            connection.terminate()

    @asynccontextmanager
    async def listening_connection(self, channel: str, on_payload: Callable[[str], None]) -> AsyncGenerator[Executor]:
        """A dedicated connection that receives the payloads of NOTIFY. Use it every few seconds, too."""

        def receive(_connection: object, _pid: int, _channel: str, payload: str) -> None:
            on_payload(payload)

        connection = await self._connect(connection_options(self._statement_timeout, idle_session_timeout="10s"))
        try:
            await connection.add_listener(channel, receive)
            yield Executor(connection)
        finally:
            connection.terminate()

    async def _connect(self, options: dict[str, Any]) -> Any:
        connection, self.is_citus = await connect(self._dsn, options, self._on_statement)
        self._has_connected = True
        return connection


# A function of the owner, because only the owner of a table can analyse it.
_ANALYZE = "select analyze_tables($1, $2)"
