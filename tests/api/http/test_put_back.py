"""A client can send back a response: read-only fields are ignored, except for an id that isn't the path's."""

from itertools import product
from typing import Any
from uuid import UUID

import pytest

from support.client import Client
from support.importing import import_records
from support.resources import assert_changed
from support.server import RunningServer
from support.sweeps import sweep

MANAGER, CATEGORY = "017a5f00-0000-7000-8000-0000000000aa", "017a5f00-0000-7000-8000-0000000000bb"


@pytest.fixture
def resources(server: RunningServer, api: Client) -> dict[str, tuple[str, str]]:
    """The path of a resource of each kind with every field set, and a field to change."""
    owner = UUID(api.plan_manager_id)
    rows = {
        "account-managers": [{"id": MANAGER, "first_name": "Max", "email": "max@pm.example"}],
        "exit-reasons": [{"id": CATEGORY, "name": "Moved"}],
    }
    for kind, records in rows.items():
        assert not server.run(import_records(server, owner, kind, records)).errors
    values = {"account_manager_id": MANAGER, "exit_reason_category_id": CATEGORY, "date_of_birth": "1980-01-02"}
    participant = f"/participants/{api.create('/participants', values)['id']}"
    member = api.create(f"{participant}/team-members", {"email": "bo@example.com", "permissions": ["view_budget"]})
    return {
        "participant": (participant, "last_name"),
        "provider": (f"/providers/{api.create('/providers', {'abn': '1'})['id']}", "entity_name"),
        "invoice": (
            f"/invoices/{api.create('/invoices', {'line_items': [{'description': 'Bus', 'quantity': 2}]})['id']}",
            "external_id",
        ),
        "note type": (f"/note-types/{api.create('/note-types', {'note_type': 'Call'})['id']}", "badge_color"),
        "team member": (f"{participant}/team-members/{member['id']}", "first_name"),
        "webhook endpoint": (
            f"/webhook-endpoints/{api.create('/webhook-endpoints', {'url': 'https://example.com'})['id']}",
            "description",
        ),
    }


KINDS = ["participant", "provider", "invoice", "note type", "team member", "webhook endpoint"]


