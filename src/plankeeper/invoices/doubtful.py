"""The list of invoices with warnings in SQL: a statement for each filter, as in `lists.py`, of those alone."""

from uuid import UUID

from msgspec import UNSET

from plankeeper.database.client import Executor
from plankeeper.http.schemas import unset_to_none
from plankeeper.invoices.queries import get_many
from plankeeper.invoices.schemas import Invoice, InvoiceListQuery


async def list_page(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[Invoice]:
    """The rows of one page and one more, which tells whether there are more; `updated_since` is no filter here."""
    by = (
        (query.invoice_number, _by_number),
        (query.participant_id, _by_participant),
        (query.provider_id, _by_provider),
        (query.claim_status, _by_claim_status),
        (query.approval_status, _by_approval_status),
    )
    ids_by = next((ids_by for wanted, ids_by in by if wanted is not UNSET), _all)
    ids = await ids_by(db, plan_manager_id, query)
    return await get_many(db, plan_manager_id, ids) if ids else []


ALL = "select id from invoices where plan_manager_id = $1 and id > $2 and errors order by id limit $3"


async def _all(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[UUID]:
    return await db.rows(UUID, ALL, plan_manager_id, query.start, query.limit + 1)


BY_NUMBER = """
    select id
    from invoices
    where plan_manager_id = $1 and id > $2 and errors
        and ($3::uuid is null or participant_id = $3)
        and ($4::uuid is null or pm_provider_id = $4)
        and ($5::text is null or claim_status = $5)
        and ($6::text is null or approval_status = $6)
        and invoice_number = $7
    order by id
    limit $8
"""


async def _by_number(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[UUID]:
    return await db.rows(UUID, BY_NUMBER, plan_manager_id, query.start, *_filters(query), query.limit + 1)


BY_PARTICIPANT = """
    -- materialized: a walk over all invoices with warnings would pass over those of everybody else
    with theirs as materialized (
        select id
        from invoices
        where plan_manager_id = $1 and id > $2 and errors
            and participant_id = $3
            and ($4::uuid is null or pm_provider_id = $4)
            and ($5::text is null or claim_status = $5)
            and ($6::text is null or approval_status = $6)
            and ($7::text is null or invoice_number = $7)
    )
    select id from theirs order by id limit $8
"""


async def _by_participant(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[UUID]:
    return await db.rows(UUID, BY_PARTICIPANT, plan_manager_id, query.start, *_filters(query), query.limit + 1)


BY_PROVIDER = """
    select id
    from invoices
    where plan_manager_id = $1 and id > $2 and errors
        and ($3::uuid is null or participant_id = $3)
        and pm_provider_id = $4
        and ($5::text is null or claim_status = $5)
        and ($6::text is null or approval_status = $6)
        and ($7::text is null or invoice_number = $7)
    order by id
    limit $8
"""


async def _by_provider(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[UUID]:
    return await db.rows(UUID, BY_PROVIDER, plan_manager_id, query.start, *_filters(query), query.limit + 1)


BY_CLAIM_STATUS = """
    select id
    from invoices
    where plan_manager_id = $1 and id > $2 and errors
        and ($3::uuid is null or participant_id = $3)
        and ($4::uuid is null or pm_provider_id = $4)
        and claim_status = $5
        and ($6::text is null or approval_status = $6)
        and ($7::text is null or invoice_number = $7)
    order by id
    limit $8
"""


async def _by_claim_status(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[UUID]:
    return await db.rows(UUID, BY_CLAIM_STATUS, plan_manager_id, query.start, *_filters(query), query.limit + 1)


BY_APPROVAL_STATUS = """
    select id
    from invoices
    where plan_manager_id = $1 and id > $2 and errors
        and ($3::uuid is null or participant_id = $3)
        and ($4::uuid is null or pm_provider_id = $4)
        and ($5::text is null or claim_status = $5)
        and approval_status = $6
        and ($7::text is null or invoice_number = $7)
    order by id
    limit $8
"""


async def _by_approval_status(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[UUID]:
    return await db.rows(UUID, BY_APPROVAL_STATUS, plan_manager_id, query.start, *_filters(query), query.limit + 1)


def _filters(query: InvoiceListQuery) -> tuple[object, ...]:
    wanted = (
        query.participant_id,
        query.provider_id,
        query.claim_status,
        query.approval_status,
        query.invoice_number,
    )
    return tuple(unset_to_none(each) for each in wanted)
