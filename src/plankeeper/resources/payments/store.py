"""Payment runs and payments in SQL."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.number_keys import abn_key
from plankeeper.database.row_ids import HAS_ID, in_array
from plankeeper.database.versions import UPDATED_AT, later_version
from plankeeper.resources.payments.schemas import PayableLine, PayeeKind, Payment, PaymentRun, StoredRun

STATE_COLUMNS: LiteralString = """
    left_out_count, created_at, created_by, downloaded_at, downloaded_by, paid_on, paid_at, paid_by, cancelled_at,
    cancelled_by, cancel_reason, updated_at
"""
MAIN_COLUMNS: LiteralString = "id, number, state, process_date, group_by, total, payment_count as payments, returned"
WITHOUT_LISTS: LiteralString = f"""
    {MAIN_COLUMNS}, null::json as warnings, null::json as left_out, {STATE_COLUMNS}
"""
WITH_LISTS: LiteralString = f"""
    {MAIN_COLUMNS}, warnings::json as warnings, left_out::json as left_out, {STATE_COLUMNS}
"""
STORED_COLUMNS: LiteralString = f"""
    {WITHOUT_LISTS}, header ->> 'bank_letters' as header_bank_letters, header ->> 'bsb' as header_bsb,
    header ->> 'account_name' as header_account_name, header ->> 'user_id' as header_user_id,
    header ->> 'user_name' as header_user_name, header ->> 'description' as header_description,
    header ->> 'remitter' as header_remitter,
    (header ->> 'has_balancing_record')::boolean as header_has_balancing_record,
    account, created_by_account, downloaded_by_account
"""

GET = f"select {WITH_LISTS} from payment_runs where plan_manager_id = $1 and id = $2"


async def get(db: Executor, plan_manager_id: UUID, run_id: UUID) -> PaymentRun | None:
    return await db.one_or_none(PaymentRun, GET, plan_manager_id, run_id)


GET_BARE = f"select {WITHOUT_LISTS} from payment_runs where plan_manager_id = $1 and id = $2"


async def get_bare(db: Executor, plan_manager_id: UUID, run_id: UUID) -> PaymentRun | None:
    """The run without its lists, as in lists and events."""
    return await db.one_or_none(PaymentRun, GET_BARE, plan_manager_id, run_id)


EXISTS = "select exists (select from payment_runs where plan_manager_id = $1 and id = $2)"


async def exists(db: Executor, plan_manager_id: UUID, run_id: UUID) -> bool:
    return await db.one(bool, EXISTS, plan_manager_id, run_id)


GET_MANY = f"select {WITHOUT_LISTS} from payment_runs where plan_manager_id = $1 and {HAS_ID} order by id"


async def get_many(db: Executor, plan_manager_id: UUID, run_ids: Sequence[UUID]) -> list[PaymentRun]:
    """The runs with these ids, without their lists, in order of id; unknown ids are ignored."""
    return await db.rows(PaymentRun, GET_MANY, plan_manager_id, run_ids)


LOCK = f"select {STORED_COLUMNS} from payment_runs where plan_manager_id = $1 and id = $2 for update"


async def select_for_update(tx: Transaction, plan_manager_id: UUID, run_id: UUID) -> StoredRun | None:
    """The run without its lists, locked until the transaction ends: the first lock of each change of a run."""
    return await tx.one_or_none(StoredRun, LOCK, plan_manager_id, run_id)


LIST_FIRST_PEOPLE = """
    select account_id
    from (
        select created_by_account as account_id from payment_runs where plan_manager_id = $1 and id = $2
        union
        select downloaded_by_account from payment_runs where plan_manager_id = $1 and id = $2
    ) first
    where account_id is not null
