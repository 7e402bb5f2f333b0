"""Schemas of access records."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct

from plankeeper.core.context import AccessAction, AccessedKind, Actor
from plankeeper.core.fields import AwareDatetime


class AccessRecordRow(Struct, omit_defaults=True):
    """A row of the table. A row of a list has the query and the ids of the page instead of `resource_id`: all of them
    or, for a page in order of id without filters, the first and the last one.
    """

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
    resource_ids: Sequence[UUID] | None = None
    first_id: UUID | None = None
    last_id: UUID | None = None


class AccessRecord(Struct):
    """A read of records, with its actor."""

    id: UUID
    accessed_at: AwareDatetime
    actor: Actor
    action: AccessAction
    resource_kind: AccessedKind
    resource_id: UUID | None
    query: str | None
    resource_ids: list[UUID] | None
    first_id: UUID | None
    last_id: UUID | None
    request_id: str | None


class AccessRecordFilter(NamedTuple):
    """The conditions on access records; null selects all.

    `record_ids` are those of participants, invoices or webhook endpoints; `after` and `before` those of access records.
    """

    record_ids: Sequence[UUID] | None = None
    after: UUID | None = None
    before: UUID | None = None
    actor_id: str | None = None
    actor_kind: str | None = None
    action: str | None = None
    actor_name: str | None = None
