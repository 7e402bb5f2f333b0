"""The totals of the list of invoices in SQL: each filter's index is counted."""

from uuid import UUID

from msgspec import UNSET

from plankeeper.database.client import Executor
from plankeeper.invoices.queries import filter_values
from plankeeper.invoices.schemas import InvoiceListQuery


async def count(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> int:
    """All that match."""
    by = (
        (query.invoice_number, _with_number),
        (query.participant_id, _of_participant),
        (query.provider_id, _of_provider),
        (query.updated_since, _since),
        (query.claim_status, _with_claim_status),
        (query.approval_status, _with_approval_status),
    )
    counted = next((count_by for wanted, count_by in by if wanted is not UNSET), _all)
    return await counted(db, plan_manager_id, query)


ALL = "select count(*) from invoices where plan_manager_id = $1"


async def _all(db: Executor, plan_manager_id: UUID, _query: InvoiceListQuery) -> int:
    return await db.one(int, ALL, plan_manager_id)


WITH_NUMBER = """
    select count(*)
    from invoices
    where plan_manager_id = $1
        and ($2::uuid is null or participant_id = $2)
        and ($3::uuid is null or pm_provider_id = $3)
        and ($4::text is null or claim_status = $4)
        and ($5::text is null or approval_status = $5)
        and invoice_number = $6
        and ($7::timestamptz is null or updated_at >= $7)
"""


async def _with_number(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> int:
    return await db.one(int, WITH_NUMBER, plan_manager_id, *filter_values(query))


OF_PARTICIPANT = """
    select count(*)
    from invoices
    where plan_manager_id = $1
        and participant_id = $2
        and ($3::uuid is null or pm_provider_id = $3)
        and ($4::text is null or claim_status = $4)
        and ($5::text is null or approval_status = $5)
        and ($6::text is null or invoice_number = $6)
        and ($7::timestamptz is null or updated_at >= $7)
"""


async def _of_participant(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> int:
    return await db.one(int, OF_PARTICIPANT, plan_manager_id, *filter_values(query))


OF_PROVIDER = """
    select count(*)
    from invoices
    where plan_manager_id = $1
        and ($2::uuid is null or participant_id = $2)
        and pm_provider_id = $3
        and ($4::text is null or claim_status = $4)
        and ($5::text is null or approval_status = $5)
        and ($6::text is null or invoice_number = $6)
        and ($7::timestamptz is null or updated_at >= $7)
"""


async def _of_provider(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> int:
    return await db.one(int, OF_PROVIDER, plan_manager_id, *filter_values(query))


SINCE = """
    select count(*)
    from invoices
    where plan_manager_id = $1
        and ($2::uuid is null or participant_id = $2)
        and ($3::uuid is null or pm_provider_id = $3)
        and ($4::text is null or claim_status = $4)
        and ($5::text is null or approval_status = $5)
        and ($6::text is null or invoice_number = $6)
        and updated_at >= $7
"""


async def _since(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> int:
    return await db.one(int, SINCE, plan_manager_id, *filter_values(query))


WITH_CLAIM_STATUS = """
    select count(*)
    from invoices
    where plan_manager_id = $1
        and ($2::uuid is null or participant_id = $2)
        and ($3::uuid is null or pm_provider_id = $3)
        and claim_status = $4
        and ($5::text is null or approval_status = $5)
        and ($6::text is null or invoice_number = $6)
        and ($7::timestamptz is null or updated_at >= $7)
"""


async def _with_claim_status(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> int:
    return await db.one(int, WITH_CLAIM_STATUS, plan_manager_id, *filter_values(query))


WITH_APPROVAL_STATUS = """
    select count(*)
    from invoices
    where plan_manager_id = $1
        and ($2::uuid is null or participant_id = $2)
        and ($3::uuid is null or pm_provider_id = $3)
        and ($4::text is null or claim_status = $4)
        and approval_status = $5
        and ($6::text is null or invoice_number = $6)
        and ($7::timestamptz is null or updated_at >= $7)
"""


async def _with_approval_status(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> int:
    return await db.one(int, WITH_APPROVAL_STATUS, plan_manager_id, *filter_values(query))
