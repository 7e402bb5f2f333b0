"""Shared by the commands: settings, the database, error messages, and the parameter types."""

import asyncio
import re
import signal
import sys
import unicodedata
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NoReturn, TypeVar
from uuid import UUID

import asyncpg
import click

from plankeeper.cli.progress import LineWriter, echo_line, migrate_with_progress
from plankeeper.database import schema
from plankeeper.database.client import Database, Executor, Transaction, is_unavailable
from plankeeper.database.unavailability import SENTENCES, find_cause
from plankeeper.embedded_postgres.binaries import ClusterError
from plankeeper.embedded_postgres.cluster import Cluster
from plankeeper.http.context import Actor, WriteContext
from plankeeper.http.parsing import parse_uuid
from plankeeper.plan_managers.store import get
from plankeeper.setting_parsers import parse_rate_limit
from plankeeper.settings import SettingError, Settings

T = TypeVar("T")


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
        # The driver reports a connection that ended as a wrong use of itself.
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
def embedded_cluster(settings: Settings) -> Generator[Cluster | None]:
    """The running embedded PostgreSQL, or None if the settings name a database."""
    if settings.database_url:
        yield None
        return
    signal.signal(signal.SIGTERM, exit_cleanly)
    cluster = Cluster(settings.data_dir, settings.postgres_bin)
    try:
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

    from plankeeper import metrics

    try:
        start_http_server(port, host, metrics.registry())
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
        return run(_with_schema(work, settings, cluster))


async def _with_schema(
    work: Callable[[Database, Settings], Awaitable[T]], settings: Settings, cluster: Cluster | None
) -> T:
    dsn = cluster.dsn if cluster else settings.database_url or ""
    # An import of a million rows takes longer than the statement timeout of a request.
    async with Database(dsn, pool_size=2, statement_timeout=600).open() as db:
        await require_schema(db, dsn, embedded=cluster is not None)
        return await work(db, settings)


async def require_schema(db: Database, dsn: str, *, embedded: bool, write_line: LineWriter = echo_line) -> None:
    """Migrate an embedded database. Raises ClickException if another database has a different schema."""
    version = await supported_schema_version(db)
    if embedded:
        await migrate_with_progress(db, dsn, write_line)
    elif version is None or not version.is_compatible:
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


def run(work: Any, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> Any:
    """Run a coroutine. Errors of the database become a ClickException that explains them."""
    work_until_signal = _until_signal(work)
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(work_until_signal)
    except _SignalReceivedError as received:
        if received.number == signal.SIGINT:
            raise KeyboardInterrupt from None
        exit_cleanly()
    except (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError) as error:
        raise DatabaseError("Cannot connect with PLANKEEPER_DATABASE_URL", str(error), error) from None
    except asyncpg.InsufficientPrivilegeError as error:
        raise DatabaseError("The database user lacks a privilege", str(error), error) from None
    except BrokenPipeError:
        raise  # from standard output: asyncpg reports a closed database connection with other exceptions
    except Exception as error:
        if is_unavailable(error):
            raise DatabaseUnavailableError(error) from None
        raise
    finally:
        # A signal can come before they start. Python would print a warning about coroutines that nothing awaited.
        work_until_signal.close()
        work.close()


class _SignalReceivedError(Exception):
    """A signal ended the work."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


async def _until_signal(work: Awaitable[T]) -> T:
    """Cancel the work on SIGINT or SIGTERM, then raise _SignalReceivedError.

    Exiting from the handler would interrupt asyncpg in the middle of a response. Libraries occasionally swallow a
    cancellation, so it is repeated until the work has ended.
    """
    loop, task, received = asyncio.get_running_loop(), asyncio.current_task(), list[int]()
    previous_handler = signal.getsignal(signal.SIGTERM)

    def cancel(number: int) -> None:
        received.append(number)
        if task and not task.done():
            task.cancel()
            loop.call_later(CANCEL_RETRY_INTERVAL, cancel, number)

    # Without exit_cleanly as its handler, SIGTERM ends the program immediately.
    handled_signals = [signal.SIGINT, *([signal.SIGTERM] if previous_handler == exit_cleanly else [])]
    for number in handled_signals:
        loop.add_signal_handler(number, cancel, number)
    try:
        return await work
    except asyncio.CancelledError:
        if received:
            raise _SignalReceivedError(received[0]) from None
        raise
    finally:
        for number in handled_signals:
            loop.remove_signal_handler(number)
        signal.signal(signal.SIGTERM, previous_handler)


async def system_context(tx: Transaction, settings: Settings, plan_manager_id: UUID, command: str) -> WriteContext:
    """The context of a write by the system actor. Raises ClickException if the plan manager does not exist."""
    await require_plan_manager(tx, plan_manager_id)
    return WriteContext(tx, plan_manager_id, settings, Actor("system", None, f"plankeeper {command}"))


async def require_plan_manager(db: Executor, plan_manager_id: UUID) -> None:
    if await get(db, plan_manager_id) is None:
        raise click.ClickException(f"There is no plan manager {plan_manager_id}. See `plankeeper plan-managers list`.")


class UuidType(click.ParamType[UUID]):
    """A UUID with hyphens."""

    name = "uuid"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> UUID:
        parsed = value if isinstance(value, UUID) else parse_uuid(value)
        return parsed or self.fail(f"{value!r} is not a UUID, such as 019a0000-0000-7000-8000-0000000000b1", param, ctx)


class NameType(click.ParamType[str]):
    """A display name: one line of text."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        has_control_characters = any(unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") for each in value)
        if has_control_characters or not value.strip() or len(value) > 255:
            self.fail("must be one line of 1 to 255 characters, and not blank", param, ctx)
        return value


class DurationType(click.ParamType[timedelta]):
    """A duration such as 30s, 15m, 12h or 90d."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        match = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", value)
        if not match:
            self.fail(f"{value!r} is not a duration, such as 30s, 15m, 12h or 90d", param, ctx)
        unit = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}[match[2]]
        return timedelta(**{unit: int(match[1])})


class LimitType(click.ParamType[int]):
    """Requests per minute: `600/minute`, or `off`, which is 0."""

    name = "limit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return value if isinstance(value, int) else parse_rate_limit(value)
        except ValueError as error:
            self.fail(f"{value!r} is not a rate limit; must be {error}", param, ctx)


UUID_TYPE = UuidType()
LIMIT = LimitType()
NAME = NameType()
DURATION = DurationType()
