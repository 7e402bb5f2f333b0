"""The invoices to check in the background, and the progress of the check of all of them, in SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_ids import HAS_ID
from plankeeper.resources.recheck_queue import QueuedRecheck

IS_OPEN: LiteralString = "not is_deleted and claim_status not in ('paid', 'cancelled')"

LIST_PLAN_MANAGERS = """
    select plan_manager_id from recheck_queue where id < $1
    union
    select plan_manager_id from recheck_state where position is not null
"""


async def list_plan_managers(db: Executor, before: UUID) -> list[UUID]:
    """Those with rows before this id in the queue, or with a check of all invoices that hasn't ended."""
    return await db.rows(UUID, LIST_PLAN_MANAGERS, before)


OLDEST_ID = "select id from recheck_queue order by id limit 1"


async def oldest_id(db: Executor) -> UUID | None:
    """The first row of the queue, of all plan managers."""
    return await db.one_or_none(UUID, OLDEST_ID)


TRY_LOCK = "select pg_try_advisory_xact_lock(hashtextextended('rechecks ' || $1::uuid::text, 0))"


async def try_lock(tx: Transaction, plan_manager_id: UUID) -> bool:
    """Try to be the only one to check a plan manager's invoices in the background until the transaction ends."""
    return await tx.one(bool, TRY_LOCK, plan_manager_id)


LIST_CONCERNED = """
    with oldest as materialized (
        select participant_id, provider_id
        from recheck_queue
        where plan_manager_id = $1 and id < $2 and (participant_id is not null or provider_id is not null)
        order by id
        limit $3
    )
    select id, participant_id, provider_id, resolves_flags
    from recheck_queue
    where plan_manager_id = $1 and id < $2
        and (participant_id in (select participant_id from oldest)
            or provider_id in (select provider_id from oldest))
    order by id
"""


async def list_concerned(db: Executor, plan_manager_id: UUID, before: UUID, limit: int) -> list[QueuedRecheck]:
    """The participants and providers of the first rows, with all of their rows: an import queues them many times."""
    return await db.rows(QueuedRecheck, LIST_CONCERNED, plan_manager_id, before, limit)


LIST_FOR_ALL = """
    select id from recheck_queue
    where plan_manager_id = $1 and id < $2 and participant_id is null and provider_id is null
"""


async def list_for_all(db: Executor, plan_manager_id: UUID, before: UUID) -> list[UUID]:
    """The ids of the rows about all invoices."""
    return await db.rows(UUID, LIST_FOR_ALL, plan_manager_id, before)


DELETE_QUEUED = f"delete from recheck_queue where plan_manager_id = $1 and {HAS_ID}"


async def delete_queued(tx: Transaction, plan_manager_id: UUID, ids: Sequence[UUID]) -> None:
    await tx.execute(DELETE_QUEUED, plan_manager_id, ids)


LIST_OPEN_OF = f"""
    select id
    from (
        select found.id
        from unnest($2::uuid[]) changed (id)
        cross join lateral (
            select id from invoices
            where plan_manager_id = $1 and participant_id = changed.id and id > $4 and {IS_OPEN}
            order by id
            limit $5
        ) found
        union
        select found.id
        from unnest($3::uuid[]) changed (id)
        cross join lateral (
            select id from invoices
            where plan_manager_id = $1 and pm_provider_id = changed.id and id > $4 and {IS_OPEN}
            order by id
            limit $5
        ) found
    ) open_invoices
    order by id
    limit $5
"""


async def list_open_of(
    db: Executor,
    plan_manager_id: UUID,
    participant_ids: Sequence[UUID],
    provider_ids: Sequence[UUID],
    after: UUID,
    limit: int,
) -> list[UUID]:
    """The next ids of open invoices of participants or providers."""
    return await db.rows(UUID, LIST_OPEN_OF, plan_manager_id, participant_ids, provider_ids, after, limit)


LIST_CREATED_BEFORE = "select id from plan_managers where created_at < $1"


async def list_created_before(db: Executor, time: datetime) -> list[UUID]:
    """The plan managers from before a time."""
    return await db.rows(UUID, LIST_CREATED_BEFORE, time)


