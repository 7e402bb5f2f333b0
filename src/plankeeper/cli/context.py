"""Shared by the commands: settings, the database, and error messages."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NoReturn, TypeVar
from uuid import UUID

import asyncpg
import click
import uvloop

from plankeeper.access.plan_managers.store import get
from plankeeper.cli.progress import LineWriter, echo_line, migrate_with_progress
from plankeeper.core.context import Actor, WriteContext
from plankeeper.core.settings import SettingError, Settings
from plankeeper.database import privileges, schema
from plankeeper.database.client import Database, Executor, Transaction
from plankeeper.database.errors import is_unavailable
from plankeeper.database.unavailability import SENTENCES, find_cause
from plankeeper.server.embedded_postgres.binaries import ClusterError
from plankeeper.server.embedded_postgres.cluster import Cluster
from plankeeper.server.embedded_postgres.creation import SERVING_ROLE

T = TypeVar("T")
Line = tuple[str, str]  # of `doctor`: ok, warn or FAIL, and a sentence without its full stop


class DatabaseError(click.ClickException):
    """A command can't use the database. `reason` is for the log: without the text of PostgreSQL or of the driver."""

    def __init__(self, reason: str, text: str, cause: Exception, note: str = "") -> None:
        super().__init__(f"{reason}: {text}.{note}")
        self.reason, self.cause = reason, cause


class DatabaseUnavailableError(DatabaseError):
    """The database doesn't respond, or can't do what the command requires just now."""

    def __init__(self, error: Exception, note: str = "") -> None:
        cause, reason = find_cause(error), "The database is unavailable"
        if cause != "down":
            reason += f": {SENTENCES[cause][0].lower()}{SENTENCES[cause][1:].rstrip('.')}"
        # The driver reports a closed connection as an interface error.
        is_own_fault = isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError)
        text = "the connection ended" if is_own_fault else str(error) or type(error).__name__
        super().__init__(reason, text, error, note)


CANCEL_RETRY_INTERVAL = 3.0  # seconds
# Connections of the embedded PostgreSQL that the workers use; the rest is for commands.
_EMBEDDED_CONNECTIONS = 80


def load_settings() -> Settings:
    try:
        return Settings.read()
    except SettingError as error:
        raise click.ClickException(str(error)) from None


