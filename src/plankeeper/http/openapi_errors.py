"""Errors in the OpenAPI document: one schema, a shared response for each status, and the codes of each operation."""

from collections.abc import Iterator, Sequence
from typing import Any

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
from plankeeper.http.openapi_headers import refer_to_headers
from plankeeper.http.openapi_schemas import Schema, build_components, reference
from plankeeper.http.routing import Operation

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
# The response of a 409 that isn't.
_OWN_CONFLICT = "ExtensionConflict"
_HEADERS = {
    401: ["WwwAuthenticate"],
    409: ["RetryAfter"],
    415: ["AcceptEncoding"],
    429: ["RetryAfter"],
    503: ["RetryAfter"],
}
# What no operation returns: the path, or the method, is none.
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
    if operation.body:
        yield from ("invalid_json", "body_too_large", "unsupported_media_type")
    if operation.lock or operation.has_etag or operation.is_for_key:
        yield "precondition_failed"
    if operation.method == "POST" and operation.writes:
        yield "idempotency_in_progress"
    if operation.method == "POST" and operation.writes and operation.body:
        yield "idempotency_key_reused"
    if operation.has_secret:
        yield "secret_key_missing"


def describe_errors(operation: Operation) -> str:
    return f"Error codes: {', '.join(f'`{code}`' for code in error_codes(operation))}."


def error_schemas() -> dict[str, Schema]:
    schemas = build_components([Error])
    item = schemas["FieldError"]
    for field in item["properties"].values():
        field.pop("default", None)  # of our own code: a response always has the field
    item["required"] = [name for name in item["properties"] if name != "allowed"]
    return schemas


def error_examples() -> dict[str, Any]:
    """An example of each error, by code."""
    return {
        code: {"summary": each.title, "value": _example(code)}
        for code, each in CODES.items()
        if code not in _WITHOUT_OPERATION
    }


def error_example() -> dict[str, Any]:
    """The example of the schema: an error with most fields."""
    return _example("invalid_request")


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
