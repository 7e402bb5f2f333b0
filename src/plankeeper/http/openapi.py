"""The OpenAPI document, generated from the operations and their structs."""

import inspect
import json
from collections.abc import Sequence
from typing import Any, get_origin

from plankeeper.core.examples import EXAMPLES, add_examples
from plankeeper.core.fields import EmptyResponse
from plankeeper.core.lists import Page
from plankeeper.core.read_only_fields import bulk_item_type
from plankeeper.http.openapi_bodies import body_name, name_bodies
from plankeeper.http.openapi_errors import (
    describe_errors,
    error_codes,
    error_example,
    error_examples,
    error_responses,
    error_schemas,
    shared_error_responses,
)
from plankeeper.http.openapi_headers import HEADERS, PARAMETERS, SECURITY_SCHEMES, refer_to_headers
from plankeeper.http.openapi_links import build_links, operation_id
from plankeeper.http.openapi_parameters import describe_parameters
from plankeeper.http.openapi_schemas import build_components, component_name, reference
from plankeeper.http.routing import PREFIX, Operation

API_VERSION = PREFIX.rpartition("/")[2]  # of the API, not of the program: the document changes only with the API
TAGS = {
    "participants": "People whose funding the plan manager manages.",
    "team_members": "Contacts on a participant's team, and their permissions.",
    "account_managers": "Employees of the plan manager who look after participants; read only.",
    "exit_reasons": "Reasons for which participants leave, in categories.",
    "note_types": "Kinds of notes, with their colours.",
    "providers": "Businesses that provide services to participants and send invoices.",
    "invoices": "Invoices of providers, with the warnings of automatic checks; read only.",
    "invoice_view_sessions": "Records of a user viewing an invoice; read only.",
    "events": "The audit trail: one event for each write, in commit order.",
    "webhook_endpoints": "URLs that receive signed events.",
    "webhook_deliveries": "Deliveries of events to webhook endpoints, with every attempt.",
    "api_keys": "The API key of a request, and what it can do.",
    "error_catalogue": "Explanations of all error codes and invoice warnings.",
}

_INTRODUCTION = """\
Every request requires an API key (`Authorization: Bearer <key>`) and the id of the plan manager that it acts for
(`X-Plan-Manager-Id`). Elements with `x-plankeeper-extension` are extensions of Plankeeper. All others belong to the
public contract.

Every request can have an id of yours, 1 to 128 visible ASCII characters, in the header `X-Request-Id`. Every response
has this id, or a new one, in the same header.

If a resource has an `ETag`, `If-Match` and `If-None-Match` hold for every method, also where an operation doesn't list
both.

A path that doesn't exist returns 404 with the code `path_not_found`. A method that a path doesn't have returns 405 with
the code `method_not_allowed`, and the header `Allow`.
"""
# Of schemas that no example of a response or a body contains.
_OTHER_EXAMPLES = {
    "ErrorResource": {"kind": "participant", "id": EXAMPLES["path_ids"]["participant_id"]},
    "PermissionByName": {"name": "view_budget"},
}


