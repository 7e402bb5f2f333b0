"""Exit reasons as they are kept, imported and exported."""

from uuid import UUID

from msgspec import UNSET, Struct, UnsetType

from plankeeper.http.schemas import NewId, Text255, UuidText


class ExitReason(Struct, kw_only=True):
    """A reason for leaving; a subcategory names its category as its parent."""

    id: UUID
    name: str
    parent_id: UUID | str | None = None


class ExitReasonImport(Struct, forbid_unknown_fields=True, kw_only=True):
    """One line of an import. A new exit reason needs a name."""

    id: NewId | UnsetType = UNSET
    name: Text255 | UnsetType = UNSET
    parent_id: UuidText | None | UnsetType = UNSET
