"""Erasure: the texts about a person are found nowhere afterwards, everything else is as it was."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.access_log.store import record_export
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.errors import NotFound
from plankeeper.privacy import service
from plankeeper.privacy.schemas import ErasureReport
from plankeeper.privacy.service import LegalHoldError
from plankeeper.resources.documents import service as documents
from support.client import Client
from support.factories import (
    SeededPlanManager,
    import_invoice,
    seed_plan_manager,
    unique_text,
    upload_document,
    webhooks,
)
from support.importing import import_records
from support.rechecks import recheck_at_once
from support.server import RunningServer, wait_until
from support.stored_rows import places_of, stable_rows
from support.supplier_statements import record_statement

PERSON = ("participant.", "member.")  # where the texts of the person and of its team member are


def erase(world: SeededPlanManager, participant_id: str | None = None, *, preview: bool = False) -> ErasureReport:
    work = service.preview_erasure if preview else service.erase

    async def run() -> ErasureReport:
        async with world.server.db.transaction() as tx:
            ctx = WriteContext(tx, world.plan_manager_id, world.server.settings, SYSTEM)
            return await work(ctx, UUID(participant_id or world.ids["participant_id"]), search_events=True)

    return world.server.run(run())


def person_texts(world: SeededPlanManager) -> list[str]:
    return [text for place, text in world.texts.items() if place.startswith(PERSON)]


def feed(client: Client) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    page: dict[str, Any] = {"pagination": {"next_cursor": "0", "has_more": True}}
    while page["pagination"]["has_more"]:
        page = client.get("/events", limit=100, after=page["pagination"]["next_cursor"]).json()
        events += page["data"]
    return events


def write_more(world: SeededPlanManager) -> list[str]:
    """Changes a person's records, and returns all their texts: those of now and the earlier ones."""
    api, participant = world.client, f"/participants/{world.ids['participant_id']}"
    member = f"{participant}/team-members/{world.ids['team_member_id']}"
    changes = {"first_name": "Ottilie", "last_name": "Ümläut-O’Neil", "phone_number": "(02) 5550 1234"}
    api.put(participant, changes).raise_for_status()
    api.put(member, {"first_name": "Wilhelmina", "note": "calls on Mondays"}).raise_for_status()
    api.put(member, {"first_name": "Minandrina", "note": None}).raise_for_status()
    left = {"first_name": "Ferdinanda", "email": "ferdinanda@example.com"}
    made = api.post(f"{participant}/team-members", left, headers={"Idempotency-Key": "first"}).json()
    api.delete(f"{participant}/team-members/{made['id']}").raise_for_status()
    api.post(f"{participant}/team-members", {"first_name": "Nilsander"}, headers={"Idempotency-Key": "nils"})
    more = ["Wilhelmina", "calls on Mondays", "Minandrina", "Nilsander", "member@example.com"]
    return [*person_texts(world), *changes.values(), *left.values(), *more]


class Erasure(NamedTuple):
    """An erasure of a person of whom there is something in every table, and of whom another plan manager has a copy."""

    world: SeededPlanManager
    texts: list[str]  # about the person
    places: set[str]  # the tables that had them
    preview: ErasureReport
    report: ErasureReport
    unchanged: dict[str, tuple[Any, Any]]  # rows before and after the preview, and those of the copy


@pytest.fixture(scope="module")
def erasure(server: RunningServer) -> Iterator[Erasure]:
    """The tests of it leave it as it is."""
    world = seed_plan_manager(server, unique_text)
    texts = write_more(world)
    copy = seed_plan_manager(server, lambda name: world.texts.get(name, name))
    before, copied, places = stable_rows(world), stable_rows(copy), places_of(world, *texts)
    preview = erase(world, preview=True)
    after = stable_rows(world)
    report = erase(world)
    unchanged = {"preview": (before, after), "copy": (copied, stable_rows(copy))}
    assert places_of(copy, *person_texts(world)) >= {"participants", "team_members", "events"}
    with pytest.raises(NotFound):
        erase(world, copy.ids["participant_id"])
    yield Erasure(world, texts, places, preview, report, unchanged)
    for each in (world, copy):
        each.client.http.close()


