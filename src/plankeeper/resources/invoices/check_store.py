"""The checks of invoices in SQL: their input and their results."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.number_keys import abn_key
from plankeeper.database.row_ids import HAS_ID, in_array, records_of
from plankeeper.resources.invoices.checks import CheckInput
from plankeeper.resources.invoices.warnings import CodeLevel
from plankeeper.resources.plans.store import PENDING_AMOUNT, SERVICE_DATE


class IgnoredFacts(Struct, frozen=True):
    """What a person has ignored: each fact of the warning at that time, as `fact_keys` describes it."""

    code: str
    facts: list[str]


class InvoiceToCheck(CheckInput, frozen=True):
    """The values that the checks use, with the invoice's id and its ignored warnings."""

    id: UUID
    ignored_error_codes: list[str]
    ignored_facts: list[IgnoredFacts]


# A provider, and others with the same ABN: an office can have two records of one provider.
_PROVIDER_IDS: LiteralString = f"""array(
                select invoice.pm_provider_id
                union all
                select same.id from providers same
                where same.plan_manager_id = $1 and same.id <> invoice.pm_provider_id
                    and {abn_key("same.abn")} = (
                        select nullif({abn_key("own.abn")}, '') from providers own
                        where own.plan_manager_id = $1 and own.id = invoice.pm_provider_id
                    )
            )"""
IS_EARLIER_DUPLICATE: LiteralString = f"""other.plan_manager_id = $1
            and other.pm_provider_id = any ({_PROVIDER_IDS}) and other.invoice_number = invoice.invoice_number
            and btrim(other.invoice_number) <> '' and not other.is_deleted and other.cancelled_at is null
            and (other.created_at, other.id) < (invoice.created_at, invoice.id)
            and (
                other.participant_id = invoice.participant_id
                or not coalesce((
                    select duplicates_need_participant from office_settings where plan_manager_id = $1
                ), false)
            )"""
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
# Lines like `line` of other invoices of the participant of `invoice`.
SAME_LINE: LiteralString = """invoice_lines twin
                where twin.plan_manager_id = $1 and twin.service_date_from = line.service_date_from
                    and twin.service_item_number = line.service_item_number
                    and coalesce(twin.service_date_to, twin.service_date_from)
                        = coalesce(line.service_date_to, line.service_date_from)
                    and twin.quantity = line.quantity and not twin.is_deleted and twin.claim_status <> 'cancelled'
                    and not line.is_deleted and line.claim_status <> 'cancelled' and twin.invoice_id <> invoice.id
                    and (
                        select not other.is_deleted and other.cancelled_at is null
                            and other.participant_id = invoice.participant_id
                        from invoices other
                        where other.plan_manager_id = $1 and other.id = twin.invoice_id
                    )"""


def _alerts(kind: LiteralString, id_: LiteralString) -> LiteralString:
    """The first alerts on a participant or provider: the beginnings of their texts."""
    return f"""array(
        select left(text, 200) from notes
        where plan_manager_id = $1 and resource_id = {id_} and resource_kind = '{kind}' and alert
        order by id
        limit 10
    )"""


