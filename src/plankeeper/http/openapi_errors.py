"""Error responses in the OpenAPI document: each status has a schema with its codes, and each code an example."""

from typing import Any

import msgspec

from plankeeper.http.errors import CODES, Error, ValidationError
from plankeeper.http.openapi_headers import refer_to_headers
from plankeeper.http.openapi_schemas import Schema, build_components, reference
from plankeeper.http.routing import Operation

_CODES_BY_STATUS = {
    status: [code for code, each in CODES.items() if each.status == status]
    for status in sorted({each.status for each in CODES.values()})
}
# Statuses that aren't part of the public contract. 409 is for some operations.
_EXTENSIONS = {405, 412, 413, 415, 422, 503}
_HEADERS = {
    401: ["WwwAuthenticate"],
    405: ["Allow"],
    415: ["AcceptEncoding"],
    429: ["RetryAfter"],
    503: ["RetryAfter"],
}
_EXAMPLE_REQUEST_ID = "01a1fe86-e40d-7182-9abe-c14cb137339a"
_INVALID_REQUEST = ValidationError(email="must be an email address, such as name@example.com")


def error_schemas() -> dict[str, Schema]:
    """`Error404` and `ErrorCode404` for each status, and the schemas that they refer to."""
    schemas = build_components([Error])
    error = schemas.pop("Error")
    for status, codes in _CODES_BY_STATUS.items():
        members = dict(error["properties"])
        members["error"] = {"description": members["error"]["description"], **reference(f"ErrorCode{status}")}
        if "invalid_request" not in codes:
            del members["errors"]
        description = f"The body of a response with the status {status}."
        schemas[f"Error{status}"] = error | {"description": description, "properties": members}
        schemas[f"ErrorCode{status}"] = {
            "type": "string",
            "description": f"The codes of errors with the status {status}.",
            "enum": codes,
        }
    return schemas


def error_examples() -> dict[str, Any]:
    """An example of each error, by code."""
    examples: dict[str, Any] = {
        code: {
            "success": False,
            "error": code,
            "detail": definition.description,
            "request_id": _EXAMPLE_REQUEST_ID,
        }
        for code, definition in CODES.items()
    }
    examples["invalid_request"] = msgspec.to_builtins(_INVALID_REQUEST.body(_EXAMPLE_REQUEST_ID))
    return {code: {"summary": CODES[code].title, "value": examples[code]} for code in CODES}


def error_body_examples() -> dict[str, Any]:
    """An example of the body of each status, by the name of its schema."""
    examples = error_examples()
    return {f"Error{status}": examples[codes[0]]["value"] for status, codes in _CODES_BY_STATUS.items()}


def error_responses(operation: Operation) -> dict[str, Any]:
    """The error responses of an operation, by status."""
    creates = operation.method == "POST" and operation.writes
    statuses = {400, 401, 403, 405, 429, 500, 503}
    statuses |= {404} if operation.path_ids or operation.not_found else set()
    statuses |= {413, 415} if operation.body else set()
    statuses |= {409} if operation.conflicts or creates else set()
    statuses |= {412} if operation.lock or operation.has_etag else set()
    statuses |= {422} if creates else set()
    responses: dict[str, Any] = {}
    for status in sorted(statuses):
        headers = [*_HEADERS.get(status, []), *(["RetryAfter"] if status == 409 and creates else [])]
        responses[str(status)] = _error_response(status, headers)
        if status in _EXTENSIONS or (status == 409 and not operation.conflicts):
            responses[str(status)]["x-plankeeper-extension"] = True
    return responses


def _error_response(status: int, headers: list[str]) -> dict[str, Any]:
    codes = _CODES_BY_STATUS[status]
    content = {
        "schema": reference(f"Error{status}"),
        "examples": {code: {"$ref": f"#/components/examples/{code}"} for code in codes},
    }
    return {
        "description": ", ".join(f"`{code}`" for code in codes),
        "headers": refer_to_headers(headers),
        "content": {"application/json": content},
    }
