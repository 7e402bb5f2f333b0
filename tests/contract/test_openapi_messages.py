"""Webhook messages are what the OpenAPI document says."""

import json
import re
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from jsonschema_rs import Draft202012Validator
from msgspec import Raw

from plankeeper.core.context import SYSTEM
from plankeeper.events.event_types import EVENT_TYPES, NEVER_SENT
from plankeeper.events.schemas import Event, ResourceRef
from plankeeper.http.openapi.schemas import reference
from plankeeper.webhooks.messages import build_body
from plankeeper.webhooks.schemas import TEST_TYPE
from support.client import DOCUMENT, PREFIX, referenced_schemas
from support.factories import Tenant
from support.server import wait_until
from support.sweeps import sweep

SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
WEBHOOKS: dict[str, Any] = DOCUMENT["webhooks"]
TYPES = sorted(EVENT_TYPES - NEVER_SENT)


def message_schema(kind: str) -> dict[str, Any]:
    return WEBHOOKS[kind]["post"]["requestBody"]["content"]["application/json"]["schema"]


def resource_schema(kind: str) -> str:
    """The name of the schema of the resource in a message."""
    if "data" not in message_schema(kind)["properties"]:
        return "EventFields"
    schema = message_schema(kind)["properties"]["data"]["properties"]["object"]["then"]
    return schema.get("anyOf", [schema])[0]["$ref"].rpartition("/")[2]


@cache
def validator_of(schema_json: str) -> Draft202012Validator:
    components = {"schemas": referenced_schemas(schema_json)}  # with all of the document, it takes 25 ms
    return Draft202012Validator({"components": components, **json.loads(schema_json)})


def validation_errors(kind: str, message: Any) -> list[str]:
    validator = validator_of(json.dumps(message_schema(kind)))
    return [each.message for each in validator.iter_errors(message)]


def test_every_event_type_that_is_sent_has_a_message() -> None:
    types_in_schemas = [message_schema(kind)["properties"]["type"]["description"] for kind in WEBHOOKS]
    named = [re.findall(r"`(.+?)`", each) for each in types_in_schemas]
    assert sorted(type_ for types in named for type_ in types) == TYPES
    assert NEVER_SENT <= EVENT_TYPES


@sweep("event_type", TYPES)
def test_a_message_is_valid_in_both_payloads(event_type: str) -> None:
    kind = event_type.partition(".")[0]
    [resource] = SCHEMAS[resource_schema(kind)]["examples"]
    participant_id = UUID(int=2) if kind in ("plan", "team_member") else None
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
    if resource_schema(kind) != "EventFields":
        assert validation_errors(kind, full | {"data": full["data"] | {"object": {"no_such_field": 1}}})


def test_the_data_of_an_event_is_the_resource_in_its_schema(tenant: Tenant) -> None:
    client, ids = tenant.client, tenant.ids
    client.post(f"/webhook-deliveries/{ids['webhook_delivery_id']}/retry").raise_for_status()
    client.post("/webhook-endpoints", {"url": "https://example.com/hooks"}).raise_for_status()
    client.post("/note-types", {"note_type": "Visit"}).raise_for_status()
    client.post("/exit-reasons", {"name": "Moved"}).raise_for_status()
    names = {kind: name for kind in WEBHOOKS if (name := resource_schema(kind)) != "EventFields"}
    names["webhook_delivery"] = "WebhookDelivery"  # in events, but in no message
    for type_ in ("note_type.created", "exit_reason.created", "webhook_delivery.retried"):
        wait_until(lambda type_=type_: client.get("/events", type=type_).json()["data"])
    seen: set[str] = set()
    for event in client.get("/events", limit=1000).json()["data"]:
        name = names.get(event["resource"]["kind"])
        if event["data"] and name:
            validator = validator_of(json.dumps(reference(name)))
            assert [each.message for each in validator.iter_errors(event["data"])] == [], event
            assert set(event["data"]) <= set(SCHEMAS[name]["properties"]), event
            seen.add(name)
    assert seen == {*names.values()}


@sweep("event_type", TYPES)
def test_a_test_contains_the_example_of_the_document(event_type: str) -> None:
    kind, _, verb = event_type.partition(".")
    [own] = SCHEMAS["WebhookEndpoint"]["examples"]
    data = Raw(json.dumps(own).encode())
    event = Event(
        UUID(int=3), TEST_TYPE, datetime.now(UTC), SYSTEM, ResourceRef("webhook_endpoint", "1"), data, None, None, 7
    )  # fmt: skip
    thin = json.loads(build_body(event, UUID(int=1), "thin", event_type))
    full = json.loads(build_body(event, UUID(int=1), "full", event_type))
    assert [validation_errors(kind, each) for each in (thin, full)] == [[], []]
    assert (full["type"], full["sequence"], full["data"]["plan_manager_id"]) == (event_type, None, str(UUID(int=1)))
    changed = {name: full["data"].pop(name) for name in ("object", "previous")}
    assert full == thin
    if event_type == TEST_TYPE:  # about the endpoint itself
        assert changed == {"object": own, "previous": None}
        return
    examples = WEBHOOKS[kind]["post"]["requestBody"]["content"]["application/json"]["examples"]
    assert full["data"]["resource"] == examples["thin"]["value"]["data"]["resource"]
    only_id = {"object": {"id": full["data"]["resource"]["id"]}}  # of kinds without a schema
    example = examples["full"]["value"]["data"] if "full" in examples else only_id
    if verb == "deleted":
        assert changed == {"object": None, "previous": example["object"]}
    elif verb in ("erased", "purged", "hold_placed", "hold_released"):
        assert changed == {"object": {"id": example["object"]["id"]}, "previous": None}
    else:
        assert changed == {"object": example["object"], "previous": {} if verb == "updated" else None}


@pytest.mark.parametrize(
    "kind, path",
    [
        ("exit_reason", "/exit-reasons/{exit_reason_id}"),
        ("invoice", "/invoices/{invoice_id}"),
        ("invoice_view_session", "/invoice-view-sessions/{session_id}"),
        ("note", "/notes/{note_id}"),
        ("note_type", "/note-types/{note_type_id}"),
        ("participant", "/participants/{participant_id}"),
        ("plan", "/participants/{participant_id}/plans/{plan_id}"),
        ("provider", "/providers/{provider_id}"),
        ("team_member", "/participants/{participant_id}/team-members/{team_member_id}"),
        ("webhook_endpoint", "/webhook-endpoints/{webhook_endpoint_id}"),
    ],
)
def test_a_message_contains_the_resource(kind: str, path: str) -> None:
    response = DOCUMENT["paths"][PREFIX + path]["get"]["responses"]["200"]
    schema = response["content"]["application/json"]["schema"]
    assert schema["$ref"].rpartition("/")[2] == resource_schema(kind)


def test_the_examples_are_valid_and_name_the_resource_that_they_contain() -> None:
    for kind, webhook in WEBHOOKS.items():
        [content] = webhook["post"]["requestBody"]["content"].values()
        messages = {name: each["value"] for name, each in content["examples"].items()}
        assert [validation_errors(kind, each) for each in messages.values()] == [[]] * len(messages), kind
        resource, full = messages["thin"]["data"]["resource"], messages.get("full", {"data": {}})["data"]
        assert resource["kind"] == kind
        if resource_schema(kind) == "EventFields":
            assert not full
            continue
        assert (full["resource"], resource["id"]) == (resource, str(full["object"]["id"]))
        is_part = kind in ("plan", "statement", "team_member")
        assert resource.get("participant_id") == (full["object"]["participant_id"] if is_part else None)
