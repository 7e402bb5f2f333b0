"""Routing: packages declare their operations in a Router, and PathRouter finds the endpoint of a request.

Starlette's router tries one path after another. That takes 31 µs of processor time more, 17 % of a get.
"""

import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict, Unpack, get_args, get_origin, get_type_hints

from msgspec import Struct
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as ASGIScope

from plankeeper.core.bulk import BulkResult
from plankeeper.core.context import (
    AccessedKind,
    ConstraintErrorHandler,
    KeyContext,
    ListDisclosed,
    ReadContext,
    Scope,
    WriteContext,
)
from plankeeper.core.errors import ErrorCode, FieldError
from plankeeper.core.fields import EmptyRequest, Query
from plankeeper.core.files import Download
from plankeeper.core.json import BodyParser
from plankeeper.core.read_only_fields import bulk_item_type, find_read_only_fields
from plankeeper.http.parsing import MAX_BODY_BYTES

log = logging.getLogger("plankeeper")

PREFIX = "/api/public/v1"

Scopes = tuple[Scope, ...]  # all of which a key must have

ANY: Scopes = ()
READ: Scopes = ("read",)
WRITE: Scopes = ("write",)
READ_AND_WRITE: Scopes = ("read", "write")
CLAIMS: Scopes = ("claims",)
PAYMENTS: Scopes = ("payments",)
CLAIMS_OR_PAYMENTS: Scopes = ("claims", "payments")  # with `one_scope`

Handler = Callable[..., Awaitable[Any]]
# The resources that the application opens before its first request and closes after its last.
Lifespan = Callable[[], AbstractAsyncContextManager[Mapping[str, Any] | None]]
# Locks the resource that a path names until the end of the transaction. Takes the context and the path's ids.
Lock = Callable[..., Awaitable[object]]


class ReceivedFile(Protocol):
    """What the handler gets as its body for a file. The hash recognises a request that is sent again."""

    @property
    def sha256(self) -> str: ...


# Stores or reads the file in the body of a request before the transaction begins. Takes the path's ids, the query and
# the upload.
ReceiveFile = Callable[..., Awaitable[ReceivedFile]]
# Returns the errors of a bulk body's items, each with the fields that are valid by themselves. Takes the query, too.
FindErrors = Callable[[ReadContext, Any, Sequence[Any]], Awaitable[list[FieldError]]]
# Returns the file of a response, from the context of the read and what its handler returned.
Formatter = Callable[[ReadContext, Any], Awaitable[Download]]


