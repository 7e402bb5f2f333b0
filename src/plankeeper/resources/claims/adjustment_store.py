"""Adjustments, and what is to be recovered, in SQL."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.core.lists import PageRows, cut_page, fetch_page
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT, Filter
from plankeeper.database.row_ids import HAS_ID
from plankeeper.resources.claims.adjustment_rules import LineMoney
from plankeeper.resources.claims.adjustment_schemas import Adjustment, AdjustmentListQuery, RecoveryListQuery
from plankeeper.resources.invoices.schemas import Payee

COLUMNS: LiteralString = (
    "id, invoice_id, line_id, kind, amount, date, reference, reason, created_at, created_by, updated_at"
)
INSERT = f"""
    insert into adjustments (plan_manager_id, {COLUMNS}, paid_out_part)
    select $1, {COLUMNS}, $3 from json_populate_record(null::adjustments, $2)
"""


async def insert(tx: Transaction, plan_manager_id: UUID, record: str, paid_out_part: Decimal) -> None:
    """Insert an adjustment. `record` is the JSON of an Adjustment."""
    await tx.execute(INSERT, plan_manager_id, record, paid_out_part)


LIST = FilteredList(
    "adjustments",
    AdjustmentListQuery,
    {"invoice_id": Filter("invoice_id = {}")},
    sorts=BY_UPDATED_AT,
)
GET_MANY = f"select {COLUMNS} from adjustments where plan_manager_id = $1 and {HAS_ID}"


async def list_page(
    db: Executor, plan_manager_id: UUID, invoice_id: UUID, query: AdjustmentListQuery
) -> PageRows[Adjustment]:
    return await fetch_page(db, plan_manager_id, query, LIST, _get_many, invoice_id=invoice_id)


async def _get_many(db: Executor, plan_manager_id: UUID, ids: Sequence[UUID]) -> list[Adjustment]:
    return await db.rows(Adjustment, GET_MANY, plan_manager_id, ids)


async def count(db: Executor, plan_manager_id: UUID, invoice_id: UUID, query: AdjustmentListQuery) -> int:
    return await LIST.count(db, plan_manager_id, LIST.values_of(query, invoice_id=invoice_id))


# The money of a line `line`, as LineMoney has it. A payment is open if it is neither cancelled nor returned; what was
# taken as a fee was paid out to the office. What was imported as paid, or as a part of a pending line, has neither a
# claim nor a payment here, also if the rest of its line has.
MONEY: LiteralString = """
    cross join lateral (
        select
            coalesce(sum(amount) filter (where kind = 'agency_reversal'), 0) as reversed,
            coalesce(sum(amount) filter (where kind = 'provider_refund'), 0) as refunded,
            coalesce(sum(amount) filter (where kind = 'repaid_to_agency'), 0) as repaid,
            coalesce(sum(paid_out_part), 0) as reversed_paid_out,
            min(date) filter (where kind = 'agency_reversal') as since
        from adjustments
        where plan_manager_id = $1 and invoice_id = line.invoice_id and line_id = line.id
        offset 0
    ) adjusted
    cross join lateral (
        select count(*) as claim_count, coalesce(sum(claims.paid), 0) as claim_sum
        from claims
        where plan_manager_id = $1 and invoice_id = line.invoice_id and line_id = line.id
        offset 0
    ) claimed
    cross join lateral (
        select coalesce(line.paid_amount, 0) as paid,
            case
                when count(part.amount) = 0 and claimed.claim_count = 0
                    and line.claim_status in ('paid', 'partially_paid', 'pending')
                    then coalesce(line.paid_amount, 0) + adjusted.reversed
                else coalesce(sum(part.amount) filter (where part.is_open and (part.payment_id is null or (
                    select state from payments where plan_manager_id = $1 and id = part.payment_id
                ) = 'paid')), 0) + case
                    when claimed.claim_count > 0
                        then greatest(coalesce(line.paid_amount, 0) + adjusted.reversed - claimed.claim_sum, 0)
                    else 0
                end
            end as paid_out
        from (
            select payment_id, amount, is_open from payment_lines
            where plan_manager_id = $1 and invoice_id = line.invoice_id and line_id = line.id
            union all
            select null, amount, true from fee_taking_lines
            where plan_manager_id = $1 and invoice_id = line.invoice_id and line_id = line.id
        ) part
        offset 0
    ) payments
