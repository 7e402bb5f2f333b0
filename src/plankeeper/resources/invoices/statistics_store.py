"""Sums of invoices for the console's home page. They agree with the lists that have the same filters.

Each takes an account manager's id, and counts only the invoices of this manager's participants unless it is null.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor

MAX_PROVIDERS = 10


class InvoiceSummary(Struct):
    """The number of invoices, their sum, and when the oldest of them was received; both are null for no invoices."""

    count: int
    total: Decimal | None
    oldest: datetime | None


class LastChange(Struct, frozen=True):
    """When an invoice, a participant and a plan last changed; null if there is none."""

    invoices: datetime | None
    participants: datetime | None
    plans: datetime | None


class WarningSummary(Struct):
    """The invoices on hold with a warning that isn't ignored."""

    code: str
    count: int
    total: Decimal | None
    oldest: datetime


class OpenInvoices(Struct):
    """The unpaid invoices received in a period, and those of them on hold and waiting for approval."""

    period: int
    count: int
    total: Decimal | None
    on_hold: InvoiceSummary
    awaiting_approval: InvoiceSummary


class PeriodStatusCount(Struct):
    """The invoices with a claim status that were received in a period; the first period is 1."""

    period: int
    claim_status: str
    count: int


class ProviderTotal(Struct):
    """The sum of a provider's invoices."""

    provider_id: UUID
    name: str | None
    total: Decimal


# The invoices of the participants of an account manager, or of everyone.
FROM_INVOICES: LiteralString = """from invoices where plan_manager_id = $1 and (
    $2::uuid is null
    or participant_id in (select id from participants where plan_manager_id = $1 and account_manager_id = $2)
)"""
GET_LAST_CHANGE = """
    select (select max(updated_at) from invoices where plan_manager_id = $1) as invoices,
        (select max(updated_at) from participants where plan_manager_id = $1) as participants,
        (select max(updated_at) from plans where plan_manager_id = $1) as plans
"""


async def get_last_change(db: Executor, plan_manager_id: UUID) -> LastChange:
    """When an invoice or a plan last changed, or the account manager of a participant could have."""
    return await db.one(LastChange, GET_LAST_CHANGE, plan_manager_id)


# Each period is a range of the index `invoices_open`, which is all that is read.
SUMMARIZE_OPEN = f"""
    select period, sums.*
    from generate_series(0, cardinality($3::timestamptz[])) period
    cross join lateral (
        select count(*), sum(total) as total,
            count(*) filter (where claim_status = 'on_hold') as on_hold_count,
            sum(total) filter (where claim_status = 'on_hold') as on_hold_total,
            min(received_at) filter (where claim_status = 'on_hold') as on_hold_oldest,
            count(*) filter (where approval_status = 'pending') as awaiting_approval_count,
            sum(total) filter (where approval_status = 'pending') as awaiting_approval_total,
            min(received_at) filter (where approval_status = 'pending') as awaiting_approval_oldest
        {FROM_INVOICES} and claim_status not in ('paid', 'rejected', 'cancelled') and not is_deleted
            and received_at >= coalesce(($3)[period], '-infinity')
            and received_at < coalesce(($3)[period + 1], 'infinity')
    ) sums
    where sums.count > 0
    order by period
"""


async def summarize_open(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID | None, limits: Sequence[datetime]
) -> list[OpenInvoices]:
    """The unpaid invoices by the period in which they were received: 0 before the first limit, 1 from it on, ...."""
    return await db.rows(OpenInvoices, SUMMARIZE_OPEN, plan_manager_id, account_manager_id, limits)


# Served by the index `invoices_on_hold_with_errors` alone.
IS_ON_HOLD_WITH_WARNINGS: LiteralString = "claim_status = 'on_hold' and errors and not is_deleted"
SUMMARIZE_WARNINGS = f"""
    select code, count(*), sum(total) as total, min(received_at) as oldest
    from (
        select unnest(error_codes) as code, ignored_error_codes, total, received_at
        {FROM_INVOICES} and {IS_ON_HOLD_WITH_WARNINGS}
    ) warning
    where code <> all (ignored_error_codes)
    group by code
    order by count(*) desc, code
"""


async def summarize_warnings(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID | None
) -> list[WarningSummary]:
    """The warnings of invoices on hold, the most frequent first."""
    return await db.rows(WarningSummary, SUMMARIZE_WARNINGS, plan_manager_id, account_manager_id)


SUMMARIZE_ON_HOLD_WITH_WARNINGS = (
    f"select count(*), sum(total) as total, min(received_at) as oldest {FROM_INVOICES} and {IS_ON_HOLD_WITH_WARNINGS}"
)


async def summarize_on_hold_with_warnings(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID | None
) -> InvoiceSummary:
    """The invoices on hold with a warning that isn't ignored, each counted once."""
    return await db.one(InvoiceSummary, SUMMARIZE_ON_HOLD_WITH_WARNINGS, plan_manager_id, account_manager_id)


# The index `invoices_open` has everything.
SUMMARIZE_LATE = f"""
    select count(*), sum(total) as total, min(received_at) as oldest
    {FROM_INVOICES} and claim_status not in ('paid', 'rejected', 'cancelled') and not is_deleted
        and claim_status in ('new', 'flagged', 'on_hold') and not wont_claim and received_at < $3
"""


async def summarize_late(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID | None, received_before: datetime
) -> InvoiceSummary:
    """The invoices that aren't claimed, and were received before a time."""
    return await db.one(InvoiceSummary, SUMMARIZE_LATE, plan_manager_id, account_manager_id, received_before)


# Likewise, on `invoices_by_creation`.
COUNT_RECEIVED = f"""
    select period, received.*
    from generate_series(1, cardinality($3::timestamptz[]) - 1) period
    cross join lateral (
        select claim_status, count(*)
        {FROM_INVOICES} and received_at >= ($3)[period] and received_at < ($3)[period + 1] and not is_deleted
        group by claim_status
    ) received
"""


async def count_received(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID | None, limits: Sequence[datetime]
) -> list[PeriodStatusCount]:
    """The invoices received from each limit to the next, by claim status."""
    return await db.rows(PeriodStatusCount, COUNT_RECEIVED, plan_manager_id, account_manager_id, limits)


# The names are looked up only for the providers that are shown.
SUM_BY_PROVIDER = f"""
    select spend.provider_id, provider.entity_name as name, spend.total
    from (
        select pm_provider_id as provider_id, sum(total) as total
        {FROM_INVOICES} and received_at >= $3 and received_at < $4 and not is_deleted and pm_provider_id is not null
        group by pm_provider_id
        having sum(total) > 0
        order by sum(total) desc, pm_provider_id
        limit $5
    ) spend
    left join providers provider on provider.plan_manager_id = $1 and provider.id = spend.provider_id
    order by spend.total desc, spend.provider_id
"""


async def sum_by_provider(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID | None, start: datetime, end: datetime
) -> list[ProviderTotal]:
    """The providers with the highest sums of invoices received between two times."""
    period = (start, end, MAX_PROVIDERS)
    return await db.rows(ProviderTotal, SUM_BY_PROVIDER, plan_manager_id, account_manager_id, *period)
