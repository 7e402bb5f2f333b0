"""Opens connections with the settings that the statements expect."""

from typing import Any

import asyncpg

from plankeeper.database.observed_connection import ObservedConnection, OnStatement

# The statements that a connection keeps prepared. It is enough for all statements of the package, including those of
# each list for every set of filters (a contract test counts them), so no client displaces the statements of others.
STATEMENT_CACHE_SIZE = 750

_asyncpg: Any = asyncpg  # its functions have no types that pyright accepts in strict mode

# Citus finds the node of a plan manager only in a plan for the values. A node that doesn't respond fails in 5 seconds.
# Where Citus hides shards from queries of the catalogue, asyncpg's query about types takes half a minute.
_CONFIGURE_CITUS = """
    select set_config('plan_cache_mode', 'auto', false), set_config('citus.node_connection_timeout', '5000', false),
        set_config('citus.override_table_visibility', 'off', false)
    from pg_extension where extname = 'citus'
"""


async def connect(dsn: str, options: dict[str, Any], on_statement: OnStatement | None) -> tuple[Any, bool]:
    """A connection, and whether its database has the extension Citus. `on_statement` is called after each statement."""
    if on_statement:
        options = options | {"connection_class": ObservedConnection}
    connection = await _asyncpg.connect(dsn, **options)
    try:
        is_citus = await connection.fetchval(_CONFIGURE_CITUS) is not None
    except BaseException:
        connection.terminate()
        raise
    if on_statement:
        connection.on_statement = on_statement
    return connection, is_citus


def connection_options(command_timeout: float, **settings: str) -> dict[str, Any]:
    """The options of asyncpg for connections whose statements take at most `command_timeout` seconds."""
    # A statement that waits for a row lock fails in time for the requests that wait for its connection.
    defaults = {
        "application_name": "plankeeper",
        "timezone": "UTC",
        "jit": "off",
        "random_page_cost": "1.1",
        # Each statement has one suitable plan. Planning it for each set of values took half of its time.
        "plan_cache_mode": "force_generic_plan",
    }
    lock_settings = {"lock_timeout": f"{min(5.0, command_timeout / 2):g}s" if command_timeout <= 60 else "0"}
    return {
        "timeout": 5,
        "command_timeout": command_timeout,
        "statement_cache_size": STATEMENT_CACHE_SIZE,
        "server_settings": defaults | lock_settings | settings,
    }
