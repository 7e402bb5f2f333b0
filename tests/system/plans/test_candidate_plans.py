"""The plans of the statements that look for the lines of a claim batch, among 100,000 invoices."""

import asyncio
from typing import Any
from uuid import UUID

from plankeeper.database.client import Database
from plankeeper.resources.claims import candidate_store
from plankeeper.resources.claims.eligibility import CandidateState
from support.plans import ExplainingExecutor, plan_nodes
from system.plans.crowded_database import OWNER

INVOICE = UUID("01900000-0000-7000-8000-000000099980")
TABLES = ("invoices", "invoice_lines")


def find(database: str, invoice_ids: list[UUID] | None) -> tuple[list[CandidateState], dict[str, Any]]:
    async def run() -> tuple[list[CandidateState], dict[str, Any]]:
        async with Database(database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            if invoice_ids is None:
                found = await candidate_store.list_open(executor, OWNER, ["negative_line"], 50_000)
            else:
                found = await candidate_store.list_of_invoices(executor, OWNER, [], 50_000, invoice_ids)
            return found, executor.plans[0]

    return asyncio.run(run())


def test_open_lines_are_found_by_their_states(large_database: str) -> None:
    """It reads the index of the lines' states and the invoices of the lines, and nothing else: here are none."""
    found, plan = find(large_database, None)
    assert found == []
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] <= 30
    nodes = [each for each in plan_nodes(plan) if each.get("Relation Name") in TABLES]
    assert {each["Index Name"] for each in nodes} == {"invoice_lines_by_claim_status", "invoices_pkey"}
    assert all(each.get("Rows Removed by Filter", 0) == 0 for each in nodes)
    assert not [each for each in plan_nodes(plan) if each["Node Type"] == "Seq Scan"]


def test_the_lines_of_invoices_are_found_by_their_ids(large_database: str) -> None:
    found, plan = find(large_database, [INVOICE])
    assert len(found) == 1
    nodes = [each for each in plan_nodes(plan) if each.get("Relation Name") in TABLES]
    assert {each["Index Name"] for each in nodes} == {"invoice_lines_pkey", "invoices_pkey"}
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] <= 30
