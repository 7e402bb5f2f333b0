"""The lifecycle of an API request."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
from msgspec import UNSET
from starlette.types import Receive, Scope, Send

from plankeeper.core.bulk import in_item_order
from plankeeper.core.context import (
    Access,
    AccessAction,
    Disclosure,
    IdempotencyKey,
    KeyContext,
    OnAccess,
    Principal,
    ReadContext,
    WriteContext,
    report_disclosed,
    translate_violation,
)
from plankeeper.core.errors import (
    DomainError,
    ErrorResource,
    NotFound,
    ValidationError,
)
from plankeeper.core.files import Download
from plankeeper.core.json import InvalidItemsError, encode
from plankeeper.core.lists import ListQuery, Page
from plankeeper.core.settings import Settings
from plankeeper.core.validation import summarize
from plankeeper.database.client import Database, Transaction
from plankeeper.database.commit_watermark import CommitWatermark
from plankeeper.http.admission import Admission
from plankeeper.http.browsers import compress
from plankeeper.http.etags import (
    Preconditions,
    etag,
    file_etag,
    is_not_modified,
    require_preconditions,
    with_etag,
    with_location,
)
from plankeeper.http.idempotency import service as idempotency
from plankeeper.http.instrumentation import OnResponse
from plankeeper.http.parsing import parse_path_id, parse_query
from plankeeper.http.requests import (
    ClientDisconnectedError,
    RequestState,
    has_body,
    preferred_types,
    read_body,
    read_upload,
)
from plankeeper.http.responses import NOT_MODIFIED, FileResponse, HttpError, Response, error_response, to_api_error
from plankeeper.http.routing import Lock, Operation, ReceivedFile, find_read, find_returned_path, path_id_resource
from plankeeper.http.search_slots import search_slot

# Called at the end of the transaction of a write, with the plan manager and the request id.
OnWrite = Callable[[Transaction, UUID, str], Awaitable[None]]


@dataclass(slots=True)
class ApiDependencies:
    """The dependencies of all endpoints."""

    db: Database
    admission: Admission
    on_response: OnResponse
    settings: Settings
    on_write: OnWrite | None = None
    on_access: OnAccess | None = None
    watermark: CommitWatermark | None = None


UNKNOWN_WATERMARK = datetime(1970, 1, 1, tzinfo=UTC)  # as an `updated_since`, it selects everything
MAX_ID_LENGTH = 100  # of an unknown resource in an error
CLIENT_CLOSED_REQUEST = 499  # logged if the client disconnects before the response


@dataclass(frozen=True, slots=True)
class _Write:
    """A write with the client's preconditions and idempotency key."""

    operation: Operation
    values: dict[str, Any]
    preconditions: Preconditions
    idempotency_key: IdempotencyKey | None
    is_head: bool


