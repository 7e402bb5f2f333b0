"""The OpenAPI document, generated from the operations and their structs."""

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

import msgspec

from plankeeper.core.errors import (
    CODES,
    DomainError,
    Error,
    ErrorCode,
    ErrorResource,
    FieldError,
    NotFound,
    ValidationError,
)
from plankeeper.core.examples import EXAMPLES
from plankeeper.core.fields import EmptyRequest, EmptyResponse
from plankeeper.core.files import Download, MediaType
from plankeeper.core.lists import Page
from plankeeper.core.read_only_fields import bulk_item_type
from plankeeper.core.validation import allowed_values
from plankeeper.http.openapi.operations import (
    HEADERS,
    PARAMETERS,
    SECURITY_SCHEMES,
    body_name,
    describe_parameters,
    name_bodies,
    refer_to_headers,
)
from plankeeper.http.openapi.schemas import Schema, add_examples, build_components, component_name, reference
from plankeeper.http.routing import PREFIX, Operation, find_returned_path


def operation_id(operation: Operation) -> str:
    return f"{operation.tag}_{operation.handler.__name__.rstrip('_')}"


def build_links(source: Operation, operations: Sequence[Operation]) -> dict[str, Any]:
    """The links of an operation's success: from a list to the reads of an item, from a create to all operations."""
    is_list = any(get_origin(each) is Page for each in (source.response_type, *get_args(source.response_type)))
    if not is_list and not source.creates:
        return {}
    # The id of an item is the parameter after the path, or the one that other operations of the resource have.
    own_ids = {name for each in operations for name in each.path_ids if each.path == f"{source.path}/{{{name}}}"}
    own_ids = own_ids or {
        name for each in operations if each.tag == source.tag for name in each.path_ids if name not in source.path_ids
    }
    if len(own_ids) > 1:  # a single id doesn't identify the item
        return {}
    expression = "$response.body#/data/0/id" if is_list else "$response.body#/id"
    return {
        operation_id(target): _link(target, source, name, expression)
        for name in own_ids
        for target in operations
        if name in target.path_ids
        and set(target.path_ids) <= {name, *source.path_ids}
        and (source.creates or target.method == "GET")
    }


def _link(target: Operation, source: Operation, id_name: str, expression: str) -> dict[str, Any]:
    shared = {name: f"$request.path.{name}" for name in target.path_ids if name in source.path_ids}
    item = "first item" if expression.startswith("$response.body#/data") else "new resource"
    return {
        "operationId": operation_id(target),
        "parameters": {**shared, id_name: expression},
        "description": f"The `id` of the {item} is the `{id_name}`.",
    }


# The names of the shared responses.
_NAMES = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    412: "PreconditionFailed",
    413: "BodyTooLarge",
    415: "UnsupportedMediaType",
    422: "IdempotencyKeyReused",
    429: "RateLimitExceeded",
    500: "InternalError",
    503: "ServiceUnavailable",
}
# Statuses that aren't part of the public contract. 409 is for some operations.
_EXTENSIONS = {412, 413, 415, 422, 503}
# The response of a 409 outside the public contract.
_OWN_CONFLICT = "ExtensionConflict"
_HEADERS = {
    401: ["WwwAuthenticate"],
    409: ["RetryAfter"],
    415: ["AcceptEncoding"],
    429: ["RetryAfter"],
    503: ["RetryAfter"],
}
# Errors of unknown paths and methods, which no operation returns.
_WITHOUT_OPERATION = {"path_not_found", "method_not_allowed"}
_EXAMPLE_REQUEST_ID = "01a1fe86-e40d-7182-9abe-c14cb137339a"
_EXAMPLE_ID = "01a1fe86-e40d-7182-9abe-c14cb137339b"


def error_codes(operation: Operation) -> list[ErrorCode]:
    """The codes that an operation can return, in the order of the table."""
    codes: set[ErrorCode] = {*operation.errors, *_codes_of_shape(operation)}
    return [code for code in CODES if code in codes]


def _codes_of_shape(operation: Operation) -> Iterator[ErrorCode]:
    """The codes that follow from the parts of an operation."""
    yield from ("invalid_request", "missing_api_key", "invalid_api_key", "expired_api_key")
    yield from ("rate_limit_exceeded", "internal_error", "service_unavailable")
    if not operation.is_for_key:
        yield from ("missing_plan_manager_id", "invalid_plan_manager_id", "plan_manager_not_allowed")
    if operation.required_scopes:
        yield "insufficient_scope"
    if operation.path_ids:
        yield "not_found"
    if operation.parser:
        yield from ("invalid_json", "body_too_large", "unsupported_media_type")
    if operation.receive_file:
        yield from ("body_too_large", "unsupported_media_type")
    if operation.lock or operation.has_etag or operation.is_for_key:
        yield "precondition_failed"
    if operation.method == "POST" and operation.writes:
        yield "idempotency_in_progress"
    if operation.method == "POST" and operation.writes and (operation.body or operation.receive_file):
        yield "idempotency_key_reused"
    if operation.has_secret:
        yield "secret_key_missing"


