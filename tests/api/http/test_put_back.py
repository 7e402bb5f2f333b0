"""A client can send back a response: read-only fields are ignored, except for an id that isn't the path's."""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any
from uuid import UUID

import pytest

from support.client import Client
from support.importing import import_records
from support.resources import assert_changed
from support.server import RunningServer
from support.sweeps import sweep

ResourceOf = Callable[[str], tuple[str, str]]
MANAGER, CATEGORY = "017a5f00-0000-7000-8000-0000000000aa", "017a5f00-0000-7000-8000-0000000000bb"


@pytest.fixture
def resource_of(server: RunningServer, api: Client) -> ResourceOf:
    """The path of a resource of a kind with every field set, and a field to change."""

    def create(path: str, body: dict[str, Any]) -> str:
        return f"{path}/{api.create(path, body)['id']}"

    @cache
    def participant() -> str:
        rows = {
            "account-managers": [{"id": MANAGER, "first_name": "Max", "email": "max@pm.example"}],
            "exit-reasons": [{"id": CATEGORY, "name": "Moved"}],
        }
        for kind, records in rows.items():
            assert not server.run(import_records(server, UUID(api.plan_manager_id), kind, records)).errors
        references = {"account_manager_id": MANAGER, "exit_reason_category_id": CATEGORY}
        return create("/participants", references | {"date_of_birth": "1980-01-02"})

    @cache
    def make(kind: str) -> tuple[str, str]:
        if kind == "participant":
            return participant(), "last_name"
        if kind == "team member":
            member = {"email": "bo@example.com", "permissions": ["view_budget"]}
            return create(f"{participant()}/team-members", member), "first_name"
        path, body, field = OTHERS[kind]
        return create(path, body), field

    return make


# The path, the body and a field to change.
OTHERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "provider": ("/providers", {"abn": "1"}, "entity_name"),
    "invoice": ("/invoices", {"line_items": [{"description": "Bus", "quantity": 2}]}, "external_id"),
    "note type": ("/note-types", {"note_type": "Call"}, "badge_color"),
    "webhook endpoint": ("/webhook-endpoints", {"url": "https://example.com"}, "description"),
}
KINDS = ["participant", "team member", *OTHERS]


def fields_of(response: Any) -> list[str]:
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request"), response.text
    return [each["field"] for each in response.json()["errors"]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_resource_can_be_put_back_as_it_is_and_with_a_change(api: Client, resource_of: ResourceOf, kind: str) -> None:
    path, field = resource_of(kind)
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
    api: Client, resource_of: ResourceOf, kind: str, field: str, value: Any
) -> None:
    path, writable = resource_of(kind)
    got = api.get(path).json()
    changed = api.put(path, got | {field: value, writable: "Changed"})
    assert changed.status_code == 200, changed.text
    assert_changed(got, {writable: "Changed"}, changed.json())


@sweep("kind, value", product(KINDS, ["017a5f00-0000-7000-8000-0000000000cc", 5, "", None, {}]))
def test_an_id_must_be_the_one_in_the_path(api: Client, resource_of: ResourceOf, kind: str, value: Any) -> None:
    path, field = resource_of(kind)
    got = api.get(path).json()
    value = str(got["id"]) + "0" if value == 5 else value
    assert fields_of(api.put(path, got | {"id": value, field: "Changed", "unknown": 1})) == ["id", "unknown"]
    assert api.get(path).json() == got


def test_a_member_keeps_its_email(api: Client, resource_of: ResourceOf) -> None:
    path, _ = resource_of("team member")
    got = api.get(path).json()
    for email in ("other@example.com", None, ""):
        assert fields_of(api.put(path, {"email": email, "role": "Carer"})) == ["email"]
    assert api.put(path, {"email": "BO@example.com"}).json() == got


def test_permissions_are_taken_as_names_and_as_objects_of_a_response(api: Client, resource_of: ResourceOf) -> None:
    path, _ = resource_of("team member")
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
    api: Client, resource_of: ResourceOf, kind: str, name: str, field: str
) -> None:
    path, _ = resource_of(kind)
    for value in ({"id": CATEGORY}, {}):
        body = {name: [value] if name == "permissions" else value}
        assert fields_of(api.put(path, body, headers={"If-Match": '"other"'})) == [field]


def test_a_missing_resource_or_version_comes_first(api: Client, resource_of: ResourceOf) -> None:
    path, _ = resource_of("participant")
    body = {"created_at": "2020-01-01T00:00:00Z"}
    assert api.put(path, body, headers={"If-Match": '"other"'}).status_code == 412
    api.delete(path).raise_for_status()
    assert api.put(path, body).status_code == 404


def test_a_create_ignores_read_only_fields_and_takes_no_id(api: Client, resource_of: ResourceOf) -> None:
    got = api.get(resource_of("participant")[0]).json()
    assert fields_of(api.post("/participants", got)) == ["id"]
    copy = api.post("/participants", {name: value for name, value in got.items() if name != "id"}).json()
    assert copy["id"] != got["id"]
    assert copy["created_at"] > got["created_at"]
    assert copy["account_manager"] == {"id": None, "name": None}


def test_a_secret_cannot_be_chosen(api: Client, resource_of: ResourceOf) -> None:
    body = {"url": "https://example.com", "secret": "whsec_x"}
    assert fields_of(api.post("/webhook-endpoints", body)) == ["secret"]
    assert fields_of(api.put(resource_of("webhook endpoint")[0], body)) == ["secret"]
