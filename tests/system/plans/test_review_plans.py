"""The plans of the review queue among 100,000 invoices: the next one is found on the queue's index alone."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from plankeeper.database.client import Database
from plankeeper.resources.invoices import review_store
from plankeeper.resources.invoices.review_store import ReviewFilter
from support.plans import ExplainingExecutor, plan_nodes
from system.plans.crowded_database import OWNER

ME = UUID("017a5f00-0000-7000-8000-000000000011")
HELD = UUID("01900000-0000-7000-8000-000000099980")
PARTS = {
    "all": ReviewFilter(),
    "mine": ReviewFilter(assigned_to=ME),
    "unassigned": ReviewFilter(is_unassigned=True),
    "warning": ReviewFilter(warning="check_total"),
    "held": ReviewFilter(queue="held"),
    "approval": ReviewFilter(queue="approval"),
    "rejected": ReviewFilter(queue="rejected"),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("after", [None, HELD], ids=["first", "next"])
def test_the_next_invoice_is_found_on_the_index_of_the_queue(
    large_database: str, part: str, after: UUID | None
) -> None:
    async def find() -> tuple[list[UUID], dict[str, Any]]:
        async with Database(large_database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            found = await review_store.list_candidates(executor, OWNER, ME, PARTS[part], after, datetime.now(UTC))
            return found, executor.plans[0]

    found, plan = asyncio.run(find())
    assert bool(found) == (part in ("held", "rejected"))
    nodes = [each for each in plan_nodes(plan) if each.get("Relation Name") == "invoices"]
    assert {each["Index Name"] for each in nodes} == {"invoices_in_review", "invoices_pkey"}
    assert all(each.get("Rows Removed by Filter", 0) <= 100 for each in nodes)


@pytest.mark.parametrize("part", PARTS)
def test_the_previous_invoice_is_found_on_the_index_of_the_queue(large_database: str, part: str) -> None:
    async def find() -> dict[str, Any]:
        async with Database(large_database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            await review_store.list_preceding(executor, OWNER, PARTS[part], HELD, 1)
            return executor.plans[0]

    nodes = [each for each in plan_nodes(asyncio.run(find())) if each.get("Relation Name") == "invoices"]
    assert {each["Index Name"] for each in nodes} == {"invoices_in_review", "invoices_pkey"}
    assert all(each.get("Rows Removed by Filter", 0) <= 100 for each in nodes)
