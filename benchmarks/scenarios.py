"""What is asked of every system, and what a right answer holds."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from benchmarks.data import BASIC, COLUMNS, REFERENCES, Dataset
from benchmarks.load import Request

Pool = Literal["sample", "cursors", "deep"]
Json = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """`pool` is where its ids are drawn from; a `floor` is also measured without the product around it."""

    name: str
    title: str
    pool: Pool = "sample"
    limit: int = 20
    writes: bool = False
    essential: bool = True
    floor: bool = False


GET = Scenario("get", "get one", floor=True)
CURSOR = Scenario("cursor", "list 20, cursor", pool="cursors", floor=True)
TOTAL = Scenario("total", "list 20 with total")
THOUSAND = Scenario("thousand", "list 1000", pool="cursors", limit=1000, floor=True)
FILTERED = Scenario("filtered", "filtered list with total", essential=False)
CREATE = Scenario("create", "create", writes=True)
UPDATE = Scenario("update", "update", writes=True, essential=False)
DEEP = Scenario("deep", "list 20, cursor at 90 %", pool="deep")  # of `flat` alone

SCENARIOS = (GET, CURSOR, TOTAL, THOUSAND, FILTERED, CREATE, UPDATE)

CREATE_BODY = json.dumps({
    "first_name": "Bench", "last_name": "Mark {number}", "participant_number": "{number}",
    "email": "bench.{number}@example.com", "state": "NSW",
})  # fmt: skip
UPDATE_BODY = json.dumps({"first_name": "Changed {number}"})


class WrongResponseError(Exception):
    """A system answered something else than the rows that were asked for."""


class Response(NamedTuple):
    """An answer as it came."""

    status: int
    headers: Mapping[str, str]
    body: Any


class ParsedResponse(NamedTuple):
    """What an answer holds, in whatever shape the system wraps it."""

    rows: Sequence[Json]
    total: int | None = None


def send(port: int, request: Request) -> Response:
    """Send one request, already filled; WrongAnswer for anything but a 2xx with JSON."""
    headers = dict(request.headers) | ({"Content-Type": "application/json"} if request.body else {})
    http_request = urllib.request.Request(
        f"http://127.0.0.1:{port}{request.path}", request.body.encode() or None, headers, method=request.method
    )
    try:
        with urllib.request.urlopen(http_request, timeout=120) as response:
            return Response(response.status, response.headers, json.load(response))
    except urllib.error.HTTPError as error:
        body = error.read()[:500].decode(errors="replace")
        raise WrongResponseError(f"{request.method} {request.path} answered {error.code}: {body}") from None
    except OSError as error:
        raise WrongResponseError(f"{request.method} {request.path} was not answered: {error}") from error


def verify(scenario: Scenario, result: ParsedResponse, requested_id: str, data: Dataset) -> None:
    """WrongAnswer unless these are the rows of the scenario, whole."""
    if scenario.writes:
        _verify_written(scenario, result)
        return
    expected, total = _expected(scenario, requested_id, data)
    ids = [row["id"] for row in result.rows]
    if ids != expected:
        raise WrongResponseError(f"{len(ids)} rows from {ids[:2]}, and not {len(expected)} from {expected[:2]}")
    if total is not None and result.total != total:
        raise WrongResponseError(f"a total of {result.total}, and not {total}")
    columns = BASIC if scenario is GET else [name for name in COLUMNS if name not in REFERENCES]
    for row in result.rows:
        if missing := [name for name in columns if name not in row]:
            raise WrongResponseError(f"a row without {', '.join(missing)}")
        if row["id"] == data.middle["id"]:
            _verify_texts(row, data.middle)


def _expected(scenario: Scenario, requested_id: str, data: Dataset) -> tuple[list[str], int | None]:
    if scenario is GET:
        return [requested_id], None
    if scenario is TOTAL:
        return data.ids[: scenario.limit], data.rows
    if scenario is FILTERED:
        return data.matching[: scenario.limit], len(data.matching)
    return data.ids_after(requested_id, scenario.limit), None


def _verify_texts(row: Json, expected: Mapping[str, str]) -> None:
    for name, kind in COLUMNS.items():
        if kind == "text" and name in row and (row[name] or "") != expected[name]:
            raise WrongResponseError(f"{name} is {row[name]!r}, and was loaded as {expected[name]!r}")


def _verify_written(scenario: Scenario, result: ParsedResponse) -> None:
    expected = json.loads(
        Request("", "", body=CREATE_BODY if scenario is CREATE else UPDATE_BODY).render(("", "")).body
    )
    [row] = result.rows
    for name, value in expected.items():
        if row.get(name) != value:
            raise WrongResponseError(f"{name} is {row.get(name)!r}, and was sent as {value!r}")
    if not row.get("id"):
        raise WrongResponseError("a written row without an id")