CHECKED_COLUMNS: LiteralString = f"""
    invoice.invoice_number, invoice.invoice_date, invoice.total, invoice.tax, invoice.subtotal, invoice.received_at,
    invoice.is_deleted, invoice.wont_claim, invoice.participant_id, participant.status as participant_status,
    participant.date_ceased, participant.state as participant_state, participant.remoteness, participant.managed_from,
    participant.managed_until, participant.deceased_on,
    coalesce((
        select json_agg(json_build_object('id', id, 'participant_id', participant_id, 'start_date', start_date,
            'end_date', end_date, 'is_pace_plan', is_pace_plan, 'components', components) order by start_date, id)
        from plans
        where plan_manager_id = $1 and participant_id = invoice.participant_id
    ), '[]') as plans,
    invoice.pm_provider_id, provider.id is not null as provider_exists, provider.abn as provider_abn,
    coalesce(provider.active, false) as provider_active,
    invoice.ambiguous_participant_number, invoice.ambiguous_provider_abn,
    exists (select from support_items) as has_catalogue,
    (select prices_include_gst from office_settings where plan_manager_id = $1) as prices_include_gst,
    coalesce((select warning_levels from office_settings where plan_manager_id = $1), '[]')::json as levels,
    {_alerts("participant", "invoice.participant_id")} as participant_alerts,
    {_alerts("provider", "invoice.pm_provider_id")} as provider_alerts,
    exists (select from {SAME_DOCUMENT}) as has_same_document
"""
IGNORED_COLUMNS: LiteralString = """
    invoice.ignored_error_codes,
    case when invoice.ignored_error_codes = '{}' then '[]' else coalesce((
        select json_agg(json_build_object('code', error_code, 'facts', facts))
        from invoice_ignored_warnings
        where plan_manager_id = $1 and invoice_id = invoice.id
    ), '[]') end as ignored_facts
"""
HAS_EARLIER_INVOICE: LiteralString = """exists (
            select from invoices other
            where other.plan_manager_id = $1 and other.pm_provider_id = invoice.pm_provider_id
                and not other.is_deleted and other.cancelled_at is null
                and (other.created_at, other.id) < (invoice.created_at, invoice.id)
        )"""
LINE: LiteralString = f"""json_build_object('quantity', line.quantity, 'unit_price', line.unit_price,
            'total_price', line.total_price, 'service_item_number', line.service_item_number,
            'is_deleted', line.is_deleted, 'id', line.id, 'service_date_from', line.service_date_from,
            'service_date_to', line.service_date_to, 'gst_code', line.gst_code, 'amount', line.amount,
            'component_id', line.component_id, 'claim_status', line.claim_status, 'paid_amount', line.paid_amount,
            'is_rest_waiting', line.is_rest_waiting, 'pending', {PENDING_AMOUNT},
            'item', (
                select json_build_object('category', category, 'pace_category', pace_category,
                    'has_price_limit', has_price_limit, 'price_limits', price_limits)
                from support_items
                where support_item_number = btrim(line.service_item_number)
                    and start_date <= {SERVICE_DATE} and coalesce(end_date, 'infinity') >= {SERVICE_DATE}
                order by start_date desc
                limit 1
            ),
            'is_known_item', exists (
                select from support_items where support_item_number = btrim(line.service_item_number)
            ),
            'has_duplicate', exists (select from {SAME_LINE})
        )"""
_REFERENCES: LiteralString = """
    left join participants participant on participant.plan_manager_id = $1
        and participant.id = invoice.participant_id
    left join providers provider on provider.plan_manager_id = $1 and provider.id = invoice.pm_provider_id
"""
GET_MANY = f"""
    select {CHECKED_COLUMNS},
        exists (select from invoices other where {IS_EARLIER_DUPLICATE}) as has_earlier_duplicate,
        {HAS_EARLIER_INVOICE} as has_earlier_invoice,
        coalesce((
            select json_agg({LINE} order by line.position)
            from invoice_lines line
            where line.plan_manager_id = $1 and line.invoice_id = invoice.id
        ), '[]') as lines,
        invoice.id, {IGNORED_COLUMNS}
    from invoices invoice
    {_REFERENCES}
    where invoice.plan_manager_id = $1 and {in_array("invoice.id", "$2::uuid[]")}
"""


