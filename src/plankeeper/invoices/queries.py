"""The list of invoices in SQL: a statement for each filter, as each has an index of its own."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import UNSET

from plankeeper.database.client import Executor
from plankeeper.http.schemas import unset_to_none
from plankeeper.invoices.schemas import Invoice, InvoiceListQuery


async def list_page(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[Invoice]:
    """The rows of one page and one more, which tells whether there are more."""
    if not query.has_filters:
        return await _plain_page(db, plan_manager_id, query)
    by = (
        (query.invoice_number, _by_number),
        (query.participant_id, _by_participant),
        (query.provider_id, _by_provider),
        (query.updated_since, _by_moment),
        (query.claim_status, _by_claim_status),
        (query.approval_status, _by_approval_status),
    )
    ids_by = next(ids_by for wanted, ids_by in by if wanted is not UNSET)
    ids = await ids_by(db, plan_manager_id, query)
    return await get_many(db, plan_manager_id, ids) if ids else []


PLAIN_PAGE = """
    select id, invoice_number, invoice_date, total, tax, subtotal, plan_manager_id as plan_manager, participant_id,
        claim_status, approval_status, created_at, pm_provider_id, s3_key, email_message_id, errors,
        error_codes as state_management_errors, ignored_error_codes as state_management_ignored_errors,
        is_deleted, wont_claim, is_reimbursement, is_duplicate
    from invoices
    where plan_manager_id = $1 and id > $2
    order by id
    limit $3 offset $4
"""


async def _plain_page(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[Invoice]:
    return await db.rows(Invoice, PLAIN_PAGE, plan_manager_id, query.start, query.limit + 1, query.offset)


GET_MANY = """
    select id, invoice_number, invoice_date, total, tax, subtotal, plan_manager_id as plan_manager, participant_id,
        claim_status, approval_status, created_at, pm_provider_id, s3_key, email_message_id, errors,
        error_codes as state_management_errors, ignored_error_codes as state_management_ignored_errors,
        is_deleted, wont_claim, is_reimbursement, is_duplicate
    from invoices
    where plan_manager_id = $1 and id = any ($2)
    order by id
"""


async def get_many(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[Invoice]:
    return await db.rows(Invoice, GET_MANY, plan_manager_id, invoice_ids)


BY_NUMBER = """
    select id
    from invoices
    where plan_manager_id = $1 and id > $2
        and ($3::uuid is null or participant_id = $3)
        and ($4::uuid is null or pm_provider_id = $4)
        and ($5::text is null or claim_status = $5)
        and ($6::text is null or approval_status = $6)
        and invoice_number = $7
        and ($8::timestamptz is null or updated_at >= $8)
    order by id
    limit $9 offset $10
"""


async def _by_number(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[UUID]:
    return await db.rows(
        UUID, BY_NUMBER, plan_manager_id, query.start, *filter_values(query), query.limit + 1, query.offset
    )


BY_PARTICIPANT = """
    select id
    from invoices
    where plan_manager_id = $1 and id > $2
        and participant_id = $3
        and ($4::uuid is null or pm_provider_id = $4)
        and ($5::text is null or claim_status = $5)
        and ($6::text is null or approval_status = $6)
        and ($7::text is null or invoice_number = $7)
        and ($8::timestamptz is null or updated_at >= $8)
    order by id
    limit $9 offset $10
"""


async def _by_participant(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[UUID]:
    return await db.rows(
        UUID, BY_PARTICIPANT, plan_manager_id, query.start, *filter_values(query), query.limit + 1, query.offset
    )


BY_PROVIDER = """
    select id
    from invoices
    where plan_manager_id = $1 and id > $2
        and ($3::uuid is null or participant_id = $3)
        and pm_provider_id = $4
        and ($5::text is null or claim_status = $5)
        and ($6::text is null or approval_status = $6)
        and ($7::text is null or invoice_number = $7)
        and ($8::timestamptz is null or updated_at >= $8)
    order by id
    limit $9 offset $10
"""


async def _by_provider(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[UUID]:
    return await db.rows(
        UUID, BY_PROVIDER, plan_manager_id, query.start, *filter_values(query), query.limit + 1, query.offset
    )


BY_MOMENT = """
    -- materialized: a walk by id would have to pass over all that has not changed
    with changed as materialized (
        select id
        from invoices
        where plan_manager_id = $1 and id > $2
            and ($3::uuid is null or participant_id = $3)
            and ($4::uuid is null or pm_provider_id = $4)
            and ($5::text is null or claim_status = $5)
            and ($6::text is null or approval_status = $6)
            and ($7::text is null or invoice_number = $7)
            and updated_at >= $8
    )
    select id from changed order by id limit $9 offset $10
"""


async def _by_moment(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[UUID]:
    return await db.rows(
        UUID, BY_MOMENT, plan_manager_id, query.start, *filter_values(query), query.limit + 1, query.offset
    )


BY_CLAIM_STATUS = """
    select id
    from invoices
    where plan_manager_id = $1 and id > $2
        and ($3::uuid is null or participant_id = $3)
        and ($4::uuid is null or pm_provider_id = $4)
        and claim_status = $5
        and ($6::text is null or approval_status = $6)
        and ($7::text is null or invoice_number = $7)
        and ($8::timestamptz is null or updated_at >= $8)
    order by id
    limit $9 offset $10
"""


async def _by_claim_status(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[UUID]:
    return await db.rows(
        UUID, BY_CLAIM_STATUS, plan_manager_id, query.start, *filter_values(query), query.limit + 1, query.offset
    )


BY_APPROVAL_STATUS = """
    select id
    from invoices
    where plan_manager_id = $1 and id > $2
        and ($3::uuid is null or participant_id = $3)
        and ($4::uuid is null or pm_provider_id = $4)
        and ($5::text is null or claim_status = $5)
        and approval_status = $6
        and ($7::text is null or invoice_number = $7)
        and ($8::timestamptz is null or updated_at >= $8)
    order by id
    limit $9 offset $10
"""


async def _by_approval_status(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[UUID]:
    return await db.rows(
        UUID, BY_APPROVAL_STATUS, plan_manager_id, query.start, *filter_values(query), query.limit + 1, query.offset
    )


def filter_values(query: InvoiceListQuery) -> tuple[object, ...]:
    """What the list's filters ask for, in the order of the statements' parameters."""
    wanted = (
        query.participant_id,
        query.provider_id,
        query.claim_status,
        query.approval_status,
        query.invoice_number,
        query.updated_since,
    )
    return tuple(unset_to_none(each) for each in wanted)
