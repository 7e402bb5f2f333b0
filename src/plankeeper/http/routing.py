"""The table of operations: what each slice declares, and what the edge and the OpenAPI document read."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Broken, Queries
from plankeeper.http.context import Need, Read, Write
from plankeeper.http.errors import Refusal
from plankeeper.http.parsing import BodyParser
from plankeeper.http.schemas import Query

PREFIX = "/api/public/v1"

READ: Need = "read"
WRITE: Need = "write"

Handler = Callable[..., Awaitable[Any]]
# What a broken constraint means: asked after the rollback, so it may look things up.
Explanation = Callable[[Queries, UUID, Broken], Awaitable[Refusal]]
# Locks the resource that a path names until the transaction ends; takes the write and the path's ids.
Lock = Callable[..., Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path: its handler, and all that is known of it from the handler's signature."""

    method: str
    path: str
    handler: Handler
    need: Need
    tag: str
    status: int
    extension: bool
    conflicts: bool
    constraints: Mapping[str, Explanation]
    lock: Lock | None
    writes: bool
    path_ids: Mapping[str, Any]
    query_name: str | None
    query: type[Query] | None
    body_name: str | None
    body: type[Struct] | None
    parser: BodyParser[Any] | None
    answer: Any

    @property
    def single(self) -> bool:
        """Whether it answers one resource, which has a tag."""
        return self.method == "GET" and self.path.endswith("}")

    def views(self) -> list[dict[str, Any]]:
        """The query arguments under which a resource can be seen: none, or each view."""
        if self.query_name is None or self.query is None:
            return [{}]
        return [{self.query_name: self.query(**view)} for view in ({}, {"view": "full"})]


class Routes:
    """The operations of one slice. `constraints` names what a broken constraint of the slice's tables answers;
    `lock` locks the resource that a PUT or a DELETE names.
    """

    def __init__(
        self, tag: str, constraints: Mapping[str, Explanation] | None = None, lock: Lock | None = None
    ) -> None:
        self.tag = tag
        self.constraints = constraints or {}
        self.lock = lock
        self.operations: list[Operation] = []

    def get(self, path: str, *, need: Need, extension: bool = False) -> Callable[[Handler], Handler]:
        return self._route("GET", path, need, extension, 200, conflicts=False)

    def post(
        self, path: str, *, need: Need, extension: bool = False, status: int = 200, conflicts: bool = False
    ) -> Callable[[Handler], Handler]:
        return self._route("POST", path, need, extension, status, conflicts)

    def put(
        self, path: str, *, need: Need, extension: bool = False, conflicts: bool = False
    ) -> Callable[[Handler], Handler]:
        return self._route("PUT", path, need, extension, 200, conflicts)

    def delete(self, path: str, *, need: Need, extension: bool = False) -> Callable[[Handler], Handler]:
        return self._route("DELETE", path, need, extension, 200, conflicts=False)

    def _route(
        self, method: str, path: str, need: Need, extension: bool, status: int, conflicts: bool
    ) -> Callable[[Handler], Handler]:
        def define(handler: Handler) -> Handler:
            parts = _signature(handler, path)
            self.operations.append(
                Operation(
                    method=method, path=PREFIX + path, handler=handler, need=need, tag=self.tag, status=status,
                    extension=extension, conflicts=conflicts, constraints=self.constraints,
                    lock=self.lock if method in ("PUT", "DELETE") else None, **parts,
                )
            )  # fmt: skip
            return handler

        return define


def _signature(handler: Handler, path: str) -> dict[str, Any]:
    """What a handler's parameters are: the call, the path's ids, the query's struct, the body's struct."""
    hints = get_type_hints(handler, include_extras=True)
    in_path = set(re.findall(r"\{(\w+)\}", path))
    parts: dict[str, Any] = {
        "writes": hints["call"] is Write, "path_ids": {}, "query_name": None, "query": None,
        "body_name": None, "body": None, "parser": None, "answer": hints["return"],
    }  # fmt: skip
    if hints["call"] not in (Read, Write):
        raise TypeError(f"{handler}: `call` is a Read or a Write")
    for name in inspect.signature(handler).parameters:
        kind = hints[name]
        if name in in_path:
            parts["path_ids"][name] = kind
        elif issubclass(kind, Query):
            parts |= {"query_name": name, "query": kind}
        elif name != "call":
            parts |= {"body_name": name, "body": kind, "parser": BodyParser(kind)}
    if in_path != set(parts["path_ids"]):
        raise TypeError(f"{handler}: the path has {in_path}, the signature {set(parts['path_ids'])}")
    return parts
