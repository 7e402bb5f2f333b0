"""The list of invoices in SQL: pages and totals for any set of filters."""

from typing import LiteralString
from uuid import UUID

from msgspec import UNSET
from msgspec.structs import replace

from plankeeper.core.fields import unset_to_none
from plankeeper.core.lists import PageRows, cut_page, fetch_page
from plankeeper.database.client import Executor
from plankeeper.database.filters import Filter, FilteredList, enum_filters, several
from plankeeper.database.row_ids import in_array
from plankeeper.database.sorting import Sort
from plankeeper.invoices.count_store import sum_counts
from plankeeper.invoices.schemas import Invoice, InvoiceListQuery
from plankeeper.invoices.store import WITHOUT_LINES, get_many, get_many_without_lines
from plankeeper.search.conditions import INVOICE_TEXT

IDS = Filter(("id",), in_array("id", "{0}::uuid[]"), is_narrow=True)
NUMBER = Filter(("invoice_number",), "invoice_number = {}", is_narrow=True)
# A pattern of the search: see plankeeper.search.terms.
_NUMBER_TEXT: LiteralString = INVOICE_TEXT.replace("{}", "{{}}")  # an empty array, no place of a parameter
NUMBER_PATTERN = Filter(("number_pattern",), _NUMBER_TEXT + " like {}", materialize=True, is_narrow=True)
PARTICIPANT = Filter(("participant_id",), "participant_id = {}", is_narrow=True)
PROVIDER = Filter(("provider_id",), "pm_provider_id = {}", is_narrow=True)
UPDATED_SINCE = Filter(("updated_since",), "updated_at >= {}", materialize=True, order="updated_at")
DATES = Filter(
    ("invoice_date_from", "invoice_date_to"),
    "invoice_date >= {} and invoice_date <= {}",
    materialize=True,
    order="invoice_date",
)
DATE_FROM = Filter(("invoice_date_from",), "invoice_date >= {}", materialize=True, order="invoice_date")
DATE_TO = Filter(("invoice_date_to",), "invoice_date <= {}", materialize=True, order="invoice_date")
TOTALS = Filter(("total_min", "total_max"), "total >= {} and total <= {}", materialize=True, order="total")
TOTAL_MIN = Filter(("total_min",), "total >= {}", materialize=True, order="total")
TOTAL_MAX = Filter(("total_max",), "total <= {}", materialize=True, order="total")
RECEIVED = Filter(
    ("received_from", "received_before"), "created_at >= {} and created_at < {}", materialize=True, order="created_at"
)
RECEIVED_FROM = Filter(("received_from",), "created_at >= {}", materialize=True, order="created_at")
RECEIVED_BEFORE = Filter(("received_before",), "created_at < {}", materialize=True, order="created_at")
# The index of invoices with errors holds those with a warning that nobody has ignored.
WARNING = Filter(
    ("warning",),
    "errors and error_codes @> array[{0}] and {0} <> all (ignored_error_codes)",
    materialize=True,
    is_narrow=True,
)
SEVERAL_WARNINGS = Filter(
    (several("warning"),),
    """errors and error_codes && {0}::text[] and exists (
        select from unnest({0}::text[]) code where code = any (error_codes) and code <> all (ignored_error_codes)
    )""",
    materialize=True,
    is_narrow=True,
)
HAS_WARNINGS = Filter(("has_warnings",), "errors and {}::boolean")
WITHOUT_PARTICIPANT = Filter(("without_participant",), "participant_id is null and {}::boolean")
CLAIM_STATUS = enum_filters("claim_status", "claim_status")
APPROVAL_STATUS = enum_filters("approval_status", "approval_status")
# Of the participants of an account manager.
ACCOUNT_MANAGER = Filter(
    ("account_manager",),
    "participant_id in (select id from participants where plan_manager_id = $1 and account_manager_id = {})",
    materialize=True,
)
# The index of open invoices is in the order of their receipt. It has the totals, but no column for what is deleted.
_IS_OPEN: LiteralString = "claim_status not in ('paid', 'rejected', 'cancelled') and not is_deleted"
UNPAID = Filter(("unpaid",), _IS_OPEN + " and {}::boolean", materialize=True, order="created_at", amount="total")
IN_PROGRESS = Filter(
    ("in_progress",),
    _IS_OPEN + " and claim_status <> 'on_hold' and {}::boolean",
    materialize=True,
    order="created_at",
    amount="total",
)
ON_HOLD_WITHOUT_WARNING = Filter(
    ("on_hold_without_warning",), "claim_status = 'on_hold' and not errors and not is_deleted and {}::boolean"
)
DELETED = Filter(("is_deleted",), "is_deleted and {}::boolean", is_narrow=True)
NOT_DELETED = Filter(("not_deleted",), "not is_deleted and {}::boolean")
RANGES = (DATES, DATE_FROM, DATE_TO, RECEIVED, RECEIVED_FROM, RECEIVED_BEFORE, TOTALS, TOTAL_MIN, TOTAL_MAX)
WARNINGS = (WARNING, SEVERAL_WARNINGS, HAS_WARNINGS)

