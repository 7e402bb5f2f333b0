"""Leaks in error responses: internals of the server, or data of another plan manager."""

import json
import re
from typing import Any

import httpx

from support.client import ERROR_FIELDS
from support.factories import Tenant

# What could only come from the inside: SQL and its errors, Python, paths of files, addresses, names of classes.
INTERNAL = re.compile(
    r"""
    (?i: \bselect\b | insert\ into | delete\ from | \bset\ \w+\ = | \bwhere\b\ \w+\ = | relation\ " | column\ " )
    | (?i: asyncpg | postgres | sqlstate | \bpg_ | violates | constraint | duplicate\ key | syntax\ error )
    | \b\w+_(pkey|fkey|key|check|idx)\b
    | (?i: traceback | line\ \d+,\ in\b | \.py\b | \.sql\b | site-packages )
    | (?<![\w/])/(work|usr|home|tmp|opt|var|etc)\b
    | (?i: msgspec | starlette | sqlalchemy | uvloop | nonetype | \bunset\b | object\ at\ | 0x[0-9a-f]{6} )
    | \b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+\b
    """,
    re.VERBOSE,
)
# The headers of an error response; others depend on its status.
ERROR_HEADERS = {
    "cache-control", "content-length", "content-type", "date", "server", "x-content-type-options", "x-request-id",
}  # fmt: skip
RATE_LIMIT_HEADERS = {"ratelimit", "ratelimit-policy"}
COMPRESSION_HEADERS = {"content-encoding", "vary"}


def all_strings(body: Any) -> list[str]:
    """Every text in a body, names of fields too."""
    if isinstance(body, dict):
        return [*body, *(text for value in body.values() for text in all_strings(value))]
    if isinstance(body, list):
        return [text for value in body for text in all_strings(value)]
    return [str(body)]


def assert_error_leaks_nothing(response: httpx.Response) -> None:
    """An error response has the documented fields and headers, and reveals no internals."""
    assert response.status_code >= 400
    allowed = ERROR_HEADERS | RATE_LIMIT_HEADERS | COMPRESSION_HEADERS | {"allow", "retry-after", "www-authenticate"}
    assert set(response.headers) <= allowed, response.headers
    if response.request.method == "HEAD":
        return
    body = response.json()
    assert {"success", "error", "detail", "request_id", "documentation_url"} <= set(body) <= ERROR_FIELDS
    assert body["documentation_url"] == f"/docs/api/errors#{body['error']}"
    # The id of `resource` is the one that the client has sent.
    sent = ("error", "request_id", "documentation_url", "resource")
    strings = all_strings({k: v for k, v in body.items() if k not in sent})
    leaks = [match[0] for text in strings if (match := INTERNAL.search(text))]
    assert not leaks, (leaks, body)


def assert_no_data_of(tenant: Tenant, response: httpx.Response) -> None:
    """A response contains no id of a plan manager's records, no key of it, and not its own id.

    An error for an unknown resource repeats the id of the request's path.
    """
    text = response.text
    if response.status_code == 404 and response.content:
        text = json.dumps({name: value for name, value in response.json().items() if name != "resource"})
        assert response.json()["resource"]["id"].lower() in response.request.url.path.lower()
    message = "\n".join([text, *(f"{name}: {value}" for name, value in response.headers.items())]).lower()
    secrets = {
        tenant.client.plan_manager_id,
        tenant.client.key,
        *(each for each in tenant.ids.values() if len(each) == 36),
    }
    assert not [each for each in secrets if each.lower() in message], response.text


def without_volatile_parts(response: httpx.Response) -> tuple[int, Any, dict[str, str]]:
    """Status, body and headers, but for what is another with every request."""
    body = (
        {name: value for name, value in response.json().items() if name not in ("request_id", "resource")}
        if response.content
        else None
    )
    volatile = {"date", "x-request-id", "ratelimit", "content-length", "synced-until"}
    return response.status_code, body, {name: each for name, each in response.headers.items() if name not in volatile}
