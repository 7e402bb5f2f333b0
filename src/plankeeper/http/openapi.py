"""The OpenAPI document, generated from the operations and their structs."""

import inspect
import json
from collections.abc import Sequence
from typing import Any, get_args, get_origin

from msgspec import Struct
from msgspec.structs import fields

from plankeeper import __version__
from plankeeper.http.errors import CODES, Error
from plankeeper.http.openapi_headers import HEADER_NAMES, HEADERS, PARAMETERS, SECURITY_SCHEMES
from plankeeper.http.openapi_parameters import describe_parameters
from plankeeper.http.openapi_schemas import build_components, component_name, reference
from plankeeper.http.pagination import Page
from plankeeper.http.routing import Operation
from plankeeper.http.schemas import EmptyResponse

_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}

TAGS = {
    "participants": "People whose funding the plan manager manages.",
    "team_members": "Contacts on a participant's team, and their permissions.",
    "account_managers": "Employees of the plan manager who look after participants; read only.",
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
"""


def build_document(operations: Sequence[Operation]) -> dict[str, Any]:
    """The whole document (OpenAPI 3.1)."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Plankeeper public API", "version": __version__, "description": _INTRODUCTION},
        "servers": [{"url": "/", "description": "The server that this document comes from."}],
        "security": [{"api_key": [], "plan_manager": []}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": _schemas(operations),
            "securitySchemes": SECURITY_SCHEMES,
            "parameters": PARAMETERS,
            "headers": HEADERS,
        },
    }


def render_document(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _operation(operation: Operation) -> dict[str, Any]:
    summary, _, paragraphs = (inspect.getdoc(operation.handler) or "").partition("\n\n")
    first, _, rest = summary.replace("\n", " ").partition(". ")
    entry: dict[str, Any] = {
        "operationId": f"{operation.tag}_{operation.handler.__name__.rstrip('_')}",
        "tags": [operation.tag],
        "summary": first.rstrip("."),
        "parameters": describe_parameters(operation),
        "responses": _responses(operation),
    }
    if operation.is_for_key:
        entry["security"] = [{"api_key": []}]
    if operation.required_scope:
        entry["x-required-scope"] = operation.required_scope
    description = " ".join(part for part in (rest, paragraphs.replace("\n", " ")) if part)
    if description:
        entry["description"] = description
    if operation.body:
        entry["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _schema(operation.body)}},
        }
    if operation.extension:
        entry["x-plankeeper-extension"] = True
    return entry


def _responses(operation: Operation) -> dict[str, Any]:
    content = {"application/json": {"schema": _response_schema(operation.response_type)}}
    creates = operation.method == "POST" and operation.writes
    statuses = {400, 401, 403, 429, 500, 503}
    statuses |= {404} if operation.path_ids or operation.not_found else set()
    statuses |= {413, 415} if operation.body else set()
    statuses |= {409} if operation.conflicts or creates else set()
    statuses |= {412} if operation.lock or operation.has_etag else set()
    statuses |= {422} if creates else set()
    returns_view = (operation.method == "PUT" or operation.creates) and not operation.has_secret
    applies = {
        "ETag": operation.has_etag or returns_view,
        "ContentLocation": returns_view,
        "Location": operation.creates,
        "IdempotentReplayed": creates,
        "SyncedUntil": operation.has_updated_since,
    }
    headers = [name for name, does_apply in applies.items() if does_apply]
    responses: dict[str, Any] = {str(operation.status): _response(_success_description(operation), content, *headers)}
    if operation.has_etag:
        responses["304"] = _response("The resource matches If-None-Match.", None, "ETag")
        responses["304"]["x-plankeeper-extension"] = True
    for status in sorted(statuses):
        codes = [code for code, each in CODES.items() if each.status == status]
        retry_headers = ["RetryAfter"] if status in (429, 503) else []
        responses[str(status)] = _response(", ".join(f"`{code}`" for code in codes), _ERROR, *retry_headers)
        if status in (412, 413, 415, 422, 503) or (status == 409 and not operation.conflicts):
            responses[str(status)]["x-plankeeper-extension"] = True
    return responses


def _success_description(operation: Operation) -> str:
    struct_types = _struct_types(operation.response_type)
    if EmptyResponse in struct_types:
        return "The resource has been deleted. The body is an empty object."
    if get_origin(struct_types[0]) is Page:
        shape = ", in the full shape with `view=full`" if len(struct_types) > 1 else ""
        return f"A page of the list{shape}."
    if len(struct_types) > 1:
        return "The resource in the basic shape, or in the full shape with `view=full`."
    return inspect.getdoc(struct_types[0]) or ""


def _response(description: str, content: dict[str, Any] | None, *headers: str) -> dict[str, Any]:
    names = ["RequestId", "RateLimitPolicy", "RateLimit", *headers]
    header_refs = {HEADER_NAMES[name]: {"$ref": f"#/components/headers/{name}"} for name in names}
    return {"description": description, "headers": header_refs} | ({"content": content} if content else {})


def _struct_types(response_type: Any) -> list[Any]:
    """The structs of a response: one, or each of a union."""
    origin = get_origin(response_type)
    if isinstance(response_type, type) and issubclass(response_type, Struct):
        return [response_type]
    return [response_type] if isinstance(origin, type) and issubclass(origin, Struct) else list(get_args(response_type))


def _response_schema(response_type: Any) -> dict[str, Any]:
    # The more detailed one first: clients take the first schema that fits, and a summary fits everything.
    by_detail = sorted(_struct_types(response_type), key=_count_fields, reverse=True)
    schemas = [_schema(member) for member in by_detail]
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _count_fields(struct_type: Any) -> int:
    """The number of fields of a struct, or of the items of a page."""
    [item] = get_args(struct_type) or [struct_type]
    return len(fields(item))


def _schema(struct_type: Any) -> dict[str, Any]:
    return reference(component_name(struct_type))


def _schemas(operations: Sequence[Operation]) -> dict[str, Any]:
    queries = [operation.query for operation in operations if operation.query]
    struct_types: list[Any] = [Error, *queries]
    for operation in operations:
        struct_types += [*_struct_types(operation.response_type), *([operation.body] if operation.body else [])]
    components = build_components(struct_types)
    for query in set(queries):
        del components[query.__name__]  # its fields are parameters
    return {name: components[name] for name in sorted(components)}