LIST = FilteredList(
    "invoices",
    (
        IDS,
        NUMBER,
        NUMBER_PATTERN,
        PARTICIPANT,
        PROVIDER,
        WITHOUT_PARTICIPANT,
        UPDATED_SINCE,
        DELETED,
        # Before the ranges: far fewer invoices are open than were ever received.
        UNPAID,
        IN_PROGRESS,
        *RANGES,
        *WARNINGS,
        ON_HOLD_WITHOUT_WARNING,
        CLAIM_STATUS[0],
        APPROVAL_STATUS[0],
        CLAIM_STATUS[1],
        APPROVAL_STATUS[1],
        ACCOUNT_MANAGER,
        NOT_DELETED,
    ),
    sorts={
        "updated_at": Sort("updated_at", "timestamptz"),
        "created_at": Sort("created_at", "timestamptz"),
        "invoice_date": Sort("invoice_date", "date", is_nullable=True),
        "total": Sort("total", "numeric", is_nullable=True),
        "invoice_number": Sort("invoice_number", "text", is_nullable=True),
        "claim_status": Sort("claim_status", "text"),
        "approval_status": Sort("approval_status", "text"),
        "provider": Sort("pm_provider_id", "uuid", is_nullable=True),
        "participant": Sort("participant_id", "uuid", is_nullable=True),
    },
    amount="case when not is_deleted then total end",
)
SUMMED_FIELDS = {each for name in ("claim_status", "approval_status") for each in (name, several(name))}
PLAIN_PAGE = f"""
    select {WITHOUT_LINES}
    from invoices
    where plan_manager_id = $1 and id > $2
    order by id
    limit $3 offset $4
"""


async def list_page(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> PageRows[Invoice]:
    query, filters = _split_deleted(query)
    if query.include is not UNSET:
        return await fetch_page(db, plan_manager_id, query, LIST, get_many, **filters)
    if query.is_plain and not filters:
        rows = await db.rows(Invoice, PLAIN_PAGE, plan_manager_id, query.start, query.limit + 1, query.offset)
        return cut_page(rows, query.limit)
    return await fetch_page(db, plan_manager_id, query, LIST, get_many_without_lines, **filters)


def _split_deleted(query: InvoiceListQuery) -> tuple[InvoiceListQuery, dict[str, object]]:
    """`is_deleted=false` as the filter that has a condition of its own: nearly all invoices match it."""
    if query.is_deleted is not False:
        return query, {}
    return replace(query, is_deleted=UNSET), {"not_deleted": True}


async def list_page_with_warnings(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> PageRows[Invoice]:
    """A page of the invoices with warnings that nobody has ignored, without deleted ones."""
    filters = {"has_warnings": True, "not_deleted": True}
    return await fetch_page(db, plan_manager_id, query, LIST, get_many_without_lines, **filters)


async def count(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> int:
    """The number of matching invoices. Totals by statuses are stored; others are counted on an index."""
    query, filters = _split_deleted(query)
    if SUMMED_FIELDS.issuperset(LIST.filter_values(query, filters)):
        statuses = unset_to_none(query.claim_status), unset_to_none(query.approval_status)
        return await sum_counts(db, plan_manager_id, *statuses)
    return await LIST.count(db, plan_manager_id, query, **filters)
