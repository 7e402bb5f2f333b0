"""Invoices and their lines in SQL."""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.core.json import to_json
from plankeeper.core.record_matches import ValueHolder
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.combined_writes import Write
from plankeeper.database.row_ids import HAS_ID, in_array, records_of
from plankeeper.database.stored_counts import add_counts
from plankeeper.database.versions import UPDATED_AT, compose_update
from plankeeper.resources.invoices.schemas import Invoice, InvoiceLineRow, InvoiceRecord, InvoiceRow

AMOUNT_COLUMNS: LiteralString = "invoice_number, invoice_date, total, tax, subtotal"
SOURCE_COLUMNS: LiteralString = """
    participant_id, claim_status, approval_status, created_at, pm_provider_id, s3_key, email_message_id
"""
FLAG_COLUMNS: LiteralString = "is_deleted, wont_claim, is_reimbursement"
WORK_COLUMNS: LiteralString = """
    received_at, due_date, assigned_to, held_at, held_by, hold_reason, cancelled_at, closing_reason,
    approval_decided_at, approval_decided_by, approval_team_member_id, approval_reason, external_id,
    ambiguous_participant_number, ambiguous_provider_abn
"""
COLUMNS: LiteralString = f"{AMOUNT_COLUMNS}, {SOURCE_COLUMNS}, ignored_error_codes, {FLAG_COLUMNS}, {WORK_COLUMNS}"
WRITTEN_COLUMNS: LiteralString = f"{COLUMNS}, waiting_line_status"
RESULT_COLUMNS: LiteralString = "errors, error_codes, warning_codes, is_duplicate"  # the results of the checks
LINE_COLUMNS: LiteralString = """
    invoice_id, id, position, description, service_item_number, service_date_from, service_date_to, quantity,
    unit_price, total_price, gst_code, amount, claim_type, cancellation_reason, component_id, claim_status,
    claim_batch_ref, claim_number, paid_amount, rejection_reason, payment_ref, closing_reason, open_claim_batch,
    open_payment_run, has_payment, is_rest_waiting, is_deleted, created_at
"""

# The columns of InvoiceRecord and Invoice, from `invoices` without an alias.
RECORD_COLUMNS: LiteralString = f"""
    id, {AMOUNT_COLUMNS}, plan_manager_id as plan_manager, {SOURCE_COLUMNS}, errors,
    error_codes as state_management_errors, ignored_error_codes as state_management_ignored_errors,
    {FLAG_COLUMNS}, is_duplicate, case when is_reimbursement then 'participant' else 'provider' end as payee,
    {WORK_COLUMNS}
"""
DOCUMENT: LiteralString = """
    (
        select json_build_object('id', document.id, 'file_name', document.file_name,
            'media_type', document.media_type, 'size', document.size, 'sha256', document.sha256)
        from documents document
        where document.plan_manager_id = $1 and document.invoice_id = invoices.id and document.replaced_at is null
    ) as document
"""
FULL_COLUMNS: LiteralString = f"{RECORD_COLUMNS}, {DOCUMENT}, updated_at"
WITHOUT_WARNINGS: LiteralString = "null::json as warnings"  # warning_details adds them
WITHOUT_LINES: LiteralString = f"{FULL_COLUMNS}, null::json as line_items, {WITHOUT_WARNINGS}"
LINE_ITEMS: LiteralString = """
    coalesce((
        select json_agg(json_build_object('id', line.id, 'invoice', line.invoice_id,
            'description', line.description, 'service_item_number', line.service_item_number,
            'service_date_from', line.service_date_from, 'service_date_to', line.service_date_to,
            'quantity', line.quantity, 'unit_price', line.unit_price, 'total_price', line.total_price,
            'gst_code', line.gst_code, 'amount', line.amount, 'claim_type', line.claim_type,
            'cancellation_reason', line.cancellation_reason, 'component_id', line.component_id,
            'claim_status', line.claim_status, 'claim_batch_ref', line.claim_batch_ref,
            'claim_number', line.claim_number, 'paid_amount', line.paid_amount,
            'rejection_reason', line.rejection_reason, 'payment_ref', line.payment_ref,
            'closing_reason', line.closing_reason, 'open_claim_batch', line.open_claim_batch,
            'open_payment_run', line.open_payment_run, 'has_payment', line.has_payment,
            'is_rest_waiting', line.is_rest_waiting,
            'is_deleted', line.is_deleted, 'created_at', line.created_at) order by line.position)
        from invoice_lines line
        where line.plan_manager_id = $1 and line.invoice_id = invoices.id
    ), '[]') as line_items
"""


