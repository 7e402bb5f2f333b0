"""The cost of an import: a few statements for each batch, and one version of each new row."""

import asyncio
import io
from typing import LiteralString
from uuid import UUID

import pytest
from msgspec import Struct

from plankeeper.core.context import WriteContext
from plankeeper.database.client import Database
from plankeeper.imports.importer import BATCH_SIZE, import_file
from plankeeper.resources.registry import CONSTRAINT_ERRORS, RESOURCES
from support.client import Client
from support.import_samples import Row, new_id, to_json_lines
from support.importing import import_records
from support.server import RunningServer

# The first lock keeps participants from being erased while they are imported.
LOCK, INSERT, READ, UPDATE = ("select", "select"), "with", "select", "with"
CHECK = "select"  # that no id belongs to an erased person
EVENTS = ("copy", "copy")  # and their queue
NEW_BATCH = ("savepoint", *LOCK, CHECK, INSERT, READ, *EVENTS, "release")
CHANGED_BATCH = ("savepoint", *LOCK, READ, UPDATE, READ, *EVENTS, "release")
UNCHANGED_BATCH = ("savepoint", *LOCK, "release")
ANALYZE = "select"


@pytest.fixture
def observed(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements of imports, by their first word."""
    statements: list[str] = []

    def observe(statement: str, _seconds: float, _error: BaseException | None) -> None:
        statements.append(statement.split(maxsplit=1)[0].lower().rstrip(";"))

    monkeypatch.setattr(server, "db", Database(server.dsn, pool_size=1, on_statement=observe))
    return statements


def import_participants(server: RunningServer, client: Client, rows: list[Row]) -> None:
    async def run() -> None:
        async with server.db.open():
            report = await import_records(server, UUID(client.plan_manager_id), "participants", rows)
            assert (report.row_count, report.errors) == (len(rows), [])

    asyncio.run(run())


def test_the_statements_of_an_import_depend_on_its_batches_and_not_on_its_rows(
    server: RunningServer, api: Client, observed: list[str]
) -> None:
    rows: list[Row] = [{"id": new_id(), "city": f"Town {number}"} for number in range(2 * BATCH_SIZE + 20)]
    import_participants(server, api, rows[:1])
    assert observed == ["begin", "savepoint", *LOCK, CHECK, INSERT, READ, "with", "release", "commit"]
    observed.clear()
    import_participants(server, api, rows[1:])
    assert observed == ["begin", *NEW_BATCH, ANALYZE, *NEW_BATCH, *NEW_BATCH, "commit"]
    observed.clear()
    import_participants(server, api, [row | {"city": "Bondi"} for row in rows[:20]])
    assert observed == ["begin", *CHANGED_BATCH, "commit"]
    observed.clear()
    import_participants(server, api, rows[20:BATCH_SIZE])
    assert observed == ["begin", *UNCHANGED_BATCH, "commit"]


class WrittenRows(Struct):
    """The rows of a table that a connection has inserted and updated; those that it has deleted count as updated."""

    inserted: int
    updated: int


async def import_invoices(server: RunningServer, client: Client, rows: list[Row]) -> tuple[int, int]:
    """The number of invoices that an import has inserted and updated."""
    # Rows of earlier transactions can be among the counted ones for a second.
    statement: LiteralString = """
        select n_tup_ins as inserted, n_tup_upd + n_tup_del as updated
        from pg_stat_xact_user_tables where relname = 'invoices'
    """
    async with server.db.transaction() as tx:
        before = await tx.one(WrittenRows, statement)
        ctx = WriteContext(tx, UUID(client.plan_manager_id), server.settings)
        file = io.BytesIO(to_json_lines(rows))
        report = await import_file(ctx, RESOURCES["invoices"], file, CONSTRAINT_ERRORS, lambda _lines: None)
        assert (report.row_count, report.errors) == (len(rows), [])
        after = await tx.one(WrittenRows, statement)
    return after.inserted - before.inserted, after.updated - before.updated


def test_a_new_invoice_is_written_once(server: RunningServer, api: Client) -> None:
    provider = api.create("/providers", {"entity_name": "Physio"})["id"]
    first: list[Row] = [
        {"id": new_id(), "invoice_number": str(number), "pm_provider_id": provider, "line_items": [{}]}
        for number in range(20)
    ]
    # All have warnings, and each number is there twice.
    duplicates = [row | {"id": new_id(), "created_at": "2036-01-01T00:00:00Z"} for row in first]
    assert server.run(import_invoices(server, api, first + duplicates)) == (40, 0)
    listed = api.get("/invoices", limit=100).json()["data"]
    assert {each["id"] for each in listed if each["is_duplicate"]} == {each["id"] for each in duplicates}
    assert all(each["errors"] for each in listed)

    # An earlier invoice changes the results of the one that was the first.
    earlier = first[0] | {"id": new_id(), "created_at": "2016-01-01T00:00:00Z"}
    assert server.run(import_invoices(server, api, [earlier])) == (1, 1)
