"""The life of a request, on one screen."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import asyncpg
from starlette.types import Receive, Scope, Send

from plankeeper.database.pool import Database, broken
from plankeeper.edge.authentication import Authenticate, bearer_key, plan_manager_of, require
from plankeeper.edge.call import Read, Write
from plankeeper.edge.errors import NotFound, Refusal
from plankeeper.edge.parsing import parse_query, path_id
from plankeeper.edge.request import Answer, ClientGone, headers_of, read_body, refused, request_id_of
from plankeeper.edge.routes import Operation
from plankeeper.settings import Settings


@dataclass(slots=True)
class Edge:
    """What all endpoints share."""

    db: Database
    authenticate: Authenticate
    settings: Settings


class Endpoint:
    """One path with its operations by method: an ASGI application."""

    def __init__(self, edge: Edge, operations: Mapping[str, Operation]) -> None:
        self._edge = edge
        self._operations = dict(operations)
        if "GET" in operations:
            self._operations["HEAD"] = operations["GET"]
        self._allow = ", ".join(sorted([*self._operations, "OPTIONS"]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_of(scope)
        request_id = request_id_of(headers)
        try:
            answer = await self._respond(scope, headers, receive, request_id.decode())
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 - whatever happens, the client gets an answer in the one shape
            answer = refused(error, request_id.decode())
        await answer.send(request_id, send)

    async def _respond(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, request_id: str) -> Answer:
        if b"%2f" in scope.get("raw_path", b"").lower():
            raise NotFound  # an encoded slash is part of a name, and no name of ours has one
        operation = self._operations.get(scope["method"])
        if operation is None:
            return self._without_operation(scope["method"])
        grant = await self._edge.authenticate(bearer_key(headers.get(b"authorization")))
        plan_manager_id = plan_manager_of(grant, headers.get(b"x-plan-manager-id"))
        require(grant, operation.need)
        values = await _values(operation, scope, headers, receive)
        if not operation.writes:
            call = Read(self._edge.db, plan_manager_id, self._edge.settings)
            return Answer.of(operation.status, await operation.handler(call, **values))
        try:
            async with self._edge.db.transaction() as tx:
                write = Write(tx, plan_manager_id, self._edge.settings, grant.actor, request_id)
                answer = Answer.of(operation.status, await operation.handler(write, **values))
        except asyncpg.IntegrityConstraintViolationError as error:
            fault = broken(error)
            explain = operation.constraints.get(fault.constraint)
            if explain is None:
                raise
            raise await explain(self._edge.db, plan_manager_id, fault) from None
        return answer

    def _without_operation(self, method: str) -> Answer:
        if method == "OPTIONS":
            return Answer(200, b"{}", {"allow": self._allow})
        raise Refusal("method_not_allowed", f"The path takes {self._allow}.", headers={"allow": self._allow})


async def _values(
    operation: Operation, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive
) -> dict[str, Any]:
    """The handler's arguments: the path's ids, the query, the body."""
    texts = scope["path_params"]
    values: dict[str, Any] = {name: path_id(name, kind, texts[name]) for name, kind in operation.path_ids.items()}
    query = parse_query(operation.query, scope["query_string"])
    if operation.query_name:
        values[operation.query_name] = query
    if operation.parser and operation.body_name:
        own_id = next(reversed(texts.values())) if operation.method == "PUT" else None
        values[operation.body_name] = operation.parser.parse(await read_body(headers, receive), own_id)
    return values


class Unknown:
    """Every path that is none of ours."""

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        request_id = request_id_of(headers_of(scope))
        await refused(Refusal("not_found"), request_id.decode()).send(request_id, send)