async def get_many(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[InvoiceToCheck]:
    return await db.rows(InvoiceToCheck, GET_MANY, plan_manager_id, invoice_ids)


# The same for invoices that aren't stored yet, or not as they are in $2, with their lines ($3). Lines that two of them
# have are found by the caller.
GET_NEW = f"""
    with new_invoice as (
        select new.*,
            coalesce(btrim(invoice_number) <> '' and pm_provider_id is not null
                and count(*) filter (where not is_deleted and cancelled_at is null) over earlier > 0, false)
                as has_earlier_new_duplicate,
            coalesce(pm_provider_id is not null
                and count(*) filter (where not is_deleted and cancelled_at is null) over earlier_of_provider > 0, false)
                as has_earlier_new_invoice
        from {records_of("invoices")} new
        window earlier as (
            partition by pm_provider_id, invoice_number order by created_at, id
            rows between unbounded preceding and 1 preceding
        ), earlier_of_provider as (
            partition by pm_provider_id order by created_at, id rows between unbounded preceding and 1 preceding
        )
    ), new_line as (
        select line.invoice_id, json_agg({LINE} order by line.position) as lines
        from json_populate_recordset(null::invoice_lines, $3) line
        join new_invoice invoice on invoice.id = line.invoice_id
        group by line.invoice_id
    )
    select {CHECKED_COLUMNS},
        has_earlier_new_duplicate or exists (
            select from invoices other
            where {IS_EARLIER_DUPLICATE} and not exists (select from new_invoice own where own.id = other.id)
        ) as has_earlier_duplicate,
        has_earlier_new_invoice or {HAS_EARLIER_INVOICE} as has_earlier_invoice,
        coalesce(line.lines, '[]') as lines, invoice.id, {IGNORED_COLUMNS}
    from new_invoice invoice
    left join new_line line on line.invoice_id = invoice.id
    {_REFERENCES}
"""


async def get_new(db: Executor, plan_manager_id: UUID, invoices: str, lines: str) -> list[InvoiceToCheck]:
    """The values to check of new or changed invoices: JSON lists of InvoiceRow and of InvoiceLineRow."""
    return await db.rows(InvoiceToCheck, GET_NEW, plan_manager_id, invoices, lines)


EARLIER_DUPLICATE_IDS = f"""
    select earlier.id
    from invoices invoice
    cross join lateral (
        select other.id, other.created_at from invoices other where {IS_EARLIER_DUPLICATE} offset 0
    ) earlier
    where invoice.plan_manager_id = $1 and invoice.id = $2
    order by earlier.created_at desc, earlier.id desc
    limit $3
"""


async def earlier_duplicate_ids(db: Executor, plan_manager_id: UUID, invoice_id: UUID, limit: int) -> list[UUID]:
    """The ids of earlier invoices with the same provider and number, the latest of them first."""
    return await db.rows(UUID, EARLIER_DUPLICATE_IDS, plan_manager_id, invoice_id, limit)


SAME_LINE_IDS = f"""
    select distinct same.invoice_id
    from invoices invoice
    join invoice_lines line on line.plan_manager_id = $1 and line.invoice_id = invoice.id
    cross join lateral (select twin.invoice_id from {SAME_LINE} offset 0) same
    where invoice.plan_manager_id = $1 and invoice.id = $2
    order by same.invoice_id desc
    limit $3
"""


async def same_line_ids(db: Executor, plan_manager_id: UUID, invoice_id: UUID, limit: int) -> list[UUID]:
    """The ids of other invoices that have a line of this one, the latest first."""
    return await db.rows(UUID, SAME_LINE_IDS, plan_manager_id, invoice_id, limit)


class RelatedInvoices(Struct):
    """An invoice, the latest earlier one with the same provider and number, and the latest with the same document.

    `same_line_id` is the latest invoice that has one of its lines.
    """

    id: UUID
    earlier_id: UUID | None
    same_document_id: UUID | None
    same_line_id: UUID | None


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
        ) as same_document_id,
        (
            select same.invoice_id
            from invoice_lines line
            cross join lateral (select twin.invoice_id from {SAME_LINE} offset 0) same
            where line.plan_manager_id = $1 and line.invoice_id = invoice.id
            order by same.invoice_id desc
            limit 1
        ) as same_line_id
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


# Each step starts from the rows of the step before. While the tables have no statistics, PostgreSQL expects one invoice
# of a plan manager. With joins, it would look for the duplicates of all of them, and compare the ids at the end.
_SELECTED_INVOICES: LiteralString = """unnest($2::uuid[]) selected (id)
    cross join lateral (
        select id, participant_id, pm_provider_id, invoice_number from invoices
        where plan_manager_id = $1 and id = selected.id
        offset 0
    ) invoice"""
