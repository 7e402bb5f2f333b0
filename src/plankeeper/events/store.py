"""Events in SQL: inserted in the transaction of their write, read in the order of their positions."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString, NamedTuple
from uuid import UUID

from msgspec.structs import astuple

from plankeeper.core.ids import uuid7_lower_bound, uuid7_upper_bound
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.combined_writes import Write
from plankeeper.database.row_ids import HAS_ID
from plankeeper.database.row_mapping import value_lists
from plankeeper.events.schemas import Event, EventFilter, EventRow, HistoryEvent, QueuedEvents

QUEUE_BATCH_SIZE = 100  # events in a row of the queue

# The order of an event's columns. `resource_id` is followed by the participant of a plan or a team member.
BEFORE_PARTICIPANT: LiteralString = "id, type, created_at, actor_kind, actor_id, actor_name, resource_kind, resource_id"
AFTER_PARTICIPANT: LiteralString = "data, previous, request_id"
STORED_COLUMNS: LiteralString = f"{BEFORE_PARTICIPANT}, {AFTER_PARTICIPANT}"
COLUMNS: LiteralString = f"{BEFORE_PARTICIPANT}, resource_participant_id, {AFTER_PARTICIPANT}, sequence"
PARTICIPANT_ID: LiteralString = (
    "case when resource_kind in ('plan', 'team_member', 'statement')"
    " then (coalesce(data, previous) ->> 'participant_id')::uuid end"
)


def columns_of_table(sequence: LiteralString = "null::bigint") -> LiteralString:
    """The columns of an event from the table, with an expression for its position in the feed."""
    participant_id: LiteralString = f"{PARTICIPANT_ID} as resource_participant_id"
    return f"{BEFORE_PARTICIPANT}, {participant_id}, {AFTER_PARTICIPANT}, {sequence} as sequence"


WITHOUT_SEQUENCE: LiteralString = columns_of_table()
# The first columns of an event within another row.
EVENT_COLUMNS: LiteralString = """event.id as event_id, event.type as event_type, event.created_at as event_created_at,
        event.actor_kind as event_actor_kind, event.actor_id as event_actor_id, event.actor_name as event_actor_name,
        event.resource_kind as event_resource_kind, event.resource_id as event_resource_id,
        event.resource_participant_id as event_resource_participant_id"""
WITH_POSITION: LiteralString = columns_of_table("placed.position")

# Cursors are ids of events ($2), pages are in the order of positions. Nothing follows an event that isn't in the feed;
# the nil UUID is the beginning. In the console, the nearest neighbour replaces a cursor whose event has been
# purged.
IS_AFTER_CURSOR: LiteralString = """position > coalesce(
            (select position from event_order where plan_manager_id = $1 and event_id = $2),
            case when $2 = '00000000-0000-0000-0000-000000000000'::uuid then 0 end)"""
IS_BEFORE_CURSOR: LiteralString = """position < coalesce(
            (select position from event_order where plan_manager_id = $1 and event_id = $2),
            (select position from event_order where plan_manager_id = $1 and event_id >= $2
                order by event_id limit 1),
            9223372036854775807)"""
# As in IS_AFTER_CURSOR, for pages from the newest event to the oldest one: the nil UUID is the end.
PRECEDES_CURSOR: LiteralString = """position < coalesce(
            (select position from event_order where plan_manager_id = $1 and event_id = $2),
            case when $2 = '00000000-0000-0000-0000-000000000000'::uuid then 9223372036854775807 end)"""
# Events that were created from $4 until before $5; null doesn't limit. The marks limit the positions: clocks differ by
# less than an hour, and no event gets its position more than a day after the first one since $5 that gets one. The ids
# ($6, $7) are near the time, too. The event itself decides, which is read only for rows of the page.
IS_OF_TIME: LiteralString = """position >= case when $4::timestamptz is null then 0 else coalesce(
            (select position from event_marks where plan_manager_id = $1 and minute >= $4 - interval '1 hour'
                order by minute limit 1),
            9223372036854775807) end
        and position < case when $5::timestamptz is null then 9223372036854775807 else coalesce(
            (select position from event_marks where plan_manager_id = $1 and minute >= interval '24 hours' + (
                select minute from event_marks where plan_manager_id = $1 and minute >= $5 order by minute limit 1)
                order by minute limit 1),
            9223372036854775807) end
        and ($4 is null and $5 is null or event_id >= $6 and event_id < $7 and (
            select ($4 is null or event.created_at >= $4) and ($5 is null or event.created_at < $5)
            from events event where event.plan_manager_id = $1 and event.id = event_order.event_id))"""
# The event of each position. With the limit, PostgreSQL looks each up by its key, however many rows it expects.
LATERAL_EVENT: LiteralString = f"""
    cross join lateral (
        select {WITH_POSITION} from events where plan_manager_id = $1 and id = placed.event_id limit 1
    ) event"""
POSITIONS_AFTER_CURSOR: LiteralString = f"""select position, event_id from event_order
        where plan_manager_id = $1 and {IS_AFTER_CURSOR}"""
POSITIONS_BEFORE_CURSOR: LiteralString = f"""select position, event_id from event_order
        where plan_manager_id = $1 and {IS_BEFORE_CURSOR}"""
LATERAL_HISTORY_EVENT: LiteralString = f"""
    cross join lateral (
        select {WITH_POSITION}, import_id from events where plan_manager_id = $1 and id = placed.event_id limit 1
    ) event"""
# The codes of some types or all, without the hidden ones.
CHOSEN_TYPES: LiteralString = (
    "unnest(array(select code from event_types where ($4::text[] is null or name = any ($4))"
    " and name <> all ($5::text[]))) as chosen (code)"
)
# The latest positions of each type, then the latest of those: the number of other events doesn't matter.
LATEST_POSITIONS_OF_TYPES: LiteralString = f"""select of_type.position, of_type.event_id
        from {CHOSEN_TYPES}
        cross join lateral (
            {POSITIONS_BEFORE_CURSOR}
                and type = chosen.code
            order by position desc
            limit $3::bigint + 1
        ) of_type
        order by position desc
        limit $3::bigint + 1"""
# `changed` has the ids of a resource's events.
POSITIONS_OF_CHANGES: LiteralString = """select position, event_id
        from changed
        cross join lateral (
            select position, event_id from event_order where plan_manager_id = $1 and event_id = changed.id limit 1
        ) each_placed"""
MATCHES_ACTOR: LiteralString = """($4::text is null or actor_kind = $4)
        and ($5::text is null or actor_id = $5)"""

# Two inserts of values are one round trip, and on Citus one task each.
INSERT = Write(
    """
    queued as (
        insert into event_queue (plan_manager_id, id, event_ids, types, notify)
        values ($1, $2, array[$2::uuid], array[$3::text], $13)
    )
    """,
    f"""
    insert into events (plan_manager_id, {STORED_COLUMNS}, notify, import_id)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    """,
    parameters=14,
)


async def insert(tx: Transaction, row: EventRow) -> None:
    """Insert an event and queue it for its position."""
    plan_manager_id, *values = astuple(row)
    await tx.queue_write(INSERT, plan_manager_id, *values)
    tx.changed_feeds.add(row.plan_manager_id)


# A few events are one round trip together with the rest of their write.
INSERT_FEW = Write(
    """
    queued_few as (
        insert into event_queue (plan_manager_id, id, event_ids, types, notify)
        values ($1, $2, $3::uuid[], $4::text[], $5)
    )
    """,
    f"""
    insert into events (plan_manager_id, {STORED_COLUMNS}, notify, import_id)
    select $1, id, type, created_at, actor_kind, actor_id, actor_name, resource_kind, resource_id, data::json,
        previous::json, request_id, $5, import_id
    from unnest($3::uuid[], $6::text[], $7::timestamptz[], $8::text[], $9::text[], $10::text[], $11::text[],
        $12::text[], $13::text[], $14::text[], $15::text[], $16::uuid[]) as new_event (id, type, created_at, actor_kind,
        actor_id, actor_name, resource_kind, resource_id, data, previous, request_id, import_id)
    """,
    parameters=16,
)
MAX_FEW = 10


async def insert_many(tx: Transaction, plan_manager_id: UUID, rows: Sequence[EventRow]) -> None:
    """Insert the events of one write, and queue them in batches."""
    if len(rows) == 1:
        await insert(tx, rows[0])
    elif 1 < len(rows) <= MAX_FEW:
        queued = queue_row(rows)
        _, ids, *columns, _, import_ids = value_lists(EventRow, rows)
        values = (queued.id, ids, queued.types, queued.notify, *columns, import_ids)
        await tx.queue_write(INSERT_FEW, plan_manager_id, *values)
        tx.changed_feeds.add(plan_manager_id)
    elif rows:
        await tx.insert_rows("events", EventRow, rows)
        await tx.insert_rows("event_queue", QueuedEvents, [queue_row(each) for each in _batches(rows)])
        tx.changed_feeds.add(plan_manager_id)


def _batches(rows: Sequence[EventRow]) -> list[Sequence[EventRow]]:
    return [rows[start : start + QUEUE_BATCH_SIZE] for start in range(0, len(rows), QUEUE_BATCH_SIZE)]


def queue_row(rows: Sequence[EventRow]) -> QueuedEvents:
    types = [row.type for row in rows]
    first = rows[0]
    unique_types = types if len(set(types)) > 1 else types[:1]
    return QueuedEvents(first.plan_manager_id, first.id, [row.id for row in rows], unique_types, first.notify)


class FeedPage(NamedTuple):
    """A page of the feed: after a cursor, in the order of positions or, reversed, from the newest event on.

    `created_since` is the earliest time, and `created_until` the end of the times of its events.
    """

    after: str
    is_reversed: bool = False
    created_since: datetime | None = None
    created_until: datetime | None = None

    @property
    def ids(self) -> tuple[UUID, UUID]:
        """The ids of all events of these times are between these two."""
        lower = uuid7_lower_bound(self.created_since) if self.created_since else UUID(int=0)
        return lower, uuid7_upper_bound(self.created_until) if self.created_until else UUID(int=2**128 - 1)


# One position more than the page needs: retention keeps the newest one without its event.
def _page(cursor_condition: LiteralString, order: LiteralString) -> LiteralString:
    return f"""
    select {COLUMNS}
    from (
        select position, event_id from event_order
        where plan_manager_id = $1 and {cursor_condition} and {IS_OF_TIME}
        order by {order}
        limit $3::bigint + 1
    ) placed {LATERAL_EVENT}
    order by {order}
    limit $3
