"""Checked files in SQL."""

import time
from uuid import UUID

from plankeeper.database.client import Database, Executor, Transaction
from plankeeper.imports import store
from plankeeper.imports.schemas import ImportFile

TRY_LOCK_IMPORT = "select pg_try_advisory_xact_lock(hashtextextended('import ' || $1::uuid::text, 0))"


async def try_lock_import(tx: Transaction, plan_manager_id: UUID) -> bool:
    """Try to become the plan manager's only import: two at once could deadlock."""
    return await tx.one(bool, TRY_LOCK_IMPORT, plan_manager_id)


INSERT = """
    insert into import_files (plan_manager_id, id, resource, name, content, created_by, created_at)
    values ($1, $2, $3, $4, $5, $6, $7)
"""


async def insert(tx: Transaction, plan_manager_id: UUID, file: ImportFile) -> None:
    await tx.execute(
        INSERT, plan_manager_id, file.id, file.resource, file.name, file.content, file.created_by, file.created_at
    )


GET_CONTENT = """
    select content
    from import_files
    where plan_manager_id = $1 and id = $2 and created_by = $3
        and created_at > statement_timestamp() - $4 * interval '1 hour'
"""


async def get_content(db: Executor, plan_manager_id: UUID, file_id: UUID, account_id: UUID, hours: int) -> bytes | None:
    """The content of a file that an account uploaded within the last hours."""
    return await db.one_or_none(bytes, GET_CONTENT, plan_manager_id, file_id, account_id, hours)


DELETE = "delete from import_files where plan_manager_id = $1 and id = $2"


async def delete(tx: Transaction, plan_manager_id: UUID, file_id: UUID) -> None:
    await tx.execute(DELETE, plan_manager_id, file_id)


DELETE_ALL_BUT_NEWEST = """
    delete from import_files
    where plan_manager_id = $1 and created_by = $2 and id <> all (array(
        select id from import_files where plan_manager_id = $1 and created_by = $2 order by id desc limit $3
    ))
"""


async def delete_all_but_newest(tx: Transaction, plan_manager_id: UUID, account_id: UUID, keep_count: int) -> None:
    """Delete all files of an account except the newest `keep_count`."""
    await tx.execute(DELETE_ALL_BUT_NEWEST, plan_manager_id, account_id, keep_count)


PURGE = """
    -- one task deletes the expired files of all plan managers
    delete from import_files where created_at < statement_timestamp() - $1 * interval '1 hour'
"""


async def purge(db: Executor, hours: int) -> None:
    """Delete files that weren't imported within some hours."""
    await db.execute(PURGE, hours)


CHECK_INTERVAL = 60.0  # seconds


class ImportRetention:
    """A periodic task: deletes expired data once a minute. A retention of None keeps it forever."""

    def __init__(self, file_hours: int, rejected_row_days: int | None, record_days: int | None) -> None:
        self._file_hours, self._rejected_row_days, self._record_days = file_hours, rejected_row_days, record_days
        self._next_check = 0.0

    async def __call__(self, db: Database) -> None:
        if time.monotonic() < self._next_check:
            return
        self._next_check = time.monotonic() + CHECK_INTERVAL
        await store.purge_uploaded(db, self._file_hours)
        if self._rejected_row_days:
            await store.purge_rejected(db, self._rejected_row_days)
            await store.clear_columns(db, self._rejected_row_days)
        if self._record_days:
            await store.purge_imported(db, self._record_days)