"""


async def list_first_people(db: Executor, plan_manager_id: UUID, run_id: UUID) -> list[UUID]:
    """The accounts that have made a run or downloaded its file first, without the operator."""
    return await db.rows(UUID, LIST_FIRST_PEOPLE, plan_manager_id, run_id)


INSERT_COLUMNS: LiteralString = """
    id, number, state, process_date, group_by, header, account, total, warnings, left_out, left_out_count, returned,
    created_at, created_by, created_by_account
"""
INSERT = f"""
    insert into payment_runs (plan_manager_id, {INSERT_COLUMNS}, payment_count, updated_at)
    select $1, {INSERT_COLUMNS}, ($2::json ->> 'payments')::int, {UPDATED_AT}
    from json_populate_record(null::payment_runs, $2)
"""


async def insert(tx: Transaction, plan_manager_id: UUID, record: str) -> None:
    """Insert a draft. `record` is the JSON of a StoredRun with its lists."""
    await tx.execute(INSERT, plan_manager_id, record)


PAYMENT_COLUMNS: LiteralString = """
    id, run_id, position, payee_kind, payee_id, payee_name, account, account_ending, account_title, reference, amount,
    state, created_at
"""
INSERT_PAYMENTS = f"""
    insert into payments (plan_manager_id, {PAYMENT_COLUMNS}, updated_at)
    select $1, {PAYMENT_COLUMNS}, created_at from json_populate_recordset(null::payments, $2)
"""
INSERT_LINES = """
    insert into payment_lines (plan_manager_id, payment_id, claim_id, invoice_id, line_id, amount, is_open)
    select $1, payment_id, claim_id, invoice_id, line_id, amount, true
    from json_populate_recordset(null::payment_lines, $2)
    returning payment_id -- without this, Citus would copy the rows and report an error without its code
"""


async def insert_payments(tx: Transaction, plan_manager_id: UUID, payments: str, lines: str) -> None:
    """Insert payments and what they pay: JSON lists of StoredPayment and of StoredPaymentLine."""
    await tx.execute(INSERT_PAYMENTS, plan_manager_id, payments)
    await tx.rows(UUID, INSERT_LINES, plan_manager_id, lines)


# The transitions of a run. Its row is locked, so the state is that of `select_for_update`.
DOWNLOADED = f"""
    update payment_runs set downloaded_at = $3, downloaded_by = $4, downloaded_by_account = $5,
        updated_at = {later_version("$3")}
    where plan_manager_id = $1 and id = $2 and downloaded_at is null
"""
MARK_PAID = f"""
    update payment_runs set state = 'paid', paid_on = $4, paid_at = $3, paid_by = $5, advices_mailed = $6,
        updated_at = {later_version("$3")}
    where plan_manager_id = $1 and id = $2 and state = 'draft'
"""
CANCEL = f"""
    update payment_runs set state = 'cancelled', cancelled_at = $3, cancelled_by = $4, cancel_reason = $5,
        updated_at = {later_version("$3")}
    where plan_manager_id = $1 and id = $2 and state = 'draft'
"""
ADD_RETURNED = f"""
    update payment_runs set returned = returned + 1,
        updated_at = {later_version("$3")}
    where plan_manager_id = $1 and id = $2
"""


async def set_downloaded(
    tx: Transaction, plan_manager_id: UUID, run_id: UUID, now: datetime, by: str, account_id: UUID | None
) -> None:
    """Record the first download of a file."""
    await tx.execute(DOWNLOADED, plan_manager_id, run_id, now, by, account_id)


async def set_paid(
    tx: Transaction, plan_manager_id: UUID, run_id: UUID, now: datetime, paid_on: date, by: str, *, advices_mailed: bool
) -> None:
    await tx.execute(MARK_PAID, plan_manager_id, run_id, now, paid_on, by, advices_mailed)


async def set_cancelled(
    tx: Transaction, plan_manager_id: UUID, run_id: UUID, now: datetime, by: str, reason: str | None
) -> None:
    await tx.execute(CANCEL, plan_manager_id, run_id, now, by, reason)


async def add_returned(tx: Transaction, plan_manager_id: UUID, run_id: UUID, now: datetime) -> None:
    """Count a payment that the bank has sent back."""
    await tx.execute(ADD_RETURNED, plan_manager_id, run_id, now)


# Payments

LINES_OF_PAYMENT: LiteralString = """
    (
        select json_agg(json_build_object('invoice_id', paid.invoice_id, 'line_id', paid.line_id,
            'claim_id', paid.claim_id, 'amount', paid.amount) order by paid.invoice_id, paid.line_id, paid.claim_id)
        from payment_lines paid
        where paid.plan_manager_id = $1 and paid.payment_id = payments.id
    ) as lines
