"""The queue and the order of events in SQL: positions are assigned, read by the fan-out, and purged.

Each statement names one plan manager, except those that look for plan managers with queued events.
"""

from collections.abc import Sequence
from uuid import UUID

from plankeeper.database.citus import Nodes
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_ids import HAS_ID
from plankeeper.events.schemas import EventBatch, QueueState, SequencedEvent

# The lock is taken in a statement of its own: the snapshot of a later one includes all positions assigned so far.
TRY_LOCK = "select pg_try_advisory_xact_lock(hashtextextended('events ' || $1::uuid::text, 0))"


async def try_lock(tx: Transaction, plan_manager_id: UUID) -> bool:
    """Try to become the only sequencer of a plan manager until the transaction ends."""
    return await tx.one(bool, TRY_LOCK, plan_manager_id)


NEXT_BATCH = """
    with first as materialized (
        select id, types, cardinality(event_ids) as event_count
        from event_queue
        where plan_manager_id = $1
        order by id
        limit $3
    ), batch as materialized (
        select id, types, event_count
        from (
            select id, types, event_count, sum(event_count) over (order by id) - event_count as count_before from first
        ) counted
        where count_before < $2
    )
    select array(select id from batch) as queue_ids,
        coalesce((select sum(event_count) from batch), 0)::bigint as event_count,
        (select count(*) from first) = $3 or (select count(*) from batch) < (select count(*) from first) as has_more,
        array(
            select distinct type from batch cross join lateral unnest(types) as type
            where not exists (select from event_types where name = type)
        ) as unknown_types
"""
MAX_QUEUE_ROWS = 1000  # rows of a batch


async def next_batch(tx: Transaction, plan_manager_id: UUID, max_events: int) -> EventBatch:
    """The first rows of the queue with `max_events` events, or a few more."""
    return await tx.one(EventBatch, NEXT_BATCH, plan_manager_id, max_events, min(max_events, MAX_QUEUE_ROWS))


# Of several sequencers that add types at once, one adds its type, and the others try again.
INSERT_TYPE = """
    insert into event_types (code, name) select coalesce(max(code), 0) + 1, $1 from event_types on conflict do nothing
"""


async def insert_type(db: Executor, name: str) -> None:
    """Give a type of event a code. It may need several calls if others do the same."""
    await db.execute(INSERT_TYPE, name)


# A mark is never earlier than the mark before it, even if the clock was set back.
INSERT_MARK = """
    insert into event_marks (plan_manager_id, minute, position)
    select $1, date_trunc('minute', statement_timestamp()), coalesce(max(position), 0) + 1
    from event_order
    where plan_manager_id = $1
    having not exists (
        select from event_marks
        where plan_manager_id = $1 and minute >= date_trunc('minute', statement_timestamp())
    )
"""


async def insert_mark(tx: Transaction, plan_manager_id: UUID) -> None:
    """Mark the next position as the first one of this minute, unless an earlier one is."""
    await tx.execute(INSERT_MARK, plan_manager_id)


# The left join keeps an event whose type has no code: the insert fails then, and nothing is lost.
INSERT_POSITIONS = """
    insert into event_order (plan_manager_id, position, event_id, type, notify)
    select $1,
        coalesce((select max(position) from event_order where plan_manager_id = $1), 0)
            + row_number() over (order by queued.id, event.number),
        event.id, event_types.code, queued.notify
    from event_queue queued
    cross join lateral unnest(queued.event_ids) with ordinality as event (id, number)
    left join event_types on event_types.name = queued.types[least(event.number, cardinality(queued.types))]
    where queued.plan_manager_id = $1 and queued.id = any ($2::uuid[])
    order by queued.id, event.number
"""


async def insert_positions(tx: Transaction, plan_manager_id: UUID, queue_ids: Sequence[UUID]) -> None:
    """Give the events of rows of the queue the positions after the greatest one."""
    await tx.execute(INSERT_POSITIONS, plan_manager_id, queue_ids)


DELETE_QUEUED = f"delete from event_queue where plan_manager_id = $1 and {HAS_ID}"


async def delete_queued(tx: Transaction, plan_manager_id: UUID, queue_ids: Sequence[UUID]) -> None:
    """Delete rows of the queue whose events have positions."""
    await tx.execute(DELETE_QUEUED, plan_manager_id, queue_ids)


PLAN_MANAGERS_WITH_QUEUED_EVENTS = """
    -- a sequencer looks for plan managers that no process has reported to it
    select distinct plan_manager_id from event_queue where $1::uuid[] is null or plan_manager_id = any ($1)
"""


async def plan_managers_with_queued_events(db: Executor, nodes: Nodes) -> list[UUID]:
    return await nodes.collect(db, lambda ids: db.rows(UUID, PLAN_MANAGERS_WITH_QUEUED_EVENTS, ids))


