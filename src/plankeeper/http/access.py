"""What a read discloses: reported for the record of who looked at which participant or invoice."""

from collections.abc import Callable
from typing import Literal, NamedTuple
from uuid import UUID

from plankeeper.http.context import Actor

AccessedKind = Literal["participant", "invoice"]
AccessAction = Literal["viewed", "listed", "exported"]


class Access(NamedTuple):
    """One read: of a single record, or of a page of a list with its query and its first and last id."""

    plan_manager_id: UUID
    actor: Actor
    action: AccessAction
    kind: AccessedKind
    resource_id: UUID | None
    query: str | None
    first_id: UUID | None
    last_id: UUID | None
    request_id: str


# Called during each such read, so it must be fast.
OnAccess = Callable[[Access], None]
