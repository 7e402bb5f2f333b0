"""Schemas of the trash."""

from collections.abc import Sequence
from typing import Any, Literal
from uuid import UUID

from msgspec import Raw, Struct

from plankeeper.core.fields import AwareDatetime

TrashKind = Literal["participant", "provider"]
JsonObject = dict[str, Any]


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


class Snapshot(Struct):
    """A deleted record as it was stored, its team, and the names of the account manager and the exit reasons, by id.

    Members of the record and of the team are those of ParticipantRow, Provider and TeamMemberRow when it was deleted.
    """

    record: JsonObject
    team: Sequence[JsonObject]
    names: dict[str, str]


class RecordReference(Struct):
    """The content of events about an entry that was deleted permanently."""

    id: UUID


class Restored(Struct):
    """A restored record: its name, and sentences about the values that could not be restored."""

    kind: TrashKind
    resource_id: UUID
    name: str | None
    changes: list[str]
