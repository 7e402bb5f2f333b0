"""The requests that every system receives, and the verification of the responses."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from benchmarks.data import COLUMNS, REFERENCES, Dataset
from benchmarks.load import Request

Pool = Literal["sample", "cursors", "deep"]
Json = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A kind of request.

    `pool` is the source of its ids. A `floor` scenario is measured for the lower bounds too, and one with `half_load`
    a second time at half of its maximum rate.
    """

    name: str
    title: str
    pool: Pool = "sample"
    limit: int = 20
    writes: bool = False
    essential: bool = True
    floor: bool = False
    half_load: bool = False


GET = Scenario("get", "get one", floor=True, half_load=True)
CURSOR = Scenario("cursor", "list 20, cursor", pool="cursors", floor=True, half_load=True)
TOTAL = Scenario("total", "list 20 with total")
THOUSAND = Scenario("thousand", "list 1000", pool="cursors", limit=1000, floor=True)
FILTERED = Scenario("filtered", "filtered list with total", essential=False)
OFFSET = Scenario("offset", "list 20, offset half the table", essential=False)
CREATE = Scenario("create", "create", writes=True, floor=True, half_load=True)
UPDATE = Scenario("update", "update", writes=True, half_load=True)
DEEP = Scenario("deep", "list 20, cursor at 90 %", pool="deep")  # only for `flat`

SCENARIOS = (GET, CURSOR, TOTAL, THOUSAND, FILTERED, OFFSET, CREATE, UPDATE)

CREATE_BODY = json.dumps(
    {
        "first_name": "Bench",
        "last_name": "Mark {number}",
        "participant_number": "{number}",
        "email": "bench.{number}@example.com",
        "state": "NSW",
    }
)
UPDATE_BODY = json.dumps({"first_name": "Changed {number}"})


class WrongResponseError(Exception):
    """A response differs from the requested rows."""


class Response(NamedTuple):
    """An HTTP response with a JSON body."""

    status: int
    headers: Mapping[str, str]
    body: Any


class ParsedResponse(NamedTuple):
    """The content of a response, independent of the system's format."""

    rows: Sequence[Json]
    total: int | None = None


def send(port: int, request: Request) -> Response:
    """Send a rendered request. Raises WrongResponseError for anything but a 2xx response with JSON."""
    headers = dict(request.headers) | ({"Content-Type": "application/json"} if request.body else {})
    http_request = urllib.request.Request(
        f"http://127.0.0.1:{port}{request.path}", request.body.encode() or None, headers, method=request.method
    )
    try:
        with urllib.request.urlopen(http_request, timeout=120) as response:
            return Response(response.status, response.headers, json.load(response))
    except urllib.error.HTTPError as error:
        body = error.read()[:500].decode(errors="replace")
        raise WrongResponseError(f"{request.method} {request.path} returned status {error.code}: {body}") from None
    except OSError as error:
        raise WrongResponseError(f"{request.method} {request.path} got no response: {error}") from error


def verify(scenario: Scenario, result: ParsedResponse, requested_id: str, data: Dataset) -> None:
    """Raise WrongResponseError unless the response contains exactly the expected rows."""
    if scenario.writes:
        _verify_written(scenario, result)
        return
    expected, total = _expected(scenario, requested_id, data)
    ids = [row["id"] for row in result.rows]
    if ids != expected:
        raise WrongResponseError(f"expected {len(expected)} rows from {expected[:2]}, got {len(ids)} from {ids[:2]}")
    if total is not None and result.total != total:
        raise WrongResponseError(f"expected a total of {total}, got {result.total}")
    columns = [name for name in COLUMNS if name not in REFERENCES]
    for row in result.rows:
        if missing := [name for name in columns if name not in row]:
            raise WrongResponseError(f"a row lacks {', '.join(missing)}")
        if row["id"] == data.middle["id"]:
            _verify_texts(row, data.middle)


def _expected(scenario: Scenario, requested_id: str, data: Dataset) -> tuple[list[str], int | None]:
    if scenario is GET:
        return [requested_id], None
    if scenario is TOTAL:
        return data.ids[: scenario.limit], data.rows
    if scenario is FILTERED:
        return data.matching[: scenario.limit], len(data.matching)
    if scenario is OFFSET:
        return data.ids[data.offset :][: scenario.limit], None
    return data.ids_after(requested_id, scenario.limit), None


def _verify_texts(row: Json, expected: Mapping[str, str]) -> None:
    for name, kind in COLUMNS.items():
        if kind == "text" and name in row and (row[name] or "") != expected[name]:
            raise WrongResponseError(f"expected {name} {expected[name]!r}, got {row[name]!r}")


def _verify_written(scenario: Scenario, result: ParsedResponse) -> None:
    expected = json.loads(
        Request("", "", body=CREATE_BODY if scenario is CREATE else UPDATE_BODY).render(("", "")).body
    )
    [row] = result.rows
    for name, value in expected.items():
        if row.get(name) != value:
            raise WrongResponseError(f"expected {name} {value!r}, got {row.get(name)!r}")
    if not row.get("id"):
        raise WrongResponseError("a written row lacks an id")
