"""The statements of an import: a few for each batch, however many rows it has."""

import asyncio
from uuid import UUID

import pytest

from plankeeper.database.client import Database
from plankeeper.import_export.importer import BATCH_SIZE
from support.client import Client
from support.import_samples import Row, new_id
from support.importing import import_records
from support.server import RunningServer

LOCK, INSERT, READ, UPDATE = "select", "with", "select", "with"
EVENTS = ("copy", "copy")  # and their queue
NEW_BATCH = ("savepoint", LOCK, INSERT, READ, *EVENTS, "release")
CHANGED_BATCH = ("savepoint", LOCK, READ, UPDATE, READ, *EVENTS, "release")
UNCHANGED_BATCH = ("savepoint", LOCK, "release")
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
    assert observed == ["begin", "savepoint", LOCK, INSERT, READ, "with", "release", "commit"]
    observed.clear()
    import_participants(server, api, rows[1:])
    assert observed == ["begin", *NEW_BATCH, ANALYZE, *NEW_BATCH, *NEW_BATCH, "commit"]
    observed.clear()
    import_participants(server, api, [row | {"city": "Bondi"} for row in rows[:20]])
    assert observed == ["begin", *CHANGED_BATCH, "commit"]
    observed.clear()
    import_participants(server, api, rows[20:BATCH_SIZE])
    assert observed == ["begin", *UNCHANGED_BATCH, "commit"]
