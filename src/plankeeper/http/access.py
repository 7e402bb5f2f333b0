"""What a request discloses: reported for the access log, which says who read which participant or invoice."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from plankeeper.http.context import AccessAction, AccessedKind, Actor, WriteContext


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
        on_access(Access(*by, each.action, each.kind, ctx.request_id, each.resource_id, each.query))
