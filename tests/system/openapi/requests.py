"""Requests to every operation of the API, valid and invalid, each with the status of its response."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

from uuid_utils.compat import uuid7

from contract.operations import ALL_OPERATIONS, BODIES, LISTS, ids_of
from plankeeper.http.routing import PREFIX, Operation
from support.factories import Tenant, absent_ids

UNKNOWN_ETAG = '"of-another-day"'
PAGES: list[dict[str, str]] = [{"limit": "1"}, {"after": "0"}, {"limit": "1000", "offset": "0"}]
INVALID_PAGES: list[dict[str, str]] = [{"limit": "0"}, {"limit": "many"}, {"offset": "-1"}]


@dataclass(frozen=True)
class Request:
    """A request below the API's prefix, and the status of its response."""

    method: str
    path: str
    status: int
    json: Any = None
    params: dict[str, str] = field(default_factory=dict[str, str])
    headers: dict[str, str] = field(default_factory=dict[str, str])

    def returning(self, status: int, **changes: Any) -> Self:
        return replace(self, status=status, **changes)


def all_requests(tenant: Tenant, read_key: str, write_key: str) -> Iterator[Request]:
    """Each operation with the records of a plan manager, which the last requests delete."""
    for operation in sorted(ALL_OPERATIONS.values(), key=_order):
        name = f"{operation.method} {operation.path.removeprefix(PREFIX)}"
        path = operation.path.removeprefix(PREFIX)
        if is_file(operation):
            continue
        request = Request(operation.method, path.format(**ids_of(name, tenant.ids)), operation.status, BODIES.get(name))
        yield from _without_permission(request, operation, read_key, write_key)
        if operation.path_ids:
            yield request.returning(404, path=path.format(**absent_ids(tenant)))
        yield request.returning(400, params={"no_such_parameter": "1"})
        yield from _with_bodies(request, operation)
        yield from _with_etags(request, operation)
        if name in LISTS:
            yield from (request.returning(200, params=params) for params in PAGES)
            yield from (request.returning(400, params=params) for params in INVALID_PAGES)
        yield request


def is_file(operation: Operation) -> bool:
    """Whether a body is a file, and no JSON: tests/api/resources/documents and claims."""
    return operation.path.endswith("/document") or operation.receive_file is not None


def _order(operation: Operation) -> tuple[bool, bool, int]:
    """Deletes come last, those of team members before that of their participant. A payee whose payment was returned
    isn't paid.
    """
    return operation.method == "DELETE", operation.path.endswith("/returned"), -len(operation.path)


def _without_permission(request: Request, operation: Operation, read_key: str, write_key: str) -> Iterator[Request]:
    yield request.returning(401, headers={"Authorization": ""})
    yield request.returning(401, headers={"Authorization": "Bearer plk_unknown"})
    if not operation.is_for_key:
        yield request.returning(400, headers={"X-Plan-Manager-Id": ""})
        yield request.returning(400, headers={"X-Plan-Manager-Id": "nothing"})
        yield request.returning(403, headers={"X-Plan-Manager-Id": str(uuid7())})
        key = read_key if "write" in operation.required_scopes else write_key
        yield request.returning(403, headers={"Authorization": f"Bearer {key}"})


def _with_bodies(request: Request, operation: Operation) -> Iterator[Request]:
    if request.json is not None:
        yield request.returning(400, json={"no_such_field": 1})
        yield request.returning(400, json=[])
        yield request.returning(415, headers={"Content-Type": "text/plain"})
        yield request.returning(413, json={"no_such_field": "1" * operation.max_body_bytes})


def _with_etags(request: Request, operation: Operation) -> Iterator[Request]:
    if operation.has_etag and request.method == "GET":
        yield request.returning(304, headers={"If-None-Match": "*"})
        yield request.returning(200, headers={"If-None-Match": UNKNOWN_ETAG})
    if (operation.has_etag and request.method == "GET") or request.method in ("PUT", "DELETE"):
        yield request.returning(412, headers={"If-Match": UNKNOWN_ETAG})