"""


# A page of each type, then the first page of those: the index of types is in the order of positions within a type.
def _page_by_type(cursor_condition: LiteralString, order: LiteralString) -> LiteralString:
    return f"""
    select {COLUMNS}
    from (
        select of_type.position, of_type.event_id
        from unnest(array(select code from event_types where name = any ($8::text[]))) as chosen (code)
        cross join lateral (
            select position, event_id from event_order
            where plan_manager_id = $1 and {cursor_condition} and {IS_OF_TIME} and type = chosen.code
            order by {order}
            limit $3::bigint + 1
        ) of_type
        order by {order}
        limit $3::bigint + 1
    ) placed {LATERAL_EVENT}
    order by {order}
    limit $3
"""


LIST_PAGE: LiteralString = _page(IS_AFTER_CURSOR, "position")
LIST_PAGE_REVERSED: LiteralString = _page(PRECEDES_CURSOR, "position desc")
LIST_PAGE_BY_TYPE: LiteralString = _page_by_type(IS_AFTER_CURSOR, "position")
LIST_PAGE_BY_TYPE_REVERSED: LiteralString = _page_by_type(PRECEDES_CURSOR, "position desc")


async def list_page(
    db: Executor, plan_manager_id: UUID, page: FeedPage, types: Sequence[str] | None, limit: int
) -> list[Event]:
    """The events of a page, of some types or all."""
    values = (page.after, limit, page.created_since, page.created_until, *page.ids)
    if types is None and page.is_reversed:
        return await db.rows(Event, LIST_PAGE_REVERSED, plan_manager_id, *values)
    if types is None:
        return await db.rows(Event, LIST_PAGE, plan_manager_id, *values)
    if page.is_reversed:
        return await db.rows(Event, LIST_PAGE_BY_TYPE_REVERSED, plan_manager_id, *values, types)
    return await db.rows(Event, LIST_PAGE_BY_TYPE, plan_manager_id, *values, types)


# All events of the resource are looked up before they are ordered: most resources have few.
def _page_for_resource(cursor_condition: LiteralString, order: LiteralString) -> LiteralString:
    return f"""
    with changed as materialized (
        select id from events
        where plan_manager_id = $1 and resource_id = $7 and ($6::text[] is null or type = any ($6))
            and ($4::timestamptz is null or created_at >= $4) and ($5::timestamptz is null or created_at < $5)
    )
    select {COLUMNS}
    from (
        {POSITIONS_OF_CHANGES}
        where {cursor_condition}
        order by {order}
        limit $3
    ) placed {LATERAL_EVENT}
    order by {order}
