"""Invoices and their lines in SQL."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.invoices.schemas import Invoice, InvoiceRow, InvoiceWithLines

GET_MANY = """
    select invoice.id, invoice.invoice_number, invoice.invoice_date, invoice.total, invoice.tax, invoice.subtotal,
        invoice.plan_manager_id as plan_manager, invoice.participant_id,
        invoice.claim_status, invoice.approval_status, invoice.created_at, invoice.pm_provider_id,
        invoice.s3_key, invoice.email_message_id,
        invoice.errors, invoice.error_codes as state_management_errors,
        invoice.ignored_error_codes as state_management_ignored_errors,
        invoice.is_deleted, invoice.wont_claim, invoice.is_reimbursement, invoice.is_duplicate,
        coalesce((
            select json_agg(json_build_object('id', line.id, 'invoice', line.invoice_id,
                'description', line.description, 'service_item_number', line.service_item_number,
                'quantity', line.quantity, 'unit_price', line.unit_price, 'total_price', line.total_price,
                'claim_status', line.claim_status, 'claim_batch_ref', line.claim_batch_ref,
                'claim_number', line.claim_number, 'payment_ref', line.payment_ref,
                'is_deleted', line.is_deleted, 'created_at', line.created_at) order by line.position)
            from invoice_lines line
            where line.plan_manager_id = $1 and line.invoice_id = invoice.id
        ), '[]') as line_items
    from invoices invoice
    where invoice.plan_manager_id = $1 and invoice.id = any ($2)
    order by invoice.id
"""


async def get_many(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID | str]) -> list[InvoiceWithLines]:
    """Those of the ids that there are, with their lines."""
    return await db.rows(InvoiceWithLines, GET_MANY, plan_manager_id, invoice_ids)


EXISTS = "select exists (select from invoices where plan_manager_id = $1 and id = $2)"


async def exists(db: Executor, plan_manager_id: UUID, invoice_id: UUID) -> bool:
    return await db.one(bool, EXISTS, plan_manager_id, invoice_id)


FIND_BY_PROVIDER_AND_NUMBER = """
    select invoice.id, invoice.invoice_number, invoice.invoice_date, invoice.total, invoice.tax, invoice.subtotal,
        invoice.plan_manager_id as plan_manager, invoice.participant_id,
        invoice.claim_status, invoice.approval_status, invoice.created_at, invoice.pm_provider_id,
        invoice.s3_key, invoice.email_message_id,
        invoice.errors, invoice.error_codes as state_management_errors,
        invoice.ignored_error_codes as state_management_ignored_errors,
        invoice.is_deleted, invoice.wont_claim, invoice.is_reimbursement, invoice.is_duplicate
    from invoices invoice
    join providers provider on provider.plan_manager_id = $1 and provider.id = invoice.pm_provider_id
    where invoice.plan_manager_id = $1 and invoice.invoice_number = $3
        and lower(provider.email) = lower($2)
    order by invoice.id
"""


async def find_by_provider_and_number(
    db: Executor, plan_manager_id: UUID, provider_email: str, invoice_number: str
) -> list[Invoice]:
    """Every invoice of a number from a provider with an email, compared without regard to case."""
    return await db.rows(Invoice, FIND_BY_PROVIDER_AND_NUMBER, plan_manager_id, provider_email, invoice_number)


SELECT_FOR_UPDATE = """
    select id, invoice_number, invoice_date, total, tax, subtotal, participant_id, claim_status,
        approval_status, created_at, pm_provider_id, s3_key, email_message_id, ignored_error_codes,
        is_deleted, wont_claim, is_reimbursement
    from invoices
    where plan_manager_id = $1 and id = any ($2)
    order by id
    for update
