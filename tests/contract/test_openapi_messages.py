"""Webhook messages are what the OpenAPI document says."""

import json
import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from jsonschema_rs import Draft202012Validator
from msgspec import Raw

from plankeeper.events.event_types import EVENT_TYPES, NEVER_SENT
from plankeeper.events.schemas import Event, ResourceRef
from plankeeper.http.context import SYSTEM
from plankeeper.webhooks.payload import build_body
from support.client import DOCUMENT, PREFIX

SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
WEBHOOKS: dict[str, Any] = DOCUMENT["webhooks"]
TYPES = sorted(EVENT_TYPES - NEVER_SENT)


def message_schema(kind: str) -> dict[str, Any]:
    return WEBHOOKS[kind]["post"]["requestBody"]["content"]["application/json"]["schema"]


def resource_schema(kind: str) -> str:
    """The name of the schema of the resource in a message."""
    message = SCHEMAS[message_schema(kind)["$ref"].rpartition("/")[2]]
    data = SCHEMAS[message["properties"]["data"]["$ref"].rpartition("/")[2]]
    return data["properties"]["object"]["anyOf"][0]["$ref"].rpartition("/")[2]


def validation_errors(kind: str, message: Any) -> list[str]:
    validator = Draft202012Validator({"components": DOCUMENT["components"], **message_schema(kind)})
    return [each.message for each in validator.iter_errors(message)]


def test_every_event_type_that_is_sent_has_a_message() -> None:
    messages = [SCHEMAS[message_schema(kind)["$ref"].rpartition("/")[2]] for kind in WEBHOOKS]
    named = [re.findall(r"`(.+?)`", each["properties"]["type"]["description"]) for each in messages]
    assert sorted(type_ for types in named for type_ in types) == TYPES
    assert NEVER_SENT <= EVENT_TYPES


@pytest.mark.parametrize("event_type", TYPES)
def test_a_message_is_valid_in_both_payloads(event_type: str) -> None:
    kind = event_type.partition(".")[0]
    [resource] = SCHEMAS[resource_schema(kind)]["examples"]
    participant_id = UUID(int=2) if kind == "team_member" else None
    data, previous = Raw(json.dumps(resource).encode()), Raw(b'{"name": "old"}')
    event = Event(
        UUID(int=3), event_type, datetime.now(UTC), SYSTEM, ResourceRef(kind, "1", participant_id), data, previous,
        "request", 7,
    )  # fmt: skip
    deleted = Event(UUID(int=3), event_type, datetime.now(UTC), SYSTEM, ResourceRef(kind, "1"), None, data, None, None)
    thin = json.loads(build_body(event, UUID(int=1), "thin"))
    full = json.loads(build_body(event, UUID(int=1), "full"))
    without_object = json.loads(build_body(deleted, UUID(int=1), "full"))
    assert [validation_errors(kind, each) for each in (thin, full, without_object)] == [[], [], []]
    assert full["data"]["object"] == resource
    assert full["data"]["previous"] == {"name": "old"}
    assert full["data"]["resource"].get("participant_id") == (str(participant_id) if participant_id else None)
    assert thin["sequence"] == (None if event_type == "webhook_endpoint.tested" else 7)
    assert (thin["actor"]["kind"], thin["request_id"]) == ("system", "request")
    assert set(thin["data"]) == {"plan_manager_id", "resource"}
    assert validation_errors(kind, full | {"type": "other.created"})
    assert validation_errors(kind, full | {"data": full["data"] | {"object": []}})


@pytest.mark.parametrize(
    "kind, path",
    [
        ("invoice", "/invoices/{invoice_id}"),
        ("invoice_view_session", "/invoice-view-sessions/{session_id}"),
        ("note_type", "/note-types/{note_type_id}"),
        ("participant", "/participants/{participant_id}"),
        ("provider", "/providers/{provider_id}"),
        ("team_member", "/participants/{participant_id}/team-members/{team_member_id}"),
        ("webhook_endpoint", "/webhook-endpoints/{webhook_endpoint_id}"),
    ],
)
def test_a_message_contains_the_resource(kind: str, path: str) -> None:
    response = DOCUMENT["paths"][PREFIX + path]["get"]["responses"]["200"]
    schema = response["content"]["application/json"]["schema"]
    assert schema["$ref"].rpartition("/")[2] == resource_schema(kind)
