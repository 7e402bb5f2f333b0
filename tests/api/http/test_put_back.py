"""What a client got can be put back: read-only members are accepted as long as they are as stored."""

from typing import Any
from uuid import UUID

import pytest

from support.client import Client
from support.importing import import_records
from support.resources import assert_changed
from support.server import RunningServer

MANAGER, CATEGORY = "017a5f00-0000-7000-8000-0000000000aa", "017a5f00-0000-7000-8000-0000000000bb"


@pytest.fixture
def resources(server: RunningServer, api: Client) -> dict[str, tuple[str, str]]:
    """The path of a resource of each kind with every member set, and a member to change."""
    owner = UUID(api.plan_manager_id)
    rows = {
        "account-managers": [{"id": MANAGER, "first_name": "Max", "email": "max@pm.example"}],
        "exit-reasons": [{"id": CATEGORY, "name": "Moved"}],
    }
    for kind, records in rows.items():
        assert not server.run(import_records(server, owner, kind, records)).errors
    members = {"account_manager_id": MANAGER, "exit_reason_category_id": CATEGORY, "date_of_birth": "1980-01-02"}
    participant = f"/participants/{api.create('/participants', members)['id']}"
    member = api.create(f"{participant}/team-members", {"email": "bo@example.com", "permissions": ["view_budget"]})
    return {
        "participant": (participant, "last_name"),
        "provider": (f"/providers/{api.create('/providers', {'abn': '1'})['id']}", "entity_name"),
        "note type": (f"/note-types/{api.create('/note-types', {'note_type': 'Call'})['id']}", "badge_color"),
        "team member": (f"{participant}/team-members/{member['id']}", "first_name"),
        "webhook endpoint": (
            f"/webhook-endpoints/{api.create('/webhook-endpoints', {'url': 'https://example.com'})['id']}",
            "description",
        ),
    }


KINDS = ["participant", "provider", "note type", "team member", "webhook endpoint"]


def fields_of(response: Any) -> list[str]:
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request"), response.text
    return [each["field"] for each in response.json()["errors"]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_resource_can_be_put_back_as_it_is_and_with_a_change(
    api: Client, resources: dict[str, tuple[str, str]], kind: str
) -> None:
    path, member = resources[kind]
    got = api.get(path).json()
    unchanged = api.put(path, got)
    assert (unchanged.status_code, unchanged.json()) == (200, got)
    changed = api.put(path, got | {member: "Changed"}, headers={"If-Match": unchanged.headers["etag"]})
    assert changed.status_code == 200
    assert_changed(got, {member: "Changed"}, changed.json())
    upper = got | {"id": str(got["id"]).upper() if isinstance(got["id"], str) else got["id"]}
    assert api.put(path, upper | {member: "Changed"}).status_code == 200


@pytest.mark.parametrize(
    "kind, member, value",
    [
        ("participant", "id", "017a5f00-0000-7000-8000-0000000000cc"),
        ("participant", "created_at", "2020-01-01T00:00:00Z"),
        ("participant", "created_at", None),
        ("participant", "account_manager", {"id": CATEGORY, "name": "Max"}),
        ("participant", "account_manager", None),
        ("participant", "exit_reason_category", None),
        ("participant", "exit_reason_subcategory", {"id": CATEGORY, "name": "Moved"}),
        ("provider", "created_at", "2020-01-01T00:00:00Z"),
        ("note type", "plan_manager_id", CATEGORY),
        ("team member", "email", "other@example.com"),
        ("team member", "user_id", CATEGORY),
        ("team member", "permissions", [{"id": CATEGORY, "name": "x", "label": "x", "order": 1}]),
        ("webhook endpoint", "disabled_reason", "because"),
    ],
)
def test_a_read_only_member_that_differs_is_named(
    api: Client, resources: dict[str, tuple[str, str]], kind: str, member: str, value: Any
) -> None:
    path, changed = resources[kind]
    got = api.get(path).json()
    assert fields_of(api.put(path, got | {member: value, changed: "Changed"})) == [member]
    assert api.get(path).json() == got


@pytest.mark.parametrize(
    "kind, member, field",
    [
        ("participant", "last_name", "last_name"),
        ("note type", "badge_color", "badge_color"),
        ("team member", "permissions", "permissions[0]"),
    ],
)
def test_an_object_that_no_response_has_is_invalid_whatever_the_version(
    api: Client, resources: dict[str, tuple[str, str]], kind: str, member: str, field: str
) -> None:
    path, _ = resources[kind]
    for value in ({"id": CATEGORY}, {}):
        body = {member: [value] if member == "permissions" else value}
        if body != {"permissions": [{"id": CATEGORY}]}:
            assert fields_of(api.put(path, body, headers={"If-Match": '"other"'})) == [field]


def test_names_of_references_are_not_compared(api: Client, resources: dict[str, tuple[str, str]]) -> None:
    path, _ = resources["participant"]
    got = api.get(path).json()
    got["account_manager"]["name"] = "An earlier name"
    assert api.put(path, got).status_code == 200


def test_a_missing_resource_or_version_comes_first(api: Client, resources: dict[str, tuple[str, str]]) -> None:
    path, _ = resources["participant"]
    wrong = {"created_at": "2020-01-01T00:00:00Z"}
    assert api.put(path, wrong, headers={"If-Match": '"other"'}).status_code == 412
    api.delete(path.partition("?")[0]).raise_for_status()
    assert api.put(path, wrong).status_code == 404


def test_a_create_takes_no_read_only_members(api: Client, resources: dict[str, tuple[str, str]]) -> None:
    got = api.get(resources["participant"][0]).json()
    read_only = {"id", "created_at", "updated_at", "account_manager", "exit_reason_category"}
    assert set(fields_of(api.post("/participants", got))) == read_only