"""


async def select_for_update(
    tx: Transaction, plan_manager_id: UUID, invoice_ids: Sequence[UUID | str]
) -> list[InvoiceRow]:
    """Those of the ids that there are, without their lines, locked until the transaction ends."""
    return await tx.rows(InvoiceRow, SELECT_FOR_UPDATE, plan_manager_id, invoice_ids)


UPSERT = """
    insert into invoices (plan_manager_id, id, invoice_number, invoice_date, total, tax, subtotal,
        participant_id, claim_status, approval_status, created_at, pm_provider_id, s3_key,
        email_message_id, ignored_error_codes, is_deleted, wont_claim, is_reimbursement)
    select $1, id, invoice_number, invoice_date, total, tax, subtotal,
        participant_id, claim_status, approval_status, created_at, pm_provider_id, s3_key,
        email_message_id, ignored_error_codes, is_deleted, wont_claim, is_reimbursement
    from json_populate_recordset(null::invoices, $2)
    on conflict (plan_manager_id, id) do update set
        invoice_number = excluded.invoice_number, invoice_date = excluded.invoice_date,
        total = excluded.total, tax = excluded.tax, subtotal = excluded.subtotal,
        participant_id = excluded.participant_id, claim_status = excluded.claim_status,
        approval_status = excluded.approval_status, created_at = excluded.created_at,
        pm_provider_id = excluded.pm_provider_id, s3_key = excluded.s3_key,
        email_message_id = excluded.email_message_id, ignored_error_codes = excluded.ignored_error_codes,
        is_deleted = excluded.is_deleted, wont_claim = excluded.wont_claim,
        is_reimbursement = excluded.is_reimbursement
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Write whole invoices, new or not. `records` is a JSON list of InvoiceRecord. What did change is for `touch`."""
    await tx.execute(UPSERT, plan_manager_id, records)


TOUCH = """
    update invoices set updated_at = clock_timestamp() where plan_manager_id = $1 and id = any ($2)
"""


async def touch(tx: Transaction, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> None:
    """Invoices, or their lines, have changed."""
    await tx.execute(TOUCH, plan_manager_id, invoice_ids)


DELETE_LINES = "delete from invoice_lines where plan_manager_id = $1 and invoice_id = any ($2)"


async def delete_lines(tx: Transaction, plan_manager_id: UUID, invoice_ids: Sequence[UUID | str]) -> None:
    await tx.execute(DELETE_LINES, plan_manager_id, invoice_ids)


INSERT_LINES = """
    insert into invoice_lines (plan_manager_id, invoice_id, id, position, description, service_item_number,
        quantity, unit_price, total_price, claim_status, claim_batch_ref, claim_number, payment_ref,
        is_deleted, created_at)
    select $1, invoice_id, id, position, description, service_item_number,
        quantity, unit_price, total_price, claim_status, claim_batch_ref, claim_number, payment_ref,
        is_deleted, created_at
    from json_populate_recordset(null::invoice_lines, $2)
"""


async def insert_lines(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Add lines. `records` is a JSON list of LineRecord."""
    await tx.execute(INSERT_LINES, plan_manager_id, records)


EXPORT = """
    select invoice.id, invoice.invoice_number, invoice.invoice_date, invoice.total, invoice.tax, invoice.subtotal,
        invoice.plan_manager_id as plan_manager, invoice.participant_id,
        invoice.claim_status, invoice.approval_status, invoice.created_at, invoice.pm_provider_id,
        invoice.s3_key, invoice.email_message_id,
        invoice.errors, invoice.error_codes as state_management_errors,
        invoice.ignored_error_codes as state_management_ignored_errors,
        invoice.is_deleted, invoice.wont_claim, invoice.is_reimbursement, invoice.is_duplicate,
        coalesce((
            select json_agg(json_build_object('id', line.id, 'invoice', line.invoice_id,
                'description', line.description, 'service_item_number', line.service_item_number,
                'quantity', line.quantity, 'unit_price', line.unit_price, 'total_price', line.total_price,
                'claim_status', line.claim_status, 'claim_batch_ref', line.claim_batch_ref,
                'claim_number', line.claim_number, 'payment_ref', line.payment_ref,
                'is_deleted', line.is_deleted, 'created_at', line.created_at) order by line.position)
            from invoice_lines line
            where line.plan_manager_id = $1 and line.invoice_id = invoice.id
        ), '[]') as line_items
    from invoices invoice
    where invoice.plan_manager_id = $1
    order by invoice.id
"""


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncIterator[InvoiceWithLines]:
    return tx.stream(InvoiceWithLines, EXPORT, plan_manager_id)
