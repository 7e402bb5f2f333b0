"""When invoices were claimed, and their money was paid, as expressions in SQL for the service standard.

The rules are those of `resources/service_standard/months.py`. Placeholders: `{zone}` is the name of the time zone.
"""

from typing import LiteralString

_CLAIMS: LiteralString = """
    from claims
    where plan_manager_id = $1 and invoice_id = invoices.id and source <> 'imported'
        and state not in ('draft', 'cancelled')
"""
# A line counts from its first claim on: a rejected one that is claimed again was in time.
CLAIMED_ON: LiteralString = f"""(
    select max(day)
    from (
        select min((coalesce((
            select submitted_at from claim_batches where plan_manager_id = $1 and id = claims.batch_id
        ), created_at) at time zone {{zone}})::date) as day
        {_CLAIMS}
        group by line_id
    ) claimed
)"""
# An invoice without lines isn't claimed either.
IS_UNCLAIMED: LiteralString = f"""(
    claim_status in ('new', 'flagged', 'on_hold') and coalesce((
        select bool_or(not exists (select {_CLAIMS} and line_id = invoice_lines.id))
        from invoice_lines
        where plan_manager_id = $1 and invoice_id = invoices.id and not is_deleted and claim_status <> 'cancelled'
    ), true)
)"""
# The office's own fees are nobody's invoices: they would only make the office look faster.
COUNTS: LiteralString = """
    not is_deleted and not wont_claim and claim_status <> 'cancelled'
    and not exists (select from fees where plan_manager_id = $1 and id = invoices.id)
"""

# Of claims.
HAS_MONEY: LiteralString = """
    state in ('paid', 'partially_paid') and paid > 0
    and not exists (select from fees where plan_manager_id = $1 and id = claims.invoice_id)
"""
MONEY_ON: LiteralString = """greatest(result_date, (
    select min(date) from claim_receipts where plan_manager_id = $1 and batch_id = claims.batch_id and amount > 0
))"""
# The first time, also if the bank has returned that payment since.
PAID_ON: LiteralString = """(
    select min((
        select (select paid_on from payment_runs where plan_manager_id = $1 and id = payments.run_id)
        from payments
        where plan_manager_id = $1 and id = payment_lines.payment_id
    ))
    from payment_lines
    where plan_manager_id = $1 and invoice_id = claims.invoice_id and line_id = claims.line_id and claim_id = claims.id
)"""
IS_UNPAID: LiteralString = """(
    select claim_status in ('payment_ready', 'partially_ready')
    from invoice_lines
    where plan_manager_id = $1 and invoice_id = claims.invoice_id and id = claims.line_id
)"""

# The filters of lists. Values: the receipt from a time on and before another, the time zone, the first day, the last
# days in time from it on, and today.
CLAIMED_LATE: LiteralString = f"""
    received_at >= {{0}} and received_at < {{1}} and {COUNTS}
    and case when {IS_UNCLAIMED} then {{5}}::date else {CLAIMED_ON.replace("{zone}", "{2}")} end
        > ({{4}}::date[])[(received_at at time zone {{2}})::date - {{3}}::date + 1]
"""
# Values: the results from a day to another, the first day, the last days in time from it on, and today.
PAID_LATE: LiteralString = f"""
    id in (
        select invoice_id
        from claims
        where plan_manager_id = $1 and result_date between {{0}} and {{1}} and {HAS_MONEY}
            and coalesce({PAID_ON}, case when {IS_UNPAID} then {{4}}::date end)
                > ({{3}}::date[])[{MONEY_ON} - {{2}}::date + 1]
    )
"""
