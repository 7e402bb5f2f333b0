"""The activity of the console in SQL: matching events in both directions, and their number.

Pages are in the order of the feed's positions. Days are ids: those of events are in order of time, and a day begins at
the position of the first event with such an id or a later one.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.database.client import Executor
from plankeeper.events.schemas import Event, EventFilter, HistoryEvent, RequestEvents
from plankeeper.events.store import (
    CHANGES_OF_RESOURCE,
    CHOSEN_TYPES,
    COLUMNS,
    IS_AFTER_CURSOR,
    LATERAL_HISTORY_EVENT,
    MATCHES_ACTOR,
    POSITIONS_AFTER_CURSOR,
    POSITIONS_OF_CHANGES,
    WITHOUT_SEQUENCE,
)

# The earliest positions of each type after the cursor, then the earliest of those.
EARLIEST_POSITIONS_OF_TYPES: LiteralString = f"""select of_type.position, of_type.event_id
        from {CHOSEN_TYPES}
        cross join lateral (
            {POSITIONS_AFTER_CURSOR}
                and type = chosen.code
            order by position
            limit $3::bigint
        ) of_type
        order by position
        limit $3::bigint"""
EARLIEST: LiteralString = f"""
    select {COLUMNS}, import_id from ({EARLIEST_POSITIONS_OF_TYPES}) placed {LATERAL_HISTORY_EVENT} order by position
"""


async def earliest(
    db: Executor, plan_manager_id: UUID, after: UUID, filters: EventFilter, limit: int
) -> list[HistoryEvent]:
    """The events of some types after an event, the nearest first. Actors don't matter."""
    values = (after, limit, filters.types, filters.hidden_types)
    return await db.rows(HistoryEvent, EARLIEST, plan_manager_id, *values)


SEARCH_EARLIEST: LiteralString = f"""
    select {COLUMNS}, import_id
    from ({POSITIONS_AFTER_CURSOR} order by position limit $3) placed {LATERAL_HISTORY_EVENT}
    where {MATCHES_ACTOR} and ($6::text[] is null or type = any ($6)) and type <> all ($7::text[])
    order by position
    limit $8
"""


async def search_earliest(
    db: Executor, plan_manager_id: UUID, after: UUID, filters: EventFilter, scan_limit: int, limit: int
) -> list[HistoryEvent]:
    """The matching events among the next `scan_limit` after an event, the nearest first."""
    values = (after, scan_limit, filters.actor_kind, filters.actor_id, filters.types, filters.hidden_types, limit)
    return await db.rows(HistoryEvent, SEARCH_EARLIEST, plan_manager_id, *values)


EARLIEST_FOR_RESOURCE: LiteralString = f"""{CHANGES_OF_RESOURCE}
    select {COLUMNS}, import_id
    from ({POSITIONS_OF_CHANGES} where {IS_AFTER_CURSOR} order by position limit $7) placed {LATERAL_HISTORY_EVENT}
    order by position
"""


async def earliest_for_resource(
    db: Executor, plan_manager_id: UUID, after: UUID, filters: EventFilter, resource_id: str, limit: int
) -> list[HistoryEvent]:
    """The matching events of one resource after an event, the nearest first."""
    values = (filters.types, filters.actor_kind, filters.actor_id, resource_id, limit)
    return await db.rows(HistoryEvent, EARLIEST_FOR_RESOURCE, plan_manager_id, after, *values)


EARLIEST_OF_IMPORT: LiteralString = f"""
    select {WITHOUT_SEQUENCE}, import_id from events
    where plan_manager_id = $1 and import_id = $2 and id > $3 and ($4::text[] is null or type = any ($4))
        and ($5::text is null or actor_kind = $5) and ($6::text is null or actor_id = $6)
        and ($7::text is null or resource_id = $7)
    order by id
    limit $8
"""


async def earliest_of_import(
    db: Executor,
    plan_manager_id: UUID,
    import_id: UUID,
    after: UUID,
    filters: EventFilter,
    resource_id: str | None,
    limit: int,
) -> list[HistoryEvent]:
    """The matching events of an import and its undo after an event, the nearest first."""
    values = (filters.types, filters.actor_kind, filters.actor_id, resource_id, limit)
    return await db.rows(HistoryEvent, EARLIEST_OF_IMPORT, plan_manager_id, import_id, after, *values)


# The positions of the days: from the first event of the first day until before the first event after the last day.
FIRST_SINCE: LiteralString = """coalesce((
            select position from event_order where plan_manager_id = $1 and event_id >= {} order by event_id limit 1
        ), 9223372036854775807)"""
