"""The retention of imports: unfinished ones, rejected rows, records; and what erasures and exports find in them."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.imports import store
from plankeeper.imports.file_store import ImportRetention
from plankeeper.imports.schemas import Import, ImportRowFilter, ImportRowRecord
from plankeeper.privacy import person_export, service
from support.client import Client
from support.server import RunningServer

OUTCOMES = ("created", "rejected", "unconfirmed")


def insert_import(
    server: RunningServer,
    plan_manager_id: UUID,
    hours: float,
    *,
    record_id: str | None = None,
    is_imported: bool = True,
) -> UUID:
    """An import from some hours ago with a created and a rejected row."""
    created_at = datetime.now(UTC) - timedelta(hours=hours)
    record = Import(
        id=uuid7(), resource="participants", file_name="Kavanagh.csv", digest="d", existing="update",
        clears_empty=False, notify=False, state="uploaded", created_by=uuid7(), created_by_name="Robin Hale",
        created_at=created_at, imported_at=None, undone_at=None, undone_by_name=None, columns=["Name", "Surname"],
        mapping=["first_name", "last_name"],
    )  # fmt: skip
    rows = [
        ImportRowRecord(
            plan_manager_id=plan_manager_id, import_id=record.id, line_number=number, outcome=outcome,
            has_warnings=False, record_id=record_id if outcome == "created" else None, event_id=None,
            cells=["Róisín", "Kavanagh"] if outcome != "created" else None, before=None, after=None, problems=None,
        )
        for number, outcome in enumerate(OUTCOMES, start=2)
    ]  # fmt: skip

    async def run() -> None:
        async with server.db.transaction() as tx:
            await store.insert(tx, plan_manager_id, record)
            await store.insert_many(tx, rows)
            if is_imported:
                await store.update_imported(tx, plan_manager_id, record.id, created_at, notify=False)

    server.run(run())
    return record.id


def outcomes(server: RunningServer, plan_manager_id: UUID, import_id: UUID) -> list[str] | None:
    """The outcomes of the rows that are left; null for a deleted import."""

    async def run() -> list[str] | None:
        if await store.get(server.db, plan_manager_id, import_id) is None:
            return None
        return [
            each.outcome
            for each in await store.list_rows(server.db, plan_manager_id, import_id, 0, ImportRowFilter(), 10)
        ]

    return server.run(run())


@pytest.mark.parametrize(
    "days, expected",
    [(6.9, ["created", "rejected", "unconfirmed"]), (7.1, ["created"]), (364, ["created"]), (366, None)],
)
def test_rejected_rows_and_records_of_imports_expire(
    server: RunningServer, plan_manager_id: UUID, days: float, expected: list[str] | None
) -> None:
    settings = server.settings
    assert (settings.rejected_row_retention, settings.import_record_retention) == (7, 365)
    import_id = insert_import(server, plan_manager_id, days * 24)
    retention = ImportRetention(1, settings.rejected_row_retention, settings.import_record_retention)
    server.run(retention(server.db))
    assert outcomes(server, plan_manager_id, import_id) == expected
    record = server.run(store.get(server.db, plan_manager_id, import_id))
    assert (record and record.columns) == (None if days > 7 else ["Name", "Surname"])


@pytest.mark.parametrize("hours, is_left", [(0.9, True), (1.1, False)])
def test_unfinished_imports_expire_with_their_file(
    server: RunningServer, plan_manager_id: UUID, hours: float, *, is_left: bool
) -> None:
    import_id = insert_import(server, plan_manager_id, hours, is_imported=False)
    server.run(ImportRetention(1, None, None)(server.db))
    assert (outcomes(server, plan_manager_id, import_id) is not None) == is_left


def test_without_a_retention_they_are_kept(server: RunningServer, plan_manager_id: UUID) -> None:
    import_id = insert_import(server, plan_manager_id, 100_000)
    server.run(ImportRetention(1, None, None)(server.db))
    assert outcomes(server, plan_manager_id, import_id) == ["created", "rejected", "unconfirmed"]


def test_an_erasure_and_an_export_find_a_person_in_imports(server: RunningServer, api: Client) -> None:
    plan_manager_id = UUID(api.plan_manager_id)
    person = api.create("/participants", {"first_name": "Róisín", "last_name": "Kavanagh"})
    finished = insert_import(server, plan_manager_id, 0, record_id=person["id"])
    unfinished = insert_import(server, plan_manager_id, 0, record_id=person["id"], is_imported=False)
    exported = server.run(person_export.export_person(server.db, plan_manager_id, UUID(person["id"])))
    assert len(exported.import_rows) == 6
    assert "Robin Hale" in str(bytes(exported.import_rows[0]))

    async def erase() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            report = await service.erase(ctx, UUID(person["id"]), search_events=False)
            assert (report.counts["import_rows"], report.counts["import_texts"]) == (3, 1)

    server.run(erase())
    assert outcomes(server, plan_manager_id, finished) == ["created"]
    assert outcomes(server, plan_manager_id, unfinished) is None
    record = server.run(store.get(server.db, plan_manager_id, finished))
    assert record is not None
    assert record.file_name == "[erased]"