"""
FULL_PAYMENT: LiteralString = f"""
    id, position, payee_kind, payee_id, payee_name, account_ending, reference, amount, state, {LINES_OF_PAYMENT},
    returned_on, return_reference, return_reason, returned_at, returned_by, created_at, updated_at
"""
GET_PAYMENT = f"select {FULL_PAYMENT} from payments where plan_manager_id = $1 and run_id = $2 and id = $3"


async def get_payment(db: Executor, plan_manager_id: UUID, run_id: UUID, payment_id: UUID) -> Payment | None:
    return await db.one_or_none(Payment, GET_PAYMENT, plan_manager_id, run_id, payment_id)


GET_PAYMENTS = f"select {FULL_PAYMENT} from payments where plan_manager_id = $1 and {HAS_ID} order by id"


async def get_payments(db: Executor, plan_manager_id: UUID, payment_ids: Sequence[UUID]) -> list[Payment]:
    """The payments with these ids, in order of id; unknown ids are ignored."""
    return await db.rows(Payment, GET_PAYMENTS, plan_manager_id, payment_ids)


class FilePayment(Struct):
    """A payment of a run with its account, which is encrypted, and the lines that it pays."""

    id: UUID
    position: int
    payee_kind: PayeeKind
    payee_id: UUID
    payee_name: str
    account: str
    account_title: str
    reference: str
    amount: Decimal


LIST_OF_RUN = """
    select id, position, payee_kind, payee_id, payee_name, account, account_title, reference, amount
    from payments
    where plan_manager_id = $1 and run_id = $2
    order by position
"""


async def list_of_run(db: Executor, plan_manager_id: UUID, run_id: UUID) -> list[FilePayment]:
    """The payments of a run, in the order of the file."""
    return await db.rows(FilePayment, LIST_OF_RUN, plan_manager_id, run_id)


class RunLine(Struct):
    """What a run pays of a line by one payment.

    `other_open` is the number of other payments that are neither cancelled nor returned, and `other_ref` the reference
    of the last one that is paid.
    """

    payment_id: UUID
    position: int
    invoice_id: UUID
    line_id: UUID
    amount: Decimal
    other_open: int
    other_ref: str | None


OF_LINE: LiteralString = """
    from payment_lines other
    where other.plan_manager_id = $1 and other.invoice_id = paid.invoice_id and other.line_id = paid.line_id
        and other.is_open and other.payment_id <> paid.payment_id
"""
LIST_LINES = f"""
    select payment.id as payment_id, payment.position, paid.invoice_id, paid.line_id, paid.amount,
        (select count(*)::int {OF_LINE}) as other_open,
        (
            -- by primary keys: as a join, it reads all payments for each line
            select max((
                select (
                    select number from payment_runs where plan_manager_id = $1 and id = sent.run_id
                ) || '-' || lpad(sent.position::text, 4, '0')
                from payments sent
                where sent.plan_manager_id = $1 and sent.id = other.payment_id and sent.state = 'paid'
            )) {OF_LINE}
        ) as other_ref
    from (
        select id, position from payments
        where plan_manager_id = $1 and run_id = $2 and ($3::uuid is null or id = $3)
        offset 0
    ) payment
    cross join lateral (
        select payment_id, invoice_id, line_id, sum(amount) as amount
        from payment_lines
        where plan_manager_id = $1 and payment_id = payment.id
        group by payment_id, invoice_id, line_id
        offset 0
    ) paid
    order by payment.position, paid.invoice_id, paid.line_id
