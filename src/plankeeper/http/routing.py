"""The table of operations: what each slice declares, and what the edge and the OpenAPI document read."""

import inspect
import re
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, get_type_hints
from uuid import UUID

from msgspec import Struct
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as ASGIScope

from plankeeper.database.client import ConstraintViolation, Executor
from plankeeper.http.context import ReadContext, Scope, WriteContext
from plankeeper.http.errors import ApiError
from plankeeper.http.parsing import BodyParser
from plankeeper.http.schemas import Query

PREFIX = "/api/public/v1"

READ: Scope = "read"
WRITE: Scope = "write"

Handler = Callable[..., Awaitable[Any]]
# What the application opens before its first request and closes after its last.
Lifespan = Callable[[], AbstractAsyncContextManager[Mapping[str, Any] | None]]
# What a broken constraint means: asked after the rollback, so it may look things up.
ConstraintErrorHandler = Callable[[Executor, UUID, ConstraintViolation], Awaitable[ApiError]]
# Locks the resource that a path names until the transaction ends; takes the write and the path's ids.
Lock = Callable[..., Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path: its handler, and all that is known of it from the handler's signature."""

    method: str
    path: str
    handler: Handler
    required_scope: Scope
    tag: str
    status: int
    extension: bool
    conflicts: bool
    constraint_errors: Mapping[str, ConstraintErrorHandler]
    lock: Lock | None
    writes: bool
    path_ids: Mapping[str, Any]
    query_name: str | None
    query: type[Query] | None
    body_name: str | None
    body: type[Struct] | None
    parser: BodyParser[Any] | None
    response_type: Any

    @property
    def has_etag(self) -> bool:
        """Whether it answers one resource, which has a tag."""
        return self.method == "GET" and self.path.endswith("}")

    def views(self) -> list[dict[str, Any]]:
        """The query arguments under which a resource can be seen: none, or each view."""
        if self.query_name is None or self.query is None:
            return [{}]
        return [{self.query_name: self.query(**view)} for view in ({}, {"view": "full"})]


class Router:
    """The operations of one slice. `constraint_errors` names what a broken constraint of the slice's tables answers;
    `lock` locks the resource that a PUT or a DELETE names.
    """

    def __init__(
        self, tag: str, constraint_errors: Mapping[str, ConstraintErrorHandler] | None = None, lock: Lock | None = None
    ) -> None:
        self.tag = tag
        self.constraint_errors = constraint_errors or {}
        self.lock = lock
        self.operations: list[Operation] = []

    def get(self, path: str, *, scope: Scope, extension: bool = False) -> Callable[[Handler], Handler]:
        return self._route("GET", path, scope, extension, 200, conflicts=False)

    def post(
        self, path: str, *, scope: Scope, extension: bool = False, status: int = 200, conflicts: bool = False
    ) -> Callable[[Handler], Handler]:
        return self._route("POST", path, scope, extension, status, conflicts)

    def put(
        self, path: str, *, scope: Scope, extension: bool = False, conflicts: bool = False
    ) -> Callable[[Handler], Handler]:
        return self._route("PUT", path, scope, extension, 200, conflicts)

    def delete(self, path: str, *, scope: Scope, extension: bool = False) -> Callable[[Handler], Handler]:
        return self._route("DELETE", path, scope, extension, 200, conflicts=False)

    def _route(
        self, method: str, path: str, scope: Scope, extension: bool, status: int, conflicts: bool
    ) -> Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            parts = _parse_signature(handler, path)
            self.operations.append(
                Operation(
                    method=method,
                    path=PREFIX + path,
                    handler=handler,
                    required_scope=scope,
                    tag=self.tag,
                    status=status,
                    extension=extension,
                    conflicts=conflicts,
                    constraint_errors=self.constraint_errors,
                    lock=self.lock if method in ("PUT", "DELETE") else None,
                    **parts,
                )
            )
            return handler

        return register


def _parse_signature(handler: Handler, path: str) -> dict[str, Any]:
    """What a handler's parameters are: the call, the path's ids, the query's struct, the body's struct."""
    hints = get_type_hints(handler, include_extras=True)
    path_names = set(re.findall(r"\{(\w+)\}", path))
    parts: dict[str, Any] = {
        "writes": hints["ctx"] is WriteContext,
        "path_ids": {},
        "query_name": None,
        "query": None,
        "body_name": None,
        "body": None,
        "parser": None,
        "response_type": hints["return"],
    }
    if hints["ctx"] not in (ReadContext, WriteContext):
        raise TypeError(f"{handler}: `ctx` must be a ReadContext or a WriteContext")
    for name in inspect.signature(handler).parameters:
        kind = hints[name]
        if name in path_names:
            parts["path_ids"][name] = kind
        elif issubclass(kind, Query):
            parts |= {"query_name": name, "query": kind}
        elif name != "ctx":
            parts |= {"body_name": name, "body": kind, "parser": BodyParser(kind)}
    if path_names != set(parts["path_ids"]):
        raise TypeError(f"{handler}: the path has {path_names}, the signature {set(parts['path_ids'])}")
    return parts


class _Node:
    """The segments that may follow in a path: literal ones first, otherwise a parameter."""

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.app: ASGIApp | None = None
        self.parameter_names: list[str] = []  # of the path up to here


class PathRouter:
    """The application's only router, itself an ASGI application: it finds the application for a request's path.

    `apps` maps paths to applications, with parameters in braces; a literal segment takes precedence over a parameter.
    The parameters' values are in the scope's `path_params`. Unknown paths go to the application of `fallbacks` whose
    prefix they start with, otherwise to `default`. The lookup takes one step per segment, however many paths there are.
    """

    def __init__(
        self,
        apps: Mapping[str, ASGIApp],
        default: ASGIApp,
        *,
        fallbacks: Mapping[str, ASGIApp] | None = None,
        lifespan: Lifespan = nullcontext,
    ) -> None:
        self.paths = list(apps)
        self._root = _Node()
        self._default = default
        self._fallbacks = fallbacks or {}
        self._lifespan = lifespan
        for path, app in apps.items():
            self._add(path, app)

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(scope, receive, send)
        else:
            app = self._find(scope) or self._fallback(scope["path"])
            await app(scope, receive, send)

    def _add(self, path: str, app: ASGIApp) -> None:
        node, names = self._root, list[str]()
        for segment in path.split("/"):
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.parameter = node = node.parameter or _Node()
            else:
                node = node.literals.setdefault(segment, _Node())
        node.app, node.parameter_names = app, names

    def _find(self, scope: ASGIScope) -> ASGIApp | None:
        node, values = self._root, list[str]()
        for segment in scope["path"].split("/"):
            child = node.literals.get(segment)
            if child is None:
                child = node.parameter
                if child is None or not segment:
                    return None
                values.append(segment)
            node = child
        if node.app is not None:
            scope["path_params"] = dict(zip(node.parameter_names, values, strict=True))
        return node.app

    def _fallback(self, path: str) -> ASGIApp:
        return next((app for prefix, app in self._fallbacks.items() if path.startswith(prefix)), self._default)

    async def _run_lifespan(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """ASGI's lifespan protocol. What `lifespan` yields becomes the server's application state."""
        await receive()
        phase = "startup"
        try:
            async with self._lifespan() as state:
                scope.get("state", {}).update(state or {})
                await send({"type": "lifespan.startup.complete"})
                phase = "shutdown"
                await receive()
        except BaseException:
            await send({"type": f"lifespan.{phase}.failed", "message": traceback.format_exc()})
            raise
        await send({"type": "lifespan.shutdown.complete"})
