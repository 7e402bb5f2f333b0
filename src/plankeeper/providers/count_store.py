"""The total of providers: the sum of what writes appended."""

from uuid import UUID

from plankeeper.database.appended_counts import compose_compaction
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.combined_writes import Write

SUM = "select coalesce(sum(amount), 0)::bigint from provider_counts where plan_manager_id = $1"


async def sum_counts(db: Executor, plan_manager_id: UUID) -> int:
    """The stored total of providers."""
    return await db.one(int, SUM, plan_manager_id)


ADD = Write(
    "provider_difference as (select $2::bigint as amount)",
    "insert into provider_counts (plan_manager_id, amount) select $1, amount from provider_difference",
    parameters=2,
)


async def add(tx: Transaction, plan_manager_id: UUID, difference: int) -> None:
    """Add a number of providers, negative for deleted ones, to the total."""
    if difference:
        await tx.defer(ADD, plan_manager_id, difference)


COMPACT = compose_compaction("provider_counts")


async def compact(db: Executor, max_groups: int = 100) -> int:
    """Sum up totals that consist of many rows, and return the number of rows removed."""
    return await db.one(int, COMPACT, max_groups)


CORRECT = """
    insert into provider_counts (plan_manager_id, amount)
    select $1, sum(amount)
    from (
        select count(*) as amount from providers where plan_manager_id = $1
        union all
        select -sum(amount) from provider_counts where plan_manager_id = $1
    ) counted
    having sum(amount) <> 0
    returning amount
"""


async def correct(db: Executor, plan_manager_id: UUID) -> bool:
    """Count the providers and correct the total. Returns whether it was wrong.

    Rows and total are read at the same moment, and a transaction commits both, so writers needn't wait.
    """
    return bool(await db.rows(int, CORRECT, plan_manager_id))