def build_document(operations: Sequence[Operation]) -> dict[str, Any]:
    """The whole document (OpenAPI 3.1)."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, operations)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Plankeeper public API",
            "version": API_VERSION,
            "description": _INTRODUCTION,
            "contact": {"name": "The operator of this server"},
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The server that this document comes from."}],
        "security": [{"api_key": [], "plan_manager": []}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": _schemas(operations),
            "securitySchemes": SECURITY_SCHEMES,
            "parameters": dict(PARAMETERS),
            "headers": HEADERS,
            "examples": error_examples(),
            "responses": shared_error_responses(),
        },
    }


def render_document(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _operation(operation: Operation, operations: Sequence[Operation]) -> dict[str, Any]:
    summary, _, paragraphs = (inspect.getdoc(operation.handler) or "").partition("\n\n")
    first, _, rest = summary.replace("\n", " ").partition(". ")
    entry: dict[str, Any] = {
        "operationId": operation_id(operation),
        "tags": [operation.tag],
        "summary": first.rstrip("."),
        "parameters": describe_parameters(operation),
        "responses": _responses(operation, operations),
    }
    if operation.is_for_key:
        entry["security"] = [{"api_key": []}]
    if operation.required_scopes:
        entry["x-required-scopes"] = list(operation.required_scopes)
    parts = (rest, paragraphs.replace("\n", " "), _describe_scopes(operation), describe_errors(operation))
    entry["description"] = " ".join(part for part in parts if part)
    entry["x-error-codes"] = error_codes(operation)
    if operation.body:
        entry["requestBody"] = {
            "required": not operation.optional_body,
            "content": {
                "application/json": {
                    "schema": reference(body_name(operation)),
                    "example": EXAMPLES["bodies"][body_name(operation)],
                }
            },
        }
    if operation.extension:
        entry["x-plankeeper-extension"] = True
    return entry


def _describe_scopes(operation: Operation) -> str:
    names = " and ".join(f"`{each}`" for each in operation.required_scopes)
    return f"Requires the scope{'s' if ' and ' in names else ''} {names}." if names else "Any key can send it."


def _responses(operation: Operation, operations: Sequence[Operation]) -> dict[str, Any]:
    creates = operation.method == "POST" and operation.writes
    returns_view = (operation.method == "PUT" or operation.creates) and not operation.has_secret
    applies = {
        "ETag": operation.has_etag or returns_view,
        "ContentLocation": returns_view,
        "Location": operation.creates,
        "IdempotentReplayed": creates,
        "SyncedUntil": operation.has_updated_since,
    }
    success: dict[str, Any] = {
        "description": _success_description(operation),
        "headers": refer_to_headers(name for name, does_apply in applies.items() if does_apply),
        "content": {"application/json": {"schema": _schema(operation.response_type), **_own_example(operation)}},
    }
    if links := build_links(operation, operations):
        success["links"] = links
    responses: dict[str, Any] = {str(operation.status): success}
    if operation.has_etag:
        responses["304"] = {
            "description": "The resource matches If-None-Match.",
            "headers": refer_to_headers(["ETag"]),
            "x-plankeeper-extension": True,
        }
    return responses | error_responses(operation)


def _own_example(operation: Operation) -> dict[str, Any]:
    """What the example of the request returns, if that isn't the example of the schema."""
    name = f"{operation.method} {operation.path.removeprefix(PREFIX)}"
    return {"example": EXAMPLES["operations"][name]} if name in EXAMPLES["operations"] else {}


def _success_description(operation: Operation) -> str:
    response_type = operation.response_type
    if response_type is EmptyResponse:
        return "The resource has been deleted. The body is an empty object."
    if get_origin(response_type) is Page:
        return "A page of the list."
    return inspect.getdoc(get_origin(response_type) or response_type) or ""


def _schema(struct_type: Any) -> dict[str, Any]:
    return reference(component_name(struct_type))


def _schemas(operations: Sequence[Operation]) -> dict[str, Any]:
    queries = [operation.query for operation in operations if operation.query]
    struct_types: list[Any] = list(queries)
    for operation in operations:
        struct_types += [operation.response_type, *([operation.body] if operation.body else [])]
    components = build_components(struct_types) | error_schemas()
    bodies = name_bodies(operations, components)
    written: set[Any] = {operation.body for operation in operations if operation.body}
    items = {bulk_item_type(operation.body) for operation in operations if operation.body and operation.is_bulk}
    for struct in {*queries, *written, *items}:
        del components[struct.__name__]  # the fields of a query are parameters
    components |= bodies
    add_examples(
        components,
        {
            "Error": error_example(),
            "ErrorResource": {"kind": "participant", "id": EXAMPLES["path_ids"]["participant_id"]},
            "PermissionByName": {"name": "view_budget"},
        },
    )
    return {name: components[name] for name in sorted(components)}
