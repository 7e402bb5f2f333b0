"""Sums of participants for the console's home page. They agree with the lists that have the same filters."""

from collections.abc import Sequence
from datetime import date
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor


class PlanEndSummary(Struct):
    """Active participants: whose plan ends from today to a last day, whose plan has ended, who have no manager."""

    ending: int
    ended: int
    without_account_manager: int


class PeriodCount(Struct):
    """The active participants whose plans end in a period; periods count from 1."""

    period: int
    count: int


SUMMARIZE_PLAN_ENDS = """
    select ends.ending, ends.ended, case when $2::uuid is null then (
            select count(*) from participants
            where plan_manager_id = $1 and account_manager_id is null and status = 'Active'
        ) else 0 end as without_account_manager
    from (
        select count(*) filter (where plan_end_date >= $3) as ending,
            count(*) filter (where plan_end_date < $3) as ended
        from participants
        where plan_manager_id = $1 and ($2::uuid is null or account_manager_id = $2) and status = 'Active'
            and plan_end_date <= $4
    ) ends
"""


async def summarize_plan_ends(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID | None, today: date, last: date
) -> PlanEndSummary:
    """Of everyone, or of an account manager."""
    return await db.one(PlanEndSummary, SUMMARIZE_PLAN_ENDS, plan_manager_id, account_manager_id, today, last)


COUNT_PLAN_ENDS = """
    select width_bucket(plan_end_date, $3::date[]) as period, count(*)
    from participants
    where plan_manager_id = $1 and ($2::uuid is null or account_manager_id = $2) and status = 'Active'
        and plan_end_date >= ($3)[1] and plan_end_date < ($3)[array_upper($3, 1)]
    group by 1
"""


async def count_plan_ends(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID | None, limits: Sequence[date]
) -> list[PeriodCount]:
    """The active participants whose plans end from each limit to the day before the next."""
    return await db.rows(PeriodCount, COUNT_PLAN_ENDS, plan_manager_id, account_manager_id, limits)