IS_SINCE: LiteralString = "($2::uuid is null or position >= " + FIRST_SINCE.format("$2") + ")"
IS_OF_DAYS: LiteralString = IS_SINCE + " and ($3::uuid is null or position < " + FIRST_SINCE.format("$3") + ")"
IS_OF_DAYS_OF_RESOURCE: LiteralString = (
    IS_SINCE + " and ($8::uuid is null or position < " + FIRST_SINCE.format("$8") + ")"
)
COUNT_OF_TYPE: LiteralString = (
    f"select from event_order where plan_manager_id = $1 and type = chosen.code and {IS_OF_DAYS} limit $6::bigint"
)
COUNT: LiteralString = (
    f"select count(*) from (select from {CHOSEN_TYPES} cross join lateral ({COUNT_OF_TYPE}) of_type limit $6) counted"
)


async def count(
    db: Executor, plan_manager_id: UUID, since: UUID | None, before: UUID | None, filters: EventFilter, max_events: int
) -> int:
    """The number of events of some types in the feed, of at most `max_events`. Actors don't matter."""
    values = (since, before, filters.types, filters.hidden_types, max_events)
    return await db.one(int, COUNT, plan_manager_id, *values)


COUNT_BY_ACTOR: LiteralString = f"""
    select count(*) from (
        select event_id from event_order where plan_manager_id = $1 and {IS_OF_DAYS} order by position desc limit $4
    ) placed
    cross join lateral (
        select type, actor_kind, actor_id from events where plan_manager_id = $1 and id = placed.event_id limit 1
    ) event
    where ($5::text is null or actor_kind = $5) and ($6::text is null or actor_id = $6)
        and ($7::text[] is null or type = any ($7)) and type <> all ($8::text[])
"""


async def count_by_actor(
    db: Executor, plan_manager_id: UUID, since: UUID | None, before: UUID | None, filters: EventFilter, scan_limit: int
) -> int:
    """The number of matching events among the latest `scan_limit` of some days."""
    values = (scan_limit, filters.actor_kind, filters.actor_id, filters.types, filters.hidden_types)
    return await db.one(int, COUNT_BY_ACTOR, plan_manager_id, since, before, *values)


COUNT_PLACED: LiteralString = (
    f"select count(*) from (select from event_order where plan_manager_id = $1 and {IS_OF_DAYS} limit $4) placed"
)


async def count_placed(
    db: Executor, plan_manager_id: UUID, since: UUID | None, before: UUID | None, max_events: int
) -> int:
    """The number of events of some days, of at most `max_events`."""
    return await db.one(int, COUNT_PLACED, plan_manager_id, since, before, max_events)


COUNT_OF_RESOURCE: LiteralString = f"""{CHANGES_OF_RESOURCE}
    select count(*) from ({POSITIONS_OF_CHANGES} where {IS_OF_DAYS_OF_RESOURCE} limit $7) counted
"""


async def count_for_resource(
    db: Executor,
    plan_manager_id: UUID,
    since: UUID | None,
    before: UUID | None,
    filters: EventFilter,
    resource_id: str,
    max_events: int,
) -> int:
    """The number of matching events of one resource, of at most `max_events`."""
    values = (since, filters.types, filters.actor_kind, filters.actor_id, resource_id, max_events, before)
    return await db.one(int, COUNT_OF_RESOURCE, plan_manager_id, *values)


COUNT_OF_IMPORT: LiteralString = """
    select count(*) from (
        select from events where plan_manager_id = $1 and import_id = $5 and ($2::uuid is null or id >= $2)
            and ($3::uuid is null or id < $3) and ($6::text[] is null or type = any ($6))
            and ($7::text is null or actor_kind = $7) and ($8::text is null or actor_id = $8)
            and ($9::text is null or resource_id = $9)
        limit $4
    ) counted
"""


async def count_of_import(
    db: Executor,
    plan_manager_id: UUID,
    since: UUID | None,
    before: UUID | None,
    import_id: UUID,
    filters: EventFilter,
    resource_id: str | None,
    max_events: int,
) -> int:
    """The number of matching events of an import and its undo, of at most `max_events`."""
    values = (max_events, import_id, filters.types, filters.actor_kind, filters.actor_id, resource_id)
    return await db.one(int, COUNT_OF_IMPORT, plan_manager_id, since, before, *values)


# The index events_by_participant has the same expression.
IS_OF_PARTICIPANT: LiteralString = """
        resource_kind in ('participant', 'plan', 'team_member', 'invoice', 'note', 'statement')
        and case resource_kind when 'participant' then resource_id
            when 'note' then coalesce(data, previous) #>> '{resource,id}'
            else coalesce(data, previous) ->> 'participant_id' end = $2"""
IS_BEFORE: LiteralString = "id < coalesce($3, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)"

HISTORY: LiteralString = f"select {WITHOUT_SEQUENCE}, import_id from events where plan_manager_id = $1 and {IS_BEFORE}"
LATEST: LiteralString = "order by id desc limit $5"

# Two index scans that end at the limit, whatever the number of events. An export of the person has its own kind.
LIST_OF_PARTICIPANT: LiteralString = f"""
    select {COLUMNS}, import_id from (
        ({HISTORY} and {IS_OF_PARTICIPANT} and resource_kind = any ($4::text[]) {LATEST})
        union all
        ({HISTORY} and resource_id = $2 and resource_kind = 'export' and resource_kind = any ($4::text[]) {LATEST})
    ) found {LATEST}
"""


