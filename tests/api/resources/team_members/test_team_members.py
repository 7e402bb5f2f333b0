"""Team members over HTTP: list, create, get, update, delete, and the races for a priority."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.resources import assert_changed, times_of

PERMISSIONS = [
    {"id": "0199a000-0000-7000-8000-000000000001", "name": "view_budget", "label": "View budget", "order": 1},
    {"id": "0199a000-0000-7000-8000-000000000002", "name": "view_invoices", "label": "View invoices", "order": 2},
    {"id": "0199a000-0000-7000-8000-000000000003", "name": "approve_invoices", "label": "Approve invoices", "order": 3},
    {"id": "0199a000-0000-7000-8000-000000000004", "name": "email_statements", "label": "Email statements", "order": 4},
    {"id": "0199a000-0000-7000-8000-000000000005", "name": "view_documents", "label": "View documents", "order": 5},
    {"id": "0199a000-0000-7000-8000-000000000006", "name": "no_access", "label": "No access", "order": 6},
]
NO_ACCESS = PERMISSIONS[5:]
UNSET = dict.fromkeys((
    "pm_profile_id", "first_name", "last_name", "email", "role", "phone_number", "note", "secondary_email",
    "secondary_phone_number", "address_line_1", "city", "state", "postcode", "contact_priority", "external_id",
)) | {"permissions": NO_ACCESS}  # fmt: skip
TEXTS = {
    "first_name": 255, "last_name": 255, "role": 255, "phone_number": 50, "note": 10_000, "secondary_email": 255,
    "secondary_phone_number": 50, "address_line_1": 500, "city": 255, "postcode": 20,
}  # fmt: skip


@pytest.fixture
def participant_id(api: Client) -> str:
    return api.create("/participants", {"first_name": "Ann", "email": "Ann@example.com"})["id"]


@pytest.fixture
def team_path(participant_id: str) -> str:
    """The path of a team that has nobody yet."""
    return f"/participants/{participant_id}/team-members"


def field_errors(response: Any) -> list[tuple[str, str]]:
    body = response.json()
    assert (response.status_code, body["error"]) == (400, "invalid_request"), response.text
    return [(each["field"], each["message"]) for each in body["errors"]]


def error_of(response: Any) -> tuple[int, str]:
    assert set(response.json()) - {"resource"} == {"success", "error", "detail", "request_id", "documentation_url"}
    return response.status_code, response.json()["error"]


def permission_names(member: dict[str, Any]) -> list[str]:
    return [each["name"] for each in member["permissions"]]


def test_a_member_with_an_email_is_identified_by_its_user_id(api: Client, participant_id: str, team_path: str) -> None:
    response = api.post(team_path, {"email": "Carer@Example.com", "first_name": "Bo"})
    made = response.json()
    assert response.status_code == 201
    ident = {"id": made["id"], "user_id": made["id"], "participant_id": participant_id}
    assert made == UNSET | ident | {"email": "Carer@Example.com", "first_name": "Bo"} | times_of(made)
    assert api.get(f"{team_path}/{made['id']}").json() == made


def test_a_member_without_an_email_is_identified_by_its_profile_id(
    api: Client, participant_id: str, team_path: str
) -> None:
    response = api.post(team_path, {"last_name": "Lee", "email": None})
    made = response.json()
    assert response.status_code == 201
    ident = {
        "id": made["id"],
        "user_id": made["user_id"],
        "pm_profile_id": made["id"],
        "participant_id": participant_id,
    }
    assert made == UNSET | ident | {"last_name": "Lee"} | times_of(made)
    assert UUID(made["user_id"]) != UUID(made["id"])
    assert api.get(f"{team_path}/{made['id']}").json() == made


def test_a_member_can_be_created_with_every_updatable_field(api: Client, team_path: str) -> None:
    body = {name: f"some {name}" for name in TEXTS if name != "postcode"} | {"postcode": "2000", "state": "NSW"}
    made = api.create(
        team_path, body | {"email": "b@example.com", "contact_priority": 2, "permissions": ["view_budget"]}
    )
    assert {name: made[name] for name in body} == body
    assert (made["contact_priority"], made["permissions"]) == (2, PERMISSIONS[:1])


@pytest.mark.parametrize("body", [{}, {"role": "Carer"}, {"first_name": None, "last_name": None, "email": None}])
def test_a_member_needs_a_name_or_an_email(api: Client, team_path: str, body: dict[str, Any]) -> None:
    assert field_errors(api.post(team_path, body)) == [
        ("first_name", "at least one of first_name, last_name and email is required")
    ]
    assert api.get(team_path).json()["pagination"]["total"] == 0


@pytest.mark.parametrize("email", ["Ann@example.com", "ann@EXAMPLE.com"])
def test_the_email_of_the_participant_is_rejected(api: Client, team_path: str, email: str) -> None:
    assert field_errors(api.post(team_path, {"email": email})) == [
        ("email", "must differ from the participant's own email")
    ]
    assert api.get(team_path).json()["pagination"]["total"] == 0


def test_an_email_is_unique_on_a_team_ignoring_case(api: Client, team_path: str) -> None:
    made = api.create(team_path, {"email": "carer@example.com"})
    rejected = api.post(team_path, {"email": "Carer@EXAMPLE.com", "first_name": "Bo"})
    assert error_of(rejected) == (409, "team_member_exists")
    assert rejected.json()["resource"] == {"kind": "team_member", "id": made["id"]}
    assert api.get(team_path).json()["data"] == [made]


def test_one_user_on_two_teams_has_one_id_and_two_memberships(api: Client, team_path: str) -> None:
    elsewhere = f"/participants/{api.create('/participants', {})['id']}/team-members"
    here = api.create(team_path, {"email": "carer@example.com", "first_name": "Bo", "note": "here"})
    there = api.create(
        elsewhere, {"email": "CARER@example.com", "first_name": "Robert", "permissions": ["view_budget"]}
    )
    assert (there["id"], there["user_id"], there["email"]) == (here["id"], here["id"], "carer@example.com")
    assert (there["first_name"], there["note"], permission_names(there)) == ("Robert", None, ["view_budget"])
    assert api.put(f"{elsewhere}/{here['id']}", {"first_name": "Rob", "permissions": []}).status_code == 200
    assert api.get(f"{team_path}/{here['id']}").json() == here
    assert api.delete(f"{elsewhere}/{here['id']}").json() == {}
    assert api.get(f"{team_path}/{here['id']}").json() == here


def test_an_account_manager_on_a_team_is_the_same_user(
    api: Client, team_path: str, import_rows: Callable[..., Any]
) -> None:
    manager = str(uuid7())
    import_rows(api, "account-managers", [{"id": manager, "first_name": "Max", "email": "max@example.com"}])
    made = api.create(team_path, {"email": "MAX@example.com"})
    assert (made["id"], made["first_name"], made["email"]) == (manager, None, "max@example.com")


def test_users_belong_to_one_plan_manager(api: Client, other: Client, team_path: str) -> None:
    theirs = f"/participants/{other.create('/participants', {})['id']}/team-members"
    made = [client.create(path, {"email": "carer@example.com"}) for client, path in ((api, team_path), (other, theirs))]
    assert made[0]["id"] != made[1]["id"]


def test_the_six_permissions_are_returned_in_a_fixed_order(api: Client, team_path: str) -> None:
    held = ["view_documents", "email_statements", "view_invoices", "approve_invoices", "view_budget"]
    made = api.create(team_path, {"email": "carer@example.com", "permissions": held})
    assert made["permissions"] == PERMISSIONS[:5]
    assert api.get(team_path).json()["data"] == [made]
    member = f"{team_path}/{made['id']}"
    for each in PERMISSIONS:
        assert api.put(member, {"permissions": [each["name"]]}).json()["permissions"] == [each]


@pytest.mark.parametrize(
    "sent, expected",
    [
        (["view_budget", "view_invoices", "view_budget"], ["view_budget", "view_invoices"]),
        (["no_access", "no_access"], ["no_access"]),
        (["view_budget", "no_access"], ["no_access"]),
        ([], ["no_access"]),
    ],
)
def test_a_permission_list_replaces_all_permissions(
    api: Client, team_path: str, sent: list[str], expected: list[str]
) -> None:
    start = ["view_budget", "view_documents"]
    made = api.create(team_path, {"email": "carer@example.com", "permissions": start})
    assert permission_names(api.put(f"{team_path}/{made['id']}", {"role": "Carer"}).json()) == start
    response = api.put(f"{team_path}/{made['id']}", {"permissions": sent})
    change = {"role": "Carer", "permissions": [each for each in PERMISSIONS if each["name"] in expected]}
    assert_changed(made, change, response.json())
    assert api.get(f"{team_path}/{made['id']}").json() == response.json()
    assert permission_names(api.create(team_path, {"email": "second@example.com", "permissions": sent})) == expected


@pytest.mark.parametrize(
    "sent", [["view_everything"], ["view_budget", "View_budget"], [""], [None], "view_budget", None]
)
def test_invalid_permissions_are_rejected(api: Client, team_path: str, sent: Any) -> None:
    made = api.create(team_path, {"email": "carer@example.com", "permissions": ["view_budget"]})
    for response in (
        api.put(f"{team_path}/{made['id']}", {"permissions": sent, "role": "Carer"}),
        api.post(team_path, {"email": "second@example.com", "permissions": sent}),
    ):
        [(field, _)] = field_errors(response)
        assert field.partition("[")[0] == "permissions"
    assert api.get(team_path).json()["data"] == [made]


@pytest.mark.parametrize(
    "sent", [["view_budget"], ["no_access", "view_budget"], ["email_statements", "view_documents"]]
)
def test_a_member_without_an_email_cannot_have_permissions(api: Client, team_path: str, sent: list[str]) -> None:
    made = api.create(team_path, {"first_name": "Bo"})
    for response in (
        api.put(f"{team_path}/{made['id']}", {"permissions": sent, "role": "Carer"}),
        api.post(team_path, {"first_name": "Cy", "permissions": sent}),
    ):
        assert error_of(response) == (400, "permission_requires_email")
    assert api.get(team_path).json()["data"] == [made]
    for allowed in ([], ["no_access"], ["no_access", "no_access"]):
        assert api.put(f"{team_path}/{made['id']}", {"permissions": allowed}).json() == made


def test_an_update_changes_only_the_given_fields_and_null_clears(api: Client, team_path: str) -> None:
    made = api.create(team_path, {"email": "carer@example.com", "first_name": "Bo"})
    member = f"{team_path}/{made['id']}"
    for change in (
        {name: f"new {name}"[: TEXTS[name]] for name in TEXTS},
        {"state": "TAS", "contact_priority": 1},
        {"first_name": "", "secondary_email": "no address at all"},
        dict.fromkeys([*TEXTS, "state", "contact_priority"]),
        {},
    ):
        response = api.put(member, change)
        if change:
            assert_changed(made, change, response.json())
            made = response.json()
        assert api.get(member).json() == response.json() == made


def test_texts_have_a_maximum_length(api: Client, team_path: str) -> None:
    longest = {name: "é" * most for name, most in TEXTS.items()}
    made = api.create(team_path, longest)
    assert {name: made[name] for name in TEXTS} == longest
    for response in (
        api.put(f"{team_path}/{made['id']}", {name: text + "é" for name, text in longest.items()}),
        api.post(team_path, {name: text + "é" for name, text in longest.items()}),
    ):
        assert dict(field_errors(response)) == {
            name: f"must be at most {most} characters long" for name, most in TEXTS.items()
        }
    assert api.get(team_path).json()["data"] == [made]


def test_an_update_may_repeat_the_current_id(api: Client, team_path: str) -> None:
    made = api.create(team_path, {"email": "carer@example.com"})
    member = f"{team_path}/{made['id']}"
    assert api.put(member, {"id": made["id"]}).json() == made
    assert_changed(made, {"role": "Carer"}, api.put(member, {"id": made["id"].upper(), "role": "Carer"}).json())
    for wrong in (str(uuid7()), made["participant_id"], None, 5):
        [(field, _)] = field_errors(api.put(member, {"id": wrong}))
        assert field == "id"
    [(field, _)] = field_errors(api.post(team_path, {"first_name": "Bo", "id": str(uuid7())}))
    assert field == "id"


def test_a_state_is_accepted_only_in_upper_case(api: Client, team_path: str) -> None:
    made = api.create(team_path, {"first_name": "Bo"})
    for state in ("ACT", "NSW", "NT", "QLD", "SA", "TAS", "VIC", "WA"):
        assert api.put(f"{team_path}/{made['id']}", {"state": state}).json()["state"] == state
    says = [("state", "must be one of ACT, NSW, NT, QLD, SA, TAS, VIC, WA")]
    for wrong in ("nsw", "Vic", "XX", ""):
        assert field_errors(api.put(f"{team_path}/{made['id']}", {"state": wrong})) == says
        assert field_errors(api.post(team_path, {"first_name": "Cy", "state": wrong})) == says
    [listed] = api.get(team_path).json()["data"]
    assert_changed(made, {"state": "WA"}, listed)


def test_a_priority_is_1_or_2_or_none(api: Client, team_path: str) -> None:
    made = api.create(team_path, {"first_name": "Bo"})
    member = f"{team_path}/{made['id']}"
    for priority in (1, 2, None):
        assert_changed(made, {"contact_priority": priority}, api.put(member, {"contact_priority": priority}).json())
    for wrong in (0, 3, -1, 1.5, "1", True, [1], 10**30):
        [(field, _)] = field_errors(api.put(member, {"contact_priority": wrong}))
        assert field == "contact_priority"
    assert_changed(made, {}, api.get(member).json())


def test_a_taken_priority_is_a_conflict_naming_the_holder(api: Client, team_path: str) -> None:
    holder = api.create(team_path, {"first_name": "Bo", "contact_priority": 1})
    second = api.create(team_path, {"first_name": "Cy", "contact_priority": 2})
    for response in (
        api.put(f"{team_path}/{second['id']}", {"contact_priority": 1, "role": "Carer", "permissions": []}),
        api.post(team_path, {"email": "new@example.com", "contact_priority": 1}),
    ):
        assert error_of(response) == (409, "contact_priority_taken")
        assert response.json()["detail"] == f"Team member {holder['id']} holds contact priority 1 of this participant."
    assert api.get(team_path).json()["data"] == [holder, second]


def test_setting_the_same_priority_again_is_no_conflict(api: Client, team_path: str) -> None:
    holder = api.create(team_path, {"first_name": "Bo", "contact_priority": 1})
    member = f"{team_path}/{holder['id']}"
    assert api.put(member, {"contact_priority": 1}).json() == holder
    changed = api.put(member, {"contact_priority": 1, "role": "Carer"}).json()
    assert_changed(holder, {"role": "Carer"}, changed)


def test_a_priority_is_free_when_cleared_or_on_another_team(api: Client, team_path: str) -> None:
    elsewhere = f"/participants/{api.create('/participants', {})['id']}/team-members"
    first, second = (api.create(team_path, {"first_name": name}) for name in ("Bo", "Cy"))
    for path, member in ((elsewhere, api.create(elsewhere, {"first_name": "Di"})), (team_path, first)):
        assert api.put(f"{path}/{member['id']}", {"contact_priority": 1}).status_code == 200
    assert api.put(f"{team_path}/{first['id']}", {"contact_priority": None}).status_code == 200
    changed = api.put(f"{team_path}/{second['id']}", {"contact_priority": 1}).json()
    assert_changed(second, {"contact_priority": 1}, changed)
    assert api.delete(f"{team_path}/{second['id']}").status_code == 200
    changed = api.put(f"{team_path}/{first['id']}", {"contact_priority": 1}).json()
    assert_changed(first, {"contact_priority": 1}, changed)


def send_concurrently(clients: list[Client], send: Callable[[Client, int], Any]) -> list[Any]:
    """The responses to requests that start at the same moment."""
    gate = Barrier(len(clients))

    def work(place: int) -> Any:
        gate.wait(10)
        return send(clients[place], place)

    with ThreadPoolExecutor(len(clients)) as threads:
        return list(threads.map(work, range(len(clients))))


@pytest.fixture
def concurrent_clients(api: Client, new_client: Callable[..., Client]) -> list[Client]:
    """Four clients of one plan manager, each with its connection open."""
    clients = [api, *(new_client(UUID(api.plan_manager_id)) for _ in range(3))]
    assert all(each.get("/note-types").status_code == 200 for each in clients)
    return clients


def test_of_concurrent_updates_to_one_priority_exactly_one_succeeds(
    api: Client, team_path: str, concurrent_clients: list[Client]
) -> None:
    members = [api.create(team_path, {"first_name": f"rival {n}"})["id"] for n in range(4)]
    for _ in range(3):
        responses = send_concurrently(
            concurrent_clients, lambda client, n: client.put(f"{team_path}/{members[n]}", {"contact_priority": 1})
        )
        assert sorted(each.status_code for each in responses) == [200, 409, 409, 409]
        [winner] = [each.json() for each in responses if each.status_code == 200]
        assert {each.json()["error"] for each in responses if each.status_code == 409} == {"contact_priority_taken"}
        held = [each["id"] for each in api.get(team_path).json()["data"] if each["contact_priority"] == 1]
        assert held == [winner["id"]]
        assert api.put(f"{team_path}/{winner['id']}", {"contact_priority": None}).status_code == 200


def test_of_concurrent_creates_with_one_email_exactly_one_succeeds(
    api: Client, team_path: str, concurrent_clients: list[Client]
) -> None:
    for n in range(3):
        responses = send_concurrently(
            concurrent_clients, lambda client, _, n=n: client.post(team_path, {"email": f"new{n}@example.com"})
        )
        assert sorted(each.status_code for each in responses) == [201, 409, 409, 409]
        assert {each.json()["error"] for each in responses if each.status_code == 409} == {"team_member_exists"}
    assert api.get(team_path).json()["pagination"]["total"] == 3


def test_a_member_created_during_the_deletion_of_its_participant_does_not_survive(
    api: Client, concurrent_clients: list[Client]
) -> None:
    for n in range(3):
        path = f"/participants/{api.create('/participants', {})['id']}"
        gone, *made = send_concurrently(
            concurrent_clients,
            lambda client, at, path=path, n=n: (
                client.post(f"{path}/team-members", {"email": f"{n}.{at}@example.com"}) if at else client.delete(path)
            ),
        )
        assert gone.status_code == 200
        assert {each.status_code for each in made} <= {201, 404}
        assert api.get(f"{path}/team-members").status_code == 404


def test_a_deleted_member_is_no_longer_on_the_team(api: Client, team_path: str) -> None:
    made, stays = (api.create(team_path, {"email": f"{name}@example.com"}) for name in ("bo", "cy"))
    member = f"{team_path}/{made['id']}"
    response = api.delete(member)
    assert (response.status_code, response.json()) == (200, {})
    for again in (api.delete(member), api.get(member), api.put(member, {"role": "x"})):
        assert error_of(again) == (404, "not_found")
    assert api.get(team_path).json()["data"] == [stays]
    back = api.create(team_path, {"email": "BO@example.com", "first_name": "Bo"})
    assert back["id"] == made["id"]


def test_the_list_pages_by_the_members_id(api: Client, team_path: str) -> None:
    made = [api.create(team_path, {"first_name": name}) for name in "abc"]
    ids = [each["id"] for each in made]
    assert ids == sorted(ids)
    meta = {"limit": 2, "offset": 0, "has_more": True, "total": 3, "next_cursor": None}
    assert api.get(team_path, limit=2).json() == {"data": made[:2], "pagination": meta}
    rest = api.get(team_path, limit=2, after=made[1]["id"]).json()
    meta |= {"has_more": False, "total": None}
    assert rest == {"data": made[2:], "pagination": meta}
    assert api.get(team_path, after=made[2]["id"]).json()["data"] == []


def test_a_team_belongs_to_one_participant(api: Client, team_path: str) -> None:
    assert api.get(team_path).json()["data"] == []
    for absent in (f"/participants/{uuid7()}/team-members", f"/participants/{uuid7()}/team-members?after=0"):
        assert error_of(api.get(absent)) == (404, "not_found")
    assert error_of(api.post(f"/participants/{uuid7()}/team-members", {"first_name": "Bo"})) == (404, "not_found")
    made = api.create(team_path, {"first_name": "Bo"})
    elsewhere = f"/participants/{api.create('/participants', {})['id']}/team-members/{made['id']}"
    for response in (api.get(elsewhere), api.put(elsewhere, {"role": "x"}), api.delete(elsewhere)):
        assert error_of(response) == (404, "not_found")
    assert api.get(team_path).json()["data"] == [made]
