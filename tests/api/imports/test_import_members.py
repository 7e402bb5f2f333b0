"""Team members and account managers in an import: their participants, their users, their priorities."""

import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from plankeeper.core.context import WriteContext
from plankeeper.database.client import Transaction
from plankeeper.imports.importer import ImportReport, import_file
from plankeeper.resources.registry import CONSTRAINT_ERRORS, RESOURCES
from plankeeper.resources.upsert import RowError
from support.client import Client
from support.import_samples import Import, Row, assert_imported, get_json, new_id, to_csv, to_json_lines
from support.resources import assert_changed
from support.server import RunningServer


@pytest.fixture
def participant_id(api: Client) -> str:
    return api.create("/participants", {"participant_number": "430000009", "email": "own@example.com"})["id"]


def team_by_name(client: Client, participant_id: str) -> dict[str, Any]:
    """The team by first name."""
    return {
        each["first_name"]: each for each in get_json(client, f"/participants/{participant_id}/team-members")["data"]
    }


def test_a_participant_is_named_by_id_or_by_number(api: Client, import_content: Import, participant_id: str) -> None:
    rows = [
        {"first_name": "by id", "participant_id": participant_id},
        {"first_name": "by number", "participant_number": "430000009"},
        {"first_name": "by number with spaces", "participant_number": "430 000 009"},
    ]
    assert_imported(import_content(api, "team-members", rows), created=3)
    api.put(f"/participants/{participant_id}", {"participant_number": "430-000 009"}).raise_for_status()
    header = "participant_id,participant_number,first_name"
    table = f"{header}\n{participant_id},,c\n,430000009,d\n{participant_id},430000009,e\n"
    assert_imported(import_content(api, "team-members", table.encode()), created=3)
    names = {"by id", "by number", "by number with spaces", "c", "d", "e"}
    assert set(team_by_name(api, participant_id)) == names
    note = {"note_type": "Call", "text": "Hello", "participant_number": "430 000 009"}
    api.create("/note-types", {"note_type": "Call"})
    assert_imported(import_content(api, "notes", [note]), created=1)


def test_a_number_shared_by_two_participants_is_ambiguous(
    api: Client, import_content: Import, participant_id: str
) -> None:
    api.create("/participants", {"participant_number": "430000009"})
    rows = [
        {"first_name": "a", "participant_number": "430000009"},
        {"first_name": "b", "participant_id": participant_id, "participant_number": "430000009"},
    ]
    shared = "is shared by two participants; use participant_id"
    assert import_content(api, "team-members", rows).errors == [RowError(1, "participant_number", shared)]
    assert team_by_name(api, participant_id) == {}
    assert_imported(import_content(api, "team-members", rows[1:]), created=1)


def test_a_member_with_an_email_is_a_user_and_one_without_is_a_profile(
    api: Client, import_content: Import, participant_id: str
) -> None:
    rows: list[Row] = [
        {
            "participant_id": participant_id,
            "first_name": "mail",
            "email": "Mail@example.com",
            "permissions": ["view_budget"],
        },
        {"participant_id": participant_id, "first_name": "none"},
    ]
    assert_imported(import_content(api, "team-members", rows), created=2)
    found = team_by_name(api, participant_id)
    assert found["mail"]["id"] == found["mail"]["user_id"]
    assert found["mail"]["pm_profile_id"] is None
    assert found["mail"]["email"] == "Mail@example.com"
    assert found["none"]["id"] == found["none"]["pm_profile_id"] != found["none"]["user_id"]
    assert [each["name"] for each in found["none"]["permissions"]] == ["no_access"]


def test_an_email_is_one_user_in_any_case_and_in_any_file(
    api: Client, import_content: Import, participant_id: str
) -> None:
    manager, second = new_id(), api.create("/participants", {})["id"]
    assert_imported(import_content(api, "account-managers", [{"id": manager, "email": "Pat@example.com"}]), created=1)
    rows = [
        {"participant_id": participant_id, "first_name": "pat", "email": "PAT@example.com"},
        {"participant_id": participant_id, "first_name": "new", "email": "new@example.com"},
        {"participant_id": second, "first_name": "new", "email": "NEW@example.com"},
    ]
    assert_imported(import_content(api, "team-members", rows), created=3)
    found = team_by_name(api, participant_id)
    assert found["pat"]["id"] == manager
    assert found["new"]["id"] == team_by_name(api, second)["new"]["id"]
    # The first who came wrote it so, and everybody else's stays as it was.
    assert get_json(api, f"/account-managers/{manager}")["email"] == "Pat@example.com"
    assert {found["new"]["email"], team_by_name(api, second)["new"]["email"]} == {"new@example.com"}
    assert_imported(
        import_content(api, "account-managers", [{"email": "NEW@example.com", "first_name": "New"}]), created=1
    )
    assert_imported(
        import_content(api, "account-managers", [{"email": "new@EXAMPLE.com", "first_name": "Newer"}]), changed=1
    )
    [one] = get_json(api, "/account-managers", email="new@example.com")["data"]
    assert (one["id"], one["first_name"]) == (found["new"]["id"], "Newer")