def fields_of(response: Any) -> list[str]:
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request"), response.text
    return [each["field"] for each in response.json()["errors"]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_resource_can_be_put_back_as_it_is_and_with_a_change(
    api: Client, resources: dict[str, tuple[str, str]], kind: str
) -> None:
    path, field = resources[kind]
    got = api.get(path).json()
    unchanged = api.put(path, got)
    # The response to a write says how an invoice was matched.
    assert (unchanged.status_code, {name: unchanged.json()[name] for name in got}) == (200, got)
    changed = api.put(path, got | {field: "Changed"}, headers={"If-Match": unchanged.headers["etag"]})
    assert changed.status_code == 200
    assert_changed(got, {field: "Changed"}, {name: changed.json()[name] for name in got})
    upper = got | {"id": str(got["id"]).upper() if isinstance(got["id"], str) else got["id"]}
    assert api.put(path, upper | {field: "Changed"}).status_code == 200


@pytest.mark.parametrize(
    "kind, field, value",
    [
        ("participant", "created_at", "2020-01-01T00:00:00Z"),
        ("participant", "created_at", None),
        ("participant", "updated_at", "yesterday"),
        ("participant", "account_manager", {"id": CATEGORY, "name": "Max"}),
        ("participant", "account_manager", None),
        ("participant", "exit_reason_category", None),
        ("participant", "exit_reason_subcategory", {"id": CATEGORY, "name": "Moved"}),
        ("provider", "created_at", "2020-01-01T00:00:00Z"),
        ("note type", "plan_manager_id", CATEGORY),
        ("team member", "user_id", CATEGORY),
        ("team member", "participant_id", [1]),
        ("webhook endpoint", "disabled_reason", "because"),
    ],
)
def test_a_read_only_field_is_ignored_whatever_its_value(
    api: Client, resources: dict[str, tuple[str, str]], kind: str, field: str, value: Any
) -> None:
    path, writable = resources[kind]
    got = api.get(path).json()
    changed = api.put(path, got | {field: value, writable: "Changed"})
    assert changed.status_code == 200, changed.text
    assert_changed(got, {writable: "Changed"}, changed.json())


@sweep("kind, value", product(KINDS, ["017a5f00-0000-7000-8000-0000000000cc", 5, "", None, {}]))
def test_an_id_must_be_the_one_in_the_path(
    api: Client, resources: dict[str, tuple[str, str]], kind: str, value: Any
) -> None:
    path, field = resources[kind]
    got = api.get(path).json()
    value = str(got["id"]) + "0" if value == 5 else value
    assert fields_of(api.put(path, got | {"id": value, field: "Changed", "unknown": 1})) == ["id", "unknown"]
    assert api.get(path).json() == got


def test_a_member_keeps_its_email(api: Client, resources: dict[str, tuple[str, str]]) -> None:
    path, _ = resources["team member"]
    got = api.get(path).json()
    for email in ("other@example.com", None, ""):
        assert fields_of(api.put(path, {"email": email, "role": "Carer"})) == ["email"]
    assert api.put(path, {"email": "BO@example.com"}).json() == got


def test_permissions_are_taken_as_names_and_as_objects_of_a_response(
    api: Client, resources: dict[str, tuple[str, str]]
) -> None:
    path, _ = resources["team member"]
    shown = api.get(path).json()["permissions"]
    changed = api.put(path, {"permissions": [*shown, "view_documents", {"name": "view_invoices"}]}).json()
    assert [each["name"] for each in changed["permissions"]] == ["view_budget", "view_invoices", "view_documents"]
    named = shown[0] | {"id": CATEGORY, "label": "x"}  # the name counts
    assert api.put(path, {"permissions": [named]}).json()["permissions"] == shown
    for wrong in ({}, {"id": shown[0]["id"]}, {"name": "x"}, {"name": None}):
        [field] = fields_of(api.put(path, {"permissions": ["view_budget", wrong]}))
        assert field.startswith("permissions[1]")


@sweep(
    "kind, name, field",
    [
        ("participant", "last_name", "last_name"),
        ("note type", "badge_color", "badge_color"),
        ("team member", "permissions", "permissions[0].name"),
    ],
)
def test_an_invalid_object_is_reported_whatever_the_version(
    api: Client, resources: dict[str, tuple[str, str]], kind: str, name: str, field: str
) -> None:
    path, _ = resources[kind]
    for value in ({"id": CATEGORY}, {}):
        body = {name: [value] if name == "permissions" else value}
        assert fields_of(api.put(path, body, headers={"If-Match": '"other"'})) == [field]


def test_a_missing_resource_or_version_comes_first(api: Client, resources: dict[str, tuple[str, str]]) -> None:
    path, _ = resources["participant"]
    body = {"created_at": "2020-01-01T00:00:00Z"}
    assert api.put(path, body, headers={"If-Match": '"other"'}).status_code == 412
    api.delete(path).raise_for_status()
    assert api.put(path, body).status_code == 404


def test_a_create_ignores_read_only_fields_and_takes_no_id(api: Client, resources: dict[str, tuple[str, str]]) -> None:
    got = api.get(resources["participant"][0]).json()
    assert fields_of(api.post("/participants", got)) == ["id"]
    copy = api.post("/participants", {name: value for name, value in got.items() if name != "id"}).json()
    assert copy["id"] != got["id"]
    assert copy["created_at"] > got["created_at"]
    assert copy["account_manager"] == {"id": None, "name": None}


def test_a_secret_cannot_be_chosen(api: Client, resources: dict[str, tuple[str, str]]) -> None:
    body = {"url": "https://example.com", "secret": "whsec_x"}
    assert fields_of(api.post("/webhook-endpoints", body)) == ["secret"]
    assert fields_of(api.put(resources["webhook endpoint"][0], body)) == ["secret"]