def describe_errors(operation: Operation) -> str:
    return f"Error codes: {', '.join(f'`{code}`' for code in error_codes(operation))}."


def error_schemas() -> dict[str, Schema]:
    schemas = build_components([Error])
    item = schemas["FieldError"]
    for field in item["properties"].values():
        field.pop("default", None)  # written by the server: a response always has the field
    item["required"] = [name for name in item["properties"] if name != "allowed"]
    return schemas


def error_examples() -> dict[str, Any]:
    """An example of each error, by code."""
    return {
        code: {"summary": each.title, "value": _example(code)}
        for code, each in CODES.items()
        if code not in _WITHOUT_OPERATION
    }


def _example(code: ErrorCode) -> dict[str, Any]:
    if code == "invalid_request":
        email = FieldError("email", "must be an email address, such as name@example.com", "invalid_format")
        message = "must be one of Active, Inactive, Lead"
        status = FieldError("status", message, "not_allowed", allowed=["Active", "Inactive", "Lead"])
        error: DomainError = ValidationError(email, status)
    elif code == "not_found":
        error = NotFound(ErrorResource("participant", _EXAMPLE_ID))
    else:
        error = DomainError(code)
    return msgspec.to_builtins(error.body(_EXAMPLE_REQUEST_ID))


def shared_error_responses() -> dict[str, Any]:
    """The error responses that operations refer to, by name."""
    responses: dict[str, Any] = {}
    for status, name in _NAMES.items():
        codes = [code for code, each in CODES.items() if each.status == status and code not in _WITHOUT_OPERATION]
        if codes:
            extension = {"x-plankeeper-extension": True} if status in _EXTENSIONS else {}
            responses[name] = _response(status, codes) | extension
    responses[_OWN_CONFLICT] = responses[_NAMES[409]] | {"x-plankeeper-extension": True}
    return responses


def _response(status: int, codes: Sequence[str]) -> dict[str, Any]:
    content = {
        "schema": reference("Error"),
        "examples": {code: {"$ref": f"#/components/examples/{code}"} for code in codes},
    }
    return {
        "description": ", ".join(f"`{code}`" for code in codes),
        "headers": refer_to_headers(_HEADERS.get(status, [])),
        "content": {"application/json": content},
    }


def error_responses(operation: Operation) -> dict[str, Any]:
    """The error responses of an operation, by status."""
    names = dict.fromkeys(CODES[code].status for code in error_codes(operation))
    return {str(status): {"$ref": f"#/components/responses/{_name(status, operation)}"} for status in sorted(names)}


def _name(status: int, operation: Operation) -> str:
    is_contract = not operation.extension and any(CODES[code].status == status for code in operation.errors)
    return _OWN_CONFLICT if status == 409 and not is_contract else _NAMES[status]


