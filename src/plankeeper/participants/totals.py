"""The totals of the list of participants in SQL.

Counting costs, so totals by status and state are kept: as rows that writes append, and that a fold sums up. Where
another filter is asked for, its index is counted.
"""

from uuid import UUID

from msgspec import UNSET

from plankeeper.database.client import Executor
from plankeeper.http.schemas import unset_to_none
from plankeeper.participants.queries import filter_values
from plankeeper.participants.schemas import ParticipantListQuery


async def count(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> int:
    """All that match."""
    by = (
        (query.participant_number, _with_number),
        (query.email, _with_email),
        (query.account_manager, _of_managers),
        (query.updated_since, _since),
    )
    counted = next((count_by for wanted, count_by in by if wanted is not UNSET), _summed)
    return await counted(db, plan_manager_id, query)


SUMMED = """
    select coalesce(sum(amount), 0)::bigint
    from participant_counts
    where plan_manager_id = $1
        and ($2::text is null or status = $2)
        and ($3::text is null or state = upper($3))
"""


async def _summed(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> int:
    return await db.one(int, SUMMED, plan_manager_id, unset_to_none(query.status), unset_to_none(query.state))


WITH_NUMBER = """
    select count(*)
    from participants
    where plan_manager_id = $1
        and ($2::text is null or status = $2)
        and ($3::text is null or state = upper($3))
        and ($4::uuid[] is null or account_manager_id = any ($4))
        and participant_number = $5
        and ($6::text is null or lower(email) = lower($6))
        and ($7::timestamptz is null or updated_at >= $7)
"""


async def _with_number(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> int:
    return await db.one(int, WITH_NUMBER, plan_manager_id, *filter_values(query))


WITH_EMAIL = """
    select count(*)
    from participants
    where plan_manager_id = $1
        and ($2::text is null or status = $2)
        and ($3::text is null or state = upper($3))
        and ($4::uuid[] is null or account_manager_id = any ($4))
        and ($5::text is null or participant_number = $5)
        and lower(email) = lower($6)
        and ($7::timestamptz is null or updated_at >= $7)
"""


async def _with_email(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> int:
    return await db.one(int, WITH_EMAIL, plan_manager_id, *filter_values(query))


OF_MANAGERS = """
    select count(*)
    from participants
    where plan_manager_id = $1
        and ($2::text is null or status = $2)
        and ($3::text is null or state = upper($3))
        and account_manager_id = any ($4)
        and ($5::text is null or participant_number = $5)
        and ($6::text is null or lower(email) = lower($6))
        and ($7::timestamptz is null or updated_at >= $7)
"""


async def _of_managers(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> int:
    return await db.one(int, OF_MANAGERS, plan_manager_id, *filter_values(query))


SINCE = """
    select count(*)
    from participants
    where plan_manager_id = $1
        and ($2::text is null or status = $2)
        and ($3::text is null or state = upper($3))
        and ($4::uuid[] is null or account_manager_id = any ($4))
        and ($5::text is null or participant_number = $5)
        and ($6::text is null or lower(email) = lower($6))
        and updated_at >= $7
"""


async def _since(db: Executor, plan_manager_id: UUID, query: ParticipantListQuery) -> int:
    return await db.one(int, SINCE, plan_manager_id, *filter_values(query))


COMPACT_COUNTS = """
    with crowded as (
        -- tenants: all, on purpose
        select plan_manager_id, status, state
        from participant_counts
        group by plan_manager_id, status, state
        having count(*) > 50
        limit $1
    ), taken as (
        delete from participant_counts counts
        using crowded
        where counts.plan_manager_id = crowded.plan_manager_id and counts.status = crowded.status
            and counts.state = crowded.state
        returning counts.plan_manager_id, counts.status, counts.state, counts.amount
    ), folded as (
        insert into participant_counts (plan_manager_id, status, state, amount)
        select plan_manager_id, status, state, sum(amount) from taken group by plan_manager_id, status, state
    )
    select count(*) from taken
"""


async def compact_counts(db: Executor, max_groups: int = 100) -> int:
    """Fold the totals that have become many rows: the rows folded. Writers append meanwhile, and wait for nobody."""
    return await db.one(int, COMPACT_COUNTS, max_groups)
