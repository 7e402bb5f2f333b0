"""The list of invoices in SQL: pages and totals for any set of filters."""

from datetime import date
from decimal import Decimal
from typing import LiteralString
from uuid import UUID

from msgspec import Struct, UnsetType

from plankeeper.core.fields import unset_to_none
from plankeeper.core.lists import PageRows, cut_page, fetch_page
from plankeeper.database.client import Executor
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.groups import GroupKey, GroupSum
from plankeeper.database.lists.statements import BY_UPDATED_AT, Filter, Sort
from plankeeper.database.stored_counts import sum_counts
from plankeeper.resources.invoices import standard_conditions
from plankeeper.resources.invoices.schemas import ClaimStatus, Invoice, InvoiceListQuery
from plankeeper.resources.invoices.store import WITHOUT_LINES, get_many, get_many_without_lines
from plankeeper.resources.search.store import INVOICE_TEXT
from plankeeper.resources.viewer_limits import RECORDS_LIMIT

# A pattern of the search: see plankeeper.resources.search.terms.
_NUMBER_TEXT: LiteralString = INVOICE_TEXT.replace("{}", "{{}}")  # an empty array, not the placeholder of a parameter
# The index of open invoices is in the order of their receipt. It has the totals, but no column for deleted invoices.
_IS_OPEN: LiteralString = "claim_status not in ('paid', 'rejected', 'cancelled') and not is_deleted"
_OF_ACCOUNT_MANAGER: LiteralString = """
    participant_id in (select id from participants where plan_manager_id = $1 and account_manager_id = {})
"""
_WITHOUT_ACCOUNT_MANAGER: LiteralString = """
    (participant_id is null or participant_id in (
        select id from participants where plan_manager_id = $1 and account_manager_id is null
    )) and {}::boolean
"""
_OF_STATE: LiteralString = """
    participant_id in (select id from participants where plan_manager_id = $1 and state = {})
"""
_WITHOUT_STATE: LiteralString = """
    (participant_id is null or participant_id in (
        select id from participants where plan_manager_id = $1 and state is null
    )) and {}::boolean
"""
_AMOUNT: LiteralString = "case when not is_deleted then total end"
LIST = FilteredList(
    "invoices",
    InvoiceListQuery,
    {
        "number_pattern": Filter(_NUMBER_TEXT + " like {}"),
        "without_participant": Filter("participant_id is null and {}::boolean"),
        "without_provider": Filter("pm_provider_id is null and {}::boolean", label="Without"),
        "account_manager": Filter(_OF_ACCOUNT_MANAGER, label="Account manager"),
        "without_account_manager": Filter(_WITHOUT_ACCOUNT_MANAGER, label="Without"),
        "participant_state": Filter(_OF_STATE, label="State"),
        "without_state": Filter(_WITHOUT_STATE, label="Without"),
        "unpaid": Filter(_IS_OPEN + " and {}::boolean"),
        "in_progress": Filter(_IS_OPEN + " and claim_status <> 'on_hold' and {}::boolean"),
        "unclaimed": Filter(
            _IS_OPEN + " and claim_status in ('new', 'flagged', 'on_hold') and not wont_claim and {}::boolean"
        ),
        "received_from": Filter("received_at >= {}", label="Received"),
        "received_before": Filter("received_at < {}", label="Received"),
        "claimed_late": Filter(standard_conditions.CLAIMED_LATE, label="Service standard"),
        "paid_late": Filter(standard_conditions.PAID_LATE, label="Service standard"),
        "has_warnings": Filter("errors and {}::boolean"),
        "needs_attention": Filter("errors and claim_status <> 'cancelled' and {}::boolean"),
        "on_hold_without_warning": Filter("claim_status = 'on_hold' and not errors and not is_deleted and {}::boolean"),
        **RECORDS_LIMIT,
    },
    sorts={
        **BY_UPDATED_AT,
        "received_at": Sort("received_at", "timestamptz"),
        "invoice_date": Sort("invoice_date", "date", is_nullable=True),
        "total": Sort("total", "numeric", is_nullable=True),
        "invoice_number": Sort("invoice_number", "text", is_nullable=True),
        "claim_status": Sort("claim_status", "text"),
        "approval_status": Sort("approval_status", "text"),
        "provider": Sort("pm_provider_id", "uuid", is_nullable=True),
        "participant": Sort("participant_id", "uuid", is_nullable=True),
    },
    amount=_AMOUNT,
    group_keys={
        "month": GroupKey("invoice_date", "date_trunc('month', base::timestamp)::date", is_ordered=True),
        "state": GroupKey(
            "participant_id", "select state from participants where plan_manager_id = $1 and id = counted.base"
        ),
        "claim_status": GroupKey("claim_status"),
        "account_manager": GroupKey(
            "participant_id",
            "select account_manager_id from participants where plan_manager_id = $1 and id = counted.base",
        ),
        "provider": GroupKey("pm_provider_id"),
    },
    group_sums={"total": GroupSum(_AMOUNT)},
)
COUNTED_FIELDS = {"claim_status", "approval_status"}
PLAIN_PAGE = f"""
    select {WITHOUT_LINES}
    from invoices
    where plan_manager_id = $1 and id > $2
    order by id
    limit $3 offset $4
"""