LIST_CHECKED_SINCE = "select plan_manager_id from recheck_state where started_at >= $1"


async def list_checked_since(db: Executor, time: datetime) -> list[UUID]:
    """The plan managers whose last check of all invoices has started since a time."""
    return await db.rows(UUID, LIST_CHECKED_SINCE, time)


class Position(Struct, frozen=True):
    """An invoice in the order of a check of all: by participant, so that the lines of each are read once or twice.

    `participant_id` is the highest id for an invoice without a participant: they are the last ones.
    """

    participant_id: UUID
    id: UUID


FIRST = Position(UUID(int=0), UUID(int=0))

LIST_AFTER: LiteralString = """
    select participant_id, id
    from (
        (
            select participant_id, id from invoices
            where plan_manager_id = $1 and (participant_id, id) > ($2, $3) and {condition}
            order by participant_id, id
            limit $4
        )
        union all
        (
            select 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid, id from invoices
            where plan_manager_id = $1 and participant_id is null and {condition}
                and ('ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid, id) > ($2, $3)
            order by id
            limit $4
        )
    ) found
    order by participant_id, id
    limit $4
"""
LIST_ALL_AFTER = LIST_AFTER.replace("{condition}", "true")
LIST_OPEN_AFTER = LIST_AFTER.replace("{condition}", IS_OPEN)


async def list_after(
    db: Executor, plan_manager_id: UUID, after: Position, limit: int, *, is_open: bool
) -> list[Position]:
    """The next invoices, or the next open ones, in the order of a check of all."""
    if is_open:
        return await db.rows(Position, LIST_OPEN_AFTER, plan_manager_id, after.participant_id, after.id, limit)
    return await db.rows(Position, LIST_ALL_AFTER, plan_manager_id, after.participant_id, after.id, limit)


COUNT_OPEN = f"select count(*) from invoices where plan_manager_id = $1 and {IS_OPEN}"


async def count_open(db: Executor, plan_manager_id: UUID) -> int:
    return await db.one(int, COUNT_OPEN, plan_manager_id)


LOCK_OPEN = f"""
    select id from invoices where plan_manager_id = $1 and {HAS_ID} and {IS_OPEN}
    order by id
    for update skip locked
"""


async def lock_open(tx: Transaction, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[UUID]:
    """Those of the invoices that are open and that nobody has locked, locked until the transaction ends.

    It waits for no other transaction, so no write of an invoice can get into a deadlock with it.
    """
    return await tx.rows(UUID, LOCK_OPEN, plan_manager_id, invoice_ids)


class RecheckState(Struct):
    """The progress of the check of all open invoices: `done` of `total`; `position` is null when it has ended."""

    position: Position | None
    total: int
    done: int
    started_at: datetime
    completed_at: datetime | None


GET_STATE = """
    select
        case when position is not null
            then json_build_object('participant_id', position_participant, 'id', position)
        end as position,
        total, done, started_at, completed_at
    from recheck_state
    where plan_manager_id = $1
"""


async def get_state(db: Executor, plan_manager_id: UUID) -> RecheckState | None:
    """The state, or null if the invoices haven't been checked yet."""
    return await db.one_or_none(RecheckState, GET_STATE, plan_manager_id)


UPSERT_STATE = """
    insert into recheck_state (plan_manager_id, position_participant, position, total, done, started_at, completed_at)
    values ($1, $2, $3, $4, $5, $6, $7)
    on conflict (plan_manager_id) do update set
        position_participant = excluded.position_participant, position = excluded.position,
        total = excluded.total, done = excluded.done,
        started_at = excluded.started_at, completed_at = excluded.completed_at
"""


async def upsert_state(tx: Transaction, plan_manager_id: UUID, state: RecheckState) -> None:
    await tx.execute(
        UPSERT_STATE,
        plan_manager_id,
        state.position.participant_id if state.position else None,
        state.position.id if state.position else None,
        state.total,
        state.done,
        state.started_at,
        state.completed_at,
    )
