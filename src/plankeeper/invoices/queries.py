"""The lists of invoices in SQL, of all and of those with warnings: pages and totals for any set of filters."""

from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.database.filters import Filter, FilteredList
from plankeeper.invoices.schemas import Invoice, InvoiceListQuery
from plankeeper.invoices.store import FULL_COLUMNS, get_many_without_lines

NUMBER = Filter(("invoice_number",), "invoice_number = {}")
PARTICIPANT = Filter(("participant_id",), "participant_id = {}")
PROVIDER = Filter(("provider_id",), "pm_provider_id = {}")
UPDATED_SINCE = Filter(("updated_since",), "updated_at >= {}", materialize=True)
CLAIM_STATUS = Filter(("claim_status",), "claim_status = {}")
APPROVAL_STATUS = Filter(("approval_status",), "approval_status = {}")

LIST = FilteredList("invoices", (NUMBER, PARTICIPANT, PROVIDER, UPDATED_SINCE, CLAIM_STATUS, APPROVAL_STATUS))
# No index holds a participant's invoices with warnings: its few invoices are read, and sorted.
LIST_WITH_WARNINGS = FilteredList(
    "invoices",
    (NUMBER, PARTICIPANT._replace(materialize=True), PROVIDER, CLAIM_STATUS, APPROVAL_STATUS),
    scope="errors",
)
UNFILTERED_PAGE = f"""
    select {FULL_COLUMNS}
    from invoices
    where plan_manager_id = $1 and id > $2
    order by id
    limit $3 offset $4
"""


async def list_page(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[Invoice]:
    """The rows of one page and one more, which shows whether another page follows."""
    if not query.has_filters:
        return await db.rows(Invoice, UNFILTERED_PAGE, plan_manager_id, query.start, query.limit + 1, query.offset)
    ids = await LIST.page_ids(db, plan_manager_id, query)
    return await get_many_without_lines(db, plan_manager_id, ids) if ids else []


async def list_page_with_warnings(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> list[Invoice]:
    """The same for the invoices with warnings that nobody has ignored. This list has no filter `updated_since`."""
    ids = await LIST_WITH_WARNINGS.page_ids(db, plan_manager_id, query)
    return await get_many_without_lines(db, plan_manager_id, ids) if ids else []


async def count(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> int:
    """The number of matching invoices."""
    return await LIST.count(db, plan_manager_id, query)
