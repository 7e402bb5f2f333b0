"""Events in SQL: inserted in the transaction of their write, sequenced after the commit, read in sequence."""

from collections.abc import Iterable
from typing import LiteralString
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.events.schemas import Backlog, Event, EventFilter, EventRow, PositionsAssigned

COLUMNS: LiteralString = """
        id, type, created_at, actor_kind, actor_id, actor_name, resource_kind, resource_id,
        data, previous, request_id"""

# Cursors are ids of events ($2), pages are in the order of positions. A cursor whose event has been purged stands for
# its nearest neighbour.
IS_AFTER_CURSOR: LiteralString = """position > coalesce(
            (select position from events where plan_manager_id = $1 and id = $2),
            (select position from events where plan_manager_id = $1 and id <= $2 and position is not null
                order by id desc limit 1),
            0)"""
IS_BEFORE_CURSOR: LiteralString = """position < coalesce(
            (select position from events where plan_manager_id = $1 and id = $2),
            (select position from events where plan_manager_id = $1 and id >= $2 and position is not null
                order by id limit 1),
            9223372036854775807)"""
MATCHES_FILTER: LiteralString = """($3::text is null or type = $3)
        and ($4::text is null or actor_kind = $4)
        and ($5::text is null or lower(actor_name) = lower($5))"""

INSERT: LiteralString = f"""
    insert into events (plan_manager_id, {COLUMNS}, notify)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
"""


async def insert(tx: Transaction, row: EventRow) -> None:
    await tx.execute(
        INSERT,
        row.plan_manager_id,
        row.id,
        row.type,
        row.created_at,
        row.actor_kind,
        row.actor_id,
        row.actor_name,
        row.resource_kind,
        row.resource_id,
        row.data,
        row.previous,
        row.request_id,
        row.notify,
    )


async def insert_many(tx: Transaction, rows: Iterable[EventRow]) -> None:
    await tx.insert_rows("events", EventRow, rows)


LIST_PAGE: LiteralString = f"""
    select {COLUMNS}
    from events
    where plan_manager_id = $1
        and {IS_AFTER_CURSOR}
        and ($3::text is null or type = $3)
    order by position
    limit $4
"""


async def list_page(db: Executor, plan_manager_id: UUID, after: str, type_: str | None, limit: int) -> list[Event]:
    """The events after a cursor, in the order of their positions."""
    return await db.rows(Event, LIST_PAGE, plan_manager_id, after, type_, limit)


LIST_PAGE_FOR_RESOURCE: LiteralString = f"""
    select {COLUMNS}
    from events
    where plan_manager_id = $1
        and {IS_AFTER_CURSOR}
        and ($3::text is null or type = $3)
        and resource_id = $4
    order by position
    limit $5
"""


async def list_page_for_resource(
    db: Executor, plan_manager_id: UUID, after: str, type_: str | None, resource_id: str, limit: int
) -> list[Event]:
    """The events of one resource after a cursor. A separate statement, because the resource has its own index."""
    return await db.rows(Event, LIST_PAGE_FOR_RESOURCE, plan_manager_id, after, type_, resource_id, limit)


LATEST: LiteralString = f"""
    select {COLUMNS}
    from events
    where plan_manager_id = $1
        and {IS_BEFORE_CURSOR}
    order by position desc
    limit $3
"""


async def latest(db: Executor, plan_manager_id: UUID, before: UUID | None, limit: int) -> list[Event]:
    """The newest events first; with `before`, only those before it in the feed."""
    return await db.rows(Event, LATEST, plan_manager_id, before, limit)


SEARCH_LATEST: LiteralString = f"""
    select {COLUMNS}
    from (
        select * from events
        where plan_manager_id = $1
            and {IS_BEFORE_CURSOR}
        order by position desc
        limit $6
    ) as newest
    where {MATCHES_FILTER}
    order by position desc
    limit $7
"""


async def search_latest(
    db: Executor, plan_manager_id: UUID, before: UUID | None, filters: EventFilter, scan_limit: int, limit: int
) -> list[Event]:
    """The matching events among the latest `scan_limit`. An index for each filter would make every write slower."""
    return await db.rows(
        Event,
        SEARCH_LATEST,
        plan_manager_id,
        before,
        filters.type,
        filters.actor_kind,
        filters.actor_name,
        scan_limit,
        limit,
    )


SCAN_LIMIT_ID: LiteralString = f"""
    select id from events
    where plan_manager_id = $1
        and {IS_BEFORE_CURSOR}
    order by position desc
    limit 1 offset $3
"""


