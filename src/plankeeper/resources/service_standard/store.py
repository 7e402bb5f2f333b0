"""The numbers of the service standard in SQL, by month and account manager."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor
from plankeeper.resources.invoices.standard_conditions import (
    CLAIMED_ON,
    COUNTS,
    HAS_MONEY,
    IS_UNCLAIMED,
    IS_UNPAID,
    MONEY_ON,
    PAID_ON,
)
from plankeeper.resources.service_standard.months import Deadlines


class MonthRow(Struct):
    """The invoices of a month, by its first day, of the participants of an account manager."""

    month: date
    account_manager_id: UUID | None
    in_time: int
    late: int
    waiting: int
    done: int


ACCOUNT_MANAGER: LiteralString = """(
    select account_manager_id from participants where plan_manager_id = $1 and id = invoice.participant_id
)"""
COUNT_CLAIMED = f"""
    select date_trunc('month', received_on::timestamp)::date as month, {ACCOUNT_MANAGER} as account_manager_id,
        count(*) filter (where claimed_on <= due) as in_time,
        count(*) filter (where case when is_unclaimed then $7::date else claimed_on end > due) as late,
        count(*) filter (where is_unclaimed and $7 <= due) as waiting, count(claimed_on) as done
    from (
        select participant_id, received_on, is_unclaimed, claimed_on, ($6::date[])[received_on - $5::date + 1] as due
        from (
            select participant_id, (received_at at time zone $4)::date as received_on, is_unclaimed,
                case when not is_unclaimed then {CLAIMED_ON.replace("{zone}", "$4")} end as claimed_on
            from (
                select id, participant_id, received_at, {IS_UNCLAIMED} as is_unclaimed
                from invoices
                where plan_manager_id = $1 and received_at >= $2 and received_at < $3 and {COUNTS}
                offset 0
            ) invoices
            offset 0
        ) dated
        offset 0
    ) invoice
    group by 1, 2
"""


async def count_claimed(
    db: Executor, plan_manager_id: UUID, start: datetime, end: datetime, zone: str, limits: Deadlines, today: date
) -> Sequence[MonthRow]:
    """The invoices that were received between two times. `limits` has each of their days in the zone."""
    return await db.rows(
        MonthRow, COUNT_CLAIMED, plan_manager_id, start, end, zone, limits.first, list(limits.days), today
    )


# An invoice is late in a month if one of its results is, and waiting if another one is.
COUNT_PAID = f"""
    select month, {ACCOUNT_MANAGER} as account_manager_id,
        count(*) filter (where not late and not waiting) as in_time, count(*) filter (where late) as late,
        count(*) filter (where not late and waiting) as waiting, count(*) filter (where not waiting) as done
    from (
        select month, (
            select participant_id from invoices where plan_manager_id = $1 and id = paid.invoice_id
        ) as participant_id, late, waiting
        from (
            select invoice_id, date_trunc('month', result_date::timestamp)::date as month,
                bool_or(coalesce(paid_on, $6::date) > due) as late, bool_or(paid_on is null) as waiting
            from (
                select invoice_id, result_date, paid_on, ($5::date[])[money_on - $4::date + 1] as due
                from (
                    select invoice_id, line_id, result_date, {PAID_ON} as paid_on, {MONEY_ON} as money_on
                    from claims
                    where plan_manager_id = $1 and result_date between $2 and $3 and {HAS_MONEY}
                    offset 0
                ) claims
                where paid_on is not null or {IS_UNPAID}
                offset 0
            ) result
            where due is not null
            group by 1, 2
            offset 0
        ) paid
        offset 0
    ) invoice
    group by 1, 2
"""


async def count_paid(
    db: Executor, plan_manager_id: UUID, first: date, last: date, limits: Deadlines, today: date
) -> Sequence[MonthRow]:
    """The invoices with results from a day to another. `limits` has each day from the first one to today."""
    return await db.rows(MonthRow, COUNT_PAID, plan_manager_id, first, last, limits.first, list(limits.days), today)
