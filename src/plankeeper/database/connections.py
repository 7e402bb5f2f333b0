"""Connections with the settings that the statements expect, which report their statements by name."""

import asyncio
import re
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import cache, lru_cache
from typing import Any
from urllib.parse import urlsplit

import asyncpg

# Called after each statement: its text, its seconds, and its error. It must be fast, and must not raise.
OnStatement = Callable[[str, float, BaseException | None], None]


def notify_all(*observers: OnStatement | None) -> OnStatement | None:
    """One observer for all that aren't None, or None."""
    given = [each for each in observers if each]
    if len(given) < 2:
        return given[0] if given else None

    def notify(statement: str, seconds: float, error: BaseException | None) -> None:
        for each in given:
            each(statement, seconds, error)

    return notify


_Connection: Any = asyncpg.Connection  # without types that pyright accepts in strict mode


def _ignore(_statement: str, _seconds: float, _error: BaseException | None) -> None:
    """While the connection is opened, asyncpg runs statements of its own."""


class ObservedConnection(_Connection):
    """Reports statements and COPY. The rows of a cursor aren't reported."""

    on_statement: OnStatement = staticmethod(_ignore)

    async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._observe(query, _Connection.fetch(self, query, *args, **options))

    async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._observe(query, _Connection.fetchrow(self, query, *args, **options))

    async def execute(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._observe(query, _Connection.execute(self, query, *args, **options))

    async def copy_records_to_table(self, table_name: str, **options: Any) -> Any:
        return await self._observe(f"copy {table_name}", _Connection.copy_records_to_table(self, table_name, **options))

    async def _observe(self, statement: str, running: Any) -> Any:
        started_at = time.perf_counter()
        try:
            result = await running
        except BaseException as error:
            self.on_statement(statement, time.perf_counter() - started_at, error)
            raise
        self.on_statement(statement, time.perf_counter() - started_at, None)
        return result


# The statements that a connection keeps prepared. It is enough for all statements of the package, including those of
# each list for every set of filters (a contract test counts them), so no client displaces the statements of others.
STATEMENT_CACHE_SIZE = 1360

_asyncpg: Any = asyncpg  # its functions have no types that pyright accepts in strict mode

# Citus finds the node of a plan manager only in a plan for the values. A node that doesn't respond fails in 5 seconds.
# Where Citus hides shards from queries of the catalogue, asyncpg's query about types takes half a minute.
_CONFIGURE_CITUS = """
    select set_config('plan_cache_mode', 'auto', false), set_config('citus.node_connection_timeout', '5000', false),
        set_config('citus.override_table_visibility', 'off', false)
    from pg_extension where extname = 'citus'
"""

_MAX_PORT = 65535
_PORTS = re.compile(r":(\d+)(?=,|$)")


def _check_ports(dsn: str) -> None:
    """Raise ValueError for a port above 65535. uvloop would use its last 16 bits, and so connect to another port."""
    for port in _PORTS.findall(urlsplit(dsn).netloc.rpartition("@")[2]):
        if int(port) > _MAX_PORT:
            raise ValueError(f"there is no port {port}; the highest is {_MAX_PORT}")


async def connect(dsn: str, options: dict[str, Any], on_statement: OnStatement | None) -> tuple[Any, bool]:
    """A connection, and whether its database has the extension Citus. `on_statement` is called after each statement."""
    _check_ports(dsn)
    if on_statement:
        options = options | {"connection_class": ObservedConnection}
    try:
        connection = await _asyncpg.connect(dsn, **options)
    except asyncpg.ObjectNotInPrerequisiteStateError as error:  # the database doesn't allow connections now
        raise asyncpg.CannotConnectNowError(str(error)) from error
    try:
        is_citus = await connection.fetchval(_CONFIGURE_CITUS) is not None
    except BaseException:
        connection.terminate()
        raise
    if on_statement:
        connection.on_statement = on_statement
    return connection, is_citus


# PostgreSQL ends a slow statement itself, so that nothing of it is written. Seconds after that, the client gives up on
# a server that doesn't respond: only then is it unknown whether the statement was committed.
_CLIENT_GRACE = 2.0


def connection_options(statement_timeout: float, **settings: str) -> dict[str, Any]:
    """The options of asyncpg for connections whose statements take at most `statement_timeout` seconds."""
    # A statement that waits for a row lock fails in time for the requests that wait for its connection.
    defaults = {
        "statement_timeout": f"{statement_timeout * 1000:.0f}ms",
        "application_name": "plankeeper",
        "timezone": "UTC",
        "jit": "off",
        "random_page_cost": "1.1",
        # Each statement has one suitable plan. Planning it for each set of values took half of its time.
        "plan_cache_mode": "force_generic_plan",
    }
    lock_settings = {"lock_timeout": f"{min(5.0, statement_timeout / 2):g}s" if statement_timeout <= 60 else "0"}
    return {
        "timeout": 5,
        "command_timeout": statement_timeout + _CLIENT_GRACE,
        "statement_cache_size": STATEMENT_CACHE_SIZE,
        "server_settings": defaults | lock_settings | settings,
    }


MAX_NAMES = 5000  # statements whose names are kept: those of the package, and the last ones that were composed

_composed: dict[str, str] = {}
_combined: dict[str, tuple[str, ...]] = {}  # few: services combine the same writes


def name_composed(statement: str, name: str) -> None:
    """Record the name of a statement that `database.filters` has composed."""
    if len(_composed) >= MAX_NAMES:
        del _composed[next(iter(_composed))]
    _composed[statement] = name


def name_combined(statement: str, parts: tuple[str, ...]) -> None:
    """Record the names of the statements that `database.combined_writes` has combined into one."""
    _combined[statement] = parts


@lru_cache(MAX_NAMES)
def statement_name(statement: str) -> str:
    """The constant of a statement, such as `events.store.GET`, or else its first words, such as `commit`."""
    if parts := _combined.get(statement):
        return " + ".join(map(statement_name, parts))
    return _composed.get(statement) or _constants().get(statement) or _abbreviate(statement)


@cache
def _constants() -> dict[str, str]:
    """Every constant of the modules that are imported now, by its value."""
    names: dict[str, str] = {}
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("plankeeper."):
            for name, value in vars(module).items():
                text = getattr(value, "statement", value)  # of a Write
                if name.isupper() and isinstance(text, str) and " " in text:
                    names.setdefault(text, f"{module_name.removeprefix('plankeeper.')}.{name}")
    return names


def _abbreviate(statement: str) -> str:
    """A short statement without its semicolon, such as `copy events`; of another one, the first word."""
    words = statement.rstrip(";").lower().split()
    return " ".join(words if len(words) <= 2 else words[:1])


BATCH_SIZE = 1000


async def read_batches(cursor: Any) -> AsyncGenerator[Sequence[Any]]:
    """The records of asyncpg's cursor. Until the generator is closed, the connection can be busy."""
    fetching = asyncio.create_task(cursor.fetch(BATCH_SIZE))
    try:
        while records := await fetching:
            fetching = asyncio.create_task(cursor.fetch(BATCH_SIZE))
            await asyncio.sleep(0)  # the task sends its request
            yield records
    finally:
        await asyncio.gather(fetching, return_exceptions=True)
