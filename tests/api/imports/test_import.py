"""Imports: rows are created and updated by id, each change has an event, and a file with errors changes nothing."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import pytest

from plankeeper.imports.importer import ImportReport
from plankeeper.resources.upsert import ImportCounts, RowError
from support.client import Client
from support.import_samples import (
    ALL_ROWS,
    FULL_INVOICE,
    FULL_PROVIDER,
    INVOICE,
    ITEM,
    LINE,
    MANAGER,
    MEMBER,
    NOTE_TYPE,
    PARTICIPANT,
    PERSON,
    PROVIDER,
    REASON,
    SESSION,
    SUBREASON,
    USER,
    VIEW_SESSION,
    Events,
    Import,
    Row,
    assert_imported,
    get_json,
    new_id,
    to_csv,
    to_json_lines,
)  # fmt: skip
from support.importing import import_bytes
from support.resources import times_of, without_updated_at
from support.server import RunningServer

INACTIVE = ["inactive_participant", "inactive_provider"]

in_both_formats = pytest.mark.parametrize("to_file", [to_json_lines, to_csv])


@in_both_formats
def test_every_resource_is_imported_completely(
    api: Client, import_content: Import, to_file: Callable[[list[Row]], bytes]
) -> None:
    for resource, rows in ALL_ROWS.items():
        assert_imported(import_content(api, resource, to_file(rows)), created=len(rows))
    references = {"exit_reason_category_id", "exit_reason_subcategory_id", "account_manager_id"}
    assert without_updated_at(get_json(api, f"/participants/{PERSON}")) == {
        **{name: value for name, value in PARTICIPANT.items() if name not in references},
        "exit_reason_category": {"id": REASON, "name": "Moved"},
        "exit_reason_subcategory": {"id": SUBREASON, "name": "Overseas, for good"},
        "account_manager": {"id": MANAGER, "name": "Ama Owusu"},
    }
    assert without_updated_at(get_json(api, f"/providers/{PROVIDER}")) == FULL_PROVIDER | {
        "abn_exempt": False, "abn_statement_date": None, "remittance_email": None,
    }  # fmt: skip
    note_type = NOTE_TYPE | {"plan_manager_id": api.plan_manager_id}
    assert without_updated_at(get_json(api, "/note-types/7")) == note_type
    member = get_json(api, f"/participants/{PERSON}/team-members/{USER}")
    assert [each["name"] for each in member.pop("permissions")] == MEMBER["permissions"]
    assert without_updated_at(member) == {name: value for name, value in MEMBER.items() if name != "permissions"}
    found = {"plan_manager": api.plan_manager_id, "errors": False, "is_duplicate": False, "document": None}
    state = {"state_management": {"errors": INACTIVE, "ignored_errors": INACTIVE}}
    unpaid = {"open_claim_batch": None, "open_payment_run": None, "has_payment": False, "is_rest_waiting": False}
    lines = {"line_items": [ITEM | {"invoice": INVOICE, "amount": 165} | unpaid]}
    assert without_updated_at(get_json(api, f"/invoices/{INVOICE}")) == FULL_INVOICE | found | state | lines
    assert without_updated_at(get_json(api, f"/invoice-view-sessions/{SESSION}")) == VIEW_SESSION


def test_a_new_record_has_an_event_with_the_full_api_representation(
    seeded_api: Client, recorded_events: Events
) -> None:
    events = {event.resource_id: event for event in recorded_events(seeded_api)}
    assert {event.type for event in events.values()} == {
        *("exit_reason.created", "account_manager.created", "participant.created", "provider.created"),
        *("note_type.created", "team_member.created", "invoice.created", "invoice_view_session.ended"),
        "plan.created",  # from the fields of the participant
    }
    assert {(event.actor, event.previous) for event in events.values()} == {("system plankeeper", None)}
    for path, id_ in (
        (f"/participants/{PERSON}", PERSON),
        (f"/providers/{PROVIDER}", PROVIDER),
        (f"/participants/{PERSON}/team-members/{USER}", USER),
        (f"/invoices/{INVOICE}", INVOICE),
        (f"/invoice-view-sessions/{SESSION}", SESSION),
        ("/note-types/7", "7"),
    ):
        assert json.loads(events[id_].data) == get_json(seeded_api, path), path


@in_both_formats
def test_importing_the_same_file_again_changes_nothing(
    seeded_api: Client, import_content: Import, recorded_events: Events, to_file: Callable[[list[Row]], bytes]
) -> None:
    before, moment = recorded_events(seeded_api), datetime.now(UTC).isoformat()
    for resource, rows in ALL_ROWS.items():
        assert_imported(import_content(seeded_api, resource, to_file(rows)), unchanged=len(rows))
    assert recorded_events(seeded_api) == before
    for resource in ("participants", "providers", "invoices"):
        assert get_json(seeded_api, f"/{resource}", updated_since=moment)["data"] == []


def test_ids_and_timestamps_are_accepted_in_other_notations(
    seeded_api: Client, import_content: Import, recorded_events: Events
) -> None:
    before = recorded_events(seeded_api)
    same = {"created_at": "2026-01-31T21:00:00.123456+11:00", "account_manager_id": MANAGER.upper()}
    assert_imported(
        import_content(seeded_api, "participants", [PARTICIPANT | same | {"id": PERSON.upper()}]), unchanged=1
    )
    ids = {name: MEMBER[name].upper() for name in ("id", "user_id", "participant_id")}
    assert_imported(import_content(seeded_api, "team-members", [MEMBER | ids]), unchanged=1)
    line = ITEM | {"id": LINE.upper(), "invoice": INVOICE.upper(), "created_at": "2026-01-31 10:00:00.123456Z"}
    assert_imported(
        import_content(seeded_api, "invoices", [FULL_INVOICE | {"id": INVOICE.upper(), "line_items": [line]}]),
        unchanged=1,
    )
    assert recorded_events(seeded_api) == before


PARTIAL_ROWS: list[tuple[str, Row, Row]] = [
    ("participants", {"id": PERSON, "gender": None, "city": ""}, {"gender": "Female", "city": "Sydney"}),
    ("exit-reasons", {"id": SUBREASON, "name": "Abroad"}, {"name": "Overseas, for good"}),
    ("account-managers", {"id": MANAGER, "active": True}, {"active": False}),
    ("providers", {"id": PROVIDER, "email": None}, {"email": "p@example.com"}),
    ("note-types", {"id": 7, "note_type": "Call"}, {"note_type": "Phone call"}),
    ("invoices", {"id": INVOICE, "approval_status": "rejected"}, {"approval_status": "approved"}),
    ("invoice-view-sessions", {"id": SESSION, "idle_count": 3}, {"idle_count": None}),
    ("team-members", {"participant_number": "430000001", "email": "LEE@example.com", "city": ""}, {"city": "Hobart"}),
    ("team-members", {"participant_id": PERSON, "id": USER, "role": None}, {"role": "Support coordinator"}),
]


def test_a_missing_column_leaves_its_field_unchanged(
    seeded_api: Client, import_content: Import, recorded_events: Events
) -> None:
    for resource, change, previous in PARTIAL_ROWS:
        before = recorded_events(seeded_api)
        assert_imported(import_content(seeded_api, resource, to_csv([change])), changed=1)
        [event] = recorded_events(seeded_api)[len(before) :]
        assert json.loads(event.previous or "") == previous
        was = next(json.loads(each.data or "") for each in reversed(before) if each.resource_id == event.resource_id)
        data = json.loads(event.data or "")
        assert data == was | {name: change[name] for name in previous} | times_of(data)


INVALID_ROWS: list[tuple[str, Row, str, str]] = [
    ("exit-reasons", {"id": new_id(), "parent_id": REASON}, "name", "is required for a new record"),
    (
        "exit-reasons", {"name": "x", "parent_id": new_id()}, "parent_id",
        "must be the id of an exit reason of this file or of this plan manager",
    ),
    (
        "participants", {"account_manager_id": new_id()}, "account_manager_id",
        "must be the id of an account manager of this plan manager",
    ),
    (
        "participants", {"exit_reason_category_id": new_id()}, "exit_reason_category_id",
        "must be the id of an exit reason of this plan manager",
    ),
    (
        "participants", {"exit_reason_subcategory_id": new_id()}, "exit_reason_subcategory_id",
        "must be the id of an exit reason of this plan manager",
    ),
    ("participants", {"state": "XX"}, "state", "must be one of ACT, NSW, NT, QLD, SA, TAS, VIC, WA"),
    ("account-managers", {"email": "nobody"}, "email", "must be an email address, such as name@example.com"),
    ("providers", {"email": "nobody"}, "email", "must be an email address, such as name@example.com"),
    ("note-types", {"note_type": " \t"}, "note_type", "must not be blank"),
    ("note-types", {"id": 0, "note_type": "x"}, "id", "must be at least 1"),
    ("note-types", {"id": 9}, "note_type", "is required"),
    (
        "team-members", {"participant_id": new_id(), "first_name": "x"}, "participant_id",
        "must be the id of a participant of this plan manager",
    ),
    (
        "team-members", {"participant_number": "431", "first_name": "x"}, "participant_number",
        "is not the number of a participant",
    ),
    ("team-members", {"first_name": "x"}, "participant_id", "or participant_number is required"),
    ("invoices", {"claim_status": "lost"}, "claim_status", "must be one of new, flagged, pending, payment_ready"),
    ("invoice-view-sessions", {"user_id": "u"}, "invoice_id", "is required for a new record"),
    ("invoice-view-sessions", {"id": SESSION, "idle_count": -1}, "idle_count", "must be at least 0"),
]  # fmt: skip


def test_one_invalid_line_rejects_the_whole_file(
    seeded_api: Client, import_content: Import, recorded_events: Events
) -> None:
    before = recorded_events(seeded_api)
    good = {resource: [unrelated_row(resource)] for resource in ALL_ROWS}
    for resource, row, field, reason in INVALID_ROWS:
        report = import_content(seeded_api, resource, [*good[resource], row])
        assert report.errors[0][:2] == (2, field), (resource, row)
        assert report.errors[0].message.startswith(reason)
        assert report.rejected_lines == {2}
    assert recorded_events(seeded_api) == before
    for resource, rows in good.items():
        assert_imported(import_content(seeded_api, resource, rows), created=1)
    new = recorded_events(seeded_api)[len(before) :]
    assert len([event for event in new if event.type != "plan.created"]) == len(ALL_ROWS)


def unrelated_row(resource: str) -> Row:
    """A record beside that of the book, which collides with it in nothing."""
    own = {"id", "user_id", "external_id", "email", "contact_priority", "invoice_number", "line_items"}
    row = {
        name: value for name, value in ALL_ROWS[resource][0].items() if name not in own or resource.endswith("sessions")
    }
    return row | {"id": 12 if resource == "note-types" else new_id()} | ({"permissions": []} if "role" in row else {})


def test_records_of_another_plan_manager_are_treated_as_absent(
    seeded_api: Client, other: Client, import_content: Import
) -> None:
    assert import_content(other, "participants", [PARTICIPANT]).rejected_lines == {1}
    assert import_content(other, "team-members", [MEMBER]).rejected_lines == {1}
    by_number = {"participant_number": "430000001", "email": "lee@example.com"}
    assert import_content(other, "team-members", [by_number]).errors == [
        RowError(1, "participant_number", "is not the number of a participant")
    ]
    assert import_content(other, "exit-reasons", [{"name": "x", "parent_id": REASON}]).rejected_lines == {1}
    for resource in ("exit-reasons", "account-managers", "participants", "team-members"):
        rows = [row | ({"email": f"{resource}@example.com"} if "email" in row else {}) for row in ALL_ROWS[resource]]
        assert_imported(import_content(other, resource, rows), created=len(rows))
    assert get_json(seeded_api, f"/participants/{PERSON}")["email"] == "Zoe@Example.com"
    assert get_json(seeded_api, f"/participants/{PERSON}/team-members/{USER}")["email"] == "Lee@example.com"


def test_a_hundred_errors_are_shown_and_all_invalid_lines_are_counted(
    api: Client, import_content: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.imports.importer.BATCH_SIZE", 100)
    wrong = [{"state": "XX", "active": 1}, {"entity_name": "right"}] * 120
    report = import_content(api, "providers", wrong)
    assert [bad.line_number for bad in report.errors] == [n for n in range(1, 101, 2) for _field in "as"]
    assert report.rejected_lines == set(range(1, 241, 2))
    missing = import_content(api, "exit-reasons", [{"id": new_id()} for _ in range(250)])
    assert [bad.line_number for bad in missing.errors] == list(range(1, 101))
    assert len(missing.rejected_lines) == 250
    twice = {"id": new_id(), "name": "x"}
    beside = import_content(api, "exit-reasons", [twice, twice, *({"id": new_id()} for _ in range(120))])
    assert beside.rejected_lines == set(range(3, 123))
    assert report.is_complete
    assert missing.is_complete


def test_only_some_of_many_invalid_references_are_checked(
    api: Client, import_content: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.imports.importer.BATCH_SIZE", 110)
    rows = [{"account_manager_id": new_id()} for _ in range(112)]
    report = import_content(api, "participants", rows)
    assert (len(report.errors), len(report.rejected_lines), report.is_complete) == (100, 110, False)
    assert import_content(api, "participants", rows[:110]).is_complete


def test_only_the_lines_with_an_invalid_reference_are_reported(api: Client, import_content: Import) -> None:
    rows: list[Row] = [{"first_name": str(n), "account_manager_id": new_id() if n % 3 == 2 else None} for n in range(9)]
    assert [(bad.line_number, bad.field) for bad in import_content(api, "participants", rows).errors] == [
        (3, "account_manager_id"), (6, "account_manager_id"), (9, "account_manager_id"),
    ]  # fmt: skip
    assert get_json(api, "/participants")["pagination"]["total"] == 0


def test_a_parent_may_follow_its_child_even_with_an_invalid_line(api: Client, import_content: Import) -> None:
    child, parent = {"id": new_id(), "name": "child"}, {"id": new_id(), "name": "parent"}
    family = [child | {"parent_id": parent["id"]}, parent]
    bad = import_content(api, "exit-reasons", [*family, {"name": "orphan", "parent_id": new_id()}])
    assert [problem.line_number for problem in bad.errors] == [3]
    assert_imported(import_content(api, "exit-reasons", family), created=2)


DUPLICATE_IDS: list[tuple[str, Row, str, list[str]]] = [
    ("exit-reasons", {"id": REASON}, "name", ["x", "Moved"]),
    ("account-managers", {"id": MANAGER}, "first_name", ["x", "Ama"]),
    ("participants", {"id": PERSON}, "first_name", ["x", "Zoë"]),
    ("providers", {"id": PROVIDER}, "city", ["x", "y"]),
    ("note-types", {"id": 7}, "note_type", ["x", "y"]),
    ("invoices", {"id": INVOICE}, "s3_key", ["x", "k"]),
    ("invoice-view-sessions", {"id": SESSION}, "user_name", ["x", "Ama Owusu"]),
    ("team-members", {"participant_id": PERSON, "email": "lee@example.com"}, "role", ["x", "y"]),
]


def test_the_last_line_wins_when_an_id_occurs_twice(
    seeded_api: Client, import_content: Import, recorded_events: Events
) -> None:
    for resource, base, field, values in DUPLICATE_IDS:
        before = len(recorded_events(seeded_api))
        assert_imported(import_content(seeded_api, resource, [base | {field: value} for value in values]), changed=2)
        assert [json.loads(event.data or "")[field] for event in recorded_events(seeded_api)[before:]] == values, (
            resource
        )


def test_a_new_id_that_occurs_twice_is_one_record(api: Client, import_content: Import) -> None:
    new = {"id": new_id(), "entity_name": "One"}
    assert_imported(
        import_content(api, "providers", [new, {"id": new["id"].upper(), "city": "Two"}]), created=1, changed=1
    )
    [provider] = get_json(api, "/providers")["data"]
    assert (provider["id"], provider["entity_name"], provider["city"]) == (new["id"], "One", "Two")


def test_a_line_without_an_id_gets_one(api: Client, import_content: Import) -> None:
    assert_imported(import_content(api, "providers", [{"entity_name": "a"}, {"entity_name": "b"}]), created=2)
    assert [each["entity_name"] for each in get_json(api, "/providers", after="0")["data"]] == ["a", "b"]


def test_new_note_types_are_numbered_after_imported_ones(api: Client, other: Client, import_content: Import) -> None:
    far = api.create("/note-types", {"note_type": "x"})["id"] + 1000
    assert_imported(import_content(other, "note-types", [NOTE_TYPE | {"id": far}]), created=1)
    assert api.create("/note-types", {"note_type": "x"})["id"] == far + 1
    assert_imported(import_content(other, "note-types", [NOTE_TYPE | {"id": far - 500}]), created=1)
    assert api.create("/note-types", {"note_type": "x"})["id"] == far + 2
    assert_imported(
        import_content(other, "note-types", [{"note_type": "x"}, {"note_type": "y", "id": far + 3}]), created=2
    )
    assert [each["note_type"] for each in get_json(other, "/note-types", after=str(far))["data"]] == ["y", "x"]


@in_both_formats
def test_unusual_numbers_are_accepted_with_a_warning(
    api: Client, import_content: Import, to_file: Callable[[list[Row]], bytes]
) -> None:
    numbers = ["430000001", "43000001", "4300000011", "43O000001", "٤٣٠٠٠٠٠٠١", "", None]
    first = 2 if to_file is to_csv else 1
    people = import_content(api, "participants", to_file([{"participant_number": number} for number in numbers]))
    assert_imported(people, created=7)
    assert [doubt.line_number - first for doubt in people.warnings] == [1, 2, 3, 4, 5]
    assert people.warnings[0].message == "participant_number '43000001' is not a 9-digit scheme number"
    assert people.warning_count == 5
    businesses = ["53004085616", "53 004 085 616", "53004085617", "1", None]
    odd = import_content(api, "providers", to_file([{"abn": number} for number in businesses]))
    assert_imported(odd, created=5)
    assert [(doubt.line_number - first, doubt.message) for doubt in odd.warnings] == [
        (2, "abn '53004085617' is not 11 digits with a valid check digit"),
        (3, "abn '1' is not 11 digits with a valid check digit"),
    ]


def test_hidden_account_managers_can_be_imported_and_referenced(api: Client, import_content: Import) -> None:
    staff = {
        "deleted": {"deleted": True},
        "internal": {"is_internal": True},
        "operator": {"email": "a@x.plankeeper.au"},
    }
    ids = {name: new_id() for name in staff}
    assert_imported(
        import_content(api, "account-managers", [{"id": ids[name]} | row for name, row in staff.items()]), created=3
    )
    people = [{"first_name": name, "account_manager_id": id_} for name, id_ in ids.items()]
    assert_imported(import_content(api, "participants", people), created=3)
    assert get_json(api, "/account-managers")["data"] == []
    found = {each["first_name"]: each["account_manager"]["id"] for each in get_json(api, "/participants")["data"]}
    assert found == ids


def test_a_file_larger_than_a_batch_is_one_transaction(
    api: Client, import_content: Import, recorded_events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.imports.importer.BATCH_SIZE", 100)
    rows: list[Row] = [{"id": new_id(), "entity_name": str(n)} for n in range(210)]
    report = import_content(api, "providers", [*rows, {"state": "XX"}])
    assert (report.rejected_lines, report.counts) == ({211}, ImportCounts(created=210))
    assert recorded_events(api) == []
    assert_imported(import_content(api, "providers", rows), created=210)
    assert [event.resource_id for event in recorded_events(api)] == [row["id"] for row in rows]


def test_an_imported_id_does_not_use_up_the_ids_of_all_plan_managers(
    api: Client, other: Client, import_content: Import
) -> None:
    rows: list[Row] = [{"id": 2**53, "note_type": "Last"}, {"id": 900_000, "note_type": "High"}]
    assert_imported(import_content(api, "note-types", to_json_lines(rows)), created=2)
    for client in (api, other):
        created = client.post("/note-types", {"note_type": "Next"})
        assert created.status_code == 201
        assert 0 < created.json()["id"] < 2**52
    assert get_json(api, f"/note-types/{2**53}")["note_type"] == "Last"
    rows = [{"id": 2**53, "note_type": "Changed"}]
    assert_imported(import_content(api, "note-types", to_json_lines(rows)), changed=1)


@pytest.mark.parametrize(
    "resource, field, name", [("participants", "external_id", "first_name"), ("providers", "abn", "entity_name")]
)
def test_lines_match_records_by_a_field(
    server: RunningServer, api: Client, resource: str, field: str, name: str
) -> None:
    def import_matched(*lines: str) -> ImportReport:
        content = "\n".join([f"{field},{name}", *lines]).encode()
        return server.run(import_bytes(server, UUID(api.plan_manager_id), resource, content, match=field))

    lines = [f"{51824753000 + number},Name {number}" for number in range(1500)]  # more than one batch
    for created, changed, unchanged in ((1500, 0, 0), (0, 0, 1500)):
        assert import_matched(*lines).counts == ImportCounts(created, changed, unchanged)
    assert import_matched("51824753000,Other").counts == ImportCounts(0, 1, 0)
    assert api.get(f"/{resource}", **{field: "51824753000"}).json()["data"][0][name] == "Other"

    report = import_matched("51824753000,Third", *lines[1:], ",Nobody", "51824753000,Again")
    assert [(each.line_number, each.field, each.message) for each in report.errors] == [
        (1502, field, "is required, because each line finds its record by it"),
        (1503, field, "is a duplicate of an earlier line"),
    ]
    assert api.get(f"/{resource}", **{field: "51824753000"}).json()["data"][0][name] == "Other"