"""


async def list_lines(db: Executor, plan_manager_id: UUID, run_id: UUID, payment_id: UUID | None) -> list[RunLine]:
    """The lines of a run's payments, or of one of them. A line is in one payment of a run.

    The caller has locked their invoices, so that no other payment of these lines ends at the same time.
    """
    return await db.rows(RunLine, LIST_LINES, plan_manager_id, run_id, payment_id)


class PaidLineId(Struct):
    """A line that a run pays."""

    invoice_id: UUID
    line_id: UUID


LIST_LINE_IDS = """
    select paid.invoice_id, paid.line_id
    from (
        select id, position from payments
        where plan_manager_id = $1 and run_id = $2 and ($3::uuid is null or id = $3)
        offset 0
    ) payment
    cross join lateral (
        select invoice_id, line_id from payment_lines
        where plan_manager_id = $1 and payment_id = payment.id
        offset 0
    ) paid
    order by payment.position, paid.invoice_id, paid.line_id
"""


async def list_line_ids(
    db: Executor, plan_manager_id: UUID, run_id: UUID, payment_id: UUID | None = None
) -> list[PaidLineId]:
    """The lines of a run's payments, or of one of them, each once for each of its claims."""
    return await db.rows(PaidLineId, LIST_LINE_IDS, plan_manager_id, run_id, payment_id)


LIST_RETURNED = f"""
    select distinct invoice_id, line_id
    from payment_lines paid
    where plan_manager_id = $1 and {in_array("invoice_id", "$2::uuid[]")} and not is_open
        and (select state from payments where plan_manager_id = $1 and id = paid.payment_id) = 'returned'
"""


