"""Events in SQL: written with what they tell of, put in order after the commit, read in that order."""

from collections.abc import Iterable
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.events.schemas import Backlog, Event, EventFilter, EventRow, PositionsAssigned

INSERT = """
    insert into events (plan_manager_id, id, type, created_at, actor_kind, actor_id, actor_name,
        resource_kind, resource_id, data, previous, request_id, notify)
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


LIST_PAGE = """
    select id, type, created_at, actor_kind, actor_id, actor_name, resource_kind, resource_id,
        data, previous, request_id
    from events
    where plan_manager_id = $1
        and position > coalesce(
            (select position from events where plan_manager_id = $1 and id = $2),
            (select position from events where plan_manager_id = $1 and id <= $2 and position is not null
                order by id desc limit 1),
            0)
        and ($3::text is null or type = $3)
    order by position
    limit $4
"""


async def list_page(db: Executor, plan_manager_id: UUID, after: str, type_: str | None, limit: int) -> list[Event]:
    """Events behind `after` in the order of their positions. An `after` that is gone stands for the one before."""
    return await db.rows(Event, LIST_PAGE, plan_manager_id, after, type_, limit)


LIST_PAGE_FOR_RESOURCE = """
    select id, type, created_at, actor_kind, actor_id, actor_name, resource_kind, resource_id,
        data, previous, request_id
    from events
    where plan_manager_id = $1
        and position > coalesce(
            (select position from events where plan_manager_id = $1 and id = $2),
            (select position from events where plan_manager_id = $1 and id <= $2 and position is not null
                order by id desc limit 1),
            0)
        and ($3::text is null or type = $3)
        and resource_id = $4
    order by position
    limit $5
"""


async def list_page_for_resource(
    db: Executor, plan_manager_id: UUID, after: str, type_: str | None, resource_id: str, limit: int
) -> list[Event]:
    """The same of one resource, read off its own index."""
    return await db.rows(Event, LIST_PAGE_FOR_RESOURCE, plan_manager_id, after, type_, resource_id, limit)


LATEST = """
    select id, type, created_at, actor_kind, actor_id, actor_name, resource_kind, resource_id,
        data, previous, request_id
    from events
    where plan_manager_id = $1
        and position < coalesce(
            (select position from events where plan_manager_id = $1 and id = $2),
            (select position from events where plan_manager_id = $1 and id >= $2 and position is not null
                order by id limit 1),
            9223372036854775807)
    order by position desc
    limit $3
"""


async def latest(db: Executor, plan_manager_id: UUID, before: UUID | None, limit: int) -> list[Event]:
    """Events newest first, those behind `before` alone where it is given."""
    return await db.rows(Event, LATEST, plan_manager_id, before, limit)


SEARCH_LATEST = """
    select id, type, created_at, actor_kind, actor_id, actor_name, resource_kind, resource_id,
        data, previous, request_id
    from (
        select * from events
        where plan_manager_id = $1
            and position < coalesce(
                (select position from events where plan_manager_id = $1 and id = $2),
                (select position from events where plan_manager_id = $1 and id >= $2 and position is not null
                order by id limit 1),
                9223372036854775807)
        order by position desc
        limit $6
    ) as newest
    where ($3::text is null or type = $3)
        and ($4::text is null or actor_kind = $4)
        and ($5::text is null or lower(actor_name) = lower($5))
    order by position desc
    limit $7
"""


async def search_latest(
    db: Executor, plan_manager_id: UUID, before: UUID | None, filters: EventFilter, scan_limit: int, limit: int
) -> list[Event]:
    """Those of the latest so many that are sought. No index serves every filter, and a write should not pay for one."""
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


SCAN_LIMIT_ID = """
    select id from events
    where plan_manager_id = $1
        and position < coalesce(
            (select position from events where plan_manager_id = $1 and id = $2),
            (select position from events where plan_manager_id = $1 and id >= $2 and position is not null
                order by id limit 1),
            9223372036854775807)
    order by position desc
    limit 1 offset $3