"""


LIST_PAGE_FOR_RESOURCE: LiteralString = _page_for_resource(IS_AFTER_CURSOR, "position")
LIST_PAGE_FOR_RESOURCE_REVERSED: LiteralString = _page_for_resource(PRECEDES_CURSOR, "position desc")


async def list_page_for_resource(
    db: Executor, plan_manager_id: UUID, page: FeedPage, types: Sequence[str] | None, resource_id: str, limit: int
) -> list[Event]:
    """The events of one resource on a page. A separate statement, because the resource has its own index."""
    values = (page.after, limit, page.created_since, page.created_until, types, resource_id)
    if page.is_reversed:
        return await db.rows(Event, LIST_PAGE_FOR_RESOURCE_REVERSED, plan_manager_id, *values)
    return await db.rows(Event, LIST_PAGE_FOR_RESOURCE, plan_manager_id, *values)


EVENTS_OF_LATEST_POSITIONS: LiteralString = (
    f"select {COLUMNS}, import_id from ({LATEST_POSITIONS_OF_TYPES}) placed {LATERAL_HISTORY_EVENT}"
)
LATEST: LiteralString = f"{EVENTS_OF_LATEST_POSITIONS} order by position desc limit $3"


async def latest(
    db: Executor, plan_manager_id: UUID, before: UUID | None, filters: EventFilter, limit: int
) -> list[HistoryEvent]:
    """The newest events of some types first; with `before`, only those before it in the feed. Actors don't matter."""
    types = (filters.types, filters.hidden_types)
    return await db.rows(HistoryEvent, LATEST, plan_manager_id, before, limit, *types)