QUEUE_STATES = """
    -- one measurement covers the queues of all plan managers
    select plan_manager_id, (array_agg(id order by id))[1] as first_id, sum(event_count)::bigint as event_count
    from (
        select plan_manager_id, id, cardinality(event_ids) as event_count
        from event_queue
        where $2::uuid[] is null or plan_manager_id = any ($2)
        order by plan_manager_id, id
        limit $1
    ) first
    group by plan_manager_id
"""


async def queue_states(db: Executor, nodes: Nodes, max_rows: int) -> list[QueueState]:
    """The state of each plan manager's queue, from the first `max_rows` rows of all queues together."""
    return await nodes.collect(db, lambda ids: db.rows(QueueState, QUEUE_STATES, max_rows, ids))


LATEST_POSITION = "select coalesce(max(position), 0) from event_order where plan_manager_id = $1"


async def latest_position(db: Executor, plan_manager_id: UUID) -> int:
    """The position of the newest event of the feed; 0 for an empty feed."""
    return await db.one(int, LATEST_POSITION, plan_manager_id)


# The last event moves. A row without an event would be one more than the pages of the feed expect.
LEAVE_GAP = """
    update event_order set position = position + 1000000
    where plan_manager_id = $1
        and position = (select max(position) from event_order where plan_manager_id = $1)
"""


async def leave_gap(tx: Transaction, plan_manager_id: UUID) -> None:
    """Give the last event a much higher position, in a restored database: the next ones can have been used since.

    Only the owner of the tables can do so.
    """
    await tx.execute(LEAVE_GAP, plan_manager_id)


LIST_SEQUENCED = """
    select position, event_id as id, event_types.name as type, notify
    from (
        select position, event_id, type, notify
        from event_order
        where plan_manager_id = $1 and position > $2
        order by position
        limit $3
    ) placed
    join event_types on event_types.code = placed.type
    order by position
"""


async def list_sequenced(db: Executor, plan_manager_id: UUID, after: int, limit: int) -> list[SequencedEvent]:
    """The events after a position, in the order of the feed, without their contents."""
    return await db.rows(SequencedEvent, LIST_SEQUENCED, plan_manager_id, after, limit)


TRY_LEAD = "select pg_try_advisory_lock(7526541002)"


async def try_lead(db: Executor) -> bool:
    """Try to become the process that runs the periodic tasks of all servers, until the session ends."""
    return await db.one(bool, TRY_LEAD)


LIST_PLAN_MANAGERS = "select id from plan_managers"


async def list_plan_managers(db: Executor) -> list[UUID]:
    return await db.rows(UUID, LIST_PLAN_MANAGERS)


# The newest position stays without its event, because the next one is counted from it. A legal hold keeps the events
# of its participant, and of the notes on its invoices.
LIST_EXPIRED = """
    select event_id from event_order placed
    where plan_manager_id = $1 and event_id < $2 and (
        position < (select max(position) from event_order where plan_manager_id = $1)
        or exists (select from events event where event.plan_manager_id = $1 and event.id = placed.event_id)
    ) and not exists (
        select from legal_holds hold join events held
            on held.plan_manager_id = $1 and held.id = placed.event_id
            and held.resource_kind in ('participant', 'plan', 'team_member', 'invoice', 'note', 'statement')
            and (
                case held.resource_kind when 'participant' then held.resource_id
                    when 'note' then coalesce(held.data, held.previous) #>> '{resource,id}'
                    else coalesce(held.data, held.previous) ->> 'participant_id' end = hold.participant_id::text
                or held.resource_kind = 'note' and exists (
                    select from invoices
                    where plan_manager_id = $1 and participant_id = hold.participant_id
                        and id::text = coalesce(held.data, held.previous) #>> '{resource,id}'
                )
            )
        where hold.plan_manager_id = $1
    )
    order by event_id
    limit $3
"""
# A function of the owner: the serving role can't delete events.
DELETE_EVENTS = "select delete_events($1, $2)"
DELETE_POSITIONS = """
    delete from event_order
    where plan_manager_id = $1 and event_id = any ($2::uuid[])
        and position < (select max(position) from event_order where plan_manager_id = $1)
"""
# The mark of the minute in which the first remaining position was assigned stays.
DELETE_MARKS = """
    delete from event_marks
    where plan_manager_id = $1 and minute < (
        select minute from event_marks
        where plan_manager_id = $1
            and position <= (select position from event_order where plan_manager_id = $1 order by position limit 1)
        order by minute desc
        limit 1
    )
"""


async def purge(tx: Transaction, plan_manager_id: UUID, before_id: UUID, limit: int) -> int:
    """Delete up to `limit` events of the feed with ids lower than `before_id`, with their positions.

    Events without a position stay. Returns the number of deleted events and positions.
    """
    expired = await tx.rows(UUID, LIST_EXPIRED, plan_manager_id, before_id, limit)
    if expired:
        await tx.execute(DELETE_EVENTS, plan_manager_id, expired)
        await tx.execute(DELETE_POSITIONS, plan_manager_id, expired)
        await tx.execute(DELETE_MARKS, plan_manager_id)
    return len(expired)
