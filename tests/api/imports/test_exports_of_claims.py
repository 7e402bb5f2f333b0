"""Exports of claims and payments, and imports of invoices that have some."""

import asyncio
import csv
import io
import json
from collections.abc import Iterator
from datetime import date
from typing import Any
from uuid import UUID

import pytest

from plankeeper.access.plan_managers import store
from plankeeper.cli.sample_data import plan_managers
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.imports.writer import JsonLinesWriter
from plankeeper.resources.exports import FINANCIAL_RECORDS
from plankeeper.resources.registry import RESOURCES
from plankeeper.resources.statements.service import make_statement
from support.cluster import SharedCluster
from support.import_samples import assert_imported
from support.importing import import_bytes
from support.program import run_plankeeper
from support.sample_data import load_catalogue, new_claimed_database
from support.server import RunningServer

ID = plan_managers()[1].id
STATES = {
    "claim-batches": {"processed", "submitted", "draft"},
    "claims": {"paid", "partially_paid", "rejected", "submitted", "draft"},
    "payment-runs": {"paid", "draft"},
    "payments": {"paid", "returned", "draft"},
}


async def make_a_statement(server: RunningServer) -> None:
    async with server.db.transaction() as tx:
        find = (
            "select participant_id from plans where plan_manager_id = $1 and $2 between start_date and end_date limit 1"
        )
        day = date(2026, 10, 1)
        participant_id = await tx.one(UUID, find, ID, day)
        ctx = WriteContext(tx, ID, server.settings, SYSTEM)
        await make_statement(ctx, participant_id, None, day, after_death=True)


@pytest.fixture(scope="module")
def server(cluster: SharedCluster) -> Iterator[RunningServer]:
    database = new_claimed_database(cluster)
    running = RunningServer(database.dsn, secret_key_file=database.key_file).start()
    running.run(make_a_statement(running))
    yield running
    running.stop()


@pytest.fixture
def empty_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    dsn = cluster.new_database()
    asyncio.run(load_catalogue(dsn))
    running = RunningServer(dsn).start()
    yield running
    running.stop()


def export(server: RunningServer, resource: str, format_: str = "jsonl") -> str:
    done = run_plankeeper(
        "export", resource, "--plan-manager", str(ID), "--format", format_, PLANKEEPER_DATABASE_URL=server.dsn
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("resource", FINANCIAL_RECORDS)
def test_both_formats_have_each_record_in_order_of_id(server: RunningServer, resource: str) -> None:
    rows: list[dict[str, Any]] = [json.loads(each) for each in export(server, resource).splitlines()]
    cells = list(csv.DictReader(io.StringIO(export(server, resource, "csv"))))
    assert rows
    assert [each["id"] for each in rows] == sorted(each["id"] for each in cells)
    assert {each["state"] for each in rows if "state" in each} == STATES.get(resource, set())
    assert set(rows[0]) <= set(cells[0])


def test_an_export_has_what_was_sent_and_no_account_number(server: RunningServer) -> None:
    claims = [json.loads(each) for each in export(server, "claims").splitlines()]
    assert all(len(each["fields"]["ndis_number"]) == 9 for each in claims)
    payments = [json.loads(each) for each in export(server, "payments").splitlines()]
    assert {len(each["account_ending"]) for each in payments} == {3}
    assert all(each["lines"] for each in payments)
    assert "10000101" not in export(server, "payments") + export(server, "payment-runs")


def test_an_export_is_recorded(server: RunningServer) -> None:
    export(server, "payments", "csv")
    statement = "select data ->> 'what' from events where type = 'export.created' and plan_manager_id = $1"
    assert "payments" in server.run(server.db.rows(str, statement, ID))


def test_invoices_with_claims_survive_a_round_trip(server: RunningServer, empty_server: RunningServer) -> None:
    """Their states, paid amounts and references do: what was claimed and paid isn't open again."""

    def export_jsonl(of: RunningServer, resource: str) -> bytes:
        async def work() -> bytes:
            async with of.db.transaction(snapshot=True) as tx:
                return b"".join([JsonLinesWriter().lines(each) async for each in RESOURCES[resource].export(tx, ID)])

        return of.run(work())

    async def create_plan_manager() -> None:
        async with empty_server.db.transaction() as tx:
            await store.insert(tx, ID, "Round trip")

    empty_server.run(create_plan_manager())
    for resource in ("exit-reasons", "account-managers", "participants", "plans", "providers", "invoices"):
        file = export_jsonl(server, resource)
        report = empty_server.run(import_bytes(empty_server, ID, resource, file))
        assert_imported(report, created=report.row_count)
    before, after = (lines_without_open_work(export_jsonl(of, "invoices")) for of in (server, empty_server))
    assert {line["claim_status"] for each in before for line in each["line_items"]} >= {"paid", "partially_ready"}
    assert before == after


def lines_without_open_work(file: bytes) -> list[dict[str, Any]]:
    """The invoices, without what batches and runs do with their lines: the other server has no batches and runs."""
    invoices = [json.loads(each) for each in file.splitlines()]
    for line in (line for each in invoices for line in each["line_items"]):
        for name in ("open_claim_batch", "open_payment_run", "has_payment"):
            del line[name]
    return invoices
