"""The plans of the checks for duplicates while the tables have no statistics, as in the first minutes of an office.

PostgreSQL then expects that a plan manager has one row in each table, so every order of the joins costs the same.
"""

import asyncio
import json
from typing import Any

import pytest

from plankeeper.database.client import Database
from plankeeper.resources.invoices import check_store
from support.cluster import SharedCluster
from support.plans import plan_nodes

INVOICES = 150  # with more than about 250 rows, PostgreSQL expects several of a plan manager
# The two lines of one invoice have 600 twins. Joined the other way round, the lines of all invoices have 90,000.
MAX_ROWS_PER_INVOICE = 25
OFFICE = "01900000-0000-7000-8000-000000000001"
LAST_INVOICE = f"01900000-0000-7000-8000-{INVOICES:012}"

# Every line has a twin in every other invoice, as when a client sends an invoice again and again.
FILL_SQL = f"""
insert into plan_managers (id, name) values ('{OFFICE}', 'First');
insert into participants (plan_manager_id, id, status, approval_required, created_at, updated_at, is_pace_plan,
    postal_statement, participant_receives_statements)
values ('{OFFICE}', '{OFFICE}', 'Active', false, '2024-01-01', '2024-01-01', false, false, false);
insert into providers (plan_manager_id, id, entity_name, abn, active, created_at, updated_at)
values ('{OFFICE}', '{OFFICE}', 'Care', '51824753556', true, '2024-01-01', '2024-01-01');
insert into invoices (plan_manager_id, id, invoice_number, participant_id, claim_status, approval_status, created_at,
    pm_provider_id, is_deleted, wont_claim, is_reimbursement, updated_at, errors, received_at)
select '{OFFICE}', ('01900000-0000-7000-8000-' || to_char(n, 'FM000000000000'))::uuid, 'INV-' || n, '{OFFICE}', 'paid',
    'not_required', moment, '{OFFICE}', false, false, false, moment, false, moment
from generate_series(1, {INVOICES}) n cross join lateral (
    select timestamptz '2024-01-01' + n * interval '1 minute' as moment
) received;
insert into invoice_lines (plan_manager_id, invoice_id, id, position, gst_code, claim_status, is_deleted, created_at,
    service_item_number, service_date_from, service_date_to, quantity)
select plan_manager_id, invoices.id, ('01900000-0000-7000-8000-' || to_char(n, 'FM000000000000'))::uuid, n, 'P2',
    'paid', false, created_at, '15_056_0128_1_3', '2024-01-01', '2024-01-01', 1
from invoices cross join generate_series(1, 2) n;
"""


@pytest.fixture(scope="module", params=["cluster", "postgres_15_cluster"], ids=["embedded", "15"])
def database(request: pytest.FixtureRequest) -> str:
    cluster: SharedCluster = request.getfixturevalue(request.param)
    return cluster.prepared_database("without_statistics", FILL_SQL)


STATEMENTS = {
    "LIST_SIMILAR": (check_store.LIST_SIMILAR, f"'{{{LAST_INVOICE}}}'"),
    "GET_MANY": (check_store.GET_MANY, f"'{{{LAST_INVOICE}}}'"),
    "LIST_RELATED": (check_store.LIST_RELATED, f"'{{{LAST_INVOICE}}}'"),
    "SAME_LINE_IDS": (check_store.SAME_LINE_IDS, f"'{LAST_INVOICE}', 10"),
    "EARLIER_DUPLICATE_IDS": (check_store.EARLIER_DUPLICATE_IDS, f"'{LAST_INVOICE}', 10"),
}


@pytest.mark.parametrize("plan_cache_mode", ["force_generic_plan", "force_custom_plan"])  # on Citus, it is the second
@pytest.mark.parametrize("name", STATEMENTS)
def test_the_invoices_like_one_are_found_from_it(database: str, name: str, plan_cache_mode: str) -> None:
    statement, values = STATEMENTS[name]

    async def explain() -> dict[str, Any]:
        async with Database(database).open() as db, db.transaction() as tx:
            await tx.execute("select set_config('plan_cache_mode', $1, true)", plan_cache_mode)
            connection: Any = tx._connection  # noqa: SLF001 - the pool's connection, with its settings
            await connection.execute(f"prepare explained as {statement}")
            plan = await connection.fetchval(f"explain (format json, analyze) execute explained('{OFFICE}', {values})")
            return json.loads(plan)[0]["Plan"]

    plan = asyncio.run(explain())
    assert sum(map(count_rows, plan_nodes(plan))) <= MAX_ROWS_PER_INVOICE * INVOICES, plan


def count_rows(node: dict[str, Any]) -> float:
    """The rows that a node of a plan reads, including those that it discards."""
    rows = sum(node.get(name, 0) for name in ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Join Filter"))
    return node["Actual Loops"] * rows