def test_no_text_about_the_person_is_left_in_any_table_and_nothing_to_erase(erasure: Erasure) -> None:
    world, report = erasure.world, erasure.report
    assert erasure.places >= {"participants", "team_members", "users", "events", "idempotency_records"}
    assert places_of(world, *erasure.texts) == set()
    assert report.counts.items() >= {"participants": 1, "team_members": 2, "users": 3, "responses": 2}.items()
    assert report.counts["events"] > 7
    assert world.client.get(f"/participants/{world.ids['participant_id']}").status_code == 404
    recheck_at_once(world.server)  # what the erasure has queued, before the server does
    count = len(world.event_ids())
    assert erase(world).is_empty
    assert len(world.event_ids()) == count


def test_a_preview_changes_nothing_and_reports_the_same(erasure: Erasure) -> None:
    before, after = erasure.unchanged["preview"]
    assert before == after
    assert erasure.report == erasure.preview
    assert not erasure.preview.is_empty


def test_another_plan_managers_copy_is_untouched(erasure: Erasure) -> None:
    before, after = erasure.unchanged["copy"]
    assert before == after


def test_responses_of_webhook_receivers_about_the_person_are_deleted(small_world: SeededPlanManager) -> None:
    """Those of the person's events, and those that repeat a text; others stay."""
    world, server = small_world, small_world.server
    detail = '[{"attempt": 1, "request_headers": {}, "response_body": "%s"}]'
    insert = """
        insert into webhook_deliveries (plan_manager_id, id, webhook_endpoint_id, event_id, event_type, status,
            created_at, attempt_details)
        values ($1, $2, $3, $4, 'participant.updated', 'succeeded', statement_timestamp(), $5::text::jsonb)
    """
    event = "select id from events where plan_manager_id = $1 and resource_id = $2 limit 1"
    [about] = server.run(server.db.rows(UUID, event, world.plan_manager_id, world.ids["participant_id"]))
    other, endpoint = uuid7(), UUID(webhooks(world.client)["webhook_endpoint_id"])
    responses = {
        uuid7(): (about, "ok"),
        uuid7(): (other, world.texts["participant.first_name"]),
        uuid7(): (other, "ok"),
    }
    for delivery_id, (event_id, body) in responses.items():
        values = (world.plan_manager_id, delivery_id, endpoint, event_id, detail % body)
        server.run(server.db.execute(insert, *values))
    assert erase(world).counts["attempt_details"] == 2
    kept = "select id from webhook_deliveries where plan_manager_id = $1 and attempt_details <> '[]'"
    assert server.run(server.db.rows(UUID, kept, world.plan_manager_id)) == [list(responses)[-1]]


def test_the_feed_keeps_its_events_and_their_order(small_world: SeededPlanManager) -> None:
    write_more(small_world)
    wait_until(lambda: len(feed(small_world.client)) == len(small_world.event_ids()))
    before = feed(small_world.client)
    erase(small_world)
    wait_until(lambda: len(feed(small_world.client)) == len(small_world.event_ids()))
    after = feed(small_world.client)
    shape = ("id", "type", "created_at", "actor", "resource", "request_id")
    assert [[each[name] for name in shape] for each in after[: len(before)]] == [
        [each[name] for name in shape] for each in before
    ]
    # The server checks the invoices again, at a time of its own.
    assert [each["type"] for each in after[len(before) :] if each["type"] != "invoice.updated"] == [
        "team_member.deleted",
        "team_member.deleted",
        "plan.deleted",
        "participant.deleted",
        "participant.erased",
    ]


def test_a_participant_that_was_deleted_earlier_is_erased(world: SeededPlanManager) -> None:
    world.client.delete(f"/participants/{world.ids['participant_id']}").raise_for_status()
    texts = [*person_texts(world), "member@example.com"]
    # A deletion leaves the statements as they were made.
    assert places_of(world, *texts) == {"events", "import_rows", "statements", "users"}
    report = erase(world)
    assert (report.counts["participants"], report.counts["team_members"], report.counts["users"]) == (0, 0, 1)
    assert places_of(world, *texts) == set()


