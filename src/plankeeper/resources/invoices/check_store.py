"""The checks of invoices in SQL: their input and their results."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_ids import HAS_ID, in_array, records_of
from plankeeper.resources.invoices.warnings import CheckInput


class InvoiceToCheck(CheckInput, frozen=True):
    """The values that the checks use, with the invoice's id and its ignored warnings."""

    id: UUID
    ignored_error_codes: list[str]


IS_EARLIER_DUPLICATE: LiteralString = """other.plan_manager_id = $1
            and other.pm_provider_id = invoice.pm_provider_id and other.invoice_number = invoice.invoice_number
            and btrim(other.invoice_number) <> '' and not other.is_deleted
            and (other.created_at, other.id) < (invoice.created_at, invoice.id)"""
# Other invoices with the document of `invoice`. As conditions, these subqueries use an index each. As joins, they are
# a walk through all pairs of documents while a table has no statistics.
SAME_DOCUMENT: LiteralString = """documents same
            where same.plan_manager_id = $1 and same.replaced_at is null and same.invoice_id <> invoice.id
                and same.sha256 = (
                    select own.sha256 from documents own
                    where own.plan_manager_id = $1 and own.invoice_id = invoice.id and own.replaced_at is null
                )
                and (
                    select not other.is_deleted and other.cancelled_at is null from invoices other
                    where other.plan_manager_id = $1 and other.id = same.invoice_id
                )"""
CHECKED_COLUMNS: LiteralString = f"""
    invoice.invoice_number, invoice.invoice_date, invoice.total, invoice.tax, invoice.subtotal,
    invoice.participant_id, participant.status as participant_status,
    participant.plan_start_date, participant.plan_end_date, participant.date_ceased,
    invoice.pm_provider_id, provider.id is not null as provider_exists,
    invoice.ambiguous_participant_number, invoice.ambiguous_provider_abn,
    exists (select from {SAME_DOCUMENT}) as has_same_document
"""
GET_MANY = f"""
    select {CHECKED_COLUMNS},
        exists (select from invoices other where {IS_EARLIER_DUPLICATE}) as has_earlier_duplicate,
        coalesce((
            select json_agg(json_build_object('quantity', line.quantity, 'unit_price', line.unit_price,
                'total_price', line.total_price, 'service_item_number', line.service_item_number,
                'is_deleted', line.is_deleted, 'id', line.id) order by line.position)
            from invoice_lines line
            where line.plan_manager_id = $1 and line.invoice_id = invoice.id
        ), '[]') as lines,
        invoice.id, invoice.ignored_error_codes
    from invoices invoice
    left join participants participant on participant.plan_manager_id = $1
        and participant.id = invoice.participant_id
    left join providers provider on provider.plan_manager_id = $1 and provider.id = invoice.pm_provider_id
    where invoice.plan_manager_id = $1 and {in_array("invoice.id", "$2::uuid[]")}
"""