SEARCH_LATEST: LiteralString = f"""
    select {COLUMNS}, import_id
    from (
        {POSITIONS_BEFORE_CURSOR}
        order by position desc
        limit $3
    ) placed {LATERAL_HISTORY_EVENT}
    where {MATCHES_ACTOR} and type <> all ($7::text[])
    order by position desc
    limit $6
"""
SEARCH_LATEST_OF_TYPES: LiteralString = f"""
    {EVENTS_OF_LATEST_POSITIONS}
    where ($6::text is null or actor_kind = $6) and ($7::text is null or actor_id = $7)
    order by position desc limit $8
"""


async def search_latest(
    db: Executor, plan_manager_id: UUID, before: UUID | None, filters: EventFilter, scan_limit: int, limit: int
) -> list[HistoryEvent]:
    """The matching events among the latest `scan_limit`, which are of the types that the filters name, if any.

    Actors have no index: it would make every write slower.
    """
    feed, actor = (before, scan_limit), (filters.actor_kind, filters.actor_id)
    if filters.types is None:
        return await db.rows(HistoryEvent, SEARCH_LATEST, plan_manager_id, *feed, *actor, limit, filters.hidden_types)
    return await db.rows(HistoryEvent, SEARCH_LATEST_OF_TYPES, plan_manager_id, *feed, filters.types, [], *actor, limit)


SCAN_LIMIT_ID: LiteralString = (
    f"select event_id from ({POSITIONS_BEFORE_CURSOR} order by position desc limit 1 offset $3) placed"
)
SCAN_LIMIT_ID_OF_TYPES: LiteralString = (
    f"select event_id from ({LATEST_POSITIONS_OF_TYPES}) placed order by position desc limit 1 offset $3"
)


async def scan_limit_id(
    db: Executor, plan_manager_id: UUID, before: UUID | None, types: Sequence[str] | None, scan_limit: int
) -> UUID | None:
    """The id of the oldest event among the latest `scan_limit` (of some types); None if there are fewer."""
    if types is None:
        return await db.one_or_none(UUID, SCAN_LIMIT_ID, plan_manager_id, before, scan_limit - 1)
    return await db.one_or_none(UUID, SCAN_LIMIT_ID_OF_TYPES, plan_manager_id, before, scan_limit - 1, types, [])


CHANGES_OF_RESOURCE: LiteralString = f"""
    with changed as materialized (
        select id from events
        where plan_manager_id = $1 and resource_id = $6 and ($3::text[] is null or type = any ($3)) and {MATCHES_ACTOR}
    )"""