_SAME_LINE_OF_OTHERS: LiteralString = f"{SAME_LINE} and twin.invoice_id <> all ($2::uuid[])"
LIST_SIMILAR = f"""
    select similar_invoice.id
    from {_SELECTED_INVOICES}
    cross join lateral (
        select other.id from invoices other
        where other.plan_manager_id = $1 and other.pm_provider_id = any ({_PROVIDER_IDS})
            and other.invoice_number = invoice.invoice_number
        offset 0
    ) similar_invoice
    union
    select same.invoice_id
    from {_SELECTED_INVOICES}
    cross join lateral (
        select service_item_number, service_date_from, service_date_to, quantity, claim_status, is_deleted
        from invoice_lines
        where plan_manager_id = $1 and invoice_id = invoice.id
        offset 0
    ) line
    cross join lateral (select (select twin.invoice_id from {_SAME_LINE_OF_OTHERS} limit 1) as invoice_id offset 0) same
    where same.invoice_id is not null
        -- two others with a line have the warning anyway, because of each other
        and (
            select twin.invoice_id from {_SAME_LINE_OF_OTHERS} and twin.invoice_id <> same.invoice_id limit 1
        ) is null
    union
    select same.invoice_id
    from unnest($2::uuid[]) selected (id)
    cross join lateral (
        select sha256 from documents
        where plan_manager_id = $1 and invoice_id = selected.id and replaced_at is null
        offset 0
    ) own
    cross join lateral (
        select invoice_id from documents
        where plan_manager_id = $1 and sha256 = own.sha256 and replaced_at is null and invoice_id is not null
        offset 0
    ) same
"""


async def list_similar(tx: Transaction, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[UUID]:
    """The ids of invoices whose warnings may change when these are written.

    They have the provider and number of one of these, or its document, or are the only others with one of its lines.
    """
    return await tx.rows(UUID, LIST_SIMILAR, plan_manager_id, invoice_ids)


LIST_LEVELS = """
    select each.* from office_settings, jsonb_to_recordset(warning_levels) each (code text, level text)
    where plan_manager_id = $1
"""


async def list_levels(db: Executor, plan_manager_id: UUID) -> list[CodeLevel]:
    """The levels of the plan manager that differ from the usual ones."""
    return await db.rows(CodeLevel, LIST_LEVELS, plan_manager_id)


class CheckResult(Struct):
    """The result of checking one invoice, as it is stored.

    `error_codes` are the warnings that aren't only information, and `warning_codes` all that aren't ignored.
    """

    id: UUID
    errors: bool
    error_codes: list[str]
    warning_codes: list[str]
    ignored_error_codes: list[str]
    is_duplicate: bool


SAVE_RESULTS = f"""
    update invoices invoice set
        errors = result.errors, error_codes = result.error_codes, warning_codes = result.warning_codes,
        ignored_error_codes = result.ignored_error_codes, is_duplicate = result.is_duplicate
    from {records_of("invoices")} result
    where invoice.plan_manager_id = $1 and invoice.id = result.id
        and (
            invoice.errors, invoice.error_codes, invoice.warning_codes, invoice.ignored_error_codes,
            invoice.is_duplicate
        ) is distinct from (
            result.errors, result.error_codes, result.warning_codes, result.ignored_error_codes, result.is_duplicate
        )
    returning invoice.id
"""


async def save_results(tx: Transaction, plan_manager_id: UUID, results: str) -> list[UUID]:
    """Store results, a JSON list of CheckResult. Returns the ids of invoices whose result has changed.

    The invoices keep their version, because results are computed.
    """
    return await tx.rows(UUID, SAVE_RESULTS, plan_manager_id, results)


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
    insert into invoice_ignored_warnings (
        plan_manager_id, invoice_id, error_code, reason, ignored_by, ignored_at, facts
    )
    values ($1, $2, $3, $4, $5, $6, $7)
    on conflict (plan_manager_id, invoice_id, error_code) do update set
        reason = excluded.reason, ignored_by = excluded.ignored_by, ignored_at = excluded.ignored_at,
        facts = excluded.facts
"""


async def upsert_ignored(
    tx: Transaction, plan_manager_id: UUID, invoice_id: UUID, warning: IgnoredWarning, facts: Sequence[str]
) -> None:
    """Insert an ignored warning, or replace one that an import or a new fact has restored in the meantime."""
    await tx.execute(
        UPSERT_IGNORED,
        plan_manager_id,
        invoice_id,
        warning.error_code,
        warning.reason,
        warning.ignored_by,
        warning.ignored_at,
        facts,
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
