"""Numbers and sums of the invoices of one participant or provider in SQL, for the pages of these records.

Deleted invoices don't count.
"""

from datetime import date
from decimal import Decimal
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor
from plankeeper.invoices.schemas import ClaimStatus, Invoice
from plankeeper.invoices.store import WITHOUT_LINES

OF_PARTICIPANT: LiteralString = "from invoices where plan_manager_id = $1 and participant_id = $2"
OF_PROVIDER: LiteralString = "from invoices where plan_manager_id = $1 and pm_provider_id = $2"


class ParticipantNumbers(Struct):
    """What the header of a participant's pages shows. `plan_total` is in dollars."""

    invoices: int
    open_warnings: int
    plan_invoices: int
    plan_total: Decimal
    team_members: int


# Without a plan's start or end, every invoice before or after counts; without both, none does.
GET_PARTICIPANT_NUMBERS = """
    select count(*) as invoices,
        count(*) filter (where errors) as open_warnings,
        count(*) filter (where is_in_plan) as plan_invoices,
        coalesce(sum(total) filter (where is_in_plan), 0) as plan_total,
        (select count(*) from team_members where plan_manager_id = $1 and participant_id = $2) as team_members
    from (
        select errors, total, coalesce($3::date, $4) is not null
            and invoice_date between coalesce($3, '-infinity') and coalesce($4::date, 'infinity') as is_in_plan
        from invoices where plan_manager_id = $1 and participant_id = $2 and not is_deleted
    ) invoice
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


NEWEST_FIRST: LiteralString = "order by created_at desc, id desc limit $3"
# The same invoices as the header counts: not the deleted ones.
WARNINGS_FIRST: LiteralString = "and not is_deleted order by errors desc, created_at desc, id desc limit $3"
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
