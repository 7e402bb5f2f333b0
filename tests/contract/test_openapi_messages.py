"""Webhook messages are what the OpenAPI document says."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from jsonschema_rs import Draft202012Validator
from msgspec import Raw

from plankeeper.events.event_types import EVENT_TYPES
from plankeeper.webhooks.openapi import NEVER_SENT
from plankeeper.webhooks.payload import build_body
from support.client import DOCUMENT, PREFIX

SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
WEBHOOKS: dict[str, Any] = DOCUMENT["webhooks"]


def message_schema(event_type: str) -> dict[str, Any]:
    return WEBHOOKS[event_type]["post"]["requestBody"]["content"]["application/json"]["schema"]


def resource_schema(event_type: str) -> str:
    """The name of the schema of the resource in a message."""
    message = SCHEMAS[message_schema(event_type)["$ref"].rpartition("/")[2]]
    data = SCHEMAS[message["properties"]["data"]["$ref"].rpartition("/")[2]]
    return data["properties"]["object"]["anyOf"][0]["$ref"].rpartition("/")[2]


def validation_errors(event_type: str, message: Any) -> list[str]:
    validator = Draft202012Validator({"components": DOCUMENT["components"], **message_schema(event_type)})
    return [each.message for each in validator.iter_errors(message)]


def test_every_event_type_that_is_sent_has_a_message() -> None:
    assert set(WEBHOOKS) == EVENT_TYPES - NEVER_SENT
    assert NEVER_SENT <= EVENT_TYPES


@pytest.mark.parametrize("event_type", WEBHOOKS)
def test_a_message_is_valid_in_both_payloads(event_type: str) -> None:
    [resource] = SCHEMAS[resource_schema(event_type)]["examples"]
    kind = event_type.partition(".")[0]
    common = (event_type, datetime.now(UTC), UUID(int=1), kind, "1")
    thin = json.loads(build_body(*common, "thin", None))
    full = json.loads(build_body(*common, "full", Raw(json.dumps(resource).encode())))
    deleted = json.loads(build_body(*common, "full", None))
    assert [validation_errors(event_type, each) for each in (thin, full, deleted)] == [[], [], []]
    assert full["data"]["object"] == resource
    assert validation_errors(event_type, full | {"type": "other.created"})
    assert validation_errors(event_type, full | {"data": full["data"] | {"object": []}})


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
    [shape] = {resource_schema(each) for each in WEBHOOKS if each.startswith(f"{kind}.")} - {"EventMembers"}
    assert schema["$ref"].rpartition("/")[2] == shape