def test_a_member_of_another_team_and_an_account_manager_stay(small_world: SeededPlanManager) -> None:
    api = small_world.client
    other = api.create("/participants", {"first_name": "Other"})["id"]
    api.create(f"/participants/{other}/team-members", {"email": "member@example.com", "first_name": "Mina"})
    manager = {"email": "manager@example.com", "first_name": "Works for both"}
    api.create(f"/participants/{small_world.ids['participant_id']}/team-members", manager)
    erase(small_world)
    assert places_of(small_world, "member@example.com") == {"users", "events"}
    [member] = api.get(f"/participants/{other}/team-members").json()["data"]
    assert (member["email"], member["first_name"]) == ("member@example.com", "Mina")
    assert places_of(small_world, "manager@example.com") >= {"users"}
    assert places_of(small_world, "Works for both") == set()


def test_texts_of_the_persons_invoices_are_de_identified_and_mentions_elsewhere_listed(
    small_world: SeededPlanManager,
) -> None:
    server, api, texts = small_world.server, small_world.client, small_world.texts
    first, last, number = (texts[f"participant.{name}"] for name in ("first_name", "last_name", "participant_number"))
    other = api.create("/participants", {"reason_for_leaving": f"moved in with {last.upper()}"})["id"]
    member = api.create(f"/participants/{other}/team-members", {"first_name": "A", "note": f"aunt of {first}."})["id"]
    api.put(f"/participants/{other}/team-members/{member}", {"note": "an aunt"})
    lines = [{"description": f"Physiotherapy for {first}"}, {"description": "Transport"}]
    invoice = {
        "id": str(uuid7()),
        "participant_id": small_world.ids["participant_id"],
        "invoice_number": "A-1",
        "s3_key": f"scans/{number}.pdf",
        "line_items": lines,
    }
    foreign = invoice | {"id": str(uuid7()), "participant_id": other, "s3_key": None, "line_items": lines[:1]}
    report = server.run(import_records(server, small_world.plan_manager_id, "invoices", [invoice, foreign]))
    assert not report.errors
    line = api.get(f"/invoices/{invoice['id']}").json()["line_items"][1]["id"]
    reason = {"reason": f"{first} has paid it"}
    assert api.post(f"/invoices/{invoice['id']}/lines/{line}/cancel", reason).status_code == 200
    assert api.post(f"/invoices/{invoice['id']}/wont-claim", reason).status_code == 200
    erased = erase(small_world)
    assert erased.counts["invoice_texts"] == 3
    stored = api.get(f"/invoices/{invoice['id']}").json()
    assert [each["description"] for each in stored["line_items"]] == ["[erased]", "Transport"]
    assert (stored["s3_key"], stored["invoice_number"]) == ("[erased]", "A-1")
    assert [each["closing_reason"] for each in (stored, stored["line_items"][1])] == ["[erased]", "[erased]"]
    assert [(each.table, each.record_id, each.column, each.text) for each in erased.mentions] == [
        ("participants", other, "reason_for_leaving", f"moved in with {last.upper()}"),
        ("invoice_lines", foreign["id"], "description", f"Physiotherapy for {first}"),
        *[("events", each.record_id, each.column, each.text) for each in erased.mentions[2:]],
    ]
    assert {(each.column, each.text) for each in erased.mentions[2:]} == {
        ("reason_for_leaving", f"moved in with {last.upper()}"),
        ("note", f"aunt of {first}."),
    }
    assert places_of(small_world, first, last, number) == {"events", "invoice_lines", "participants"}


DELETE_EVENTS = "delete from events where plan_manager_id = $1 and resource_id = $2"


