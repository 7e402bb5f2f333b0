"""The history of one record, or of one import, in SQL: its events, the latest first, in the order of their ids.

Unlike the feed, it has an event as soon as it is committed.
"""

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.events.schemas import Event, EventFilter, HistoryEvent, RequestEvents
from plankeeper.events.store import COLUMNS, WITHOUT_SEQUENCE

# The index events_by_participant has the same expression.
IS_OF_PARTICIPANT: LiteralString = """
        resource_kind in ('participant', 'team_member', 'invoice')
        and case resource_kind when 'participant' then resource_id
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
