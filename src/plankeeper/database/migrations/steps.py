"""The steps of a migration that runs while servers serve requests.

Each step is a transaction of its own, so a migration holds one lock at a time, and only briefly. A lock that isn't
free within LOCK_TIMEOUT is given up, so that the requests behind it can continue, and tried again later.
A migration can end between two steps and is then repeated from the first one: each step must do nothing the second
time (`if not exists`). See "Write a migration" in docs/first-change.md.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, LiteralString, TypeVar
from uuid import UUID

from alembic import context, op
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.util import await_only

from plankeeper.database.schema import MigrationLockError, MigrationProgress

T = TypeVar("T")

LOCK_TIMEOUT = "500ms"  # requests that need the same table wait for as long
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0  # seconds until a lock is tried again
RETRY_PERIOD = 600.0  # seconds until a migration gives up
BATCH_SIZE = 1000  # rows of one transaction of `update_in_batches`

_LOCK_ERRORS = {"55P03": "lock_not_available", "40P01": "deadlock_detected"}
_WAITING = ", waiting for a lock that another transaction holds"

_IS_INVALID = "select exists (select from pg_index where indexrelid = to_regclass(:name) and not indisvalid)"
_HAS_CONSTRAINT = "select exists (select from pg_constraint where conrelid = to_regclass(:table) and conname = :name)"


def execute(statement: LiteralString) -> None:
    """Run one statement, such as `create table if not exists` or `alter table … add column if not exists`."""
    _report(" ".join(statement.split())[:60])
    _retry(lambda: _run(statement))


def create_index(name: LiteralString, on: LiteralString, *, unique: bool = False) -> None:
    """Create an index without blocking writes: `create_index("users_by_name", "users (plan_manager_id, name)")`.

    It waits for the end of every transaction that is older, without a timeout, because it blocks no requests.
    """
    kind: LiteralString = "unique index" if unique else "index"

    def build() -> None:
        if _scalar(_IS_INVALID, name=name):  # an attempt was interrupted
            _run(f"drop index concurrently {name}", lock_timeout="0")
        _run(f"create {kind} concurrently if not exists {name} on {on}", lock_timeout="0")

    _report(f"index {name}")
    _retry(build)


def drop_index(name: LiteralString) -> None:
    """Drop an index without blocking reads and writes."""
    _report(f"dropping index {name}")
    _retry(lambda: _run(f"drop index concurrently if exists {name}", lock_timeout="0"))


def add_constraint(table: LiteralString, name: LiteralString, definition: LiteralString) -> None:
    """Add a check or a foreign key: first for new rows, then check the existing ones without blocking writes."""

    def add() -> None:
        if not _scalar(_HAS_CONSTRAINT, table=table, name=name):
            _run(f"alter table {table} add constraint {name} {definition} not valid")

    _report(f"constraint {name}")
    _retry(add)
    _retry(lambda: _run(f"alter table {table} validate constraint {name}"))


def drop_constraint(table: LiteralString, name: LiteralString) -> None:
    """Drop a constraint on which no server relies, also not one of the release before."""
    execute(f"alter table {table} drop constraint if exists {name}")


def update_in_batches(table: LiteralString, assignments: LiteralString, where: LiteralString) -> None:
    """Update the rows of a tenant table that meet a condition, a thousand per transaction, in order of their ids.

    The condition must not hold for an updated row.
    """
    statement: LiteralString = f"""
        with batch as (
            select id from {table} where plan_manager_id = :plan_manager_id and id > :after order by id limit :size
        ), updated as (
            update {table} set {assignments}
            where plan_manager_id = :plan_manager_id and id in (select id from batch) and ({where})
        )
        select id from batch order by id desc limit 1
    """
    for plan_manager_id in _plan_manager_ids():
        last: UUID | None = UUID(int=0)
        while last is not None:
            _report(f"updating {table} after {last}")
            values = {"plan_manager_id": plan_manager_id, "after": last, "size": BATCH_SIZE}
            last = _retry(lambda values=values: _scalar(statement, **values))


def require_servers(revision: LiteralString) -> None:
    """Servers that expect an older revision aren't ready from now on. Call it before an incompatible step."""
    _report(f"servers require {revision}")
    _retry(
        lambda: _run(
            f"update schema_compatibility set oldest_compatible = '{revision}' where oldest_compatible < '{revision}'"
        )
    )


def retry_while_locked(attempt: Callable[[], T]) -> T:
    """Repeat an action until no other transaction holds its lock. Raises MigrationLockError after RETRY_PERIOD."""
    deadline, pause = time.monotonic() + RETRY_PERIOD, FIRST_PAUSE
    while True:
        try:
            return attempt()
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in _LOCK_ERRORS:
                raise
            if time.monotonic() > deadline:
                raise MigrationLockError from error
        _report_lock()
        sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def sleep(seconds: float) -> None:
    """Pause without blocking the event loop that the migration's connection uses."""
    await_only(asyncio.sleep(seconds))


def _retry(attempt: Callable[[], T]) -> T:
    """Run an attempt outside a transaction, and repeat it while it lacks a lock."""
    with op.get_context().autocommit_block():
        return retry_while_locked(attempt)


def _run(statement: LiteralString, lock_timeout: str = LOCK_TIMEOUT) -> None:
    _scalar("select set_config('lock_timeout', :value, false)", value=lock_timeout)
    op.get_bind().exec_driver_sql(statement)


def _scalar(query: LiteralString, **values: object) -> Any:
    return op.get_bind().scalar(text(query), values)


def _plan_manager_ids() -> list[UUID]:
    with op.get_context().autocommit_block():
        return [*op.get_bind().scalars(text("select id from plan_managers order by id"))]


def _progress() -> MigrationProgress:
    return context.config.attributes["progress"]


def _report(step: str) -> None:
    _progress().step = step


def _report_lock() -> None:
    step = _progress().step.removesuffix(_WAITING)
    _progress().step = f"{step}{_WAITING}"