async def list_returned(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[PaidLineId]:
    """The lines of invoices of which the bank has sent a payment back, whether or not they were paid again."""
    return await db.rows(PaidLineId, LIST_RETURNED, plan_manager_id, invoice_ids)


SET_STATE = f"""
    update payments set state = $4, updated_at = {later_version("$3")}
    where plan_manager_id = $1 and run_id = $2 and state = 'draft'
"""
CLOSE_LINES = """
    update payment_lines set is_open = false
    where plan_manager_id = $1 and payment_id in (
        select id from payments where plan_manager_id = $1 and run_id = $2 and ($3::uuid is null or id = $3)
    )
"""
RETURN_PAYMENT = f"""
    update payments set state = 'returned', returned_on = $5, return_reference = $6, return_reason = $7,
        returned_at = $4, returned_by = $8, updated_at = {later_version("$4")}
    where plan_manager_id = $1 and run_id = $2 and id = $3 and state = 'paid'
    returning id
"""


async def set_payments_state(tx: Transaction, plan_manager_id: UUID, run_id: UUID, now: datetime, state: str) -> None:
    """Change the state of the payments of a draft run."""
    await tx.execute(SET_STATE, plan_manager_id, run_id, now, state)


async def close_lines(tx: Transaction, plan_manager_id: UUID, run_id: UUID, payment_id: UUID | None) -> None:
    """Free the claims of a run's payments, or of one of them, for other payments."""
    await tx.execute(CLOSE_LINES, plan_manager_id, run_id, payment_id)


async def set_returned(
    tx: Transaction,
    plan_manager_id: UUID,
    run_id: UUID,
    payment_id: UUID,
    now: datetime,
    returned_on: date,
    reference: str | None,
    reason: str,
    by: str,
) -> bool:
    """Mark a payment as returned. False if it isn't paid."""
    values = (now, returned_on, reference, reason, by)
    return bool(await tx.rows(UUID, RETURN_PAYMENT, plan_manager_id, run_id, payment_id, *values))


# What can be paid

OF_CLAIMED_LINE: LiteralString = """
    where plan_manager_id = $1 and invoice_id = line.invoice_id and line_id = line.id
"""


def payable_lines(lines: LiteralString) -> LiteralString:
    """A statement about lines, which are rows of `invoice_lines`, with what decides about their payment."""
    return f"""
    select line.invoice_id, line.id as line_id, invoice.invoice_number, invoice.held_at is not null as is_held,
        line.claim_status, line.open_payment_run as payment_run, line.paid_amount,
        case when invoice.is_reimbursement then 'participant' else 'provider' end as payee_kind,
        case when invoice.is_reimbursement then invoice.participant_id else invoice.pm_provider_id end as payee_id,
        case when invoice.is_reimbursement then participant.name else provider.name end as payee_name,
        provider.abn as payee_abn, participant.is_deceased is true as is_deceased,
        (
            select coalesce(sum(amount), 0) from adjustments {OF_CLAIMED_LINE} and kind = 'agency_reversal'
        ) as reversed,
        (
            select coalesce(sum(amount), 0) from adjustments {OF_CLAIMED_LINE} and kind = 'provider_refund'
        ) as refunded,
        (
            select coalesce(sum(amount), 0) from payment_lines {OF_CLAIMED_LINE} and is_open
        ) + (
            select coalesce(sum(amount), 0) from fee_taking_lines {OF_CLAIMED_LINE}
        ) as open,
        exists (select from fees where plan_manager_id = $1 and id = line.invoice_id) as is_fee,
        (
            select coalesce(json_agg(json_build_object('id', claim.id, 'paid', claim.paid, 'batch_id', claim.batch_id,
                'is_open', exists (
                    select from payment_lines where plan_manager_id = $1 and claim_id = claim.id and is_open
                ) or exists (
                    select from fee_taking_lines where plan_manager_id = $1 and claim_id = claim.id
                )) order by claim.id), '[]')
            from (
                select * from claims {OF_CLAIMED_LINE} and state in ('paid', 'partially_paid') and paid > 0
            ) claim
        ) as claims
    from ({lines}) line
    cross join lateral (
        select invoice_number, held_at, is_reimbursement, participant_id, pm_provider_id, is_deleted
        from invoices where plan_manager_id = $1 and id = line.invoice_id offset 0
    ) invoice
    left join lateral (
        select coalesce(nullif(btrim(entity_name), ''), 'Provider without a name') as name, {abn_key()} as abn
        from providers where plan_manager_id = $1 and id = invoice.pm_provider_id offset 0
    ) provider on true
    left join lateral (
        select coalesce(nullif(btrim(concat_ws(' ', first_name, last_name)), ''), 'Participant without a name') as name,
            deceased_on is not null as is_deceased
        from participants where plan_manager_id = $1 and id = invoice.participant_id offset 0
    ) participant on true
    where not invoice.is_deleted
    order by line.invoice_id, line.position
"""


READY_LINES: LiteralString = """
    from invoice_lines
    where plan_manager_id = $1 and claim_status = any ($2) and not is_deleted and open_payment_run is null
"""
LIST_READY: LiteralString = payable_lines(f"""
    select invoice_id, id, position, claim_status, open_payment_run, paid_amount {READY_LINES}
""")
COUNT_READY: LiteralString = f"""
    select count(*)
    from (select invoice_id {READY_LINES}) line
    cross join lateral (
        select from invoices where plan_manager_id = $1 and id = line.invoice_id and not is_deleted offset 0
    ) invoice
"""
LIST_OF_INVOICES: LiteralString = payable_lines(f"""
    select invoice_id, id, position, claim_status, open_payment_run, paid_amount from invoice_lines
    where plan_manager_id = $1 and {in_array("invoice_id", "$2::uuid[]")} and not is_deleted
        and claim_status <> 'cancelled'
""")


async def list_ready(db: Executor, plan_manager_id: UUID, statuses: Sequence[str]) -> list[PayableLine]:
    """All lines in some states that are in no draft run, in order of their invoices."""
    return await db.rows(PayableLine, LIST_READY, plan_manager_id, statuses)


async def count_ready(db: Executor, plan_manager_id: UUID, statuses: Sequence[str]) -> int:
    """The number of these lines."""
    return await db.one(int, COUNT_READY, plan_manager_id, statuses)


async def list_of_invoices(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[PayableLine]:
    """The lines of invoices, in order of the invoices, without deleted and cancelled ones."""
    return await db.rows(PayableLine, LIST_OF_INVOICES, plan_manager_id, invoice_ids)


class LeftOutRow(Struct):
    """A line that a run leaves out: what the agency has paid, in dollars, and the payee, whether or not it exists."""

    invoice_id: UUID
    line_id: UUID
    paid_amount: Decimal | None
    payee_kind: PayeeKind
    payee_id: UUID | None


LIST_LEFT_OUT = f"""
    select invoice.id as invoice_id, line.id as line_id, line.paid_amount,
        case when invoice.is_reimbursement then 'participant' else 'provider' end as payee_kind,
        case when invoice.is_reimbursement then invoice.participant_id else invoice.pm_provider_id end as payee_id
    from (
        select id, is_reimbursement, participant_id, pm_provider_id from invoices
        where plan_manager_id = $1 and {HAS_ID}
        offset 0
    ) invoice
    cross join lateral (
        select id, paid_amount from invoice_lines where plan_manager_id = $1 and invoice_id = invoice.id offset 0
    ) line
"""


async def list_left_out(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[LeftOutRow]:
    """The lines of invoices, in no order."""
    return await db.rows(LeftOutRow, LIST_LEFT_OUT, plan_manager_id, invoice_ids)


class UnconfirmedLine(Struct):
    """A line that was imported as ready for payment, and whose amount nobody has confirmed."""

    invoice_id: UUID
    line_id: UUID
    paid_amount: Decimal | None


LIST_UNCONFIRMED: LiteralString = f"""
    select line.invoice_id, line.id as line_id, line.paid_amount
    from (
        select invoice_id, id, paid_amount {READY_LINES} and (invoice_id, id) > ($3::uuid, $4::uuid)
    ) line
    cross join lateral (
        select from invoices where plan_manager_id = $1 and id = line.invoice_id and not is_deleted offset 0
    ) invoice
    where not exists (select from claims {OF_CLAIMED_LINE})
    order by line.invoice_id, line.id
    limit $5
"""


async def list_unconfirmed(
    db: Executor, plan_manager_id: UUID, statuses: Sequence[str], after: tuple[UUID, UUID], limit: int
) -> list[UnconfirmedLine]:
    """Lines that are ready to be paid and have no claim, after an invoice and a line."""
    return await db.rows(UnconfirmedLine, LIST_UNCONFIRMED, plan_manager_id, statuses, *after, limit)


LIST_EXISTING = f"select id from invoices where plan_manager_id = $1 and {HAS_ID} and not is_deleted"


async def list_existing(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[UUID]:
    """Those of the invoices that exist."""
    return await db.rows(UUID, LIST_EXISTING, plan_manager_id, invoice_ids)


LIST_UNCOVERED = f"""
    select id from claim_batches batch
    where plan_manager_id = $1 and {HAS_ID} and (
        select coalesce(sum(amount), 0) from claim_receipts where plan_manager_id = $1 and batch_id = batch.id
    ) < (select coalesce(sum(paid), 0) from claims where plan_manager_id = $1 and batch_id = batch.id)
"""


async def list_uncovered(db: Executor, plan_manager_id: UUID, batch_ids: Sequence[UUID]) -> list[UUID]:
    """Those of the claim batches whose receipts don't cover their results."""
    return await db.rows(UUID, LIST_UNCOVERED, plan_manager_id, batch_ids)