"""


async def scan_limit_id(db: Executor, plan_manager_id: UUID, before: UUID | None, scan_limit: int) -> UUID | None:
    """The oldest of the latest so many; null where they are all there are."""
    return await db.one_or_none(UUID, SCAN_LIMIT_ID, plan_manager_id, before, scan_limit - 1)


LATEST_FOR_RESOURCE = """
    select id, type, created_at, actor_kind, actor_id, actor_name, resource_kind, resource_id,
        data, previous, request_id
    from events
    where plan_manager_id = $1
        and position < coalesce(
            (select position from events where plan_manager_id = $1 and id = $2),
            (select position from events where plan_manager_id = $1 and id >= $2 and position is not null
                order by id limit 1),
            9223372036854775807)
        and ($3::text is null or type = $3)
        and ($4::text is null or actor_kind = $4)
        and ($5::text is null or lower(actor_name) = lower($5))
        and resource_id = $6
    order by position desc
    limit $7
"""


async def latest_for_resource(
    db: Executor, plan_manager_id: UUID, before: UUID | None, filters: EventFilter, resource_id: str, limit: int
) -> list[Event]:
    """The same of one resource, read off its own index."""
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


UPDATES_BY_REQUEST = """
    select id, type, created_at, actor_kind, actor_id, actor_name, resource_kind, resource_id,
        data, previous, request_id
    from events
    where plan_manager_id = $1 and id >= $2 and request_id = $3 and previous is not null
    order by id
    limit $4
"""


async def updates_by_request(
    tx: Transaction, plan_manager_id: UUID, first_id: UUID, request_id: str, limit: int
) -> list[Event]:
    """The first updates of a request that this transaction has recorded from an id on."""
    return await tx.rows(Event, UPDATES_BY_REQUEST, plan_manager_id, first_id, request_id, limit)


GET = """
    select id, type, created_at, actor_kind, actor_id, actor_name, resource_kind, resource_id,
        data, previous, request_id
    from events
    where plan_manager_id = $1 and id = $2
"""


async def get(db: Executor, plan_manager_id: UUID, event_id: UUID) -> Event | None:
    return await db.one_or_none(Event, GET, plan_manager_id, event_id)


LATEST_ID = """
    select id from events
    where plan_manager_id = $1 and position is not null
    order by position desc
    limit 1
"""


async def latest_id(db: Executor, plan_manager_id: UUID) -> UUID | None:
    """The id of the last event of a feed; null where there is none."""
    return await db.one_or_none(UUID, LATEST_ID, plan_manager_id)


TRY_LEAD = "select pg_try_advisory_lock(7526541002)"


async def try_lead(session: Executor) -> bool:
    """Become the one sequencer of the whole cluster, for as long as the session lasts; false where another is."""
    return await session.one(bool, TRY_LEAD)


ASSIGN_POSITIONS = """
    with waiting as materialized (
        -- tenants: all, on purpose; one order serves every feed
        select ctid as place from events where position is null order by id limit $1
    ), numbered as materialized (
        select place, nextval('event_positions') as position from waiting
    ), placed as (
        -- by the rows' places: by their keys a plan made while the table was empty read all of a tenant's events
        update events set position = numbered.position
        from numbered
        where events.ctid = numbered.place
        returning events.plan_manager_id
    )
    select plan_manager_id, count(*) as events from placed group by plan_manager_id
"""


async def assign_positions(session: Executor, limit: int) -> list[PositionsAssigned]:
    """Give the next positions to committed events that have none: how many of which plan manager.

    Only one session does this at a time, so a position is visible only after all lower ones are.
    """
    return await session.rows(PositionsAssigned, ASSIGN_POSITIONS, limit)


GET_BACKLOG = """
    -- tenants: all, on purpose
    select count(*) as waiting,
        coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8 as oldest_age_seconds
    from events
    where position is null
"""


async def get_backlog(session: Executor) -> Backlog:
    """How many events wait for their position, and for how long the oldest of them."""
    return await session.one(Backlog, GET_BACKLOG)


PURGE = """
    with gone as (
        delete from events where ctid = any (array(
            -- tenants: all, on purpose; ids of version 7 are in order of time
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
    select count(*) from gone
"""


async def purge(session: Executor, before_id: UUID, limit: int = 5000) -> int:
    """Forget events whose ids are lower than `before_id` and that have their position, some at a time: how many."""
    return await session.one(int, PURGE, before_id, limit)