async def list_page(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> PageRows[Invoice]:
    if "line_items" in (unset_to_none(query.include) or ()):
        return await fetch_page(db, plan_manager_id, query, LIST, get_many)
    if query.is_plain:
        return cut_page(await db.rows(Invoice, PLAIN_PAGE, plan_manager_id, *query.position), query.limit)
    return await fetch_page(db, plan_manager_id, query, LIST, get_many_without_lines)


async def list_page_with_warnings(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> PageRows[Invoice]:
    """A page of the invoices with warnings that aren't ignored, without deleted and cancelled ones."""
    filters = {"needs_attention": True, "is_deleted": False}
    return await fetch_page(db, plan_manager_id, query, LIST, get_many_without_lines, **filters)


async def count(db: Executor, plan_manager_id: UUID, query: InvoiceListQuery) -> int:
    """The number of matching invoices. Numbers by statuses are stored; others are counted on an index."""
    if COUNTED_FIELDS.issuperset(LIST.values_of(query)):
        statuses = unset_to_none(query.claim_status), unset_to_none(query.approval_status)
        return await sum_counts(db, plan_manager_id, "invoices", *statuses)
    return await LIST.count(db, plan_manager_id, LIST.values_of(query))


OF_PARTICIPANT: LiteralString = "from invoices where plan_manager_id = $1 and participant_id = $2"
OF_PROVIDER: LiteralString = "from invoices where plan_manager_id = $1 and pm_provider_id = $2"


class PrimaryContact(Struct):
    """The team member with the first contact priority."""

    id: UUID
    first_name: str | None
    last_name: str | None
    email: str | None
    phone_number: str | None
    role: str | None


class ParticipantNumbers(Struct):
    """The header of a participant's pages: numbers, and the primary contact. `plan_total` is in dollars."""

    invoices: int
    open_warnings: int
    plan_invoices: int
    plan_total: Decimal
    team_members: int
    contact: PrimaryContact | UnsetType


# Without a plan's start or end, every invoice before or after counts; without both, none does.
GET_PARTICIPANT_NUMBERS = """
    select invoices, open_warnings, plan_invoices, plan_total,
        (select count(*) from team_members where plan_manager_id = $1 and participant_id = $2) as team_members,
        member.id as contact_id, member.first_name as contact_first_name, member.last_name as contact_last_name,
        users.email as contact_email, member.phone_number as contact_phone_number, member.role as contact_role
    from (
        select count(*) as invoices,
            count(*) filter (where errors and claim_status <> 'cancelled') as open_warnings,
            count(*) filter (where is_in_plan) as plan_invoices,
            coalesce(sum(total) filter (where is_in_plan), 0) as plan_total
        from (
            select errors, total, claim_status, claim_status <> 'cancelled' and coalesce($3::date, $4) is not null
                and invoice_date between coalesce($3, '-infinity') and coalesce($4::date, 'infinity') as is_in_plan
            from invoices where plan_manager_id = $1 and participant_id = $2 and not is_deleted
        ) invoice
    ) numbers
    left join team_members member on member.plan_manager_id = $1 and member.participant_id = $2
        and member.contact_priority = 1
    left join users on users.plan_manager_id = $1 and users.id = member.user_id
"""


async def get_participant_numbers(
    db: Executor, plan_manager_id: UUID, participant_id: UUID, plan_start: date | None, plan_end: date | None
) -> ParticipantNumbers:
    return await db.one(
        ParticipantNumbers, GET_PARTICIPANT_NUMBERS, plan_manager_id, participant_id, plan_start, plan_end
    )


class StatusSum(Struct):
    """The invoices with one claim status that are dated in one month; `month` is its first day."""

    month: date
    claim_status: ClaimStatus
    count: int
    total: Decimal


SUM_COLUMNS: LiteralString = """
    date_trunc('month', invoice_date::timestamp)::date as month, claim_status, count(*) as count,
    coalesce(sum(total), 0) as total
"""
BY_MONTH: LiteralString = "and not is_deleted and invoice_date between $3 and $4 group by 1, 2 order by 1, 2"
SUMS_BY_MONTH_FOR_PARTICIPANT = f"select {SUM_COLUMNS} {OF_PARTICIPANT} {BY_MONTH}"
SUMS_BY_MONTH_FOR_PROVIDER = f"select {SUM_COLUMNS} {OF_PROVIDER} {BY_MONTH}"


async def sums_by_month_for_participant(
    db: Executor, plan_manager_id: UUID, participant_id: UUID, first: date, last: date
) -> list[StatusSum]:
    """The sums of a participant's invoices that are dated within two days, by month and claim status."""
    return await db.rows(StatusSum, SUMS_BY_MONTH_FOR_PARTICIPANT, plan_manager_id, participant_id, first, last)


async def sums_by_month_for_provider(
    db: Executor, plan_manager_id: UUID, provider_id: UUID, first: date, last: date
) -> list[StatusSum]:
    """The same for a provider."""
    return await db.rows(StatusSum, SUMS_BY_MONTH_FOR_PROVIDER, plan_manager_id, provider_id, first, last)


class ProviderSum(Struct):
    """The invoices of one provider; `name` is null if the provider has none or doesn't exist."""

    id: UUID
    name: str | None
    count: int
    total: Decimal


TOP_PROVIDERS = """
    select top.id, nullif(btrim(provider.entity_name), '') as name, top.count, top.total
    from (
        select pm_provider_id as id, count(*) as count, coalesce(sum(total), 0) as total
        from invoices
        where plan_manager_id = $1 and participant_id = $2 and not is_deleted and pm_provider_id is not null
            and invoice_date between $3 and $4
        group by pm_provider_id
        order by total desc, id
        limit $5
    ) top
    left join providers provider on provider.plan_manager_id = $1 and provider.id = top.id
    order by top.total desc, top.id
"""


async def top_providers(
    db: Executor, plan_manager_id: UUID, participant_id: UUID, first: date, last: date, limit: int
) -> list[ProviderSum]:
    """The providers with the highest sums of a participant's invoices that are dated within two days."""
    return await db.rows(ProviderSum, TOP_PROVIDERS, plan_manager_id, participant_id, first, last, limit)


NEWEST_FIRST: LiteralString = "order by received_at desc, id desc limit $3"
# The same invoices as the header counts: not the deleted ones.
WARNINGS_FIRST: LiteralString = """and not is_deleted
    order by (errors and claim_status <> 'cancelled') desc, received_at desc, id desc
    limit $3
"""
LATEST_FOR_PARTICIPANT = f"select {WITHOUT_LINES} {OF_PARTICIPANT} {WARNINGS_FIRST}"
LATEST_FOR_PROVIDER = f"select {WITHOUT_LINES} {OF_PROVIDER} {NEWEST_FIRST}"


async def latest_for_participant(
    db: Executor, plan_manager_id: UUID, participant_id: UUID, limit: int
) -> list[Invoice]:
    """The participant's invoices with open warnings, then the others, each newest first."""
    return await db.rows(Invoice, LATEST_FOR_PARTICIPANT, plan_manager_id, participant_id, limit)


async def latest_for_provider(db: Executor, plan_manager_id: UUID, provider_id: UUID, limit: int) -> list[Invoice]:
    """The provider's invoices that were received last, newest first."""
    return await db.rows(Invoice, LATEST_FOR_PROVIDER, plan_manager_id, provider_id, limit)