class _HeadError(Exception):
    """Rolls back the write of a GET, such as the record of a download: a HEAD has only its response."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


class Endpoint:
    """One path with its operations by method: an ASGI application."""

    def __init__(self, deps: ApiDependencies, path: str, all_operations: Sequence[Operation]) -> None:
        self._deps = deps
        self._path = path
        operations = {each.method: each for each in all_operations if each.path == path}
        self._operations = dict(operations)
        self._returned_paths = {name: find_returned_path(each, all_operations) for name, each in operations.items()}
        self._reads = {name: find_read(each, all_operations) for name, each in operations.items() if name == "POST"}
        if "GET" in operations:
            self._operations["HEAD"] = operations["GET"]
        # The compressed length of a body that repeats a client's text would reveal something about a secret in it.
        self._has_secret = any(each.has_secret for each in operations.values())
        self._allow = ", ".join(sorted([*self._operations, "OPTIONS"]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = RequestState.from_scope(scope)
        try:
            response = await self._respond(state, scope, receive)
        except ClientDisconnectedError:
            self._deps.on_response(state, scope["method"], self._path, CLIENT_CLOSED_REQUEST)
            return
        except Exception as error:  # noqa: BLE001 - the client gets an error response for every exception
            response = self._error_response(error, state, scope)
        if not self._has_secret and not isinstance(response, FileResponse):
            response = await compress(response, state.headers.get(b"accept-encoding"))
        await response.send(state.request_id, send, state.rate_limit_headers)
        self._deps.on_response(state, scope["method"], self._path, response.status)

    def _error_response(self, error: Exception, state: RequestState, scope: Scope) -> Response:
        """In a function of its own: a variable of the caller would keep the error, and with it the body, in a cycle."""
        api_error = to_api_error(error, state.request_id.decode())
        state.error_code = api_error.code
        state.field_errors = summarize(api_error.errors) if api_error.errors else None
        if isinstance(api_error, NotFound) and api_error.resource is None:
            api_error = _name_missing(self._operations[scope["method"]], scope["path_params"])
        return error_response(api_error, state.request_id.decode(), self._deps.settings.public_url)

    async def _respond(self, state: RequestState, scope: Scope, receive: Receive) -> Response:
        if b"%2f" in scope.get("raw_path", b"").lower():
            raise DomainError("path_not_found")  # an encoded slash belongs to a segment, and no id contains one
        operation = self._operations.get(scope["method"])
        if operation is None:
            return self._respond_without_operation(scope["method"])
        with self._deps.admission:
            if operation.is_for_key:
                return await self._handle_key_read(operation, state, scope)
            principal, plan_manager_id = await self._deps.admission.admit(state, scope, operation)
            if operation.method == "GET" and not operation.writes:
                values = _handler_arguments(operation, scope)
                return await self._handle_read(operation, state, plan_manager_id, values, scope)
        values = _handler_arguments(operation, scope)
        body = await self._read_body(operation, values, state, receive, principal, plan_manager_id)
        with self._deps.admission:
            if not operation.writes:
                return await self._handle_read(operation, state, plan_manager_id, values, scope)
            idempotency_key = idempotency.parse_idempotency_key(operation, principal, scope, state.headers, body)
            preconditions = Preconditions.from_headers(state.headers)
            write = _Write(operation, values, preconditions, idempotency_key, scope["method"] == "HEAD")
            response = await self._write(write, state, principal, plan_manager_id)
        returned_path = self._returned_paths[operation.method]
        if returned_path is None or _is_dry_run(operation, values):
            return response
        location = "/".join(scope["path"].split("/")[: returned_path.count("/") + 1])
        return with_location(response, location, is_new=operation.creates, has_secret=operation.has_secret)

    async def _read_body(
        self,
        operation: Operation,
        values: dict[str, Any],
        state: RequestState,
        receive: Receive,
        principal: Principal,
        plan_manager_id: UUID,
    ) -> bytes:
        """Add the parsed body, or the stored file, to the handler's arguments. Returns what identifies the body."""
        body = b""
        if operation.receive_file and operation.body_name:
            ctx = ReadContext(self._deps.db, plan_manager_id, self._deps.settings)
            values[operation.body_name] = file = await self._receive_file(operation, ctx, values, state, receive)
            body = file.sha256.encode()
        elif operation.parser:
            # A slow upload holds no concurrency slot.
            bodies, sender = self._deps.admission.bodies, principal.subject
            if operation.optional_body and not has_body(state.headers):
                body = b"{}"
            else:
                body = await read_body(state.headers, receive, bodies, sender, operation.max_body_bytes)
            path_id = values[operation.id_name] if operation.id_name else None
            try:
                parsed = operation.parser.parse(body, path_id)
            except InvalidItemsError as error:
                query = values.get(operation.query_name or "")
                raise await self._with_stored_errors(operation, plan_manager_id, query, error) from None
            if operation.body_name:
                values[operation.body_name] = parsed
        return body

    async def _receive_file(
        self, operation: Operation, ctx: ReadContext, values: Mapping[str, Any], state: RequestState, receive: Receive
    ) -> ReceivedFile:
        """The file in a body, which counts with its Content-Length, or without one as the largest."""
        upload = read_upload(state.headers, receive, operation.max_body_bytes)
        if operation.receive_file is None:
            raise TypeError(operation.path)
        size = int(state.headers.get(b"content-length", operation.max_body_bytes))
        with self._deps.admission.files.reserve(str(ctx.plan_manager_id), size):
            return await operation.receive_file(ctx, **values, upload=upload)

    async def _with_stored_errors(
        self, operation: Operation, plan_manager_id: UUID, query: object, error: InvalidItemsError
    ) -> ValidationError:
        """The errors of a bulk body together with those that require the database, such as unknown ids."""
        if operation.find_errors is None:
            return error
        with self._deps.admission:
            ctx = ReadContext(self._deps.db, plan_manager_id, self._deps.settings)
            stored = await operation.find_errors(ctx, query, error.items)
        rejected = {each.field for each in error.errors}
        others = [each for each in stored if each.field not in rejected]
        return ValidationError(*in_item_order([*error.errors, *others]))

    async def _handle_key_read(self, operation: Operation, state: RequestState, scope: Scope) -> Response:
        principal = await self._deps.admission.admit_key(state, scope)
        ctx = KeyContext(self._deps.db, UUID(principal.actor.id), self._deps.settings)
        values = _handler_arguments(operation, scope)
        response = Response.from_object(operation.status, await operation.handler(ctx, **values))
        return with_etag(response, Preconditions.from_headers(state.headers), None)

    async def _handle_read(
        self, operation: Operation, state: RequestState, plan_manager_id: UUID, values: dict[str, Any], scope: Scope
    ) -> Response:
        ctx = ReadContext(self._deps.db, plan_manager_id, self._deps.settings)
        # Before the handler's statements, so that the page contains everything that was written before it.
        headers = self._synced_until(operation, values) if operation.has_updated_since else None
        query = values.get(operation.query_name or "")
        is_search = isinstance(query, ListQuery) and query.is_search
        async with search_slot(plan_manager_id) if is_search else nullcontext():
            result = await operation.handler(ctx, **values)
        file = result if isinstance(result, Download) else await _format(operation, ctx, state, result)
        is_head, preconditions = scope["method"] == "HEAD", Preconditions.from_headers(state.headers)
        tag = file_etag(file.version) if file and file.version else None
        if tag and is_not_modified(preconditions, tag):
            response = Response(NOT_MODIFIED, b"", {})
        elif file:
            response = await FileResponse.open(file, is_head=is_head)
        else:
            response = Response.from_object(operation.status, result, headers)
        if operation.access_log and not is_head:
            self._record_access(operation, state, values, scope, result)
        if operation.has_etag and file and (tag or not is_head):  # other conditions are about the resource as JSON
            response.headers = {**(response.headers or {}), "etag": tag or etag(response.body, None)}
        if file or not operation.has_etag:
            return response
        return with_etag(response, preconditions, getattr(result, "updated_at", None))

    def _synced_until(self, operation: Operation, values: dict[str, Any]) -> dict[str, str]:
        """The header with the value for the client's next `updated_since`."""
        moment = self._deps.watermark.value if self._deps.watermark else None
        if moment is None:  # at least as much as this time
            updated_since = values[operation.query_name or ""].updated_since
            moment = UNKNOWN_WATERMARK if updated_since is UNSET else updated_since
        return {"synced-until": moment.astimezone(UTC).isoformat().replace("+00:00", "Z")}

    def _record_access(
        self, operation: Operation, state: RequestState, values: dict[str, Any], scope: Scope, result: Any
    ) -> None:
        """Report the records in a response: one record, or those of a page, as ids or as the first and the last one."""
        if not (self._deps.on_access and operation.access_log and state.principal and state.plan_manager_id):
            return
        by, request_id = (state.plan_manager_id, state.principal.actor), state.request_id.decode()
        kind, query = operation.access_log, scope["query_string"].decode("latin-1") or None
        if callable(kind):
            is_page = isinstance(result, Page)
            action: AccessAction = "viewed" if operation.path_ids and not is_page else "listed"
            for each, ids in kind(result).items():
                one, several = (ids[0], None) if action == "viewed" and len(ids) == 1 else (None, ids)
                self._deps.on_access(Access(*by, action, each, request_id, one, query, several))
        elif operation.path_ids:
            self._deps.on_access(Access(*by, "viewed", kind, request_id, values[next(iter(operation.path_ids))]))
        elif data := result.data:
            if values[operation.query_name or ""].is_whole:
                shown = (None, data[0].id, data[-1].id)
            else:
                shown = ([each.id for each in data], None, None)
            self._deps.on_access(Access(*by, "listed", kind, request_id, None, query, *shown))

    async def _write(self, write: _Write, state: RequestState, principal: Principal, plan_manager_id: UUID) -> Response:
        """The only transaction of a request, committed before the response is sent."""
        request_id = state.request_id.decode()

        async def attempt(tx: Transaction) -> tuple[WriteContext, Response]:
            ctx = WriteContext(tx, plan_manager_id, self._deps.settings, principal.actor, request_id)
            ctx.scopes = principal.scopes
            response = await self._handle_write(write, ctx)
            if write.is_head:
                raise _HeadError(response)
            if self._deps.on_write:
                await self._deps.on_write(tx, plan_manager_id, request_id)
            return ctx, response

        try:
            ctx, response = await self._deps.db.write(attempt)
        except _HeadError as head:
            return head.response
        except asyncpg.IntegrityConstraintViolationError as error:
            errors = write.operation.constraint_errors
            raise await translate_violation(self._deps.db, plan_manager_id, error, errors) from None
        if self._deps.on_access:
            report_disclosed(self._deps.on_access, ctx)
        return response

    async def _handle_write(self, write: _Write, ctx: WriteContext) -> Response:
        """Run the handler, or replay the saved response. Raises DomainError if a precondition doesn't hold."""
        operation, idempotency_key = write.operation, write.idempotency_key
        if idempotency_key and (saved_response := await idempotency.get_or_claim(ctx, idempotency_key)):
            ctx.disclosed += self._find_disclosed(write, saved_response)
            return saved_response
        if operation.lock and write.preconditions:
            require_preconditions(write.preconditions, await self._lock_and_tag(write, operation.lock, ctx))
        result = await operation.handler(ctx, **write.values)
        if isinstance(result, Download):
            return await FileResponse.open(result, is_head=write.is_head)
        status = 200 if _is_dry_run(operation, write.values) else operation.status
        headers = {"etag": file_etag(result.version)} if operation.receive_file and operation.lock else None
        response = Response.from_object(status, result, headers)
        if idempotency_key:
            await idempotency.save_response(ctx, idempotency_key, response, has_secret=operation.has_secret)
        return response

    def _find_disclosed(self, write: _Write, response: Response) -> Iterator[Disclosure]:
        """The records in a replayed response. Its first request recorded an event instead."""
        read = self._reads[write.operation.method]
        if read is None or read.access_log is None:
            return
        if callable(kind := read.access_log):
            with suppress(msgspec.ValidationError):  # an erasure empties fields
                found = kind(msgspec.json.decode(response.body, type=write.operation.response_type))
                yield from (Disclosure("viewed", each, id_) for each, ids in found.items() for id_ in ids)
        elif id_ := write.values.get(next(iter(read.path_ids))):
            yield Disclosure("viewed", kind, id_)
        else:
            body = msgspec.json.decode(response.body)
            ids = [each.get("id") for each in (body["data"] if write.operation.is_bulk else [body])]
            yield from (Disclosure("viewed", kind, UUID(each)) for each in ids if each)

    async def _lock_and_tag(self, write: _Write, lock: Lock, ctx: WriteContext) -> str | None:
        """The tag of the resource that a path names; raises NotFound. None for a file that doesn't exist yet.

        Locks the resource first, so that concurrent updates are seen.
        """
        get, operation = self._operations["GET"], write.operation
        ids = {name: write.values[name] for name in get.path_ids}
        file = {"file": write.values[operation.body_name or ""]} if operation.receive_file else {}
        await lock(ctx, **ids, **file)
        try:
            current = await get.handler(ReadContext(ctx.tx, ctx.plan_manager_id, ctx.settings), **ids)
        except NotFound:
            if operation.receive_file:
                return None
            raise
        if isinstance(current, Download):
            return file_etag(current.version or "")
        return etag(encode(current), getattr(current, "updated_at", None))

    def _respond_without_operation(self, method: str) -> Response:
        if method == "OPTIONS":
            return Response(200, b"{}", {"allow": self._allow})
        raise HttpError("method_not_allowed", f"The path supports {self._allow}.", {"allow": self._allow})


