"""What a handler gets of a request: whose it is, and the way to the database. No HTTP."""

from dataclasses import dataclass
from typing import Literal, TypeVar
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction
from plankeeper.http.errors import NotFound
from plankeeper.settings import Settings

T = TypeVar("T")

Scope = Literal["read", "write"]


class Actor(Struct, frozen=True):
    """Who did something: an API key, a user, or the system itself."""

    kind: Literal["api_key", "user", "system"]
    id: str | None
    name: str | None


SYSTEM = Actor("system", None, "plankeeper")


@dataclass(slots=True)
class ReadContext:
    """A request that only reads: one statement, no transaction."""

    db: Executor
    plan_manager_id: UUID
    settings: Settings


@dataclass(slots=True)
class WriteContext:
    """A request that writes, in the one transaction that the edge commits before it answers."""

    tx: Transaction
    plan_manager_id: UUID
    settings: Settings
    actor: Actor = SYSTEM
    request_id: str | None = None
    notify: bool = True  # whether webhooks tell of what it does


def or_404(resource: T | None) -> T:
    """The resource; raises NotFound where there is none."""
    if resource is None:
        raise NotFound
    return resource
