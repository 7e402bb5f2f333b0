"""Schemas of exit reasons."""

from uuid import UUID

from msgspec import UNSET, Struct, UnsetType

from plankeeper.http.schemas import NewId, Text255, UuidText


class ExitReason(Struct, kw_only=True):
    """A reason for leaving. The parent of a subcategory is its category."""

    id: UUID
    name: str
    parent_id: UUID | None = None


class ExitReasonImport(Struct, forbid_unknown_fields=True, kw_only=True):
    """A record of an import. A new exit reason requires a name."""

    id: NewId | UnsetType = UNSET
    name: Text255 | UnsetType = UNSET
    parent_id: UuidText | None | UnsetType = UNSET