def _handler_arguments(operation: Operation, scope: Scope) -> dict[str, Any]:
    """The handler's arguments from the path and the query."""
    path_params = scope["path_params"]
    arguments: dict[str, Any] = {
        name: parse_path_id(name, kind, path_params[name]) for name, kind in operation.path_ids.items()
    }
    query = parse_query(operation.query, scope["query_string"])
    if operation.query_name:
        arguments[operation.query_name] = query
    return arguments


async def _format(operation: Operation, ctx: ReadContext, state: RequestState, result: object) -> Download | None:
    """The file of a response if `Accept` prefers its media type to JSON."""
    if not operation.formats:
        return None
    for media_type in preferred_types(state.headers.get(b"accept", b"")):
        if media_type in ("*/*", "application/*", "application/json"):
            return None
        if media_type in operation.formats:
            return await operation.formats[media_type](ctx, result)
    return None


def _is_dry_run(operation: Operation, values: Mapping[str, Any]) -> bool:
    return operation.has_dry_run and values[operation.query_name or ""].dry_run is True


def _name_missing(operation: Operation, path_params: Mapping[str, str]) -> NotFound:
    """The error for the resource that the last id of a path identifies."""
    name = list(operation.path_ids)[-1]
    kind = path_id_resource(name)
    resource = ErrorResource(kind, path_params[name][:MAX_ID_LENGTH])
    return NotFound(resource, f"The plan manager has no {kind.replace('_', ' ')} with the id in the path.")


class NotFoundEndpoint:
    """Responds to unknown paths."""

    def __init__(self, on_response: OnResponse, public_url: str | None) -> None:
        self._on_response = on_response
        self._public_url = public_url

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        state = RequestState.from_scope(scope)
        response = error_response(DomainError("path_not_found"), state.request_id.decode(), self._public_url)
        await response.send(state.request_id, send)
        self._on_response(state, scope["method"], None, response.status)
