"""The list of all claims in SQL, for the console."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.groups import GroupKey, GroupSum
from plankeeper.database.lists.statements import Filter
from plankeeper.database.row_ids import HAS_ID
from plankeeper.resources.claims.schemas import ClaimListQuery, ClaimState

# When a claim began to wait for its result: with its batch.
SINCE: LiteralString = """
    coalesce((
        select submitted_at from claim_batches
        where claim_batches.plan_manager_id = $1 and claim_batches.id = claims.batch_id
    ), created_at)
"""
_IS_LATE: LiteralString = "state = 'submitted' and" + SINCE + "< {}"
_ITEM: LiteralString = """
    coalesce(fields ->> 'support_number', (
        select service_item_number from invoice_lines
        where invoice_lines.plan_manager_id = $1 and invoice_lines.invoice_id = claims.invoice_id
            and invoice_lines.id = claims.line_id
    ))
"""
_CATEGORY: LiteralString = "ltrim(substring(" + _ITEM + " from '^\\s*([0-9]{{1,2}})_'), '0')"
_OF_PROVIDER: LiteralString = """
    invoice_id in (select id from invoices where plan_manager_id = $1 and pm_provider_id = {})
"""
LIST = FilteredList(
    "claims",
    ClaimListQuery,
    {
        "made_from": Filter("created_at >= {}", label="Made"),
        "made_before": Filter("created_at < {}", label="Made"),
        "provider_id": Filter(_OF_PROVIDER, label="Provider"),
        "category": Filter(_CATEGORY + " = {}", label="Support category"),
        "late_before": Filter(_IS_LATE, label="Late"),
    },
    amount="case when state not in ('draft', 'cancelled') then amount end",
    group_keys={
        "month": GroupKey("date_trunc('month', created_at at time zone {})::date", parameter="zone", is_ordered=True),
        "state": GroupKey("state"),
        "provider": GroupKey(
            "invoice_id", "select pm_provider_id from invoices where plan_manager_id = $1 and id = counted.base"
        ),
        "category": GroupKey(_CATEGORY.replace("{{", "{").replace("}}", "}")),
    },
    # The second to the fourth add up to the first. What is late is a part of what waits.
    group_sums={
        "claimed": GroupSum("case when state not in ('draft', 'cancelled') then amount end"),
        "paid": GroupSum("case when state in ('paid', 'partially_paid') then paid end"),
        "waiting": GroupSum("case when state = 'submitted' then amount end"),
        "short": GroupSum(
            "case when state = 'rejected' then amount when state in ('paid', 'partially_paid') then amount - paid end"
        ),
        "late": GroupSum("case when " + _IS_LATE + " then amount end", parameter="late_before"),
    },
)


class ListedClaim(Struct):
    """A claim with its invoice. `since` is when it began to wait for its result."""

    id: UUID
    invoice_id: UUID
    line_id: UUID
    batch_id: UUID | None
    batch_number: str | None
    reference: str
    service_item_number: str | None
    amount: Decimal
    paid: Decimal | None
    state: ClaimState
    reason: str | None
    result_date: date | None
    made_at: datetime
    since: datetime
    invoice_number: str | None
    participant_id: UUID | None
    provider_id: UUID | None


GET_MANY = f"""
    select claims.id, claims.invoice_id, claims.line_id, claims.batch_id, (
        select number from claim_batches where plan_manager_id = $1 and id = claims.batch_id
    ) as batch_number, claims.reference, {_ITEM} as service_item_number, claims.amount, claims.paid, claims.state,
        claims.reason, claims.result_date, claims.created_at as made_at, {SINCE} as since, invoice.invoice_number,
        invoice.participant_id, invoice.pm_provider_id as provider_id
    from claims
    left join lateral (
        select invoice_number, participant_id, pm_provider_id from invoices
        where plan_manager_id = $1 and id = claims.invoice_id
        offset 0
    ) invoice on true
    where claims.plan_manager_id = $1 and {HAS_ID}
    order by id
"""


async def get_many(db: Executor, plan_manager_id: UUID, claim_ids: Sequence[UUID]) -> list[ListedClaim]:
    """The claims with these ids, in order of id; unknown ids are ignored."""
    return await db.rows(ListedClaim, GET_MANY, plan_manager_id, claim_ids)