def test_the_same_email_twice_on_a_team_is_one_member(api: Client, import_content: Import, participant_id: str) -> None:
    rows = [
        {"participant_id": participant_id, "email": "a@example.com", "first_name": "a", "role": "r"},
        {"participant_id": participant_id, "email": "A@example.com", "first_name": "b"},
    ]
    assert_imported(import_content(api, "team-members", rows), created=1, changed=1)
    assert {name: each["role"] for name, each in team_by_name(api, participant_id).items()} == {"b": "r"}


def test_the_email_of_another_user_is_rejected(api: Client, import_content: Import) -> None:
    one, two = {"id": new_id(), "email": "a@example.com"}, {"id": new_id(), "email": "b@example.com"}
    assert_imported(import_content(api, "account-managers", [one, two]), created=2)
    bad = import_content(
        api, "account-managers", [{"id": new_id(), "first_name": "x"}, two | {"email": "A@example.com"}]
    )
    assert bad.errors == [RowError(2, "email", "is already used by another user of this plan manager")]


@pytest.mark.parametrize("given", [{}, {"pm_profile_id": None}, {"email": None}])
def test_a_member_without_an_email_is_identified_by_its_id(
    api: Client, import_content: Import, participant_id: str, given: Row
) -> None:
    row = {"id": new_id(), "participant_id": participant_id, "first_name": "a"} | given
    assert_imported(import_content(api, "team-members", [row]), created=1)
    before = team_by_name(api, participant_id)["a"]
    assert_imported(import_content(api, "team-members", [row]), unchanged=1)
    assert team_by_name(api, participant_id)["a"] == before
    assert_imported(
        import_content(
            api, "team-members", to_csv([{"id": row["id"].upper(), "participant_id": participant_id, "role": "r"}])
        ),
        changed=1,
    )
    assert_changed(before, {"role": "r"}, team_by_name(api, participant_id)["a"])


def test_contradictory_ids_are_line_errors(api: Client, import_content: Import, participant_id: str) -> None:
    manager = new_id()
    assert_imported(import_content(api, "account-managers", [{"id": manager, "email": "m@example.com"}]), created=1)
    base = {"participant_id": participant_id, "first_name": "x"}
    rows = [
        base | {"id": new_id(), "pm_profile_id": new_id()},
        base | {"id": new_id(), "user_id": new_id(), "email": "n@example.com"},
        base | {"id": new_id(), "email": "m@example.com"},
        base | {"user_id": new_id(), "email": "m@example.com"},
        base | {"user_id": manager},
    ]
    assert import_content(api, "team-members", rows).rejected_lines == {1, 2, 3, 4, 5}
    assert team_by_name(api, participant_id) == {}
    assert get_json(api, f"/account-managers/{manager}")["email"] == "m@example.com"


def test_an_email_and_its_permissions_cannot_be_removed(
    api: Client, import_content: Import, participant_id: str
) -> None:
    known = {"participant_id": participant_id, "id": new_id(), "first_name": "k", "email": "k@example.com"}
    assert_imported(import_content(api, "team-members", [known | {"permissions": ["view_budget"]}]), created=1)
    rows: list[Row] = [
        known | {"email": None},
        {"participant_id": participant_id, "first_name": "x", "permissions": ["view_budget"]},
        {"participant_id": participant_id, "first_name": "x", "permissions": ["no_access", "view_budget"]},
        {"participant_id": participant_id, "first_name": "x", "permissions": ["everything"]},
        {"participant_id": participant_id, "first_name": "x", "permissions": []},
    ]
    no = "must be only no_access for a member without an email"
    assert sorted(import_content(api, "team-members", rows).errors)[:3] == [
        RowError(1, "email", "cannot be cleared"), RowError(2, "permissions", no), RowError(3, "permissions", no),
    ]  # fmt: skip
    assert_imported(import_content(api, "team-members", rows[4:]), created=1)
    assert_imported(
        import_content(api, "team-members", [known | {"permissions": ["no_access", "view_invoices"]}]), changed=1
    )
    assert [each["name"] for each in team_by_name(api, participant_id)["k"]["permissions"]] == ["no_access"]


