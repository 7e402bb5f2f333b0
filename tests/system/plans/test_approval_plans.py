"""The plans of the searches for reminders and approval without an answer, among 20,000 requests."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from plankeeper.database.client import Database
from plankeeper.resources.invoices import approval_store
from plankeeper.resources.invoices.approval_schemas import DueRequest
from support.cluster import SharedCluster
from support.plans import ExplainingExecutor, plan_nodes

OFFICE = UUID("01900000-0000-7000-8000-000000000001")
LIMIT = 100

# Of each thousand invoices, those before the last hundred are on hold. A thousand requests have the same time.
FILL_SQL = f"""
insert into plan_managers (id, name) values ('{OFFICE}', 'Many');
insert into invoices (plan_manager_id, id, invoice_number, claim_status, approval_status, created_at, is_deleted,
    wont_claim, is_reimbursement, updated_at, errors, received_at, waiting_line_status)
select '{OFFICE}', ('01900000-0000-7000-8000-' || to_char(n, 'FM000000000000'))::uuid, 'INV-' || n,
    case when n % 1000 < 900 then 'on_hold' else 'new' end, 'pending', moment, false, false, false, moment, false,
    moment, 'new'
from generate_series(1, 20000) n cross join lateral (
    select timestamptz '2024-01-01' + n / 1000 * interval '1 hour' as moment
) received;
insert into approval_requests (plan_manager_id, invoice_id, requested_at, content_hash, asked_at)
select plan_manager_id, id, created_at, 'hash', created_at from invoices;
insert into approval_links (plan_manager_id, invoice_id, id, participant_id, content_hash, is_reminder, created_at,
    sent_at, token_hash, email_hash)
select plan_manager_id, id, id, id, 'hash', false, created_at, created_at, sha256(id::text::bytea),
    sha256(id::text::bytea)
from invoices;
"""


@pytest.fixture(scope="module", params=["cluster", "postgres_15_cluster"], ids=["embedded", "15"])
def database(request: pytest.FixtureRequest) -> str:
    cluster: SharedCluster = request.getfixturevalue(request.param)
    return cluster.prepared_database("approval_requests", FILL_SQL, "analyze")


@pytest.mark.parametrize("list_due", [approval_store.list_to_remind, approval_store.list_to_approve])
def test_due_requests_are_found_in_the_order_of_their_times(
    database: str, list_due: Callable[..., Awaitable[list[DueRequest]]]
) -> None:
    """It reads the requests from one time up to those that it finds, and the invoice and the links of each."""
    at = datetime(2024, 1, 1, 12, tzinfo=UTC)

    async def find() -> tuple[list[DueRequest], dict[str, Any]]:
        async with Database(database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            after = DueRequest(UUID(int=0), at)
            found = await list_due(executor, OFFICE, datetime(2025, 1, 1, tzinfo=UTC), after, LIMIT)
            return found, executor.plans[0]

    found, plan = asyncio.run(find())
    assert [each.asked_at for each in found] == [at] * LIMIT
    assert found == sorted(found, key=lambda each: each.invoice_id)
    nodes = [each for each in plan_nodes(plan) if "Relation Name" in each]
    assert all(each["Node Type"].startswith("Index") for each in nodes)
    [requests] = [each for each in nodes if each["Relation Name"] == "approval_requests"]
    assert requests["Index Name"] == "approval_requests_by_time"
    assert requests["Rows Removed by Filter"] <= 2000
    assert all(each["Actual Loops"] <= 2000 for each in nodes)
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] <= 15_000
