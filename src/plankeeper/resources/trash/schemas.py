"""Schemas of the trash."""

from collections.abc import Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from msgspec import Raw, Struct

from plankeeper.core.fields import AwareDatetime

TrashKind = Literal["participant", "provider"]


class TrashSummary(Struct, kw_only=True):
    """A deleted record in the list of the trash."""

    id: UUID  # of the entry
    kind: TrashKind
    resource_id: UUID
    name: str | None
    deleted_at: AwareDatetime
    deleted_by: str | None
    member_count: int


class TrashEntry(Struct, kw_only=True):
    """A deleted record with its content: a Snapshot as JSON."""

    id: UUID
    kind: TrashKind
    resource_id: UUID
    name: str | None
    deleted_at: AwareDatetime
    deleted_by: str | None
    snapshot: Raw


class RecordReference(Struct):
    """The content of events about an entry that was deleted permanently."""

    id: UUID


class RestoredEntry(NamedTuple):
    """An entry whose record was restored, and sentences about the values that could not be restored."""

    entry: TrashEntry
    changes: Sequence[str]