async def scan_limit_id(db: Executor, plan_manager_id: UUID, before: UUID | None, scan_limit: int) -> UUID | None:
    """The id of the oldest event among the latest `scan_limit`; None if there are fewer."""
    return await db.one_or_none(UUID, SCAN_LIMIT_ID, plan_manager_id, before, scan_limit - 1)


LATEST_FOR_RESOURCE: LiteralString = f"""
    select {COLUMNS}
    from events
    where plan_manager_id = $1
        and {IS_BEFORE_CURSOR}
        and {MATCHES_FILTER}
        and resource_id = $6
    order by position desc
    limit $7
"""


async def latest_for_resource(
    db: Executor, plan_manager_id: UUID, before: UUID | None, filters: EventFilter, resource_id: str, limit: int
) -> list[Event]:
    """The latest matching events of one resource. A separate statement, because the resource has its own index."""
    return await db.rows(
        Event,
        LATEST_FOR_RESOURCE,
        plan_manager_id,
        before,
        filters.type,
        filters.actor_kind,
        filters.actor_name,
        resource_id,
        limit,
    )


UPDATES_BY_REQUEST: LiteralString = f"""
    select {COLUMNS}
    from events
    where plan_manager_id = $1 and id >= $2 and request_id = $3 and previous is not null
    order by id
    limit $4
"""


async def updates_by_request(
    tx: Transaction, plan_manager_id: UUID, first_id: UUID, request_id: str, limit: int
) -> list[Event]:
    """The first updates that this transaction has recorded for a request since `first_id`."""
    return await tx.rows(Event, UPDATES_BY_REQUEST, plan_manager_id, first_id, request_id, limit)


GET: LiteralString = f"select {COLUMNS} from events where plan_manager_id = $1 and id = $2"


async def get(db: Executor, plan_manager_id: UUID, event_id: UUID) -> Event | None:
    return await db.one_or_none(Event, GET, plan_manager_id, event_id)


LATEST_ID = """
    select id from events
    where plan_manager_id = $1 and position is not null
    order by position desc
    limit 1
"""


async def latest_id(db: Executor, plan_manager_id: UUID) -> UUID | None:
    """The id of the last event in the feed; None for an empty feed."""
    return await db.one_or_none(UUID, LATEST_ID, plan_manager_id)


TRY_LEAD = "select pg_try_advisory_lock(7526541002)"


async def try_lead(db: Executor) -> bool:
    """Try to become the only sequencer of the database until the session ends."""
    return await db.one(bool, TRY_LEAD)


ASSIGN_POSITIONS = """
    with waiting as materialized (
        -- one order serves every feed
        select ctid as row_id from events where position is null order by id limit $1
    ), numbered as materialized (
        select row_id, nextval('event_positions') as position from waiting
    ), updated as (
        -- by ctid: a plan by key that was made while the table was empty would read all events of a tenant
        update events set position = numbered.position
        from numbered
        where events.ctid = numbered.row_id
        returning events.plan_manager_id
    )
    select plan_manager_id, count(*) as events from updated group by plan_manager_id
"""


async def assign_positions(db: Executor, limit: int) -> list[PositionsAssigned]:
    """Assign the next positions to committed events without a position, and count them by plan manager.

    Only one session does this at a time, so a position becomes visible only after all lower ones.
    """
    return await db.rows(PositionsAssigned, ASSIGN_POSITIONS, limit)


GET_BACKLOG = """
    -- the backlog of all plan managers together
    select count(*) as waiting,
        coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8 as oldest_age_seconds
    from events
    where position is null
"""


async def get_backlog(db: Executor) -> Backlog:
    """The number of events without a position, and the age of the oldest one."""
    return await db.one(Backlog, GET_BACKLOG)


PURGE = """
    with deleted as (
        delete from events where ctid = any (array(
            -- UUIDs of version 7 are in chronological order, over all plan managers
            select event.ctid
            from plan_managers owner cross join lateral (
                select ctid from events
                where plan_manager_id = owner.id and id < $1 and position is not null
                order by id limit $2
            ) event
            limit $2
        ))
        returning 1
    )
    select count(*) from deleted
"""


async def purge(db: Executor, before_id: UUID, limit: int = 5000) -> int:
    """Delete up to `limit` sequenced events with ids lower than `before_id`, and return their number."""
    return await db.one(int, PURGE, before_id, limit)