LATEST_FOR_RESOURCE: LiteralString = f"""
    {CHANGES_OF_RESOURCE}
    select {COLUMNS}, import_id
    from (
        {POSITIONS_OF_CHANGES}
        where {IS_BEFORE_CURSOR}
        order by position desc
        limit $7
    ) placed {LATERAL_HISTORY_EVENT}
    order by position desc
"""


async def latest_for_resource(
    db: Executor, plan_manager_id: UUID, before: UUID | None, filters: EventFilter, resource_id: str, limit: int
) -> list[HistoryEvent]:
    """The latest matching events of one resource. A separate statement, because the resource has its own index."""
    values = (filters.types, filters.actor_kind, filters.actor_id, resource_id, limit)
    return await db.rows(HistoryEvent, LATEST_FOR_RESOURCE, plan_manager_id, before, *values)


LIST_BY_IMPORT: LiteralString = f"""
    select {WITHOUT_SEQUENCE}
    from events
    where plan_manager_id = $1 and import_id = $2 and id > $3
    order by id
"""


async def list_by_import(tx: Transaction, plan_manager_id: UUID, import_id: UUID, after: UUID) -> list[Event]:
    """The events that an import has recorded after another one, before their positions are assigned."""
    return await tx.rows(Event, LIST_BY_IMPORT, plan_manager_id, import_id, after)


GET_MANY: LiteralString = f"select {WITHOUT_SEQUENCE} from events where plan_manager_id = $1 and {HAS_ID}"


async def get_many(db: Executor, plan_manager_id: UUID, event_ids: Sequence[UUID]) -> list[Event]:
    """The events with these ids, in any order; those that the retention has deleted are missing."""
    return await db.rows(Event, GET_MANY, plan_manager_id, event_ids)


# Of events with the same id of a resource, the last one: ids of events are in order of time.
LATEST_OF_RESOURCES: LiteralString = f"""
    select distinct on (resource_id) {WITHOUT_SEQUENCE}
    from events
    where plan_manager_id = $1 and resource_kind = $2 and resource_id = any ($3::text[])
        and import_id is distinct from $4
    order by resource_id, id desc
"""


async def latest_of_resources(
    db: Executor, plan_manager_id: UUID, kind: str, resource_ids: Sequence[str], except_import_id: UUID
) -> list[Event]:
    """The last event of each resource that an import didn't record."""
    return await db.rows(Event, LATEST_OF_RESOURCES, plan_manager_id, kind, resource_ids, except_import_id)


POSITION: LiteralString = "(select position from event_order where plan_manager_id = $1 and event_id = $2)"
GET: LiteralString = f"select {columns_of_table(POSITION)} from events where plan_manager_id = $1 and id = $2"


async def get(db: Executor, plan_manager_id: UUID, event_id: UUID) -> Event | None:
    return await db.one_or_none(Event, GET, plan_manager_id, event_id)


LATEST_ID = "select event_id from event_order where plan_manager_id = $1 order by position desc limit 1"


async def latest_id(db: Executor, plan_manager_id: UUID) -> UUID | None:
    """The id of the last event in the feed; None for an empty feed."""
    return await db.one_or_none(UUID, LATEST_ID, plan_manager_id)


IS_IN_FEED = "select exists (select from event_order where plan_manager_id = $1 and event_id = $2)"


async def is_in_feed(db: Executor, plan_manager_id: UUID, event_id: str) -> bool:
    """Whether an id is a cursor: that of an event of this plan manager which has a position."""
    return await db.one(bool, IS_IN_FEED, plan_manager_id, event_id)


# The minute's mark is at or before the time. Without a mark from then on, nothing has happened since.
FIND_CURSOR = """
    select event_id from event_order
    where plan_manager_id = $1
        and position < coalesce(
            (
                select position from event_marks
                where plan_manager_id = $1 and minute >= date_trunc('minute', $2::timestamptz)
                order by minute
                limit 1
            ), 9223372036854775807)
    order by position desc
    limit 1
"""


async def find_cursor(db: Executor, plan_manager_id: UUID, since: datetime) -> UUID | None:
    """The last event before the minute of a time; None if all events of the feed are later."""
    return await db.one_or_none(UUID, FIND_CURSOR, plan_manager_id, since)
