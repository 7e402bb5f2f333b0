"""The context of a handler: plan manager, database, actor. Handlers do not deal with HTTP."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from uuid import UUID

from asyncpg import IntegrityConstraintViolationError
from msgspec import Meta, Struct

from plankeeper.core.errors import (
    DomainError,
    ErrorResource,
    FieldError,
    FieldErrorSummary,
    NotFound,
    RejectionReason,
    ValidationError,
)
from plankeeper.core.fields import component
from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.errors import ConstraintViolation, constraint_violation

T = TypeVar("T")

Scope = Annotated[
    Literal["read", "write", "claims", "payments"],
    component("Scope", "What an API key can do. No scope includes another."),
]
ActorKind = Annotated[
    Literal["api_key", "user", "system"],
    component("ActorKind", "`api_key`: an API request. `user`: a person in the console. `system`: the server."),
]


class Actor(Struct, frozen=True):
    """The actor of a change: an API key, a person in the console, or the system itself."""

    kind: Annotated[ActorKind, Meta(description="An API key, a person in the console, or the server itself.")]
    id: Annotated[str | None, Meta(description="The id of the API key or of the account; null for the server.")]
    name: Annotated[str | None, Meta(description="The name of the key or of the person, or the command.")]

    @property
    def account_id(self) -> UUID | None:
        """The account of a person who is signed in to the console."""
        return UUID(self.id) if self.kind == "user" and self.id else None

    @property
    def display_name(self) -> str:
        """The name that is stored with what the actor has done."""
        return self.name or self.kind


SYSTEM = Actor("system", None, "plankeeper")


AccessedKind = Literal["participant", "invoice", "provider", "webhook_endpoint"]
AccessAction = Literal["viewed", "listed", "exported"]


class Disclosure(NamedTuple):
    """A record, or several, that a write shows or sends elsewhere without recording an event about them."""

    action: AccessAction
    kind: AccessedKind
    resource_id: UUID | None
    query: str | None = None
    resource_ids: Sequence[UUID] | None = None


@dataclass(slots=True)
class ReadContext:
    """The context of a read, which runs its statements without a transaction."""

    db: Executor
    plan_manager_id: UUID
    settings: Settings


@dataclass(slots=True)
class KeyContext:
    """The context of a read about the API key itself. It belongs to no plan manager."""

    db: Executor
    api_key_id: UUID
    settings: Settings


@dataclass(slots=True)
class WriteContext:
    """The context of a write, whose transaction is committed before the response is sent."""

    tx: Transaction
    plan_manager_id: UUID
    settings: Settings
    actor: Actor = SYSTEM
    request_id: str | None = None
    notify: bool = True  # whether webhooks send the events of this write
    import_id: UUID | None = None  # the import that this write belongs to
    recorded: list[UUID] = field(default_factory=list[UUID])  # the ids of the events that `record_event` has recorded
    scopes: frozenset[str] = frozenset()  # of the API key of a request
    disclosed: list[Disclosure] = field(default_factory=list[Disclosure])  # for the access log, after the commit

    def require_not_future(self, field_name: str, day: date) -> None:
        """Raise ValidationError if the day in a field of the request is after today."""
        if day > self.settings.today:
            raise ValidationError(FieldError(field_name, "must not be in the future", "too_large"))


def or_404(resource: T | None, name: ErrorResource | None = None) -> T:
    """The resource; raises NotFound if it is None. `name` is needed if it isn't that of the path's last id."""
    if resource is None:
        raise NotFound(name)
    return resource


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated API key. `plan_managers` maps the lower-case text of each allowed id to the id."""

    actor: Actor
    plan_managers: Mapping[bytes, UUID]
    scopes: frozenset[str]
    original_key_id: UUID  # the first of the key and its rotations
    rate_limit: int | None  # requests per minute; None: the server's default; 0: unlimited
    subject: str  # the subject of its rate limit


class IdempotencyKey(NamedTuple):
    """Identifies a request when it is sent again. `request_hash` detects a key that is reused for another request."""

    original_key_id: UUID
    path: str
    key: str
    request_hash: bytes  # of the query and the canonical JSON of the body


# A request with a known key and plan manager: plan manager, time of the response, key id, method, route, path, status,
# seconds, request id, code of the error, user agent, errors of fields. A plain tuple, because every request creates
# one.
RequestRecord = tuple[
    UUID,
    float,
    str | None,
    str,
    str | None,
    bytes,
    int,
    float,
    bytes,
    str | None,
    bytes | None,
    FieldErrorSummary | None,
]


class RejectedRequest(NamedTuple):
    """A request with a known key that was rejected before it belonged to a plan manager."""

    key_id: UUID
    reason: RejectionReason
    at: datetime
    method: str
    route: str | None
    user_agent: bytes | None
    request_id: bytes


# The id of the request that the current task handles, for log lines about its statements.
request_id_variable: ContextVar[bytes | None] = ContextVar("request_id", default=None)


def current_request_id() -> str | None:
    """The id of the request that the current task handles, or None in a background task."""
    request_id = request_id_variable.get()
    return request_id.decode() if request_id else None


# Returns the error for a violated constraint. It runs after the rollback, so it may query the database.
ConstraintErrorHandler = Callable[[Executor, UUID, ConstraintViolation], Awaitable[DomainError]]


async def translate_violation(
    db: Executor,
    plan_manager_id: UUID,
    error: IntegrityConstraintViolationError,
    constraint_errors: Mapping[str, ConstraintErrorHandler],
) -> Exception:
    """The API's error for a violated constraint, or the error itself if the constraint isn't among those."""
    violation = constraint_violation(error)
    handler = constraint_errors.get(violation.constraint)
    return await handler(db, plan_manager_id, violation) if handler else error


class Access(NamedTuple):
    """One read: of the record `resource_id`, or of several.

    Those of a list are `resource_ids`. For a page in order of id without filters, which contains every record between
    two ids, they are its first and its last one.
    """

    plan_manager_id: UUID
    actor: Actor
    action: AccessAction
    kind: AccessedKind
    request_id: str | None
    resource_id: UUID | None = None
    query: str | None = None
    resource_ids: Sequence[UUID] | None = None
    first_id: UUID | None = None
    last_id: UUID | None = None


# Called during each such request, so it must be fast.
OnAccess = Callable[[Access], None]
# The ids of the records in the response of a read, by kind.
ListDisclosed = Callable[[Any], Mapping[AccessedKind, Sequence[UUID]]]


def report_disclosed(on_access: OnAccess, ctx: WriteContext) -> None:
    """Report what a write has disclosed. Call it after the commit."""
    for each in ctx.disclosed:
        by = (ctx.plan_manager_id, ctx.actor)
        shown = (each.resource_id, each.query, each.resource_ids)
        on_access(Access(*by, each.action, each.kind, ctx.request_id, *shown))