def test_two_members_can_swap_their_priorities_in_one_file(
    api: Client, import_content: Import, participant_id: str
) -> None:
    base = {"participant_id": participant_id}
    assert_imported(
        import_content(
            api,
            "team-members",
            [
                base | {"email": "a@example.com", "first_name": "a", "contact_priority": 1},
                base | {"email": "b@example.com", "first_name": "b", "contact_priority": 2},
                base | {"email": "c@example.com", "first_name": "c"},
            ],
        ),
        created=3,
    )
    swap = [
        base | {"email": "a@example.com", "contact_priority": 2},
        base | {"email": "b@example.com", "contact_priority": 1},
    ]
    assert_imported(import_content(api, "team-members", swap), changed=2)
    assert {name: each["contact_priority"] for name, each in team_by_name(api, participant_id).items()} == {
        "a": 2,
        "b": 1,
        "c": None,
    }
    turn = [
        base | {"email": "c@example.com", "contact_priority": 1},
        base | {"email": "b@example.com", "contact_priority": None},
    ]
    assert_imported(import_content(api, "team-members", turn), changed=2)
    assert {name: each["contact_priority"] for name, each in team_by_name(api, participant_id).items()} == {
        "a": 2,
        "b": None,
        "c": 1,
    }


def test_a_taken_priority_is_a_line_error_that_names_the_holder(
    api: Client, import_content: Import, participant_id: str
) -> None:
    holder, base = new_id(), {"participant_id": participant_id, "contact_priority": 1}
    assert_imported(import_content(api, "team-members", [base | {"id": holder, "first_name": "holder"}]), created=1)
    report = import_content(
        api, "team-members", [{"participant_id": participant_id, "first_name": "ok"}, base | {"first_name": "x"}]
    )
    assert report.errors == [RowError(2, "", f"Team member {holder} holds contact priority 1 of this participant.")]
    both = [base | {"first_name": "x", "contact_priority": 2}, base | {"first_name": "y", "contact_priority": 2}]
    assert import_content(api, "team-members", both).rejected_lines == {2}
    assert set(team_by_name(api, participant_id)) == {"holder"}


class SavepointCounter(Transaction):
    """A transaction that counts its savepoints: a batch takes one, and its lines one each when it breaks something."""

    savepoints = 0

    @asynccontextmanager
    async def savepoint(self) -> AsyncGenerator[None]:
        self.savepoints += 1
        async with super().savepoint():
            yield


def test_a_user_on_many_teams_does_not_split_a_batch_into_lines(
    api: Client, server: RunningServer, import_rows: Import
) -> None:
    people = [{"id": new_id()} for _ in range(50)]
    assert import_rows(api, "participants", people).errors == []
    rows = [{"participant_id": each["id"], "email": "Coordinator@example.com", "first_name": "c"} for each in people]

    async def work() -> tuple[SavepointCounter, ImportReport]:
        async with server.db.transaction() as tx:
            counted = SavepointCounter(tx._connection)  # noqa: SLF001 - the same connection, and every savepoint on it
            ctx = WriteContext(counted, UUID(api.plan_manager_id), server.settings)
            file = io.BytesIO(to_json_lines(rows))
            return counted, await import_file(
                ctx, RESOURCES["team-members"], file, CONSTRAINT_ERRORS, lambda _lines: None
            )

    for created in (50, 0):
        counted, report = server.run(work())
        assert_imported(report, created=created, unchanged=50 - created)
        assert counted.savepoints == 1
    assert len({team_by_name(api, each["id"])["c"]["id"] for each in people}) == 1


def test_an_account_manager_s_email_cannot_be_cleared(api: Client, import_content: Import) -> None:
    known = {"id": new_id(), "email": "a@example.com"}
    assert_imported(import_content(api, "account-managers", [known, {"id": new_id(), "email": None}]), created=2)
    bad = import_content(api, "account-managers", [known | {"email": None}])
    assert bad.errors == [RowError(1, "email", "cannot be cleared")]
    assert get_json(api, f"/account-managers/{known['id']}")["email"] == "a@example.com"
