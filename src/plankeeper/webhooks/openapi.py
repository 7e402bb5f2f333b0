"""Webhook messages in the OpenAPI document: each event type has a schema, whatever the payload of the endpoint."""

from typing import Any

from plankeeper.events.event_types import EVENT_TYPES
from plankeeper.http.openapi_examples import EXAMPLES
from plankeeper.http.openapi_schemas import Schema, reference

# No endpoint receives these.
NEVER_SENT = {"webhook_delivery.retried", "webhook_endpoint.replayed"}

# The schemas of the resources in full messages. Other messages contain an object without a schema.
_OBJECTS = {
    "invoice": "InvoiceWithLines",
    "invoice_view_session": "InvoiceViewSession",
    "note_type": "NoteType",
    "participant": "Participant",
    "provider": "Provider",
    "team_member": "TeamMember",
    "webhook_endpoint": "WebhookEndpoint",
}
_ONLY_AN_ID = {
    "participant.erased",
    "participant.hold_placed",
    "participant.hold_released",
    "participant.purged",
    "provider.purged",
}

_HEADERS = {
    "WebhookId": "The event's id, the same on every attempt.",
    "WebhookTimestamp": "The time of this attempt, in seconds since 1970.",
    "WebhookSignature": "`v1,` and the base64 of an HMAC-SHA256 of `id.timestamp.body`. Two of them, separated by a"
    " space, for a day after the secret was rotated.",
}


def add_messages(document: dict[str, Any]) -> None:
    """Add the messages and their schemas to a document with the schemas of all resources."""
    schemas: dict[str, Schema] = document["components"]["schemas"]
    types = sorted(EVENT_TYPES - NEVER_SENT)
    for object_name in sorted({_object_name(type_) for type_ in types}):
        schemas[f"{object_name}MessageData"] = _data_schema(object_name, schemas)
    for type_ in types:
        schemas[_message_name(type_)] = _message_schema(type_, schemas)
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
    document["webhooks"] = {type_: {"post": _operation(type_)} for type_ in types}


def _object_name(event_type: str) -> str:
    """The schema of the resource in a message."""
    kind = event_type.partition(".")[0]
    return "EventMembers" if event_type in _ONLY_AN_ID else _OBJECTS.get(kind, "EventMembers")


def _message_name(event_type: str) -> str:
    """`ParticipantCreatedMessage`"""
    return "".join(each.capitalize() for each in event_type.replace(".", "_").split("_")) + "Message"


def _data_schema(object_name: str, schemas: dict[str, Schema]) -> Schema:
    members: dict[str, Schema] = {
        "plan_manager_id": {
            "type": "string",
            "format": "uuid",
            "description": "The UUID of the plan manager that the event belongs to.",
        },
        "resource": {"description": "The resource that changed.", **reference("ResourceRef")},
        "object": {
            "description": "Only with the payload `full`: the resource after the write, null after a deletion.",
            "anyOf": [reference(object_name), {"type": "null"}],
        },
    }
    kind = next((kind for kind, name in _OBJECTS.items() if name == object_name), "participant")
    example = _thin_data(kind) | {"object": schemas[object_name]["examples"][0]}
    return {
        "type": "object",
        "description": "What a message says about the resource that changed.",
        "properties": members,
        "required": ["plan_manager_id", "resource"],
        "examples": [example],
    }


def _message_schema(event_type: str, schemas: dict[str, Schema]) -> Schema:
    timestamp = schemas["Event"]["examples"][0]["created_at"]
    return {
        "type": "object",
        "description": f"The body of a message about an event of the type `{event_type}`.",
        "properties": {
            "type": {"type": "string", "const": event_type, "description": "The type of the event."},
            "timestamp": {"type": "string", "format": "date-time", "description": "When the write happened."},
            "data": {
                "description": "Which resource changed, and with the payload `full` also the resource itself.",
                **reference(f"{_object_name(event_type)}MessageData"),
            },
        },
        "required": ["type", "timestamp", "data"],
        "examples": [{"type": event_type, "timestamp": timestamp, "data": _thin_data(event_type.partition(".")[0])}],
    }


def _thin_data(kind: str) -> dict[str, Any]:
    ids = EXAMPLES["path_ids"]
    resource_id = ids.get("session_id" if kind == "invoice_view_session" else f"{kind}_id", ids["event_id"])
    [plan_manager] = EXAMPLES["responses"]["CurrentApiKey"]["plan_managers"][:1]
    return {"plan_manager_id": plan_manager["id"], "resource": {"kind": kind, "id": str(resource_id)}}


def _operation(event_type: str) -> dict[str, Any]:
    return {
        "operationId": f"messages_{event_type.replace('.', '_')}",
        "tags": ["webhook_endpoints"],
        "summary": f"Receive {event_type}",
        "description": f"A message about an event of the type `{event_type}`, in the format of Standard Webhooks.",
        "security": [],
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in _HEADERS],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": reference(_message_name(event_type))}},
        },
        "responses": {"2XX": {"description": "The receiver has stored the message. Otherwise, it is sent again."}},
        "x-plankeeper-extension": True,
        # openapi-generator would make functions of a client of the messages, with syntax errors.
        "x-internal": True,
    }
