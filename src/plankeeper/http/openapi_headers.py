"""The headers of requests and responses in the OpenAPI document."""

from collections.abc import Iterable
from typing import Any

# The plan manager as a part of the credentials, so that clients and tools ask for it once, and not for each request.
SECURITY_SCHEMES = {
    "api_key": {"type": "http", "scheme": "bearer", "description": "An API key: `Authorization: Bearer plk_...`."},
    "plan_manager": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Plan-Manager-Id",
        "description": "The UUID of the plan manager that the request acts for.",
    },
}
PARAMETERS = {
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "The client's key, 1 to 255 visible ASCII characters. A successful response is stored for a day,"
        " and returned again for the same request with the same key, which makes retries safe.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
        "x-plankeeper-extension": True,
    },
    "IfNoneMatch": {
        "name": "If-None-Match",
        "in": "header",
        "required": False,
        "description": "The `ETag` of an earlier response. If the resource is unchanged, a GET returns 304, and a write"
        " 412. `*` is every version.",
        "schema": {"type": "string"},
        "x-plankeeper-extension": True,
    },
    "IfMatch": {
        "name": "If-Match",
        "in": "header",
        "required": False,
        "description": "The `ETag` of an earlier response. Returns 412 if a field of the resource has changed.",
        "schema": {"type": "string"},
        "x-plankeeper-extension": True,
    },
}
HEADERS = {
    "RequestId": {
        "description": "The request's id: that of its header `X-Request-Id`, or a new one.",
        "schema": {"type": "string"},
    },
    "RateLimitPolicy": {
        "description": 'The key\'s quota: `"default";q=<requests>;w=<seconds>`. Absent if the key has no limit.',
        "schema": {"type": "string"},
    },
    "RateLimit": {
        "description": 'The rest of the quota: `"default";r=<requests>;t=<seconds until it resets>`. Absent if the'
        " key has no limit.",
        "schema": {"type": "string"},
    },
    "WwwAuthenticate": {"description": "Always `Bearer`.", "schema": {"type": "string"}},
    "AcceptEncoding": {
        "description": "`identity`, if the body is compressed: send it without compression.",
        "schema": {"type": "string"},
    },
    "RetryAfter": {"description": "Seconds to wait.", "schema": {"type": "integer"}},
    "SyncedUntil": {
        "description": "The `updated_since` with which this list returns everything that other clients change later.",
        "schema": {"type": "string", "format": "date-time"},
    },
    "ETag": {"description": "The version of the resource, and a hash of the response.", "schema": {"type": "string"}},
    "Location": {"description": "The path of the new resource.", "schema": {"type": "string"}},
    "ContentLocation": {
        "description": "The path of the resource. A GET of it returns the same `ETag`.",
        "schema": {"type": "string"},
    },
    "IdempotentReplayed": {
        "description": "`true` if this is the stored response of an earlier request.",
        "schema": {"type": "string"},
    },
}
_HEADER_NAMES = {
    "RequestId": "X-Request-Id",
    "RateLimitPolicy": "RateLimit-Policy",
    "RateLimit": "RateLimit",
    "WwwAuthenticate": "WWW-Authenticate",
    "AcceptEncoding": "Accept-Encoding",
    "RetryAfter": "Retry-After",
    "SyncedUntil": "Synced-Until",
    "ETag": "ETag",
    "Location": "Location",
    "ContentLocation": "Content-Location",
    "IdempotentReplayed": "Idempotent-Replayed",
}


def refer_to_headers(names: Iterable[str]) -> dict[str, Any]:
    """The headers of a response: those of every response, and more of them by their name in the components."""
    all_names = ["RequestId", "RateLimitPolicy", "RateLimit", *names]
    return {_HEADER_NAMES[name]: {"$ref": f"#/components/headers/{name}"} for name in all_names}
