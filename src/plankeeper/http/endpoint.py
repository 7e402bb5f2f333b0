"""The life of a request, on one screen."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
from starlette.types import Receive, Scope, Send

from plankeeper.database.client import Database, broken
from plankeeper.http.admission import Admission
from plankeeper.http.auth import Grant
from plankeeper.http.context import Read, Write
from plankeeper.http.errors import NotFound, Refusal
from plankeeper.http.etags import conditional, matches
from plankeeper.http.idempotency import Replays, Retry, retry_of
from plankeeper.http.instrumentation import Tell
from plankeeper.http.parsing import parse_query, path_id
from plankeeper.http.requests import Answer, ClientGone, Visit, read_body, refused
from plankeeper.http.routing import Lock, Operation
from plankeeper.settings import Settings


@dataclass(slots=True)
class Edge:
    """What all endpoints share."""

    db: Database
    admission: Admission
    replays: Replays
    tell: Tell
    settings: Settings


CLIENT_GONE = 499  # what the log says where there was nobody left to answer


class Endpoint:
    """One path with its operations by method: an ASGI application."""

    def __init__(self, edge: Edge, path: str, operations: Mapping[str, Operation]) -> None:
        self._edge = edge
        self._path = path
        self._operations = dict(operations)
        if "GET" in operations:
            self._operations["HEAD"] = operations["GET"]
        self._allow = ", ".join(sorted([*self._operations, "OPTIONS"]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visit = Visit.of(scope)
        try:
            answer = await self._respond(visit, scope, receive)
        except ClientGone:
            self._edge.tell(visit, scope["method"], self._path, CLIENT_GONE)
            return
        except Exception as error:  # noqa: BLE001 - whatever happens, the client gets an answer in the one shape
            answer = refused(error, visit.request_id.decode())
        await answer.send(visit.request_id, send, visit.quota)
        self._edge.tell(visit, scope["method"], self._path, answer.status)

    async def _respond(self, visit: Visit, scope: Scope, receive: Receive) -> Answer:
        if b"%2f" in scope.get("raw_path", b"").lower():
            raise NotFound  # an encoded slash is part of a name, and no name of ours has one
        operation = self._operations.get(scope["method"])
        if operation is None:
            return self._without_operation(scope["method"])
        with self._edge.admission:
            grant, plan_manager_id = await self._edge.admission.admit(visit, scope, operation.need)
            if operation.method == "GET":
                return await self._read(operation, visit, plan_manager_id, _values(operation, scope))
        values = _values(operation, scope)
        body = b""
        if operation.parser and operation.body_name:
            body = await read_body(visit.headers, receive)  # it may take long to arrive, and takes no place meanwhile
            values[operation.body_name] = operation.parser.parse(body, _own_id(operation, scope))
        with self._edge.admission:
            if not operation.writes:
                return await self._read(operation, visit, plan_manager_id, values)
            retry = retry_of(operation, grant, scope, visit.headers, body)
            return await self._write(visit, operation, values, grant, plan_manager_id, retry)

    async def _read(self, operation: Operation, visit: Visit, plan_manager_id: UUID, values: dict[str, Any]) -> Answer:
        read = Read(self._edge.db, plan_manager_id, self._edge.settings)
        answer = Answer.of(operation.status, await operation.handler(read, **values))
        return conditional(answer, visit.headers) if operation.single else answer

    async def _write(
        self, visit: Visit, operation: Operation, values: dict[str, Any], grant: Grant, plan_manager_id: UUID,
        retry: Retry | None,
    ) -> Answer:  # fmt: skip
        """The one transaction of a request, committed before it is answered."""
        try:
            async with self._edge.db.transaction() as tx:
                write = Write(tx, plan_manager_id, self._edge.settings, grant.actor, visit.request_id.decode())
                return await self._once(operation, write, values, retry, visit.headers.get(b"if-match"))
        except asyncpg.IntegrityConstraintViolationError as error:
            fault = broken(error)
            explain = operation.constraints.get(fault.constraint)
            if explain is None:
                raise
            raise await explain(self._edge.db, plan_manager_id, fault) from None

    async def _once(
        self, operation: Operation, write: Write, values: dict[str, Any], retry: Retry | None, if_match: bytes | None
    ) -> Answer:
        """A write, unless it has been done already, or what it is to change is no longer what the client saw."""
        if retry and (kept := await self._edge.replays.replayed(write.tx, write.plan_manager_id, retry)):
            return kept
        if if_match is not None and operation.lock:
            await self._require_match(operation.lock, write, values, if_match)
        answer = Answer.of(operation.status, await operation.handler(write, **values))
        if retry:
            await self._edge.replays.keep(write.tx, write.plan_manager_id, retry, answer)
        return answer

    async def _require_match(self, lock: Lock, write: Write, values: dict[str, Any], if_match: bytes) -> None:
        """Raises Refusal `precondition_failed`. The resource is locked first: who comes second sees the change."""
        get = self._operations["GET"]
        ids = {name: values[name] for name in get.path_ids}
        await lock(write, **ids)
        read = Read(write.tx, write.plan_manager_id, write.settings)
        views = get.views()
        bodies = [Answer.of(200, await get.handler(read, **ids, **view)).body for view in views]
        if not matches(if_match, bodies):
            raise Refusal("precondition_failed")

    def _without_operation(self, method: str) -> Answer:
        if method == "OPTIONS":
            return Answer(200, b"{}", {"allow": self._allow})
        raise Refusal("method_not_allowed", f"The path takes {self._allow}.", headers={"allow": self._allow})


def _values(operation: Operation, scope: Scope) -> dict[str, Any]:
    """The handler's arguments that stand in the path and in the query."""
    texts = scope["path_params"]
    values: dict[str, Any] = {name: path_id(name, kind, texts[name]) for name, kind in operation.path_ids.items()}
    query = parse_query(operation.query, scope["query_string"])
    if operation.query_name:
        values[operation.query_name] = query
    return values


def _own_id(operation: Operation, scope: Scope) -> str | None:
    """The id that a body may repeat."""
    return next(reversed(scope["path_params"].values())) if operation.method == "PUT" else None


class Unknown:
    """Every path that is none of ours."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        visit = Visit.of(scope)
        answer = refused(Refusal("not_found"), visit.request_id.decode())
        await answer.send(visit.request_id, send)
        self._tell(visit, scope["method"], None, answer.status)
