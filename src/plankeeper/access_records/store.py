"""Access records in SQL."""

from collections.abc import AsyncGenerator
from typing import LiteralString
from uuid import UUID

from plankeeper.access_records.schemas import AccessRecord, AccessRecordFilter
from plankeeper.database.client import Executor, Transaction

COLUMNS: LiteralString = """
        id, accessed_at, actor_kind, actor_id, actor_name, action, resource_kind, resource_id, query, first_id,
        last_id, request_id"""

# Of several workers that serve a key the same record within an hour, the first one records it.
INSERT: LiteralString = f"""
    insert into access_records (plan_manager_id, {COLUMNS})
    select $1, {COLUMNS} from json_populate_recordset(null::access_records, $2)
    on conflict do nothing
"""


async def insert(db: Executor, plan_manager_id: UUID, records: str) -> None:
    """Insert records that aren't there yet. `records` is a JSON list of AccessRecordRow."""
    await db.execute(INSERT, plan_manager_id, records)


# A page of a list is in order of the ids, so it may contain every record between its first and its last.
IS_OF_RESOURCE: LiteralString = "resource_id = $2 or (resource_id is null and $2 between first_id and last_id)"
LIST_LATEST: LiteralString = f"""
    select {COLUMNS}
    from access_records
    where plan_manager_id = $1 and ($2::uuid is null or {IS_OF_RESOURCE})
        and ($3::text is null or lower(actor_name) = lower($3))
        and ($4::uuid is null or id < $4)
    order by id desc
    limit $5
"""


async def list_latest(
    db: Executor, plan_manager_id: UUID, filters: AccessRecordFilter, before: UUID | None, limit: int
) -> list[AccessRecord]:
    """The newest records first; with `before`, only those with lower ids."""
    return await db.rows(
        AccessRecord, LIST_LATEST, plan_manager_id, filters.resource_id, filters.actor_name, before, limit
    )


EXPORT: LiteralString = f"select {COLUMNS} from access_records where plan_manager_id = $1 order by id"


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[AccessRecord]]:
    return tx.stream(AccessRecord, EXPORT, plan_manager_id)


PURGE = """
    delete from access_records where plan_manager_id = $1 and id in (
        select id from access_records where plan_manager_id = $1 and id < $2 order by id limit $3
    )
"""


async def purge(db: Executor, plan_manager_id: UUID, before_id: UUID, limit: int) -> None:
    """Delete the oldest records with ids lower than `before_id`, up to a limit."""
    await db.execute(PURGE, plan_manager_id, before_id, limit)