async def list_of_participant(
    db: Executor, plan_manager_id: UUID, participant_id: UUID, before: UUID | None, kinds: Sequence[str], limit: int
) -> list[HistoryEvent]:
    """The events of a participant, its team, its invoices and its exports, of some kinds of resources."""
    return await db.rows(HistoryEvent, LIST_OF_PARTICIPANT, plan_manager_id, str(participant_id), before, kinds, limit)


LIST_OF_RESOURCES: LiteralString = f"""
    select {COLUMNS}, import_id from unnest($2::text[]) as subject (subject_id)
    cross join lateral (
        {HISTORY} and resource_id = subject_id and resource_kind = $4 {LATEST}
    ) found {LATEST}
"""


async def list_of_resources(
    db: Executor, plan_manager_id: UUID, resource_ids: Sequence[str], before: UUID | None, kind: str, limit: int
) -> list[HistoryEvent]:
    """The events of resources of one kind."""
    return await db.rows(HistoryEvent, LIST_OF_RESOURCES, plan_manager_id, resource_ids, before, kind, limit)


# The index of an import has its events in this order.
LIST_OF_IMPORT: LiteralString = f"""
    {HISTORY} and import_id = $2 and ($4::text[] is null or type = any ($4))
        and ($6::text is null or actor_kind = $6) and ($7::text is null or actor_id = $7)
        and ($8::text is null or resource_id = $8) {LATEST}
"""


async def list_of_import(
    db: Executor,
    plan_manager_id: UUID,
    import_id: UUID,
    before: UUID | None,
    filters: EventFilter,
    resource_id: str | None,
    limit: int,
) -> list[HistoryEvent]:
    """The events that an import and its undo have recorded, of all types if none is chosen."""
    values = (filters.types, limit, filters.actor_kind, filters.actor_id, resource_id)
    return await db.rows(HistoryEvent, LIST_OF_IMPORT, plan_manager_id, import_id, before, *values)


FIRST_OF_IMPORT: LiteralString = """
    select id from events
    where plan_manager_id = $1 and import_id = $2 and request_id is not distinct from $3
    order by id
    limit 1
"""


async def get_first_of_import(
    db: Executor, plan_manager_id: UUID, import_id: UUID, request_id: str | None
) -> UUID | None:
    """The id of the first event of an import; the events of its undo have another request."""
    return await db.one_or_none(UUID, FIRST_OF_IMPORT, plan_manager_id, import_id, request_id)


# A range of ids is one of times, so the primary key finds the events of a request.
LIST_OF_REQUEST: LiteralString = f"""
    select {WITHOUT_SEQUENCE}, import_id from events
    where plan_manager_id = $1 and id >= $2 and id < $3
        and (request_id = $4 and type = $5 and actor_kind = $6 and actor_id is not distinct from $7 or id = $8)
    order by id desc
    limit $9
"""


async def list_of_request(
    db: Executor, plan_manager_id: UUID, start: UUID, end: UUID, event: Event, limit: int
) -> list[HistoryEvent]:
    """The events between two ids that are of the type, the request and the actor of an event, the latest first."""
    values = (event.request_id, event.type, event.actor.kind, event.actor.id, event.id, limit)
    return await db.rows(HistoryEvent, LIST_OF_REQUEST, plan_manager_id, start, end, *values)


COUNT_BY_TYPE = """
    select type, count(*) as events, (array_agg(id order by id))[1] as first_id
    from events
    where plan_manager_id = $1 and id >= $2 and id < $3
        and request_id = $4 and actor_kind = 'api_key' and actor_id = $5
    group by type
    order by first_id
"""


async def count_by_type(
    db: Executor, plan_manager_id: UUID, start: UUID, end: UUID, request_id: str, api_key_id: str
) -> list[RequestEvents]:
    """The events between two ids that a request of an API key has recorded."""
    return await db.rows(RequestEvents, COUNT_BY_TYPE, plan_manager_id, start, end, request_id, api_key_id)


COUNT_RECORDS_OF_ACTOR = """
    select count(distinct resource_id)
    from (
        select resource_id, resource_kind, actor_id, type
        from events
        where plan_manager_id = $1 and id >= $2
        order by id desc
        limit $6
    ) recent
    where actor_id = $3 and resource_kind = $4 and type = any ($5::text[])
"""
MAX_COUNTED_EVENTS = 20_000


async def count_records_of_actor(
    db: Executor, plan_manager_id: UUID, actor_id: str, kind: str, types: Sequence[str], since: datetime
) -> int:
    """The records of a kind to which an actor has done something since a time, among the latest events."""
    values = (uuid7_lower_bound(since), actor_id, kind, types, MAX_COUNTED_EVENTS)
    return await db.one(int, COUNT_RECORDS_OF_ACTOR, plan_manager_id, *values)