def test_a_former_name_is_known_from_the_event_that_changed_it(small_world: SeededPlanManager) -> None:
    """The retention has deleted the events that had it."""
    api, participant_id = small_world.client, small_world.ids["participant_id"]
    former = small_world.texts["participant.first_name"]
    small_world.server.execute_as_owner(DELETE_EVENTS, small_world.plan_manager_id, participant_id)
    api.put(f"/participants/{participant_id}", {"first_name": "Ottilie"}).raise_for_status()
    lines = [{"description": f"Physiotherapy for {former}"}]
    invoice = {"id": str(uuid7()), "participant_id": participant_id, "invoice_number": "A-1", "line_items": lines}
    assert not small_world.server.run(
        import_records(small_world.server, small_world.plan_manager_id, "invoices", [invoice])
    ).errors
    erase(small_world)
    assert [each["description"] for each in api.get(f"/invoices/{invoice['id']}").json()["line_items"]] == ["[erased]"]
    assert places_of(small_world, former) == set()


def test_a_former_name_of_a_member_who_stays_is_no_text_about_the_person(small_world: SeededPlanManager) -> None:
    """Whose name it was is known by the id of the user, which an event's earlier values don't repeat."""
    api, member = small_world.client, {"email": "wilhelmina@example.com", "first_name": "Wilhelmina"}
    team = f"/participants/{small_world.ids['participant_id']}/team-members"
    other = api.create("/participants", {"first_name": "Other"})["id"]
    made = api.create(team, member)
    api.create(f"/participants/{other}/team-members", member)
    api.put(f"{team}/{made['id']}", {"first_name": "Mina"}).raise_for_status()
    lines = [{"description": "Physiotherapy by Wilhelmina"}]
    invoice = {"id": str(uuid7()), "participant_id": small_world.ids["participant_id"], "line_items": lines}
    assert not small_world.server.run(
        import_records(small_world.server, small_world.plan_manager_id, "invoices", [invoice])
    ).errors
    erase(small_world)
    [line] = api.get(f"/invoices/{invoice['id']}").json()["line_items"]
    assert line["description"] == "Physiotherapy by Wilhelmina"


INSERT_QUERY = """
    insert into access_records (plan_manager_id, id, accessed_at, actor_kind, action, resource_kind, query)
    values ($1, $2, now(), 'user', 'listed', 'participant', $3)
"""


def test_queries_without_a_text_about_the_person_stay(small_world: SeededPlanManager) -> None:
    """Names that are parameters or their values don't make a query one about the person."""
    participant = f"/participants/{small_world.ids['participant_id']}"
    small_world.client.put(participant, {"first_name": "Page", "preferred_name": "Active", "last_name": "List"})
    kept = [
        "page=2",
        "list=participants&status=Active",
        "q=Ada&active=yes",
        "status=Active,Lead&plan_end_from=2026-01-01",
        "q=Pages",
        "sort=active&q=Ada & Bo",
    ]
    erased = [
        "q=page",
        "status=Active&q=Ann Page",
        "q=Smith & Page&list=participants",
        "participant=Page, Ann&claim_status=new",
        "email=page@example.com",
        "list=q=Page&status=Active",
        "status=Active Page",
        "unknown=Active",
    ]

    async def write() -> None:
        async with small_world.server.db.transaction() as tx:
            for query in [*kept, *erased]:
                await tx.execute(INSERT_QUERY, small_world.plan_manager_id, uuid7(), query)

    async def read() -> list[str]:
        sql = "select query from access_records where plan_manager_id = $1 and query = any ($2::text[])"
        return await small_world.server.db.rows(str, sql, small_world.plan_manager_id, [*kept, *erased])

    small_world.server.run(write())
    erase(small_world)
    assert sorted(small_world.server.run(read())) == sorted(kept)


def test_filters_of_exports_with_a_text_about_the_person_are_erased(small_world: SeededPlanManager) -> None:
    world, participant_id = small_world, small_world.ids["participant_id"]
    world.client.put(f"/participants/{participant_id}", {"first_name": "Active", "last_name": "Ümläut-O’Neil"})
    kept = ["q=Ada", "status=Active&view=1", "q=Activex", None]
    erased = ["q=%C3%9Cml%C3%A4ut-O%E2%80%99Neil", "status=Active&q=Ann+active", "participant=Active%20Ann"]

    async def write() -> None:
        async with world.server.db.transaction() as tx:
            ctx = WriteContext(tx, world.plan_manager_id, world.server.settings, SYSTEM)
            for number, each in enumerate([*kept, *erased]):
                await record_export(ctx, "participants", each, number)

    world.server.run(write())
    erase(world)
    wait_until(lambda: len(feed(world.client)) == len(world.event_ids()))
    exports = [each["data"] for each in feed(world.client) if each["type"] == "export.created"]
    filters = [*kept, *[None] * len(erased)]
    assert [(each["what"], each["rows"], each["filter"]) for each in exports] == [
        ("participants", number, each) for number, each in enumerate(filters)
    ]


