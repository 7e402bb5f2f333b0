"""The context of a handler: plan manager, database, actor. Handlers do not deal with HTTP."""

from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple, TypeVar
from uuid import UUID

from msgspec import Meta, Struct

from plankeeper.database.client import Executor, Transaction
from plankeeper.http.errors import NotFound
from plankeeper.http.schemas import component
from plankeeper.settings import Settings

T = TypeVar("T")

Scope = Annotated[
    Literal["read", "write"], component("Scope", "What an API key can do. `write` doesn't include `read`.")
]
ActorKind = Annotated[
    Literal["api_key", "user", "system"],
    component("ActorKind", "`api_key`: an API request. `user`: a person in the console. `system`: the server."),
]


class Actor(Struct, frozen=True):
    """Who did something: an API key, a user, or the system itself."""

    kind: Annotated[ActorKind, Meta(description="An API key, a person in the console, or the server itself.")]
    id: Annotated[str | None, Meta(description="The id of the API key or of the account; null for the server.")]
    name: Annotated[str | None, Meta(description="The name of the key or of the person, or the command.")]

    @property
    def account_id(self) -> UUID | None:
        """The account of a person who is signed in to the console."""
        return UUID(self.id) if self.kind == "user" and self.id else None


SYSTEM = Actor("system", None, "plankeeper")


AccessedKind = Literal["participant", "invoice", "webhook_endpoint"]
AccessAction = Literal["viewed", "listed", "exported"]


class Disclosure(NamedTuple):
    """A record that a write shows, or sends elsewhere, without an event that says so."""

    action: AccessAction
    kind: AccessedKind
    resource_id: UUID
    query: str | None = None


@dataclass(slots=True)
class ReadContext:
    """The context of a read, which runs its statements without a transaction."""

    db: Executor
    plan_manager_id: UUID
    settings: Settings


@dataclass(slots=True)
class KeyContext:
    """The context of a read about the API key itself, whatever plan managers it can act for."""

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
    disclosed: list[Disclosure] = field(default_factory=list[Disclosure])  # for the access log, after the commit


def or_404(resource: T | None) -> T:
    """The resource; raises NotFound if it is None."""
    if resource is None:
        raise NotFound
    return resource
