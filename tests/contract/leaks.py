"""What no refusal may hold: the inside of the server, or anything of another plan manager."""

import re
from typing import Any

import httpx

from contract.world import World

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
REFUSAL = {"success", "error", "detail", "errors", "request_id"}
# The headers of a refusal; what it may say besides depends on its status.
HEADERS = {
    "cache-control", "content-length", "content-type", "date", "server", "x-content-type-options", "x-request-id",
}  # fmt: skip
QUOTA = {"ratelimit", "ratelimit-policy"}


def texts(body: Any) -> list[str]:
    """Every text in a body, names of members too."""
    if isinstance(body, dict):
        return [*body, *(text for value in body.values() for text in texts(value))]
    if isinstance(body, list):
        return [text for value in body for text in texts(value)]
    return [str(body)]


def assert_plain(answer: httpx.Response) -> None:
    """A refusal has the members and the headers that refusals have, and says nothing of the inside."""
    assert answer.status_code >= 400
    allowed = HEADERS | QUOTA | {"allow", "retry-after", "www-authenticate"}
    assert set(answer.headers) <= allowed, answer.headers
    if answer.request.method == "HEAD":
        return
    body = answer.json()
    assert {"success", "error", "detail", "request_id"} <= set(body) <= REFUSAL
    said = texts({k: v for k, v in body.items() if k not in ("error", "request_id")})
    found = [match[0] for text in said if (match := INTERNAL.search(text))]
    assert not found, (found, body)


def assert_nothing_of(world: World, answer: httpx.Response) -> None:
    """An answer holds no id of a plan manager's things, nor its key, nor its own id."""
    told = "\n".join([answer.text, *(f"{name}: {value}" for name, value in answer.headers.items())]).lower()
    own = {world.client.plan_manager_id, world.client.key, *(each for each in world.ids.values() if len(each) == 36)}
    assert not [each for each in own if each.lower() in told], answer.text


def without_moment(answer: httpx.Response) -> tuple[int, Any, dict[str, str]]:
    """Status, body and headers, but for what is another with every request."""
    body = {name: value for name, value in answer.json().items() if name != "request_id"} if answer.content else None
    volatile = {"date", "x-request-id", "ratelimit", "content-length"}
    return answer.status_code, body, {name: each for name, each in answer.headers.items() if name not in volatile}
