"""The export of one person has everything that any table has about the person."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

import pytest
from markupsafe import escape
from msgspec import Raw
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.errors import NotFound
from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.core.json import to_json
from plankeeper.events import order_store
from plankeeper.privacy import person_export, service
from plankeeper.privacy.person_export import PersonExport
from plankeeper.resources.trash import store as trash_store
from plankeeper.resources.trash.store import TrashEntry
from support.factories import SeededPlanManager, seed_plan_manager, unique_text
from support.importing import import_records
from support.server import RunningServer, wait_until
from support.stored_rows import all_rows, places_of

# Tables that refer to the person's records, and say nothing about the person that the others don't.
LEFT_OUT = {
    "event_order": "the order of events, which the export has in order",
    "event_queue": "events that wait for their place in the order",
    "recheck_queue": "invoices that wait for a check",
}
# Rows about others, too, of which the export has only the part about the person.
SHARED_ROWS = {"api_request_batches", "idempotency_records", "import_files"}
UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def export(world: SeededPlanManager, participant_id: str | None = None) -> PersonExport:
    work = person_export.export_person(
        world.server.db, world.plan_manager_id, UUID(participant_id or world.ids["participant_id"])
    )
    return world.server.run(work)


@pytest.fixture(scope="module")
def person(server: RunningServer) -> Iterator[SeededPlanManager]:
    """A plan manager with a person of whom there is something in every table. The tests leave it as it is."""
    seeded = seed_plan_manager(server, unique_text)
    add_history(seeded)
    yield seeded
    seeded.client.http.close()


def hold(world: SeededPlanManager) -> None:
    async def place() -> None:
        async with world.server.db.transaction() as tx:
            ctx = WriteContext(tx, world.plan_manager_id, world.server.settings, SYSTEM)
            await service.hold(ctx, UUID(world.ids["participant_id"]), "Case 12/345")

    world.server.run(place())


def add_history(world: SeededPlanManager) -> None:
    """Change the person and its team, hold its data, put an earlier state in the trash, and add another person."""
    api, participant = world.client, f"/participants/{world.ids['participant_id']}"
    api.put(participant, {"first_name": "Ottilie", "phone_number": "(02) 5550 1234"}).raise_for_status()
    api.post(f"{participant}/team-members", {"first_name": "Nils"}, headers={"Idempotency-Key": "nils"})
    left = api.create(f"{participant}/team-members", {"first_name": "Ferdinanda", "email": "ferdinanda@example.com"})
    api.delete(f"{participant}/team-members/{left['id']}").raise_for_status()
    api.create("/participants", {"first_name": "Somebody", "last_name": "Else"})
    hold(world)
    statement = """
        insert into invoice_ignored_warnings
            (plan_manager_id, invoice_id, error_code, reason, ignored_by, ignored_at)
        values ($1, $2, 'check_dates', 'agreed by phone', 'Robin Hale', now())
    """
    world.server.run(world.server.db.execute(statement, world.plan_manager_id, UUID(world.ids["invoice_id"])))
    # As after an import of a participant whose earlier state is in the trash.
    snapshot = {
        "record": {"id": world.ids["participant_id"], "first_name": "Ottoline"},
        "team": [{"user_id": left["user_id"], "first_name": "Ferdinanda"}],
        "names": {},
    }
    entry = TrashEntry(
        id=uuid7(),
        kind="participant",
        resource_id=UUID(world.ids["participant_id"]),
        name="Ottoline",
        deleted_at=datetime.now(UTC),
        deleted_by="Robin Hale",
        snapshot=Raw(to_json(snapshot)),
    )

    async def put_in_trash() -> None:
        async with world.server.db.transaction() as tx:
            await trash_store.insert(tx, world.plan_manager_id, entry)

    world.server.run(put_in_trash())


def test_no_row_about_the_person_is_left_out(person: SeededPlanManager) -> None:
    # The request log is written a moment after a request.
    wait_until(lambda: "api_request_batches" in places_of(person, person.ids["participant_id"]))
    stored = all_rows(person)  # before the export: records of earlier reads can be written at any time
    document = person_export.to_document(export(person)).lower()
    own_ids = {person.ids[name] for name in ("participant_id", "invoice_id", "team_member_id")}
    own_texts = [text for place, text in person.texts.items() if place.startswith(("participant.", "member."))]
    own_texts += ["Ottilie", "Ottoline", "Ferdinanda", "member@example.com", "Nils"]
    missing: dict[str, list[str]] = {}
    checked = set[str]()
    for table, rows in stored.items():
        for row in rows:
            if not any(each.lower() in row.lower() for each in (*own_ids, *own_texts)):
                continue
            checked.add(table)
            ids = set(UUID_TEXT.findall(row)) if table not in SHARED_ROWS else own_ids
            texts = [each for each in (*person.texts.values(), *own_texts) if each in row]
            absent = [each for each in (*ids, *texts) if each.lower() not in document and each in row]
            if absent and table not in LEFT_OUT:
                missing.setdefault(table, []).append(f"{absent} of {row}")
    assert missing == {}
    assert checked >= {
        "participants", "team_members", "invoices", "invoice_lines", "invoice_view_sessions", "events", "users",
        "invoice_ignored_warnings", "idempotency_records", "import_files", "import_rows", "legal_holds",
        "api_request_batches", "trash", "documents",
    }  # fmt: skip


def test_nothing_about_others_is_exported(person: SeededPlanManager) -> None:
    document = person_export.to_document(export(person))
    assert "Somebody" not in document
    assert person.texts["provider.entity_name"] not in document
    assert str(person.plan_manager_id) in document


def test_stored_responses_of_bulk_requests_are_exported_without_other_people(small_world: SeededPlanManager) -> None:
    api, person_id = small_world.client, small_world.ids["participant_id"]
    two = {"items": [{"id": person_id, "first_name": "Ottilie"}, {"first_name": "Ferdinanda", "last_name": "Other"}]}
    saved = api.post("/participants/bulk", two, headers={"Idempotency-Key": "people"}).json()["data"]
    lines = [{"participant_id": each["id"], "invoice_number": f"A-{each['first_name']}"} for each in saved]
    api.post("/invoices/bulk", {"items": lines}, headers={"Idempotency-Key": "invoices"}).raise_for_status()
    found = json.loads(person_export.to_document(export(small_world)))
    responses = {each["idempotency_key"]: each["body"]["data"] for each in found["stored_responses"]}
    assert responses["people"] == saved[:1]
    assert [each["invoice_number"] for each in responses["invoices"]] == ["A-Ottilie"]
    assert not [each for each in ("Ferdinanda", "Other", saved[1]["id"]) if each in json.dumps(found)]


def write_notes(world: SeededPlanManager, kind: str) -> list[str]:
    """A note on the invoice or the provider, edited and deleted: its texts."""
    texts = [f"{kind} rang first", f"{kind} rang again"]
    resource = {"kind": kind, "id": world.ids[f"{kind}_id"]}
    note = {"resource": resource, "note_type_id": int(world.ids["note_type_id"]), "text": texts[0]}
    id_ = world.client.create("/notes", note)["id"]
    world.client.put(f"/notes/{id_}", {"text": texts[1]}).raise_for_status()
    world.client.delete(f"/notes/{id_}").raise_for_status()
    return texts


def test_events_of_deleted_notes_on_the_persons_invoices_are_exported(small_world: SeededPlanManager) -> None:
    texts, of_others = write_notes(small_world, "invoice"), write_notes(small_world, "provider")
    found = json.loads(person_export.to_document(export(small_world)))
    events = [each for each in found["events"] if each["resource_kind"] == "note"]
    assert [each["type"] for each in events] == ["note.created", "note.updated", "note.deleted"]
    assert [text in json.dumps(events) for text in (*texts, *of_others)] == [True, True, False, False]


def test_a_legal_hold_keeps_the_events_of_notes_on_the_persons_invoices(small_world: SeededPlanManager) -> None:
    world = small_world
    texts, of_others = write_notes(world, "invoice"), write_notes(world, "provider")
    hold(world)
    count = "select count(*) from event_order where plan_manager_id = $1"
    wait_until(lambda: world.server.run(world.server.db.one(int, count, world.plan_manager_id)) >= world.event_count())

    async def purge() -> None:
        async with world.server.db.transaction() as tx:
            before_id = uuid7_lower_bound(datetime.now(UTC) + timedelta(days=1))
            await order_store.purge(tx, world.plan_manager_id, before_id, 1000)

    world.server.run(purge())
    kept = [text for text in (*texts, *of_others) if "events" in places_of(world, text)]
    assert kept == texts


def test_a_deleted_participant_is_exported_from_its_events(small_world: SeededPlanManager) -> None:
    add_history(small_world)
    small_world.client.delete(f"/participants/{small_world.ids['participant_id']}").raise_for_status()
    found = export(small_world)
    assert (found.participant, found.team_members) == (None, [])
    document = person_export.to_document(found)
    for text in ("Ottilie", "Ferdinanda", "member@example.com", small_world.texts["member.note"]):
        assert text in document


def test_the_page_has_every_text_of_the_document(person: SeededPlanManager) -> None:
    found = export(person)
    page = person_export.to_page(found)
    sizes = person_export.section_sizes(found)
    assert {name for name, size in sizes.items() if size} >= {"participant", "legal_hold", "team_members", "events"}
    for text in _texts(json.loads(person_export.to_document(found))):
        assert str(escape(text)) in page


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for each in cast("dict[str, Any]", value).values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in cast("list[Any]", value) for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def test_texts_of_the_person_are_escaped_in_the_page(small_world: SeededPlanManager) -> None:
    row = {"id": str(uuid7()), "first_name": "<script>alert(1)</script>"}
    report = small_world.server.run(
        import_records(small_world.server, small_world.plan_manager_id, "participants", [row])
    )
    assert not report.errors
    page = person_export.to_page(export(small_world, row["id"]))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_an_unknown_participant_has_no_export(small_world: SeededPlanManager) -> None:
    with pytest.raises(NotFound):
        export(small_world, str(uuid7()))
