"""What must hold of claims and payments at any time, in SQL that shares nothing with the program.

Each statement lists what breaks the rule that it is named after, of the plan manager $1.
"""

from typing import LiteralString

RULES: dict[LiteralString, LiteralString] = {
    "a line has one open claim": """
        select line_id::text from claims
        where plan_manager_id = $1 and state in ('draft', 'submitted')
        group by line_id having count(*) > 1
    """,
    "an open claim is of a batch that is open, and other claims aren't": """
        select claim.id::text from claims claim
        join claim_batches batch on batch.plan_manager_id = $1 and batch.id = claim.batch_id
        where claim.plan_manager_id = $1 and case batch.state
            when 'draft' then claim.state <> 'draft'
            when 'submitted' then claim.state not in ('submitted', 'cancelled')
            when 'part_processed' then claim.state = 'draft'
            else claim.state in ('draft', 'submitted')
        end
    """,
    "a batch has the sums of its claims": """
        select batch.number from claim_batches batch
        cross join lateral (
            select sum(amount) as total, count(*)::int as count
            from claims where plan_manager_id = $1 and batch_id = batch.id
        ) found
        where batch.plan_manager_id = $1 and (batch.total <> found.total or batch.lines <> found.count)
    """,
    "no two claims have one reference": """
        select reference from claims where plan_manager_id = $1 and source = 'batch'
        group by reference having count(*) > 1
    """,
    "a claim is paid at most what was claimed": """
        select id::text from claims where plan_manager_id = $1 and (
            paid > amount or paid < 0 or (state in ('paid', 'partially_paid')) is distinct from (coalesce(paid, 0) > 0)
        )
    """,
    "a claim has one open payment": """
        select claim_id::text from payment_lines
        where plan_manager_id = $1 and is_open
        group by claim_id having count(*) > 1
    """,
    "a claim is paid out at most what the agency has paid": """
        select claim.id::text from claims claim
        where plan_manager_id = $1 and coalesce(paid, 0) < (
            select coalesce(sum(amount), 0) from payment_lines
            where plan_manager_id = $1 and claim_id = claim.id and is_open
        ) + (
            select coalesce(sum(amount), 0) from fee_taking_lines where plan_manager_id = $1 and claim_id = claim.id
        )
    """,
    "a claim is taken as a fee once, and never paid to somebody else": """
        select claim_id::text from (
            select claim_id from fee_taking_lines where plan_manager_id = $1
            union all
            select claim_id from payment_lines where plan_manager_id = $1 and is_open and claim_id in (
                select claim_id from fee_taking_lines where plan_manager_id = $1
            )
        ) taken
        group by claim_id having count(*) > 1
    """,
    "a taking has the sums of its lines": """
        select taking.number from fee_takings taking
        cross join lateral (
            select sum(amount) as total, count(distinct line_id)::int as count
            from fee_taking_lines where plan_manager_id = $1 and taking_id = taking.id
        ) found
        where taking.plan_manager_id = $1 and (taking.total <> found.total or taking.lines <> found.count)
    """,
    "a participant has one fee of a month": """
        select participant_id::text || ' ' || month from fees where plan_manager_id = $1
        group by participant_id, month having count(*) > 1
    """,
    "a payment is open unless it is cancelled or returned": """
        select payment.id::text from payments payment
        join payment_lines paid on paid.plan_manager_id = $1 and paid.payment_id = payment.id
        join payment_runs run on run.plan_manager_id = $1 and run.id = payment.run_id
        where payment.plan_manager_id = $1 and (
            paid.is_open <> (payment.state in ('draft', 'paid'))
            or payment.state <> run.state and (run.state, payment.state) <> ('paid', 'returned')
        )
    """,
    "a run has the sums of its payments": """
        select run.number from payment_runs run
        cross join lateral (
            select sum(amount) as total, count(*)::int as count,
                (count(*) filter (where state = 'returned'))::int as returned
            from payments where plan_manager_id = $1 and run_id = run.id
        ) found
        cross join lateral (
            select sum(line.amount) as total from payment_lines line
            join payments payment on payment.plan_manager_id = $1 and payment.id = line.payment_id
            where line.plan_manager_id = $1 and payment.run_id = run.id
        ) lines
        where run.plan_manager_id = $1 and (
            run.total <> found.total or run.total <> lines.total or run.payment_count <> found.count
            or run.returned <> found.returned
        )
    """,
    "what the agency has paid for a line are its claims less its reversals, and what was imported": """
        select line.id::text from invoice_lines line
        cross join lateral (
            select coalesce(line.paid_amount, 0) - (
                select coalesce(sum(paid), 0) from claims where plan_manager_id = $1 and line_id = line.id
            ) + (
                select coalesce(sum(amount), 0) from adjustments
                where plan_manager_id = $1 and line_id = line.id and kind = 'agency_reversal'
            ) as amount
        ) imported
        where line.plan_manager_id = $1 and (imported.amount < 0 or imported.amount > 0 and not exists (
            select from events where plan_manager_id = $1 and resource_id = line.invoice_id::text
                and (import_id is not null or actor_kind = 'system')
        ))
    """,
    "a line in a batch or a run is in one that is open": """
        select line.id::text from invoice_lines line
        where line.plan_manager_id = $1 and (
            line.open_claim_batch is distinct from (
                select batch.number from claims claim
                join claim_batches batch on batch.plan_manager_id = $1 and batch.id = claim.batch_id
                where claim.plan_manager_id = $1 and claim.line_id = line.id and claim.state in ('draft', 'submitted')
            )
            or line.open_payment_run is distinct from (
                select max(run.number) from payment_lines paid
                join payments payment on payment.plan_manager_id = $1 and payment.id = paid.payment_id
                join payment_runs run on run.plan_manager_id = $1 and run.id = payment.run_id
                where paid.plan_manager_id = $1 and paid.line_id = line.id and run.state = 'draft'
            )
            or not line.has_payment and exists (
                select from payment_lines where plan_manager_id = $1 and line_id = line.id and is_open
            )
        )
    """,
    "the state of a line is that of its claims and payments": """
        select line.id::text || ' ' || line.claim_status from invoice_lines line
        cross join lateral (
            select
                (select count(*) from claims where plan_manager_id = $1 and line_id = line.id) as claims,
                exists (
                    select from claims where plan_manager_id = $1 and line_id = line.id and state = 'submitted'
                ) as is_claimed,
                coalesce((
                    select sum(paid.amount) from payment_lines paid
                    join payments payment on payment.plan_manager_id = $1 and payment.id = paid.payment_id
                    where paid.plan_manager_id = $1 and paid.line_id = line.id and payment.state = 'paid'
                ), 0) + coalesce((
                    select sum(amount) from fee_taking_lines where plan_manager_id = $1 and line_id = line.id
                ), 0) + coalesce(line.paid_amount, 0) - (
                    select coalesce(sum(paid), 0) from claims where plan_manager_id = $1 and line_id = line.id
                ) + (
                    select coalesce(sum(amount), 0) from adjustments
                    where plan_manager_id = $1 and line_id = line.id and kind = 'agency_reversal'
                ) as paid_out -- here, and elsewhere before an import
        ) found
        where line.plan_manager_id = $1 and found.claims > 0 and not case line.claim_status
            when 'pending' then is_claimed
            when 'paid' then paid_out >= line.paid_amount and line.paid_amount >= 0 and not is_claimed
            when 'partially_paid' then paid_out > 0 and paid_out >= line.paid_amount and not is_claimed
            when 'payment_ready' then paid_out < line.paid_amount and not is_claimed
            -- after a reversal of its rest, nothing may be due of it
            when 'partially_ready' then line.paid_amount > 0 and not is_claimed
            else paid_out = 0 and coalesce(line.paid_amount, 0) = 0 and not is_claimed
        end
    """,
    "a line is payable, claimable, waiting for a result, finished, or to recover: it isn't stuck": """
        select line.id::text || ' ' || line.claim_status from invoice_lines line
        cross join lateral (
            select coalesce(sum(amount) filter (where kind = 'agency_reversal'), 0) as reversed,
                coalesce(sum(amount) filter (where kind = 'provider_refund'), 0) as refunded
            from adjustments where plan_manager_id = $1 and line_id = line.id
        ) adjusted
        cross join lateral (
            select
                greatest(coalesce((
                    select sum(amount) from payment_lines where plan_manager_id = $1 and line_id = line.id and is_open
                ), 0) + coalesce((
                    select sum(amount) from fee_taking_lines where plan_manager_id = $1 and line_id = line.id
                ), 0) + coalesce(line.paid_amount, 0) + reversed - (
                    select coalesce(sum(paid), 0) from claims where plan_manager_id = $1 and line_id = line.id
                ) - refunded, 0) as held,
                exists (
                    select from claims claim
                    where plan_manager_id = $1 and line_id = line.id and paid > 0 and not exists (
                        select from payment_lines where plan_manager_id = $1 and claim_id = claim.id and is_open
                    ) and not exists (
                        select from fee_taking_lines where plan_manager_id = $1 and claim_id = claim.id
                    )
                ) as has_unpaid,
                exists (
                    select from payment_lines paid
                    join payments payment on payment.plan_manager_id = $1 and payment.id = paid.payment_id
                    where paid.plan_manager_id = $1 and paid.line_id = line.id and payment.state = 'returned'
                ) as is_returned
        ) found
        where line.plan_manager_id = $1 and not line.is_deleted
            and exists (select from claims where plan_manager_id = $1 and line_id = line.id)
            and case
                when line.claim_status in ('payment_ready', 'partially_ready')
                    then line.open_payment_run is null and not (line.paid_amount > held and has_unpaid)
                -- a refund is paid again only with another claim
                when line.claim_status in ('paid', 'partially_paid')
                    then is_returned and has_unpaid and line.paid_amount > held and refunded = 0
                when line.claim_status = 'pending' then line.open_payment_run is not null
                else held > 0 or line.paid_amount > 0
            end
    """,
    "the review queue knows the lines of an invoice": """
        select invoice.id::text from invoices invoice
        cross join lateral (
            select coalesce(array_agg(claim_status), '{}') as statuses from invoice_lines
            where plan_manager_id = $1 and invoice_id = invoice.id and not is_deleted
        ) line
        where invoice.plan_manager_id = $1 and waiting_line_status is distinct from case
            when claim_status = 'cancelled' then null
            when 'rejected' = any (statuses || claim_status) then 'rejected'
            when 'flagged' = any (statuses || claim_status) then 'flagged'
            when claim_status = 'new' or statuses && '{new,on_hold}'
                and statuses && '{pending,payment_ready,partially_ready,partially_paid,paid}' then 'new'
        end
    """,
}

# The names of the rules that are broken, and what breaks them: all in one statement, for tests that ask often.
BROKEN_RULES: LiteralString = "union all".join(
    f"""
    select '{name.replace("'", "''")}' as rule, found.what from ({rule}) found (what)
    """
    for name, rule in RULES.items()
)

# What the office holds: results (or receipts, with $2), less payments that left, plus those that came back and refunds,
# less repayments and fees that the office has taken.
HELD = """
    select (
        select coalesce(sum(paid), 0) from claims where plan_manager_id = $1 and (batch_id is null or not $2)
    ) + (
        select coalesce(sum(amount), 0) from claim_receipts where plan_manager_id = $1 and $2
    ) - (
        select coalesce(sum(amount), 0) from payments where plan_manager_id = $1 and state in ('paid', 'returned')
    ) + (
        select coalesce(sum(amount), 0) from payments where plan_manager_id = $1 and state = 'returned'
    ) + (
        select coalesce(sum(case kind when 'provider_refund' then amount else -amount end), 0) from adjustments
        where plan_manager_id = $1 and kind in ('provider_refund', 'repaid_to_agency')
    ) - (
        select coalesce(sum(amount), 0) from fee_taking_lines where plan_manager_id = $1
    )
"""
