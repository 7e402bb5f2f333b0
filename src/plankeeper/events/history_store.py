"""The history of one record in SQL: its events, the latest first, in the order of their ids.

Unlike the feed, it has an event as soon as it is committed.
"""

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.events.schemas import HistoryEvent
from plankeeper.events.store import COLUMNS

# The index events_by_participant has the same expression.
IS_OF_PARTICIPANT: LiteralString = """
        resource_kind in ('participant', 'team_member', 'invoice')
        and case resource_kind when 'participant' then resource_id
            else coalesce(data, previous) ->> 'participant_id' end = $2"""
IS_BEFORE: LiteralString = "id < coalesce($3, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)"

# Two index scans that end at the limit, whatever the number of events. An export of the person has its own kind.
LIST_OF_PARTICIPANT: LiteralString = f"""
    select {COLUMNS}, import_id
    from (
        (
            select {COLUMNS}, import_id from events
            where plan_manager_id = $1 and {IS_OF_PARTICIPANT} and {IS_BEFORE} and resource_kind = any ($4::text[])
            order by id desc
            limit $5
        )
        union all
        (
            select {COLUMNS}, import_id from events
            where plan_manager_id = $1 and resource_id = $2 and resource_kind = 'export' and {IS_BEFORE}
                and resource_kind = any ($4::text[])
            order by id desc
            limit $5
        )
    ) found
    order by id desc
    limit $5
"""


async def list_of_participant(
    db: Executor, plan_manager_id: UUID, participant_id: UUID, before: UUID | None, kinds: Sequence[str], limit: int
) -> list[HistoryEvent]:
    """The events of a participant, its team, its invoices and its exports, of some kinds of resources."""
    return await db.rows(HistoryEvent, LIST_OF_PARTICIPANT, plan_manager_id, str(participant_id), before, kinds, limit)


LIST_OF_RESOURCES: LiteralString = f"""
    select found.*
    from unnest($2::text[]) as subject (id)
    cross join lateral (
        select {COLUMNS}, import_id from events
        where plan_manager_id = $1 and resource_id = subject.id and events.{IS_BEFORE} and resource_kind = $4
        order by events.id desc
        limit $5
    ) found
    order by found.id desc
    limit $5
"""


async def list_of_resources(
    db: Executor, plan_manager_id: UUID, resource_ids: Sequence[str], before: UUID | None, kind: str, limit: int
) -> list[HistoryEvent]:
    """The events of resources of one kind."""
    return await db.rows(HistoryEvent, LIST_OF_RESOURCES, plan_manager_id, resource_ids, before, kind, limit)