async def get_many(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[InvoiceToCheck]:
    return await db.rows(InvoiceToCheck, GET_MANY, plan_manager_id, invoice_ids)


# The same for invoices that aren't stored yet, or not as they are in $2, with their lines ($3).
GET_NEW = f"""
    with invoice as (
        select new.*,
            coalesce(btrim(invoice_number) <> '' and pm_provider_id is not null
                and count(*) filter (where not is_deleted) over earlier > 0, false) as has_earlier_new_duplicate
        from {records_of("invoices")} new
        window earlier as (
            partition by pm_provider_id, invoice_number order by created_at, id
            rows between unbounded preceding and 1 preceding
        )
    ), line as (
        select invoice_id, json_agg(json_build_object('quantity', quantity, 'unit_price', unit_price,
            'total_price', total_price, 'service_item_number', service_item_number,
            'is_deleted', is_deleted, 'id', id) order by position) as lines
        from json_populate_recordset(null::invoice_lines, $3)
        group by invoice_id
    )
    select {CHECKED_COLUMNS},
        has_earlier_new_duplicate or exists (
            select from invoices other
            where {IS_EARLIER_DUPLICATE} and not exists (select from invoice own where own.id = other.id)
        ) as has_earlier_duplicate,
        coalesce(line.lines, '[]') as lines, invoice.id, invoice.ignored_error_codes
    from invoice
    left join line on line.invoice_id = invoice.id
    left join participants participant on participant.plan_manager_id = $1
        and participant.id = invoice.participant_id
    left join providers provider on provider.plan_manager_id = $1 and provider.id = invoice.pm_provider_id
"""


async def get_new(db: Executor, plan_manager_id: UUID, invoices: str, lines: str) -> list[InvoiceToCheck]:
    """The values to check of new or changed invoices: JSON lists of InvoiceRow and of InvoiceLineRow."""
    return await db.rows(InvoiceToCheck, GET_NEW, plan_manager_id, invoices, lines)


EARLIER_DUPLICATE_IDS = f"""
    select other.id from invoices invoice join invoices other on {IS_EARLIER_DUPLICATE}
    where invoice.plan_manager_id = $1 and invoice.id = $2
    order by other.created_at desc, other.id desc
    limit $3
"""


async def earlier_duplicate_ids(db: Executor, plan_manager_id: UUID, invoice_id: UUID, limit: int) -> list[UUID]:
    """The ids of earlier invoices with the same provider and number, the latest of them first."""
    return await db.rows(UUID, EARLIER_DUPLICATE_IDS, plan_manager_id, invoice_id, limit)


class RelatedInvoices(Struct):
    """An invoice, the latest earlier one with the same provider and number, and the latest with the same document."""

    id: UUID
    earlier_id: UUID | None
    same_document_id: UUID | None


LIST_RELATED = f"""
    select invoice.id,
        (
            select other.id from invoices other where {IS_EARLIER_DUPLICATE}
            order by other.created_at desc, other.id desc
            limit 1
        ) as earlier_id,
        (
            select same.invoice_id from {SAME_DOCUMENT}
            order by same.id desc
            limit 1
        ) as same_document_id
    from invoices invoice
    where invoice.plan_manager_id = $1 and {in_array("invoice.id", "$2::uuid[]")}
"""


async def list_related(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[RelatedInvoices]:
    """The invoices that these may duplicate."""
    return await db.rows(RelatedInvoices, LIST_RELATED, plan_manager_id, invoice_ids)


SAME_DOCUMENT_IDS = f"""
    select found.invoice_id from invoices invoice cross join lateral (
        select same.invoice_id, same.id from {SAME_DOCUMENT}
    ) found
    where invoice.plan_manager_id = $1 and invoice.id = $2
    order by found.id desc
    limit $3
"""


async def same_document_ids(db: Executor, plan_manager_id: UUID, invoice_id: UUID, limit: int) -> list[UUID]:
    """The ids of other invoices with the same document, the one that got it last first."""
    return await db.rows(UUID, SAME_DOCUMENT_IDS, plan_manager_id, invoice_id, limit)


LIST_SIMILAR = f"""
    select other.id
    from invoices invoice
    join invoices other on other.plan_manager_id = $1 and other.pm_provider_id = invoice.pm_provider_id
        and other.invoice_number = invoice.invoice_number
    where invoice.plan_manager_id = $1 and {in_array("invoice.id", "$2::uuid[]")}
    union
    select same.invoice_id
    from documents own
    cross join lateral (
        select invoice_id from documents
        where plan_manager_id = $1 and sha256 = own.sha256 and replaced_at is null
        offset 0
    ) same
    where own.plan_manager_id = $1 and {in_array("own.invoice_id", "$2::uuid[]")} and own.replaced_at is null
"""


async def list_similar(tx: Transaction, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[UUID]:
    """The ids of invoices with the provider and number of one of these, or its document: their warnings may change."""
    return await tx.rows(UUID, LIST_SIMILAR, plan_manager_id, invoice_ids)


class CheckResult(Struct):
    """The result of checking one invoice, as it is stored."""

    id: UUID
    errors: bool
    error_codes: list[str]
    is_duplicate: bool


SAVE_RESULTS = f"""
    update invoices invoice set
        errors = result.errors, error_codes = result.error_codes, is_duplicate = result.is_duplicate,
        updated_at = statement_timestamp()
    from {records_of("invoices")} result
    where invoice.plan_manager_id = $1 and invoice.id = result.id
        and (invoice.errors, invoice.error_codes, invoice.is_duplicate)
            is distinct from (result.errors, result.error_codes, result.is_duplicate)
    returning invoice.id
"""


async def save_results(tx: Transaction, plan_manager_id: UUID, results: str) -> list[UUID]:
    """Store results, a JSON list of CheckResult. Returns the ids of invoices whose result has changed."""
    return await tx.rows(UUID, SAVE_RESULTS, plan_manager_id, results)


LOCK_IDS_AFTER = "select id from invoices where plan_manager_id = $1 and id > $2 order by id limit $3 for update"


async def lock_ids_after(tx: Transaction, plan_manager_id: UUID, after: UUID, limit: int) -> list[UUID]:
    """The next ids in an iteration over all invoices, locked until the transaction ends."""
    return await tx.rows(UUID, LOCK_IDS_AFTER, plan_manager_id, after, limit)


class IgnoredWarning(Struct):
    """A warning that a person has ignored. Warnings that an import marks as ignored have no such row."""

    error_code: str
    reason: str
    ignored_by: str
    ignored_at: datetime


LIST_IGNORED = """
    select error_code, reason, ignored_by, ignored_at
    from invoice_ignored_warnings
    where plan_manager_id = $1 and invoice_id = $2
    order by ignored_at, error_code
"""


async def list_ignored(db: Executor, plan_manager_id: UUID, invoice_id: UUID) -> list[IgnoredWarning]:
    return await db.rows(IgnoredWarning, LIST_IGNORED, plan_manager_id, invoice_id)


class IgnoredWarningOf(IgnoredWarning):
    """An ignored warning of one of several invoices."""

    invoice_id: UUID


LIST_IGNORED_OF = f"""
    select error_code, reason, ignored_by, ignored_at, invoice_id
    from invoice_ignored_warnings
    where plan_manager_id = $1 and {in_array("invoice_id", "$2::uuid[]")}
"""


async def list_ignored_of(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[IgnoredWarningOf]:
    return await db.rows(IgnoredWarningOf, LIST_IGNORED_OF, plan_manager_id, invoice_ids)


UPSERT_IGNORED = """
    insert into invoice_ignored_warnings (plan_manager_id, invoice_id, error_code, reason, ignored_by, ignored_at)
    values ($1, $2, $3, $4, $5, $6)
    on conflict (plan_manager_id, invoice_id, error_code) do update set
        reason = excluded.reason, ignored_by = excluded.ignored_by, ignored_at = excluded.ignored_at
"""


async def upsert_ignored(tx: Transaction, plan_manager_id: UUID, invoice_id: UUID, warning: IgnoredWarning) -> None:
    """Insert an ignored warning, or replace one that an import has restored in the meantime."""
    await tx.execute(
        UPSERT_IGNORED,
        plan_manager_id,
        invoice_id,
        warning.error_code,
        warning.reason,
        warning.ignored_by,
        warning.ignored_at,
    )


DELETE_IGNORED = (
    "delete from invoice_ignored_warnings where plan_manager_id = $1 and invoice_id = $2 and error_code = $3"
)


async def delete_ignored(tx: Transaction, plan_manager_id: UUID, invoice_id: UUID, error_code: str) -> None:
    await tx.execute(DELETE_IGNORED, plan_manager_id, invoice_id, error_code)


UPDATE_IGNORED_CODES = """
    update invoices set ignored_error_codes = $3, updated_at = statement_timestamp()
    where plan_manager_id = $1 and id = $2
"""


async def update_ignored_codes(tx: Transaction, plan_manager_id: UUID, invoice_id: UUID, codes: Sequence[str]) -> None:
    """Set the ignored codes of an invoice. The caller checks the invoice afterwards."""
    await tx.execute(UPDATE_IGNORED_CODES, plan_manager_id, invoice_id, codes)


class DisplayName(Struct):
    """A participant or a provider with its display name; null if it has none."""

    id: UUID
    name: str | None


GET_DISPLAY_NAMES = f"""
    select id, nullif(btrim(concat_ws(' ', first_name, last_name)), '') as name
    from participants where plan_manager_id = $1 and {HAS_ID}
    union all
    select id, nullif(btrim(entity_name), '') as name
    from providers where plan_manager_id = $1 and {in_array("id", "$3::uuid[]")}
"""


async def get_display_names(
    db: Executor, plan_manager_id: UUID, participant_ids: Sequence[UUID], provider_ids: Sequence[UUID]
) -> list[DisplayName]:
    """The names for these ids; unknown ids are ignored."""
    return await db.rows(DisplayName, GET_DISPLAY_NAMES, plan_manager_id, participant_ids, provider_ids)
