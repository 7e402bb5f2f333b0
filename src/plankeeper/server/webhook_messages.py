"""Webhook messages in the OpenAPI document: each kind of event has a schema, whatever the payload of the endpoint."""

from typing import Any

from plankeeper.events.event_types import SENT_TYPES
from plankeeper.http.openapi.schemas import Schema, reference
from plankeeper.webhooks.examples import PLAN_MANAGER_ID, example_object, example_resource

# The schemas of the resources in full messages. Other messages contain an object without a schema.
_OBJECTS = {
    "claim_batch": "ClaimBatch",
    "exit_reason": "ExitReason",
    "invoice": "Invoice",
    "invoice_view_session": "InvoiceViewSession",
    "note": "Note",
    "note_type": "NoteType",
    "participant": "Participant",
    "payment_run": "PaymentRun",
    "plan": "Plan",
    "provider": "Provider",
    "statement_run": "StatementRun",
    "statement": "StatementSummary",
    "team_member": "TeamMember",
    "webhook_endpoint": "WebhookEndpoint",
}
# Some messages of these kinds have objects with only an id: after an erasure, for example.
_WITHOUT_FIELDS = {"participant", "provider"}
_ONLY_AN_ID: Schema = {
    "type": "object",
    "description": "What is left of a resource.",
    "properties": {"id": {"type": "string", "description": "The resource's UUID."}},
    "required": ["id"],
    "additionalProperties": False,
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
    types: dict[str, list[str]] = {}
    for type_ in SENT_TYPES:
        types.setdefault(type_.partition(".")[0], []).append(type_)
    schemas["WebhookMessageData"] = _data_schema(schemas)
    schemas["WebhookMessage"] = _message_schema(schemas)
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
    document["webhooks"] = {kind: {"post": _operation(kind, each, schemas)} for kind, each in types.items()}


def _data_schema(schemas: dict[str, Schema]) -> Schema:
    fields: dict[str, Schema] = {
        "plan_manager_id": {
            "type": "string",
            "format": "uuid",
            "description": "The UUID of the plan manager that the event belongs to.",
        },
        "resource": {"description": "The resource that changed.", **reference("ResourceRef")},
        "object": {
            "description": "Only with the payload `full`: the resource after the write, null after a deletion.",
            "anyOf": [reference("EventFields"), {"type": "null"}],
        },
        "previous": {
            "description": "Only with the payload `full`: as in the event, the earlier values of the changed fields.",
            "anyOf": [reference("EventFields"), {"type": "null"}],
        },
    }
    return {
        "type": "object",
        "description": "What a message says about the resource that changed.",
        "properties": fields,
        "required": ["plan_manager_id", "resource"],
        "examples": [_full_example("participant", schemas)["data"]],
    }


def _message_schema(schemas: dict[str, Schema]) -> Schema:
    """The schema of all messages. That of a kind also has the pattern of its types, and the schema of its resource."""
    shared = {name: schemas["Event"]["properties"][name] for name in ("sequence", "actor", "request_id")}
    return {
        "type": "object",
        "description": "The body of a webhook message.",
        "properties": {
            "type": {
                "type": "string",
                "description": "The type of the event, such as `participant.updated`. Later versions can add types.",
            },
            "timestamp": {"type": "string", "format": "date-time", "description": "When the write happened."},
            **shared,
            "data": {
                "description": "Which resource changed, and with the payload `full` also the resource itself.",
                **reference("WebhookMessageData"),
            },
        },
        "required": ["type", "timestamp", *shared, "data"],
        "examples": [_thin_example("participant", schemas)],
    }


def _body(kind: str, types: list[str], schemas: dict[str, Schema]) -> dict[str, Any]:
    """The body of the messages of a kind. The schema isn't a component: clients need no class for each kind."""
    names = ", ".join(f"`{each}`" for each in types)
    fields: dict[str, Schema] = {
        "type": {
            "type": "string",
            "pattern": rf"^{kind}\.",  # without an enum: later versions can add types
            "description": f"One of {names}. Later versions can add types.",
        }
    }
    examples = {"thin": {"summary": "With the payload `thin`", "value": _thin_example(kind, schemas)}}
    if kind in _OBJECTS:
        resource = reference(_OBJECTS[kind])
        fields["data"] = {
            "description": "Which resource changed, and with the payload `full` also the resource itself.",
            "allOf": [reference("WebhookMessageData")],
            "properties": {
                "object": {
                    "description": "The resource after the write, null after a deletion.",
                    # Not a union with null: openapi-generator fails with it, or writes clients that don't compile.
                    "if": {"type": "object"},
                    "then": {"anyOf": [resource, _ONLY_AN_ID]} if kind in _WITHOUT_FIELDS else resource,
                }
            },
        }
        examples["full"] = {"summary": "With the payload `full`", "value": _full_example(kind, schemas)}
    schema = {"type": "object", "allOf": [reference("WebhookMessage")], "properties": fields}
    return {"schema": schema, "examples": examples}


def _thin_example(kind: str, schemas: dict[str, Schema]) -> dict[str, Any]:
    event = schemas["Event"]["examples"][0]
    type_ = next(each for each in SENT_TYPES if each.partition(".")[0] == kind)
    shared = {name: event[name] for name in ("sequence", "actor", "request_id")}
    data = {"plan_manager_id": PLAN_MANAGER_ID, "resource": example_resource(kind)}
    return {"type": type_, "timestamp": event["created_at"], **shared, "data": data}


def _full_example(kind: str, schemas: dict[str, Schema]) -> dict[str, Any]:
    example = _thin_example(kind, schemas)
    example["data"] |= {"object": example_object(kind), "previous": None}
    return example


def _operation(kind: str, types: list[str], schemas: dict[str, Schema]) -> dict[str, Any]:
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
            "content": {"application/json": _body(kind, types, schemas)},
        },
        "responses": {"2XX": {"description": "The receiver has stored the message. Otherwise, it is sent again."}},
        "x-plankeeper-extension": True,
        # openapi-generator would make functions of a client of the messages, with syntax errors.
        "x-internal": True,
    }