def embedded_pool_size(settings: Settings) -> int:
    """The pool size of each worker with the embedded PostgreSQL, which allows 100 connections."""
    return min(settings.pool_size, max(2, _EMBEDDED_CONNECTIONS // settings.workers - 3))


@contextmanager
def embedded_cluster(settings: Settings, *, creates: bool = False) -> Generator[Cluster | None]:
    """The running embedded PostgreSQL, or None if the settings name a database.

    Without `creates`, its data folder must exist, so that a command in the wrong folder doesn't create another one.
    """
    signal.signal(signal.SIGTERM, exit_cleanly)
    if settings.database_url:
        yield None
        return
    cluster = Cluster(settings.data_dir, settings.postgres_bin)
    try:
        if not creates:
            cluster.require_existing()
        with cluster:
            yield cluster
    except ClusterError as error:
        raise click.ClickException(str(error)) from None
    except DatabaseUnavailableError as error:
        problem = cluster.last_problem()
        note = f" PostgreSQL's log is {cluster.log}" + (f": {problem}." if problem else ".")
        raise DatabaseUnavailableError(error.cause, note) from None


def serve_metrics(host: str, port: int) -> None:
    """Serve `/metrics` on a port of its own, in a thread."""
    from prometheus_client import start_http_server

    from plankeeper.server.metrics import registry

    try:
        start_http_server(port, host, registry())
    except OSError as error:
        raise click.ClickException(
            f"Cannot listen on {host} port {port} for metrics: {error.strerror}."
            " Choose another with PLANKEEPER_METRICS_PORT."
        ) from None


def exit_cleanly(_number: int = 0, _frame: object = None) -> NoReturn:
    """Handler of SIGTERM that exits through `finally` blocks and context managers."""
    sys.exit(143)


def with_database(work: Callable[[Database, Settings], Awaitable[T]]) -> T:
    """Run a command's work on a database with the current schema. An embedded database is migrated first."""
    settings = load_settings()
    with embedded_cluster(settings) as cluster:
        return run(partial(_with_schema, work, settings, cluster))


def in_transaction(work: Callable[[Transaction, Settings], Awaitable[T]]) -> T:
    """Run a command's work in one transaction."""

    async def run_work(db: Database, settings: Settings) -> T:
        async with db.transaction() as tx:
            return await work(tx, settings)

    return with_database(run_work)


def write(plan_manager_id: UUID, command: str, work: Callable[[WriteContext], Awaitable[T]]) -> T:
    """Run a write of the system actor in one transaction. Raises ClickException for an unknown plan manager."""

    async def run_work(tx: Transaction, settings: Settings) -> T:
        return await work(await system_context(tx, settings, plan_manager_id, command))

    return in_transaction(run_work)


async def _with_schema(
    work: Callable[[Database, Settings], Awaitable[T]], settings: Settings, cluster: Cluster | None
) -> T:
    if cluster:
        await prepare_embedded(cluster)
    # An import of a million rows takes longer than the statement timeout of a request.
    async with Database(serving_dsn(settings, cluster), pool_size=2, statement_timeout=600).open() as db:
        await require_schema(db)
        return await work(db, settings)


def serving_dsn(settings: Settings, cluster: Cluster | None) -> str:
    """The database's address with the role that serves."""
    return cluster.dsn if cluster else settings.database_url or ""


def owner_dsn(settings: Settings, cluster: Cluster | None) -> str:
    """The database's address with the role that owns the tables."""
    return cluster.owner_dsn if cluster else settings.owner_database_url or settings.database_url or ""


async def prepare_embedded(cluster: Cluster, write_line: LineWriter = echo_line) -> None:
    """Migrate an embedded database, and give the role that serves its privileges."""
    async with Database(cluster.owner_dsn, pool_size=2, statement_timeout=3600).open() as db:
        await supported_schema_version(db)
        await migrate_with_progress(db, cluster.owner_dsn, write_line)
        async with db.transaction() as tx:
            await privileges.prepare_role(tx, SERVING_ROLE)


async def require_schema(db: Database) -> None:
    """Raise ClickException if the database's schema is not one that this program works with."""
    version = await supported_schema_version(db)
    if version is None or not version.is_compatible:
        revision = version.revision if version else "empty"
        raise click.ClickException(
            f"The database's schema is {revision}, but this Plankeeper requires {schema.LATEST_REVISION}."
            " Run `plankeeper migrate`."
        )


async def supported_schema_version(db: Database) -> schema.SchemaVersion | None:
    """The schema's version. Raises ClickException if it is newer than this program, unless it is compatible.

    Also raises ClickException if the address is invalid.
    """
    try:
        version = await schema.current_version(db)
    except (ValueError, OverflowError) as error:  # an invalid port or option in the address
        raise DatabaseError("Cannot connect with PLANKEEPER_DATABASE_URL", str(error), error) from None
    if version is not None and version.is_newer and not version.is_compatible:
        raise click.ClickException(
            f"The database's schema is {version.revision}, but this Plankeeper supports no newer schema than"
            f" {schema.LATEST_REVISION}. Run the newer version of Plankeeper, or restore an older backup."
        )
    return version


def run_as_owner(work: Callable[[], Awaitable[T]]) -> T:
    """`run` for work that connects as the owner of the tables."""
    if os.environ.get("PLANKEEPER_OWNER_DATABASE_URL"):
        return run(work, variable="PLANKEEPER_OWNER_DATABASE_URL")
    try:
        return run(work)
    except DatabaseError as error:
        if isinstance(error.cause, asyncpg.InsufficientPrivilegeError):
            note = " Set PLANKEEPER_OWNER_DATABASE_URL to the address with the role that owns the tables."
            raise DatabaseError(error.reason, str(error.cause), error.cause, note) from None
        raise


def run(work: Callable[[], Awaitable[T]], variable: str = "PLANKEEPER_DATABASE_URL") -> T:
    """Run the work of a command. Errors of the database become a ClickException that explains them.

    `work` is a function: Python warns about a coroutine that nothing awaits, because a signal has come first.
    `variable` is the one with the database's address.
    """
    try:
        return run_until_signal(work)
    except (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError) as error:
        raise DatabaseError(f"Cannot connect with {variable}", str(error), error) from None
    except asyncpg.InsufficientPrivilegeError as error:
        raise DatabaseError("The database user lacks a privilege", str(error), error) from None
    except BrokenPipeError:
        raise  # from standard output: asyncpg reports a closed database connection with other exceptions
    except Exception as error:
        if is_unavailable(error):
            raise DatabaseUnavailableError(error) from None
        raise


def run_until_signal(work: Callable[[], Awaitable[T]]) -> T:
    """As `run`, for a command without a database."""
    # On asyncio's default event loop, a process that exits just after it has used obstore can be aborted.
    with delay_signals() as signals, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_until_signal(work, signals))


class _Signals:
    """The signals that a command has received."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self.on_signal: Callable[[], Any] = lambda: None

    def handle(self, number: int, _frame: object) -> None:
        self.received.append(number)
        self.on_signal()


@contextmanager
def delay_signals() -> Generator[_Signals]:
    """Delay SIGINT until the end of the block, and SIGTERM if its handler is `exit_cleanly`.

    Exiting at once would interrupt asyncpg in the middle of a response, or uvloop and asyncio while they start
    or end. In a callback of the garbage collector, Python would print the exception and go on.
    """
    signals = _Signals()
    # Without exit_cleanly as its handler, SIGTERM ends the program immediately.
    is_term_handled = signal.getsignal(signal.SIGTERM) == exit_cleanly
    numbers = [signal.SIGINT, *([signal.SIGTERM] if is_term_handled else [])]
    try:
        with ExitStack() as previous_handlers:
            for number in numbers:
                previous_handlers.callback(signal.signal, number, signal.signal(number, signals.handle))
            yield signals
    except asyncio.CancelledError:
        if not signals.received:
            raise
    if signal.SIGTERM in signals.received:
        exit_cleanly()
    if signals.received:
        raise KeyboardInterrupt


async def _until_signal(work: Callable[[], Awaitable[T]], signals: _Signals) -> T:
    """Cancel the work on a signal. Libraries occasionally swallow a cancellation, so it is repeated until the end."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def cancel() -> None:
        if task and not task.done():
            task.cancel()
            loop.call_later(CANCEL_RETRY_INTERVAL, cancel)

    signals.on_signal = lambda: loop.call_soon_threadsafe(cancel)
    try:
        if signals.received:
            raise asyncio.CancelledError
        return await work()
    finally:
        signals.on_signal = lambda: None


async def system_context(tx: Transaction, settings: Settings, plan_manager_id: UUID, command: str) -> WriteContext:
    """The context of a write by the system actor. Raises ClickException if the plan manager does not exist."""
    await require_plan_manager(tx, plan_manager_id)
    return WriteContext(tx, plan_manager_id, settings, Actor("system", None, f"plankeeper {command}"))


async def require_plan_manager(db: Executor, plan_manager_id: UUID) -> None:
    if await get(db, plan_manager_id) is None:
        raise click.ClickException(f"There is no plan manager {plan_manager_id}. See `plankeeper plan-managers list`.")