"""
MONEY_COLUMNS: LiteralString = "paid, paid_out, reversed, refunded, repaid, reversed_paid_out"
GET_MONEY = f"""
    select {MONEY_COLUMNS}
    from invoice_lines line {MONEY}
    where line.plan_manager_id = $1 and line.invoice_id = $2 and line.id = $3
"""


async def get_money(db: Executor, plan_manager_id: UUID, invoice_id: UUID, line_id: UUID) -> LineMoney:
    """The money of a line that exists."""
    return await db.one(LineMoney, GET_MONEY, plan_manager_id, invoice_id, line_id)


class ReversedLine(Struct):
    """A line with a reversal that isn't settled, with its payee. `id` is that of its first reversal."""

    id: UUID
    line_id: UUID
    invoice_id: UUID
    invoice_number: str | None
    payee: Payee
    payee_id: UUID | None
    payee_name: str | None
    since: date
    money: LineMoney


# The first reversals of lines that were paid out, unless refunds and repayments have settled them: see LineMoney.
UNSETTLED: LiteralString = f"""
    from adjustments first
    cross join lateral (
        select * from invoice_lines
        where plan_manager_id = $1 and invoice_id = first.invoice_id and id = first.line_id
        offset 0
    ) line
    {MONEY}
    where first.plan_manager_id = $1 and first.kind = 'agency_reversal' and paid_out > 0
        and (paid_out - refunded > paid or reversed_paid_out > repaid)
        and not exists (
            select from adjustments
            where plan_manager_id = $1 and invoice_id = first.invoice_id and line_id = first.line_id
                and kind = 'agency_reversal' and id < first.id
        )
"""
LIST_UNSETTLED = f"""
    select page.id, page.line_id, page.invoice_id, invoice.invoice_number,
        case when is_reimbursement then 'participant' else 'provider' end as payee,
        case when is_reimbursement then participant_id else pm_provider_id end as payee_id,
        case when is_reimbursement then (
            select nullif(concat_ws(' ', first_name, last_name), '') from participants
            where plan_manager_id = $1 and id = invoice.participant_id
        ) else (
            select entity_name from providers where plan_manager_id = $1 and id = invoice.pm_provider_id
        ) end as payee_name,
        page.since, page.paid as money_paid, page.paid_out as money_paid_out, page.reversed as money_reversed,
        page.refunded as money_refunded, page.repaid as money_repaid,
        page.reversed_paid_out as money_reversed_paid_out
    from (
        select first.id, line.id as line_id, line.invoice_id, since, {MONEY_COLUMNS}
        {UNSETTLED} and first.id > $2
        order by first.id
        limit $3 offset $4
    ) page
    cross join lateral (
        select * from invoices where plan_manager_id = $1 and id = page.invoice_id offset 0
    ) invoice
    order by page.id
"""
COUNT_UNSETTLED = f"select count(*) {UNSETTLED}"


async def list_unsettled(db: Executor, plan_manager_id: UUID, query: RecoveryListQuery) -> PageRows[ReversedLine]:
    """A page of the lines whose money is to be recovered, in the order of their first reversals."""
    return cut_page(await db.rows(ReversedLine, LIST_UNSETTLED, plan_manager_id, *query.position), query.limit)


async def count_unsettled(db: Executor, plan_manager_id: UUID) -> int:
    return await db.one(int, COUNT_UNSETTLED, plan_manager_id)
