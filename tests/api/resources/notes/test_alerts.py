"""Alerts as warnings of invoices, and notes in imports, exports, the trash and an erasure."""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.json import to_json
from plankeeper.privacy import person_export
from plankeeper.privacy import service as privacy
from plankeeper.resources.notes import store
from plankeeper.resources.trash import service as trash
from support.client import Client
from support.importing import import_records
from support.rechecks import recheck_at_once
from support.server import RunningServer


@pytest.fixture
def records(api: Client) -> dict[str, Any]:
    """The ids of a note type, a participant, a provider, and an invoice of both."""
    ids = {
        "note_type": api.create("/note-types", {"note_type": "Phone call"})["id"],
        "participant": api.create("/participants", {"first_name": "Ada", "participant_number": "430000001"})["id"],
        "provider": api.create("/providers", {"entity_name": "Quokka", "abn": "51824753556"})["id"],
    }
    whose = {"participant_id": ids["participant"], "pm_provider_id": ids["provider"]}
    return ids | {"invoice": api.create("/invoices", {"invoice_number": "1"} | whose)["id"]}


@pytest.fixture
def add(api: Client, records: dict[str, Any]) -> Callable[..., dict[str, Any]]:
    def create(kind: str, text: str, **more: Any) -> dict[str, Any]:
        resource = {"kind": kind, "id": records[kind]}
        return api.create("/notes", {"resource": resource, "note_type_id": records["note_type"], "text": text} | more)

    return create


def flags(api: Client, invoice_id: str) -> list[tuple[str, str, str]]:
    """The warnings about alerts: code, value and sentence."""
    [invoice] = api.get("/invoices", id=invoice_id, include="warnings").json()["data"]
    found = [each for each in invoice["warnings"] if each["code"].startswith("flagged")]
    return [(each["code"], each["level"], each["message"]) for each in found]


def test_an_alert_is_a_warning_of_the_open_invoices(
    server: RunningServer, api: Client, records: dict[str, Any], add: Callable[..., dict[str, Any]]
) -> None:
    invoice = records["invoice"]
    add("participant", "No alert")
    add("invoice", "Of the invoice itself", alert=True)
    note = add("participant", "Call the guardian first.", alert=True)
    recheck_at_once(server)
    warn = ("flagged_participant", "warn", "The participant has an alert: “Call the guardian first.”.")
    assert flags(api, invoice) == [warn]
    add("provider", "Their bank has changed", alert=True)
    recheck_at_once(server)
    assert len(flags(api, invoice)) == 2
    api.put(f"/notes/{note['id']}", {"alert": False}).raise_for_status()
    recheck_at_once(server)
    assert flags(api, invoice) == [("flagged_provider", "warn", "The provider has an alert: “Their bank has changed”.")]


def run_in(server: RunningServer, api: Client, work: Callable[[WriteContext], Any]) -> Any:
    async def run() -> Any:
        async with server.db.transaction() as tx:
            return await work(WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM))

    return server.run(run())


def export(server: RunningServer, api: Client) -> list[str]:
    async def read(ctx: WriteContext) -> list[str]:
        return [to_json(row) async for rows in store.export(ctx.tx, ctx.plan_manager_id) for row in rows]

    return run_in(server, api, read)


def test_an_export_is_imported_again_with_the_same_bytes(
    server: RunningServer, api: Client, add: Callable[..., dict[str, Any]]
) -> None:
    notes = [add("participant", "Line 1\nLine 2", alert=True), add("invoice", "Third", pinned=True)]
    exported = export(server, api)
    for each in notes:
        api.delete(f"/notes/{each['id']}").raise_for_status()
    rows = [json.loads(each) for each in exported]
    for counts in ((2, 0), (0, 2)):
        report = server.run(import_records(server, UUID(api.plan_manager_id), "notes", rows))
        assert not report.errors
        assert (report.counts.created, report.counts.unchanged) == counts
        assert export(server, api) == exported
    assert [each["author"] for each in api.get("/notes").json()["data"]] == [each["author"] for each in notes]


def test_an_import_finds_participants_by_number_and_types_by_name(
    server: RunningServer, api: Client, records: dict[str, Any]
) -> None:
    row = {"participant_number": "430000001", "note_type": "phone CALL", "text": "Moved", "author_name": "Alex Ng"}
    others = [
        row | {"participant_number": "430000002"},
        row | {"note_type": "Unknown"},
        {"text": "About nothing"},
    ]
    plan_manager = UUID(api.plan_manager_id)
    assert not server.run(import_records(server, plan_manager, "notes", [row])).errors
    [note] = api.get("/notes").json()["data"]
    assert note["resource"] == {"kind": "participant", "id": records["participant"]}
    assert (note["note_type"], note["author"]["name"]) == ("Phone call", "Alex Ng")
    for each, fields in zip(others, (["participant_number"], ["note_type"], None), strict=True):
        found = [error.field for error in server.run(import_records(server, plan_manager, "notes", [each])).errors]
        assert found == (fields or ["resource_kind", "resource_id", "note_type_id"])
    moved = {"id": note["id"], "resource_kind": "provider", "resource_id": records["provider"]}
    [error] = server.run(import_records(server, plan_manager, "notes", [moved])).errors
    assert (error.field, error.message) == ("resource_id", "can't be changed")


@pytest.mark.parametrize("kind", ["participant", "provider"])
def test_notes_come_back_from_the_trash(
    server: RunningServer, api: Client, records: dict[str, Any], add: Callable[..., dict[str, Any]], kind: Any
) -> None:
    note, other = add(kind, "Stays"), add("invoice", "Of the invoice")
    entry = run_in(server, api, lambda ctx: trash.delete(ctx, kind, UUID(records[kind])))
    assert api.get("/notes").json()["data"] == [other]
    run_in(server, api, lambda ctx: trash.restore(ctx, entry.id))
    restored = api.get(f"/notes/{note['id']}").json()
    assert restored == note | {"updated_at": restored["updated_at"]}


def test_an_erasure_deletes_the_notes_of_the_person_and_of_its_invoices(
    server: RunningServer, api: Client, records: dict[str, Any], add: Callable[..., dict[str, Any]]
) -> None:
    add("participant", "secret of the person")
    add("invoice", "secret of the invoice", alert=True)
    kept = add("provider", "About the provider")
    participant = UUID(records["participant"])
    exported = server.run(person_export.export_person(server.db, UUID(api.plan_manager_id), participant))
    assert sorted("secret of the person" in str(bytes(each)) for each in exported.notes) == [False, True]
    report = run_in(server, api, lambda ctx: privacy.erase(ctx, participant, search_events=True))
    assert report.counts["notes"] == 2
    assert api.get("/notes").json()["data"] == [kept]
    statement = "select count(*) from events where plan_manager_id = $1 and concat(data, previous) like '%secret%'"
    assert server.run(server.db.one(int, statement, UUID(api.plan_manager_id))) == 0