class Options(TypedDict, total=False):
    """The optional parts of the declaration of an operation.

    `access_log` is the kind of record that the access log names: by the first id of the path, or for a list without one
    by the page. For other responses, it lists their records.
    """

    status: int
    one_scope: bool  # whether one of the scopes is enough; what else the key can do depends on the body
    extension: bool  # whether it is an extension of Plankeeper, and not part of the public contract
    errors: tuple[ErrorCode, ...]  # the codes that don't follow from its other parts
    creates: bool  # whether it creates a resource under its path and returns it
    find_errors: FindErrors  # finds the errors of a bulk body's items that require the database
    max_body_bytes: int
    receive_file: ReceiveFile  # for a body that is a file
    lock: Lock  # for a file that replaces the one of a GET, and takes the file, too; others have that of the router
    optional_body: bool  # whether a request without a body is one with an empty object
    has_secret: bool  # whether the response contains a secret, so that a stored copy is encrypted
    has_etag: bool  # for single resources
    formats: Mapping[str, Formatter]  # files of the response, by the media types in `Accept`
    media_types: tuple[str, ...]  # of a file in the response, other than a document
    access_log: AccessedKind | ListDisclosed


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path, from the declaration of its router, see `Options`, and the signature of its handler."""

    method: str
    path: str
    handler: Handler
    tag: str
    required_scopes: Scopes  # empty: any key may send it
    one_scope: bool = False
    status: int = 200
    extension: bool = False
    errors: tuple[ErrorCode, ...] = ()
    creates: bool = False
    find_errors: FindErrors | None = None
    max_body_bytes: int = MAX_BODY_BYTES
    receive_file: ReceiveFile | None = None
    lock: Lock | None = None
    optional_body: bool = False
    has_secret: bool = False
    has_etag: bool = False
    formats: Mapping[str, Formatter] = field(default_factory=dict[str, Formatter])
    media_types: tuple[str, ...] = ()
    access_log: AccessedKind | ListDisclosed | None = None
    constraint_errors: Mapping[str, ConstraintErrorHandler]
    writes: bool
    is_for_key: bool  # whether it is about the key of the request, so that it needs no plan manager
    path_ids: Mapping[str, Any]
    query_name: str | None
    query: type[Query] | None
    body_name: str | None
    body: type[Struct] | None
    parser: BodyParser[Any] | None  # also of a POST without a body, which accepts an empty object
    read_only: frozenset[str]  # the fields of a body, or of the items of a bulk body, that are ignored
    id_name: str | None  # of the id in the path of the resource to update
    response_type: Any
    is_bulk: bool  # whether its body has items to create and to update
    has_updated_since: bool  # whether it is a list with the filter `updated_since`
    has_dry_run: bool  # whether a request with `dry_run=true` stores nothing, and has the status 200


def path_id_resource(name: str) -> str:
    """The kind of the resource that an id in a path identifies: `invoice` for `invoice_id`."""
    return {"session_id": "invoice_view_session"}.get(name, name.removesuffix("_id"))


def find_returned_path(operation: Operation, operations: Iterable[Operation]) -> str | None:
    """The path whose GET returns the response of a write. A create returns a resource under its path.

    An action returns the resource that it is about. None if the response isn't a resource with a path of its own.
    """
    if operation.receive_file or operation.method not in ("POST", "PUT"):
        return None
    if operation.method == "PUT" or operation.creates:
        return operation.path
    reads = [each for each in operations if each.has_etag and operation.path.startswith(f"{each.path}/")]
    read = max(reads, key=lambda each: len(each.path), default=None)
    return read.path if read and read.response_type is operation.response_type else None


def find_read(operation: Operation, operations: Iterable[Operation]) -> Operation | None:
    """The read in the access log that shows the same kind of record as a write. Of a bulk write, as one of its items.

    None if the response of the write is no such record.
    """
    shown = get_args(operation.response_type)[0] if operation.is_bulk else operation.response_type
    reads = (each for each in operations if each.method == "GET" and each.path_ids and each.access_log)
    matching = (each for each in reads if inspect.isclass(each.response_type) and inspect.isclass(shown))
    return next((each for each in matching if issubclass(shown, each.response_type)), None)


class Router:
    """The operations of one package.

    `constraint_errors` maps the names of database constraints to functions that return the error for a violation.
    `lock` locks the resource that the path of a PUT or a DELETE names.
    """

    def __init__(
        self, tag: str, constraint_errors: Mapping[str, ConstraintErrorHandler] | None = None, lock: Lock | None = None
    ) -> None:
        self.tag = tag
        self.constraint_errors = constraint_errors or {}
        self.lock = lock
        self.operations: list[Operation] = []

    def get(self, path: str, *, scope: Scopes, **options: Unpack[Options]) -> Callable[[Handler], Handler]:
        """Register a read."""
        return self._route("GET", path, scope, options)

    def post(self, path: str, *, scope: Scopes, **options: Unpack[Options]) -> Callable[[Handler], Handler]:
        """Register a write, or a read with a body."""
        return self._route("POST", path, scope, options)

    def put(self, path: str, *, scope: Scopes, **options: Unpack[Options]) -> Callable[[Handler], Handler]:
        return self._route("PUT", path, scope, options, self.lock)

    def delete(self, path: str, *, scope: Scopes, **options: Unpack[Options]) -> Callable[[Handler], Handler]:
        return self._route("DELETE", path, scope, options, self.lock)

    def _route(
        self, method: str, path: str, scope: Scopes, options: Options, lock: Lock | None = None
    ) -> Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            parts = _parse_signature(handler, path)
            body, read_only = parts["body"], frozenset[str]()
            item_type = bulk_item_type(body) if parts["is_bulk"] else None
            if options.get("receive_file"):
                parts["body"] = body = None
            elif lock:
                options["lock"] = lock
            if body and (method == "PUT" or options.get("creates") or item_type):
                read_only = find_read_only_fields(body, parts["response_type"])
            parser = BodyParser(body, read_only, item_type) if body else None
            if method == "POST" and parts["body_name"] is None:
                parser, options["optional_body"] = BodyParser(EmptyRequest), True
            operation = Operation(
                method=method,
                path=PREFIX + path,
                handler=handler,
                tag=self.tag,
                constraint_errors=self.constraint_errors,
                required_scopes=scope,
                parser=parser,
                read_only=read_only,
                id_name=list(parts["path_ids"])[-1] if method == "PUT" and body else None,
                **options,
                **parts,
            )
            self.operations.append(operation)
            return handler

        return register


def _parse_signature(handler: Handler, path: str) -> dict[str, Any]:
    """The parts of an Operation that the handler's parameters declare: path ids, query and body."""
    hints = get_type_hints(handler, include_extras=True)
    path_names = set(re.findall(r"\{(\w+)\}", path))
    parts: dict[str, Any] = {
        "writes": hints["ctx"] is WriteContext,
        "is_for_key": hints["ctx"] is KeyContext,
        "path_ids": {},
        "query_name": None,
        "query": None,
        "body_name": None,
        "body": None,
        "response_type": hints["return"],
        "is_bulk": get_origin(hints["return"]) is BulkResult,
        "has_updated_since": False,
        "has_dry_run": False,
    }
    if hints["ctx"] not in (ReadContext, WriteContext, KeyContext):
        raise TypeError(f"{handler}: `ctx` must be a ReadContext, a WriteContext or a KeyContext")
    for name in inspect.signature(handler).parameters:
        kind = hints[name]
        if name in path_names:
            parts["path_ids"][name] = kind
        elif issubclass(kind, Query):
            has_updated_since = "updated_since" in kind.__struct_fields__
            parts |= {"query_name": name, "query": kind, "has_updated_since": has_updated_since}
            parts["has_dry_run"] = "dry_run" in kind.__struct_fields__
        elif name != "ctx":
            parts |= {"body_name": name, "body": kind}
    if path_names != set(parts["path_ids"]):
        raise TypeError(f"{handler}: the path has {path_names}, and the signature has {set(parts['path_ids'])}")
    return parts


class MethodFallback:
    """An ASGI application for a literal path beside a path with a parameter, which handles some of the methods.

    `/things/bulk` takes a POST. A GET of it goes to `/things/{thing_id}`, with an invalid id.
    """

    def __init__(
        self, app: ASGIApp, fallback: ASGIApp, fallback_methods: Collection[str], path_params: Mapping[str, str]
    ) -> None:
        self._app = app
        self._fallback = fallback
        self._fallback_methods = frozenset(fallback_methods)
        self._path_params = dict(path_params)

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        if scope["method"] in self._fallback_methods:
            scope["path_params"] = self._path_params
            await self._fallback(scope, receive, send)
        else:
            await self._app(scope, receive, send)


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
            log.exception("the lifespan failed", extra={"phase": phase})
            await send({"type": f"lifespan.{phase}.failed", "message": ""})
            raise
        await send({"type": "lifespan.shutdown.complete"})
