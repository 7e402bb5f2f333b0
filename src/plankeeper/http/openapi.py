"""The OpenAPI document, generated from the operations and their structs."""

import inspect
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UNSET, Struct, UnsetType
from msgspec.structs import fields

from plankeeper import __version__
from plankeeper.http.errors import CODES, Error
from plankeeper.http.openapi_headers import HEADER_NAMES, HEADERS, PARAMETERS, SECURITY_SCHEMES
from plankeeper.http.routing import Operation
from plankeeper.http.schemas import Query, custom_schema

_REF = "#/components/schemas/{name}"
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
    "api_keys": "The API key of a request.",
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
        "servers": [{"url": "/"}],
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
        "parameters": _parameters(operation),
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


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [{"$ref": "#/components/parameters/RequestId"}]
    for name, kind in operation.path_ids.items():
        schema = {"type": "integer"} if kind is int else {"type": "string", "format": "uuid"}
        parameters.append({"name": name, "in": "path", "required": True, "schema": schema})
    parameters += _query_parameters(operation.query) if operation.query else []
    header_parameters = [
        name
        for name, applies in (
            ("IdempotencyKey", operation.method == "POST" and operation.writes),
            ("IfNoneMatch", operation.has_etag or operation.lock is not None),
            ("IfMatch", operation.has_etag or operation.lock is not None),
        )
        if applies
    ]
    return parameters + [{"$ref": f"#/components/parameters/{name}"} for name in header_parameters]


def _query_parameters(query_type: type[Query]) -> list[dict[str, Any]]:
    properties = _components([query_type])[query_type.__name__]["properties"]
    parameters: list[dict[str, Any]] = []
    for field in fields(query_type):
        schema: dict[str, Any] = properties[field.encode_name]
        parameter: dict[str, Any] = {
            "name": field.encode_name,
            "in": "query",
            "required": False,
            "schema": schema,
        }
        for keyword in ("description", "x-plankeeper-extension"):
            if keyword in schema:
                parameter[keyword] = schema.pop(keyword)
        if field.default not in (UNSET, NODEFAULT):
            schema["default"] = field.default
        if schema.get("type") == "array":
            parameter["schema"] = _separated_by_commas(schema)
        else:
            schema["minLength"] = 1
        if schema.get("type") in ("integer", "boolean") or "enum" in schema:
            schema.pop("minLength", None)
        parameters.append(parameter)
    return parameters


def _separated_by_commas(array: dict[str, Any]) -> dict[str, Any]:
    """A list in a query as text, because most generators send an array as repeated parameters."""
    items: dict[str, Any] = array["items"]
    item = items.get("pattern", "^[^,]+$").removeprefix("^").removesuffix("$")
    return {"type": "string", "minLength": 1, "pattern": f"^{item}(,{item}){{0,{array['maxItems'] - 1}}}$"}


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
    responses: dict[str, Any] = {str(operation.status): _response("Success", content, *headers)}
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
    [reference], _ = msgspec.json.schema_components([struct_type], schema_hook=custom_schema, ref_template=_REF)
    return {"$ref": _name_pages(reference["$ref"])}


def _schemas(operations: Sequence[Operation]) -> dict[str, Any]:
    struct_types: list[Any] = [Error]
    for operation in operations:
        struct_types += [*_struct_types(operation.response_type), *([operation.body] if operation.body else [])]
    components = _components(struct_types)
    return {name: components[name] for name in sorted(components)}


def _components(struct_types: Sequence[Any]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components(struct_types, schema_hook=custom_schema, ref_template=_REF)
    text = json.dumps(components)
    component_schemas: dict[str, Any] = json.loads(_name_pages(text))
    for name, optional_field in {each for struct_type in struct_types for each in _optional_fields(struct_type)}:
        if optional_field in component_schemas[name].get("required", []):
            component_schemas[name]["required"].remove(optional_field)
    for schema in component_schemas.values():
        schema.pop("title", None)
        for member in schema.get("properties", {}).values():
            # `type` already lists the types of the field (an amount is a number).
            if isinstance(member.get("type"), list):
                member.pop("anyOf", None)
    return {_name_pages(name): schema for name, schema in component_schemas.items()}


def _optional_fields(struct_type: Any) -> Iterator[tuple[str, str]]:
    """Fields that are absent when UNSET: names of struct and field, including nested structs."""
    for part in (get_origin(struct_type) or struct_type, *get_args(struct_type)):
        if isinstance(part, type) and issubclass(part, Struct):
            for field in fields(part):
                if UnsetType in get_args(field.type):
                    yield part.__name__, field.encode_name
                yield from _optional_fields(field.type)
        elif part is not struct_type and get_args(part):
            yield from _optional_fields(part)


def _name_pages(text: str) -> str:
    """Rename `Page_Participant_` to `ParticipantPage`."""
    return re.sub(r"\b(Page|BulkResult)_(\w+?)_(?![A-Za-z_])", r"\2\1", text)
