"""Errors of statements: those that show that the database is unavailable, and violated constraints."""

import re
from typing import Any, NamedTuple

import asyncpg

from plankeeper.database.pool import PoolExhaustedError

# Raised if the server is unreachable, starting, stopping, full or too slow, or if it cancels the transaction.
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
    asyncpg.PostgresIOError,  # also what Citus reports if a node ends while it writes the rows of a statement
    asyncpg.InternalClientError,
    asyncpg.TransactionRollbackError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.LockNotAvailableError,
    asyncpg.InvalidCachedStatementError,
)


# What Citus and, for a connection that ends during a statement, libpq say.
_NODE_FAILURE = re.compile(
    "connection to the remote node|failure on connection marked as essential|server closed the connection unexpectedly"
    "|connection not open|no connection to the server|could not (receive data from|send data to) server"
    "|could not commit transaction for shard|failed to prepare transaction"
)


def is_unavailable(error: Exception) -> bool:
    """Whether the database, not the request or the code, caused an error: the same call may succeed a moment later."""
    # Citus reports some failures of a node without a code.
    if isinstance(error, asyncpg.InternalServerError):
        return _NODE_FAILURE.search(str(error)) is not None
    # asyncpg reports an argument of the wrong type as an interface error, but that is an error in the code.
    return isinstance(error, _UNAVAILABLE) and not isinstance(error, asyncpg.DataError | ValueError)


class ConstraintViolation(NamedTuple):
    """A constraint that a statement violated: its name, and PostgreSQL's detail about the key."""

    constraint: str
    detail: str


# Citus reports an error of a node without the fields, and the name of a constraint with the number of the shard.
_SHARD_CONSTRAINT = re.compile(r'constraint "([^"]+)_[0-9]+"')


def constraint_violation(error: asyncpg.IntegrityConstraintViolationError) -> ConstraintViolation:
    untyped: Any = error
    name = untyped.constraint_name
    if name is None and (match := _SHARD_CONSTRAINT.search(str(error))):
        name = match[1]
    return ConstraintViolation(str(name), str(untyped.detail))


def set_statement_name(error: Exception, name: str) -> None:
    """Name the statement that raised an error, for its line in the log.

    Queued writes are sent by other code than the code that created them, so the traceback doesn't identify them.
    """
    untyped: Any = error
    untyped.statement_name = name
