"""Access records in SQL."""

from typing import LiteralString
from uuid import UUID

from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.access.access_log.schemas import AccessRecord, AccessRecordFilter
from plankeeper.core.context import WriteContext
from plankeeper.database.client import Executor
from plankeeper.events.recorder import record_event

COLUMNS: LiteralString = """
        id, accessed_at, actor_kind, actor_id, actor_name, action, resource_kind, resource_id, query, resource_ids,
        first_id, last_id, request_id"""

# Of several workers that serve a key the same record within an hour, the first one records it.
INSERT: LiteralString = f"""
    insert into access_records (plan_manager_id, {COLUMNS})
    select $1, {COLUMNS} from json_populate_recordset(null::access_records, $2)
    on conflict do nothing
"""


async def insert(db: Executor, plan_manager_id: UUID, records: str) -> None:
    """Insert records that aren't there yet. `records` is a JSON list of AccessRecordRow."""
    await db.execute(INSERT, plan_manager_id, records)


# The ids of the access records about some records. Each part has an index of its own.
IDS_ABOUT: LiteralString = """
            select id from access_records where plan_manager_id = $1 and resource_id = any ($2::uuid[])
            union all
            select id from access_records
            where plan_manager_id = $1 and resource_ids is not null and resource_ids && $2::uuid[]
            union all
            select listed.id
            from unnest($2::uuid[]) as own
            join access_records listed on listed.plan_manager_id = $1 and first_id <= own and last_id >= own"""
MATCHING: LiteralString = """
    from access_records
    where plan_manager_id = $1
        and id > coalesce($3::uuid, '00000000-0000-0000-0000-000000000000')
        and id < coalesce($4::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
        and ($5::text is null or actor_id = $5)
        and ($6::text is null or actor_kind = $6)
        and ($7::text is null or action = $7)
        and ($8::text is null or lower(actor_name) = lower($8))"""
ALL: LiteralString = f"{MATCHING} and $2::uuid[] is null"
# As an array, because the planner would join a subquery by scanning the whole log.
ABOUT: LiteralString = f"""{MATCHING}
        and id = any (array({IDS_ABOUT}
        ))"""
LIST_NEWEST: LiteralString = f"select {COLUMNS} {ALL} order by id desc limit $9"
LIST_NEWEST_ABOUT: LiteralString = f"select {COLUMNS} {ABOUT} order by id desc limit $9"


async def list_newest(
    db: Executor, plan_manager_id: UUID, filters: AccessRecordFilter, limit: int
) -> list[AccessRecord]:
    """The matching records, the newest first."""
    if filters.record_ids is None:
        return await db.rows(AccessRecord, LIST_NEWEST, plan_manager_id, *filters, limit)
    return await db.rows(AccessRecord, LIST_NEWEST_ABOUT, plan_manager_id, *filters, limit)


LIST_OLDEST: LiteralString = f"select {COLUMNS} {ALL} order by id limit $9"
LIST_OLDEST_ABOUT: LiteralString = f"select {COLUMNS} {ABOUT} order by id limit $9"


async def list_oldest(
    db: Executor, plan_manager_id: UUID, filters: AccessRecordFilter, limit: int
) -> list[AccessRecord]:
    """The matching records, the oldest first."""
    if filters.record_ids is None:
        return await db.rows(AccessRecord, LIST_OLDEST, plan_manager_id, *filters, limit)
    return await db.rows(AccessRecord, LIST_OLDEST_ABOUT, plan_manager_id, *filters, limit)


COUNT: LiteralString = f"select count(*) from (select {ALL} limit $9) counted"
COUNT_ABOUT: LiteralString = f"select count(*) from (select {ABOUT} limit $9) counted"


async def count(db: Executor, plan_manager_id: UUID, filters: AccessRecordFilter, max_count: int) -> int:
    """The number of matching records, of at most `max_count`."""
    if filters.record_ids is None:
        return await db.one(int, COUNT, plan_manager_id, *filters, max_count)
    return await db.one(int, COUNT_ABOUT, plan_manager_id, *filters, max_count)


PURGE = """
    delete from access_records where plan_manager_id = $1 and id in (
        select id from access_records where plan_manager_id = $1 and id < $2 order by id limit $3
    )
"""


async def purge(db: Executor, plan_manager_id: UUID, before_id: UUID, limit: int) -> None:
    """Delete the oldest records with ids lower than `before_id`, up to a limit."""
    await db.execute(PURGE, plan_manager_id, before_id, limit)


class Export(Struct):
    """An export: the kind of the records, the query that selected them, and their number."""

    id: UUID
    what: str
    filter: str | None
    rows: int


async def record_export(ctx: WriteContext, what: str, filter_: str | None, rows: int) -> None:
    """Record the event `export.created`."""
    # The history of a person shows the exports of the person.
    resource_id = filter_ if what == "person" else None
    await record_event(ctx, "export.created", None, Export(uuid7(), what, filter_ or None, rows), resource_id)
