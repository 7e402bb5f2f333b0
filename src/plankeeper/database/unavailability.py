"""The causes of an unavailable database, with explanations for clients and operators, and a check of writes."""

import time
from typing import Literal

import asyncpg

from plankeeper.database.client import Database
from plankeeper.database.pool import PoolExhaustedError

Cause = Literal["disk_full", "read_only", "connections_exhausted", "pool_exhausted", "wrong_schema", "slow", "down"]

SENTENCES: dict[Cause, str] = {
    "disk_full": "The database's disk is full, so it can't write.",
    "read_only": "The database is read-only, so it can't write.",
    "connections_exhausted": "The database accepts no more connections.",
    "pool_exhausted": "All database connections of the server are in use.",
    "wrong_schema": "The database's schema belongs to another version of Plankeeper.",
    "slow": "The database took too long, or cancelled the statement.",
    "down": "The database does not respond.",
}

# A statement refers to something that the schema doesn't contain. Every statement is tested with the schema of its
# version, so the database has the schema of another one.
_SCHEMA_ERRORS = (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError, asyncpg.UndefinedFunctionError)
_CAUSES: tuple[tuple[Cause, tuple[type[Exception], ...]], ...] = (
    ("disk_full", (asyncpg.DiskFullError,)),
    ("read_only", (asyncpg.ReadOnlySQLTransactionError, asyncpg.TargetServerAttributeNotMatched)),
    ("connections_exhausted", (asyncpg.TooManyConnectionsError,)),
    ("pool_exhausted", (PoolExhaustedError,)),
    ("wrong_schema", _SCHEMA_ERRORS),
    (
        "slow",
        (
            TimeoutError,  # of asyncpg, if the database didn't cancel the statement itself
            asyncpg.QueryCanceledError,
            asyncpg.LockNotAvailableError,
            asyncpg.TransactionRollbackError,
        ),
    ),
)


# With the other causes, the connection may have been lost during a commit.
_NOTHING_WRITTEN: set[Cause] = {"disk_full", "read_only", "connections_exhausted", "pool_exhausted", "wrong_schema"}


def retry_advice(cause: Cause) -> str:
    """Advice to a client, in one or two sentences."""
    if cause in _NOTHING_WRITTEN:
        return "Nothing was written. Retry after `Retry-After` seconds."
    return (
        "Retry after `Retry-After` seconds, and retry a POST with the same Idempotency-Key: if the connection was lost"
        " during a commit, the write may have succeeded."
    )


def is_wrong_schema(error: Exception) -> bool:
    """Whether an error shows that the database has the schema of another version."""
    return isinstance(error, _SCHEMA_ERRORS)


def find_cause(error: Exception) -> Cause:
    """The cause of an error for which `is_unavailable` or `is_wrong_schema` is true."""
    for cause, kinds in _CAUSES:
        if isinstance(error, kinds):
            return cause
    return "down"


CHECK_INTERVAL = 2.0  # seconds

_IS_READ_ONLY = "select current_setting('transaction_read_only') = 'on'"
# PostgreSQL materialises 400 kB with the least memory, so it writes them to a temporary file, on the disk of the
# database. Unlike a write to a table, this leaves nothing behind.
USE_LITTLE_MEMORY = """
    select set_config('work_mem', '64kB', true) || set_config('temp_tablespaces', '', true)
"""
WRITE_TEMPORARY_FILE = """
    with filler as materialized (select repeat('x', 8000) as text from generate_series(1, 50))
    select count(text) from filler
"""


async def check_writes(db: Database) -> Cause | None:
    """The reason why the database can't write, or None if it can. Raises the errors of an unavailable database."""
    try:
        async with db.transaction() as tx:
            if await tx.one(bool, _IS_READ_ONLY):
                # As a write would. The pool closes the connection, because it could stay read-only for ever.
                raise asyncpg.ReadOnlySQLTransactionError  # noqa: TRY301 - inside the transaction
            await tx.one(str, USE_LITTLE_MEMORY)
            await tx.one(int, WRITE_TEMPORARY_FILE)
    except (asyncpg.ReadOnlySQLTransactionError, asyncpg.DiskFullError) as error:
        return find_cause(error)
    return None


class WriteCheck:
    """`check_writes` at most once in CHECK_INTERVAL seconds, however often clients ask."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._checked_at = -CHECK_INTERVAL
        self._cause: Cause | None = None

    async def cause(self) -> Cause | None:
        now = time.monotonic()
        if now - self._checked_at >= CHECK_INTERVAL:
            self._checked_at = now  # concurrent requests use the previous result
            try:
                self._cause = await check_writes(self._db)
            except BaseException:
                self._checked_at = -CHECK_INTERVAL
                raise
        return self._cause
