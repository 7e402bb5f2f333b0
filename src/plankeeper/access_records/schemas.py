"""Schemas of access records."""

from uuid import UUID

from msgspec import Struct

from plankeeper.http.access import AccessAction, AccessedKind
from plankeeper.http.context import Actor
from plankeeper.http.schemas import AwareDatetime


class AccessRecordRow(Struct, omit_defaults=True):
    """A row of the table. A row of a list has the query and the ids of the page instead of `resource_id`."""

    id: str
    accessed_at: AwareDatetime
    actor_kind: str
    actor_id: str | None
    actor_name: str | None
    action: AccessAction
    resource_kind: AccessedKind
    request_id: str | None
    resource_id: UUID | None = None
    query: str | None = None
    first_id: UUID | None = None
    last_id: UUID | None = None


class AccessRecord(Struct):
    """Who read what."""

    id: UUID
    accessed_at: AwareDatetime
    actor: Actor
    action: AccessAction
    resource_kind: AccessedKind
    resource_id: UUID | None
    query: str | None
    first_id: UUID | None
    last_id: UUID | None
    request_id: str | None


class AccessRecordFilter(Struct, frozen=True):
    """Filters of the console; None matches every record."""

    resource_id: UUID | None = None
    actor_name: str | None = None
