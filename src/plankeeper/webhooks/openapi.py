"""Events and webhook messages in the OpenAPI document.

The messages of each kind of event have a schema, whatever the payload of the endpoint.
"""

from typing import Any

from plankeeper.events.event_types import SENT_TYPES
from plankeeper.http.openapi_examples import EXAMPLES
from plankeeper.http.openapi_schemas import Schema, reference
from plankeeper.webhooks.examples import PLAN_MANAGER_ID, example_object, example_resource

# The schemas of the resources in events and full messages. Others contain an object without a schema.
_OBJECTS = {
    "invoice": "Invoice",
    "invoice_view_session": "InvoiceViewSession",
    "note_type": "NoteType",
    "participant": "Participant",
    "provider": "Provider",
    "team_member": "TeamMember",
    "webhook_delivery": "WebhookDelivery",
    "webhook_endpoint": "WebhookEndpoint",
}
# Some of the messages of these kinds have objects of which only the id is left: after an erasure, for example.
_ONLY_AN_ID = {"participant", "provider"}

_HEADERS = {
    "WebhookId": "The event's id, the same on every attempt.",
    "WebhookTimestamp": "The time of this attempt, in seconds since 1970.",
    "WebhookSignature": "`v1,` and the base64 of an HMAC-SHA256 of `id.timestamp.body`. Two of them, separated by a"
    " space, for a day after the secret was rotated.",
}


def add_event_data(document: dict[str, Any]) -> None:
    """Name the schemas that the `data` of an event can have: after an erasure and in old events, fields are missing."""
    names = (*sorted(_OBJECTS.values()), "EventMembers")
    data = document["components"]["schemas"]["Event"]["properties"]["data"]
    data["anyOf"] = [*map(reference, names), {"type": "null"}]


def add_messages(document: dict[str, Any]) -> None:
    """Add the messages and their schemas to a document with the schemas of all resources."""
    schemas: dict[str, Schema] = document["components"]["schemas"]
    types: dict[str, list[str]] = {}
    for type_ in SENT_TYPES:
        types.setdefault(type_.partition(".")[0], []).append(type_)
    schemas["OnlyAnId"] = {
        "type": "object",
        "description": "What is left of a resource.",
        "properties": {"id": {"type": "string", "description": "The resource's UUID."}},
        "required": ["id"],
        "additionalProperties": False,
        "examples": [{"id": EXAMPLES["path_ids"]["participant_id"]}],
    }
    for kind, types_of_kind in types.items():
        name = _message_name(kind)
        schemas[f"{name}Data"] = _data_schema(kind)
        schemas[name] = _message_schema(kind, types_of_kind, schemas)
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    document["components"]["parameters"] |= {
        name: {
            "name": name.replace("Webhook", "webhook-").lower(),
            "in": "header",
            "required": True,
            "description": description,
            "schema": {"type": "string"},
        }
        for name, description in _HEADERS.items()
    }
    document["webhooks"] = {kind: {"post": _operation(kind, each)} for kind, each in types.items()}


def _message_name(kind: str) -> str:
    """`NoteTypeMessage`"""
    return f"{kind.title().replace('_', '')}Message"


def _data_schema(kind: str) -> Schema:
    name = _OBJECTS.get(kind, "EventMembers")
    choices = [reference(name), *([reference("OnlyAnId")] if kind in _ONLY_AN_ID else []), {"type": "null"}]
    fields: dict[str, Schema] = {
        "plan_manager_id": {
            "type": "string",
            "format": "uuid",
            "description": "The UUID of the plan manager that the event belongs to.",
        },
        "resource": {"description": "The resource that changed.", **reference("ResourceRef")},
        "object": {
            "description": "Only with the payload `full`: the resource after the write, null after a deletion.",
            "anyOf": choices,
        },
        "previous": {
            "description": "Only with the payload `full`: as in the event, the earlier values of the changed fields.",
            "anyOf": [reference("EventMembers"), {"type": "null"}],
        },
    }
    return {
        "type": "object",
        "description": "What a message says about the resource that changed.",
        "properties": fields,
        "required": ["plan_manager_id", "resource"],
        "examples": [_thin_data(kind) | {"object": example_object(kind), "previous": None}],
    }


def _message_schema(kind: str, types: list[str], schemas: dict[str, Schema]) -> Schema:
    event = schemas["Event"]["examples"][0]
    shared = {name: schemas["Event"]["properties"][name] for name in ("sequence", "actor", "request_id")}
    example = {"type": types[0], "timestamp": event["created_at"], **{name: event[name] for name in shared}}
    return {
        "type": "object",
        "description": f"The body of a message about an event of the kind `{kind}`.",
        "properties": {
            "type": {
                "type": "string",
                "pattern": rf"^{kind}\.",  # without an enum: later versions can add types
                "description": f"One of {', '.join(f'`{each}`' for each in types)}. Later versions can add types.",
            },
            "timestamp": {"type": "string", "format": "date-time", "description": "When the write happened."},
            **shared,
            "data": {
                "description": "Which resource changed, and with the payload `full` also the resource itself.",
                **reference(f"{_message_name(kind)}Data"),
            },
        },
        "required": ["type", "timestamp", *shared, "data"],
        "examples": [example | {"data": _thin_data(kind)}],
    }


def _thin_data(kind: str) -> dict[str, Any]:
    return {"plan_manager_id": PLAN_MANAGER_ID, "resource": example_resource(kind)}


def _operation(kind: str, types: list[str]) -> dict[str, Any]:
    names = ", ".join(f"`{each}`" for each in types)
    return {
        "operationId": f"messages_{kind}",
        "tags": ["webhook_endpoints"],
        "summary": f"Receive {kind}",
        "description": f"A message about an event of one of these types, in the format of Standard Webhooks: {names}.",
        "security": [],
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in _HEADERS],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": reference(_message_name(kind))}},
        },
        "responses": {"2XX": {"description": "The receiver has stored the message. Otherwise, it is sent again."}},
        "x-plankeeper-extension": True,
        # openapi-generator would make functions of a client of the messages, with syntax errors.
        "x-internal": True,
    }