API_VERSION = PREFIX.rpartition("/")[2]  # of the API, not of the program: the document changes only with the API
TAGS = {
    "participants": "People whose funding the plan manager manages.",
    "plans": "Plans of participants, with their components, funding periods and numbers.",
    "team_members": "Contacts on a participant's team, and their permissions.",
    "account_managers": "Employees of the plan manager who look after participants; read only.",
    "exit_reasons": "Reasons for which participants leave, in categories.",
    "note_types": "Kinds of notes, with their colours.",
    "notes": "Notes on participants, providers and invoices.",
    "providers": "Businesses that provide services to participants and send invoices.",
    "invoices": "Invoices of providers, with the warnings of automatic checks; read only.",
    "claim_batches": "Lines of invoices that are claimed from the agency with one file.",
    "reconciliation": "The money that the office holds for any two days.",
    "statements": "What was spent of participants' plans in a month.",
    "payment_runs": "Payments to providers and participants with one file for the bank.",
    "statement_runs": "The statements of all plans of a month, who gets them, and what failed.",
    "fees": "The office's own fees: one invoice for each participant and month.",
    "fee_takings": "Fees that the office has taken, with one reference and one total.",
    "invoice_view_sessions": "Records of a user viewing an invoice; read only.",
    "bank_details": "The bank accounts of providers and participants, which people approve in the console.",
    "events": "The audit log: one event for each write, in commit order.",
    "webhook_endpoints": "URLs that receive signed events.",
    "webhook_deliveries": "Deliveries of events to webhook endpoints, with every attempt.",
    "api_keys": "The API key of a request, and what it can do.",
    "support_items": "The agency's support catalogue, with categories and price limits; read only.",
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
    if operation.parser:
        name = body_name(operation)
        example = EXAMPLES["bodies"][name] if operation.body else _NO_FIELDS
        content = {"application/json": {"schema": reference(name), "example": example}}
        entry["requestBody"] = {"required": not operation.optional_body, "content": content}
    if operation.receive_file:
        entry["requestBody"] = {"required": True, "content": _SENT_FILE}
    if operation.extension:
        entry["x-plankeeper-extension"] = True
    return entry


_NO_FIELDS: Mapping[str, Any] = {}
# Generators of clients read text as a string.
_TEXT_FILE: Mapping[str, Any] = {"schema": {"type": "string"}}
# Generators of clients know this type. The server recognises the content, whatever the request says.
_FILE: Mapping[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_SENT_FILE: Mapping[str, Any] = {"application/octet-stream": _FILE}
_DOCUMENT: Mapping[str, Any] = dict.fromkeys(allowed_values(MediaType), _FILE) | _SENT_FILE


def _received_file(operation: Operation) -> Mapping[str, Any]:
    return _describe_files(operation.media_types) or _DOCUMENT


def _describe_files(media_types: Iterable[str]) -> dict[str, Any]:
    return {each: _TEXT_FILE if each.startswith("text/") else _FILE for each in media_types}


def _describe_scopes(operation: Operation) -> str:
    names = " and ".join(f"`{each}`" for each in operation.required_scopes)
    if operation.one_scope:
        return f"Requires one of the scopes {names}."
    return f"Requires the scope{'s' if ' and ' in names else ''} {names}." if names else "Any key can send it."


def _responses(operation: Operation, operations: Sequence[Operation]) -> dict[str, Any]:
    creates = operation.method == "POST" and operation.writes
    returns_view = find_returned_path(operation, operations) is not None and not operation.has_secret
    applies = {
        "ETag": operation.has_etag or returns_view or bool(operation.receive_file and operation.lock),
        "ContentLocation": returns_view,
        "Location": operation.creates,
        "IdempotentReplayed": creates,
        "SyncedUntil": operation.has_updated_since,
    }
    json_content = {"application/json": {"schema": reference(component_name(operation.response_type))}}
    json_content["application/json"] |= _own_example(operation)
    content: dict[str, Any] = {**json_content, **_describe_files(operation.formats)}
    success: dict[str, Any] = {
        "description": _success_description(operation),
        "headers": refer_to_headers(name for name, does_apply in applies.items() if does_apply),
        "content": _received_file(operation) if operation.response_type is Download else content,
    }
    if links := build_links(operation, operations):
        success["links"] = links
    responses: dict[str, Any] = {str(operation.status): success}
    if operation.has_dry_run and operation.status != 200:
        responses["200"] = {"description": "A dry run: nothing has been stored.", "content": json_content}
    if operation.has_etag:
        responses["304"] = {
            "description": "The resource matches If-None-Match.",
            "headers": refer_to_headers(["ETag"]),
            "x-plankeeper-extension": True,
        }
    return responses | error_responses(operation)


def _own_example(operation: Operation) -> dict[str, Any]:
    """The response to the example of the request, if that isn't the example of the schema."""
    name = f"{operation.method} {operation.path.removeprefix(PREFIX)}"
    return {"example": EXAMPLES["operations"][name]} if name in EXAMPLES["operations"] else {}


def _success_description(operation: Operation) -> str:
    response_type = operation.response_type
    if response_type is Download:
        return "The file."
    if response_type is EmptyResponse:
        return "The resource has been deleted. The body is an empty object."
    if get_origin(response_type) is Page:
        return "A page of the list."
    return inspect.getdoc(get_origin(response_type) or response_type) or ""


def _schemas(operations: Sequence[Operation]) -> dict[str, Any]:
    queries = [operation.query for operation in operations if operation.query]
    struct_types: list[Any] = list(queries)
    for operation in operations:
        if operation.response_type is not Download:
            struct_types.append(operation.response_type)
        if operation.parser:
            struct_types.append(operation.body or EmptyRequest)
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
            "EmptyRequest": _NO_FIELDS,
            "Error": _example("invalid_request"),  # an error with most fields
            "ErrorResource": {"kind": "participant", "id": EXAMPLES["path_ids"]["participant_id"]},
            "PermissionByName": {"name": "view_budget"},
        },
    )
    return {name: components[name] for name in sorted(components)}