def test_a_legal_hold_prevents_an_erasure(small_world: SeededPlanManager) -> None:
    participant_id = UUID(small_world.ids["participant_id"])

    async def change(work: Any, *more: Any) -> Any:
        async with small_world.server.db.transaction() as tx:
            return await work(
                WriteContext(tx, small_world.plan_manager_id, small_world.server.settings, SYSTEM),
                participant_id,
                *more,
            )

    small_world.server.run(change(service.hold, "Case 12/345"))
    before = stable_rows(small_world)
    for preview in (True, False):
        with pytest.raises(LegalHoldError, match="Case 12/345"):
            erase(small_world, preview=preview)
    with pytest.raises(LegalHoldError):
        small_world.server.run(change(service.hold, "another reason"))
    assert stable_rows(small_world) == before
    released = small_world.server.run(change(service.release_hold))
    assert released.reason == "Case 12/345"
    with pytest.raises(NotFound):
        small_world.server.run(change(service.release_hold))
    assert not erase(small_world).is_empty


def test_an_unknown_participant_can_be_neither_held_nor_erased(small_world: SeededPlanManager) -> None:
    with pytest.raises(NotFound):
        erase(small_world, str(uuid7()))


def stored_files(world: SeededPlanManager, sql: Any) -> set[str]:
    """The names of files of the plan manager $1 whose objects a statement lists."""
    keys = world.server.run(world.server.db.rows(str, sql, world.plan_manager_id))
    return {each.partition("/")[2] for each in keys}


STATEMENT_FILES = "select pdf_key from statements where plan_manager_id = $1 and pdf_key is not null"
PROVIDER_FILES = "select object_key from documents where plan_manager_id = $1 and provider_id is not null"


def test_the_files_of_the_persons_invoices_and_statements_are_deleted(small_world: SeededPlanManager) -> None:
    world, server, invoice = small_world, small_world.server, f"/invoices/{small_world.ids['invoice_id']}"
    for content in (b"%PDF-1.7 a sample", b"%PDF-1.7 another one"):
        upload_document(world.client, world.ids["invoice_id"], content)
    server.run(record_statement(server, world.plan_manager_id, UUID(world.ids["provider_id"])))
    statements = f"/participants/{world.ids['participant_id']}/statements"
    statement = world.client.create(statements, {"month": "2026-01"})["id"]
    world.client.request("GET", f"{statements}/{statement}", headers={"Accept": "application/pdf"}).raise_for_status()
    other = import_invoice(server, world.client, {"participant": None, "provider": None})
    kept = upload_document(world.client, other)
    folder = Path((server.settings.documents_url or "").removeprefix("file://"), str(world.plan_manager_id))
    of_statements, of_provider = stored_files(world, STATEMENT_FILES), stored_files(world, PROVIDER_FILES)
    assert (bool(of_statements), len(of_provider)) == (True, 1)
    assert len(list(folder.iterdir())) == 3 + len(of_statements | of_provider)
    assert erase(world, preview=True).counts["documents"] == 2
    assert world.client.get(invoice).json()["document"]
    assert erase(world).counts["documents"] == 2
    shown = world.client.get(invoice).json()
    assert (shown["document"], shown["s3_key"]) == (None, None)
    assert world.client.get(f"{invoice}/document").status_code == 404
    server.run(documents.delete_due_objects(server.db, server.settings))
    remaining = world.client.get(f"/invoices/{other}").json()
    assert remaining["document"] == kept
    assert {each.name for each in folder.iterdir()} == {remaining["s3_key"].partition("/")[2], *of_provider}
