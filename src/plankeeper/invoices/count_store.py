"""The totals of invoices by claim status and approval status: sums of what writes appended."""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from plankeeper.core.json import to_json
from plankeeper.database.appended_counts import compose_compaction
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.combined_writes import Write
from plankeeper.invoices.schemas import InvoiceRow

SUM = """
    select coalesce(sum(amount), 0)::bigint
    from invoice_counts
    where plan_manager_id = $1
        and ($2::text[] is null or claim_status = any ($2))
        and ($3::text[] is null or approval_status = any ($3))
"""


async def sum_counts(db: Executor, plan_manager_id: UUID, claim_status: object, approval_status: object) -> int:
    """The stored total of invoices with one of some claim and approval statuses; null stands for all."""
    return await db.one(int, SUM, plan_manager_id, claim_status, approval_status)


ADD = Write(
    """
    invoice_differences as (
        select claim_status, approval_status, amount from json_populate_recordset(null::invoice_counts, $2)
    )
    """,
    """
    insert into invoice_counts (plan_manager_id, claim_status, approval_status, amount)
    select $1, claim_status, approval_status, amount from invoice_differences
    """,
    parameters=2,
)


async def add(
    tx: Transaction, plan_manager_id: UUID, before: Sequence[InvoiceRow], after: Sequence[InvoiceRow]
) -> None:
    """Add the difference of written invoices to the totals; `before` are those that existed, which are locked."""
    differences = Counter((each.claim_status, each.approval_status) for each in after)
    differences.subtract((each.claim_status, each.approval_status) for each in before)
    rows: list[dict[str, Any]] = [
        {"claim_status": claim_status, "approval_status": approval_status, "amount": amount}
        for (claim_status, approval_status), amount in differences.items()
        if amount
    ]
    if rows:
        await tx.defer(ADD, plan_manager_id, to_json(rows))


COMPACT = compose_compaction("invoice_counts", "claim_status", "approval_status")


async def compact(db: Executor, max_groups: int = 100) -> int:
    """Sum up totals that consist of many rows, and return the number of rows removed."""
    return await db.one(int, COMPACT, max_groups)


CORRECT = """
    insert into invoice_counts (plan_manager_id, claim_status, approval_status, amount)
    select $1, claim_status, approval_status, sum(amount)
    from (
        select claim_status, approval_status, 1 as amount from invoices where plan_manager_id = $1
        union all
        select claim_status, approval_status, -amount from invoice_counts where plan_manager_id = $1
    ) counted
    group by claim_status, approval_status
    having sum(amount) <> 0
    returning amount
"""


async def correct(db: Executor, plan_manager_id: UUID) -> bool:
    """Count the invoices and correct the totals. Returns whether they were wrong.

    Rows and totals are read at the same moment, and a transaction commits both, so writers needn't wait.
    """
    return bool(await db.rows(int, CORRECT, plan_manager_id))
