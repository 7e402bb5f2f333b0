"""Schemas of exit reasons."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.http.schemas import NewId, Text255, UuidText


class ExitReason(Struct, kw_only=True):
    """A reason for leaving. The parent of a subcategory is its category."""

    id: Annotated[UUID, Meta(description="The exit reason's UUID.")]
    name: Annotated[str, Meta(description="The name to display.")]
    parent_id: Annotated[UUID | None, Meta(description="The id of the category of a subcategory, or null.")] = None


class ExitReasonImport(Struct, forbid_unknown_fields=True, kw_only=True):
    """A record of an import. A new exit reason requires a name."""

    id: NewId | UnsetType = UNSET
    name: Text255 | UnsetType = UNSET
    parent_id: UuidText | None | UnsetType = UNSET
