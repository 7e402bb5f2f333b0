"""The movements of the money that the office holds, in SQL."""

from datetime import date
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.resources.payments.reconciliation_schemas import LineMoney

# Receipts are of a batch: they belong to its claims with results in the order of the file, as far as they reach.
LIST_MONEY = """
    with paid_claims as (
        select invoice_id, line_id, batch_id, paid, position, coalesce(result_date, created_at::date) as day
        from claims
        where plan_manager_id = $1 and paid > 0 and state in ('paid', 'partially_paid')
            and coalesce(result_date, created_at::date) <= $3
    ),
    batch_receipts as (
        select batch_id, sum(amount) filter (where date < $2) as before, sum(amount) as until
        from claim_receipts
        where plan_manager_id = $1 and date <= $3 and $4
        group by batch_id
    ),
    covered_claims as (
        select claim.invoice_id, claim.line_id, claim.batch_id,
            least(claim.paid, greatest(coalesce(receipts.before, 0) - claim.earlier, 0)) as before,
            least(claim.paid, greatest(receipts.until - claim.earlier, 0)) as until
        from (
            select *, sum(paid) over (partition by batch_id order by position) - paid as earlier
            from paid_claims
            where batch_id is not null
        ) claim
        join batch_receipts receipts on receipts.batch_id = claim.batch_id
    ),
    movements as (
        select invoice_id, line_id, null::uuid as batch_id, 'received' as kind, day, paid as amount
        from paid_claims
        where not $4 or batch_id is null
        union all
        select invoice_id, line_id, null, 'received', $2::date - 1, before from covered_claims
        union all
        select invoice_id, line_id, null, 'received', $3, until - before from covered_claims
        union all
        select null, null, receipts.batch_id, 'received', moment.day, moment.amount
        from batch_receipts receipts
        cross join lateral (
            select coalesce(receipts.before, 0) - coalesce(sum(before), 0) as before,
                receipts.until - coalesce(sum(until), 0) as until
            from covered_claims
            where batch_id = receipts.batch_id
        ) rest
        cross join lateral (
            values ($2::date - 1, rest.before), ($3::date, rest.until - rest.before)
        ) moment (day, amount)
        union all
        select line.invoice_id, line.line_id, null, 'paid_out', run.paid_on, line.amount
        from payment_runs run
        join payments payment on payment.plan_manager_id = $1 and payment.run_id = run.id
        join payment_lines line on line.plan_manager_id = $1 and line.payment_id = payment.id
        where run.plan_manager_id = $1 and run.paid_on <= $3
        union all
        select line.invoice_id, line.line_id, null, 'returned', payment.returned_on, line.amount
        from payments payment
        join payment_lines line on line.plan_manager_id = $1 and line.payment_id = payment.id
        where payment.plan_manager_id = $1 and payment.returned_on <= $3
        union all
        select line.invoice_id, line.line_id, null, 'fees', taking.taken_on, line.amount
        from fee_takings taking
        join fee_taking_lines line on line.plan_manager_id = $1 and line.taking_id = taking.id
        where taking.plan_manager_id = $1 and taking.taken_on <= $3
        union all
        select invoice_id, line_id, null, case kind when 'provider_refund' then 'refunded' else 'repaid' end, date,
            amount
        from adjustments
        where plan_manager_id = $1 and date <= $3 and kind in ('provider_refund', 'repaid_to_agency')
    ),
    sums as (
        select invoice_id, line_id, batch_id as claim_batch_id,
            coalesce(sum(case when kind in ('paid_out', 'repaid', 'fees') then -amount else amount end)
                filter (where day < $2), 0) as opening,
            coalesce(sum(amount) filter (where day >= $2 and kind = 'received'), 0) as received,
            coalesce(sum(amount) filter (where day >= $2 and kind = 'paid_out'), 0) as paid_out,
            coalesce(sum(amount) filter (where day >= $2 and kind = 'returned'), 0) as returned,
            coalesce(sum(amount) filter (where day >= $2 and kind = 'refunded'), 0) as refunded,
            coalesce(sum(amount) filter (where day >= $2 and kind = 'repaid'), 0) as repaid,
            coalesce(sum(amount) filter (where day >= $2 and kind = 'fees'), 0) as fees
        from movements
        group by invoice_id, line_id, batch_id
    )
    select invoice_id, line_id, claim_batch_id, opening, received, paid_out, returned, refunded, repaid, sums.fees
    from sums
    where opening <> 0 or received <> 0 or paid_out <> 0 or returned <> 0 or refunded <> 0 or repaid <> 0
        or fees <> 0
    order by invoice_id, line_id, claim_batch_id
"""


async def list_money(
    db: Executor, plan_manager_id: UUID, first: date, last: date, *, needs_receipts: bool
) -> list[LineMoney]:
    """The money of each line that the office held before the first day, or that has moved until the last one.

    With `needs_receipts`, money of claims in batches is received with the receipts of the batch.
    """
    return await db.rows(LineMoney, LIST_MONEY, plan_manager_id, first, last, needs_receipts)