async def get(db: Executor, plan_manager_id: UUID, invoice_id: UUID) -> Invoice | None:
    return await db.one_or_none(Invoice, GET, plan_manager_id, invoice_id)


WITH_LINES: LiteralString = f"{FULL_COLUMNS}, {LINE_ITEMS}, {WITHOUT_WARNINGS}"
GET = f"select {WITH_LINES} from invoices where plan_manager_id = $1 and id = $2"
GET_MANY = f"""
    select {WITH_LINES} from invoices where plan_manager_id = $1 and {HAS_ID} order by id
"""


LOCK = "select from invoices where plan_manager_id = $1 and id = $2 for update"


async def get_for_update(tx: Transaction, plan_manager_id: UUID, invoice_id: UUID) -> Invoice | None:
    """The invoice with its lines as `update` expects it: see `Transaction.lock_row`."""
    await tx.lock_row(LOCK, plan_manager_id, invoice_id)
    return await get(tx.reader, plan_manager_id, invoice_id)


async def get_many(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[Invoice]:
    """The invoices with these ids and their lines, in order of id; unknown ids are ignored."""
    return await db.rows(Invoice, GET_MANY, plan_manager_id, invoice_ids)


GET_MANY_WITHOUT_LINES = f"""
    select {WITHOUT_LINES} from invoices where plan_manager_id = $1 and {HAS_ID} order by id
"""


async def get_many_without_lines(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[Invoice]:
    """The invoices with these ids, in order of id; unknown ids are ignored."""
    return await db.rows(Invoice, GET_MANY_WITHOUT_LINES, plan_manager_id, invoice_ids)


EXISTS = "select exists (select from invoices where plan_manager_id = $1 and id = $2)"


async def exists(db: Executor, plan_manager_id: UUID, invoice_id: UUID) -> bool:
    return await db.one(bool, EXISTS, plan_manager_id, invoice_id)


FIND_BY_PROVIDER_AND_NUMBER = f"""
    select {WITHOUT_LINES}
    from invoices
    where plan_manager_id = $1 and invoice_number = $3 and pm_provider_id in (
        select id from providers where plan_manager_id = $1 and lower(email) = lower($2)
    )
    order by id
"""


async def find_by_provider_and_number(
    db: Executor, plan_manager_id: UUID, provider_email: str, invoice_number: str
) -> list[Invoice]:
    """All invoices with this number from providers with this email, compared case-insensitively."""
    return await db.rows(Invoice, FIND_BY_PROVIDER_AND_NUMBER, plan_manager_id, provider_email, invoice_number)


LIST_INVOICED_PARTICIPANTS = """
    select distinct participant_id::text from invoices where plan_manager_id = $1 and participant_id = any ($2)
"""
LIST_INVOICED_PROVIDERS = """
    select distinct pm_provider_id::text from invoices where plan_manager_id = $1 and pm_provider_id = any ($2)
"""


async def list_invoiced_participants(db: Executor, plan_manager_id: UUID, participant_ids: Sequence[UUID]) -> list[str]:
    """Those of the participants that have invoices."""
    return await db.rows(str, LIST_INVOICED_PARTICIPANTS, plan_manager_id, participant_ids)


async def list_invoiced_providers(db: Executor, plan_manager_id: UUID, provider_ids: Sequence[UUID]) -> list[str]:
    """Those of the providers that have invoices."""
    return await db.rows(str, LIST_INVOICED_PROVIDERS, plan_manager_id, provider_ids)


SELECT_FOR_UPDATE = f"""
    select id, {COLUMNS} from invoices where plan_manager_id = $1 and {HAS_ID} order by id for update
"""


async def select_for_update(tx: Transaction, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[InvoiceRow]:
    """The invoices with these ids, without lines, locked until the transaction ends; unknown ids are ignored."""
    return await tx.rows(InvoiceRow, SELECT_FOR_UPDATE, plan_manager_id, invoice_ids)


LOCK_SIMILAR = """
    select pg_advisory_xact_lock(hashtextextended('invoice number ' || $1::uuid::text || key, 0))
    from unnest($2::text[]) number (key)
"""


async def lock_similar(tx: Transaction, plan_manager_id: UUID, keys: Sequence[str]) -> None:
    """Wait until no other request writes invoices with one of these keys, and block further ones.

    A key is the number of a provider, or a document. So the checks for duplicates see the other invoices. The keys are
    sorted, so that two requests don't wait for each other.
    """
    await tx.execute(LOCK_SIMILAR, plan_manager_id, keys)


INSERT = Write(
    f"""
    inserted_invoices as (
        insert into invoices (plan_manager_id, id, {WRITTEN_COLUMNS}, {RESULT_COLUMNS}, updated_at)
        select $1, id, {WRITTEN_COLUMNS}, {RESULT_COLUMNS}, {UPDATED_AT}
        from json_populate_recordset(null::invoices, $2)
        returning id
    )
    """,
    "",
    parameters=2,
    changed="inserted_invoices",
)


async def insert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert invoices. `records` is a JSON list of the values of `changes.to_stored` with the fields of CheckResult."""
    await tx.queue_write(INSERT, plan_manager_id, records)


UPDATE = compose_update("invoices", f"{WRITTEN_COLUMNS}, {RESULT_COLUMNS}")


async def update(tx: Transaction, plan_manager_id: UUID, records: str, version: datetime | None) -> None:
    """Update the invoice that was read with this version or, without one, invoices that the caller has locked.

    `records` is as in `insert`, with `updated_at`.
    """
    await tx.queue_write(UPDATE, plan_manager_id, records, version)


UPDATE_MANY = f"""
    update invoices invoice set ({WRITTEN_COLUMNS}) = (select {WRITTEN_COLUMNS} from (select new.*) written)
    from {records_of("invoices")} new
    where invoice.plan_manager_id = $1 and invoice.id = new.id
"""


async def update_many(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Replace invoices that the caller has locked. `records` is a JSON list of the values of `changes.to_stored`.

    See `touch`.
    """
    await tx.execute(UPDATE_MANY, plan_manager_id, records)


TOUCH = f"""
    update invoices set updated_at = statement_timestamp() where plan_manager_id = $1 and {HAS_ID}
    returning updated_at
"""


async def touch(tx: Transaction, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[datetime]:
    """Mark invoices as changed, in themselves or in their lines, and return their `updated_at`."""
    return await tx.rows(datetime, TOUCH, plan_manager_id, invoice_ids)


SET_DOCUMENT_KEY = """
    update invoices set s3_key = $3, updated_at = $4
    where plan_manager_id = $1 and id = $2
"""


async def set_document_key(
    tx: Transaction, plan_manager_id: UUID, invoice_id: UUID, object_key: str, updated_at: datetime
) -> None:
    await tx.execute(SET_DOCUMENT_KEY, plan_manager_id, invoice_id, object_key, updated_at)


_IS_OTHER_LINE: LiteralString = """
    plan_manager_id = $1 and invoice_id = any ($2) and not exists (
        select from unnest($3::uuid[], $4::uuid[]) kept (invoice_id, id)
        where kept.invoice_id = line.invoice_id and kept.id = line.id
    )
"""
DELETE_OTHER_LINES = f"""
    delete from invoice_lines line
    where {_IS_OTHER_LINE}
        and not exists (
            select from claims where plan_manager_id = $1 and invoice_id = line.invoice_id and line_id = line.id
        )
        and not exists (
            select from adjustments where plan_manager_id = $1 and invoice_id = line.invoice_id and line_id = line.id
        )
"""
MARK_OTHER_LINES = f"""
    update invoice_lines line set is_deleted = true
    where {_IS_OTHER_LINE} and not is_deleted
"""


async def delete_other_lines(
    tx: Transaction, plan_manager_id: UUID, invoice_ids: Sequence[UUID], lines: Sequence[InvoiceLineRow]
) -> None:
    """Delete the lines of invoices but these; those with claims or adjustments are marked as deleted."""
    values = (invoice_ids, [each.invoice_id for each in lines], [each.id for each in lines])
    await tx.execute(DELETE_OTHER_LINES, plan_manager_id, *values)
    await tx.execute(MARK_OTHER_LINES, plan_manager_id, *values)


UPSERT_LINES = Write(
    f"""
    written_lines as (
        insert into invoice_lines (plan_manager_id, {LINE_COLUMNS})
        select $1, {LINE_COLUMNS}
        from json_populate_recordset(null::invoice_lines, $2)
        on conflict (plan_manager_id, invoice_id, id) do update set ({LINE_COLUMNS}) = (
            select {LINE_COLUMNS} from (select excluded.*) written
        )
        returning id -- without this, Citus would copy the rows and report an error without its code
    )
    """,
    "",
    parameters=2,
    changed="written_lines",
)


async def upsert_lines(tx: Transaction, plan_manager_id: UUID, lines: Sequence[InvoiceLineRow]) -> None:
    """Insert lines, or replace those with their ids."""
    if lines:
        await tx.queue_write(UPSERT_LINES, plan_manager_id, to_json(lines))


EXPORT = f"select {RECORD_COLUMNS}, {LINE_ITEMS} from invoices where plan_manager_id = $1 order by id"


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[InvoiceRecord]]:
    return tx.stream(InvoiceRecord, EXPORT, plan_manager_id)


LIST_BY_EXTERNAL_IDS = """
    select id, external_id as value
    from invoices
    where plan_manager_id = $1 and external_id is not null and external_id = any ($2) -- the index has no nulls
"""


async def list_by_external_ids(db: Executor, plan_manager_id: UUID, external_ids: Sequence[str]) -> list[ValueHolder]:
    return await db.rows(ValueHolder, LIST_BY_EXTERNAL_IDS, plan_manager_id, external_ids)


LOCK_MATCHES = "select pg_advisory_xact_lock(hashtextextended('invoice matches ' || $1::uuid::text, 0))"


async def lock_matches(tx: Transaction, plan_manager_id: UUID) -> None:
    """Wait until no other transaction creates invoices for values that no record has."""
    await tx.execute(LOCK_MATCHES, plan_manager_id)


ADD_COUNTS = Write(
    """
    invoice_differences as (
        select * from json_to_recordset($2) as record (claim_status text, approval_status text, difference bigint)
    )
    """,
    add_counts("invoices", "select claim_status, approval_status, difference from invoice_differences"),
    parameters=2,
)


async def write_counts(
    tx: Transaction, plan_manager_id: UUID, before: Sequence[InvoiceRow], after: Sequence[InvoiceRow]
) -> None:
    """Add the difference of written invoices to the counts; `before` are those that existed, which are locked."""
    differences = Counter((each.claim_status, each.approval_status) for each in after)
    differences.subtract((each.claim_status, each.approval_status) for each in before)
    rows: list[dict[str, Any]] = [
        {"claim_status": claim_status, "approval_status": approval_status, "difference": difference}
        for (claim_status, approval_status), difference in differences.items()
        if difference
    ]
    if rows:
        await tx.queue_write(ADD_COUNTS, plan_manager_id, to_json(rows))


class ClaimedLine(Struct, frozen=True):
    """A line that has a claim in any state, with the number of its last batch, or only adjustments."""

    invoice_id: UUID
    line_id: UUID
    has_claim: bool
    batch_number: str | None


LIST_CLAIMED_LINES = f"""
    select invoice_id, line_id, bool_or(is_claim) as has_claim, max(batch_number) as batch_number
    from (
        select invoice_id, line_id, true as is_claim, (
            select number from claim_batches where plan_manager_id = $1 and id = claims.batch_id
        ) as batch_number
        from claims
        where plan_manager_id = $1 and {in_array("invoice_id", "$2::uuid[]")}
        union all
        select invoice_id, line_id, false, null
        from adjustments
        where plan_manager_id = $1 and {in_array("invoice_id", "$2::uuid[]")}
    ) record
    group by invoice_id, line_id
"""


async def list_claimed_lines(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[ClaimedLine]:
    """The lines that have been claimed or adjusted here: only actions on claims and payments change them."""
    return await db.rows(ClaimedLine, LIST_CLAIMED_LINES, plan_manager_id, invoice_ids)
