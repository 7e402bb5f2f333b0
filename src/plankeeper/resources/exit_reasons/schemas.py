"""Schemas of exit reasons."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import (
    NewId,
    Text255,
    UpdatedAt,
    UuidText,
)
from plankeeper.core.lists import DefaultSort, ResourceListQuery

ParentId = Annotated[
    UuidText | None | UnsetType, Meta(description="The id of the category of a subcategory, or null for a category.")
]


class ExitReasonRow(Struct, kw_only=True):
    """A row of the table; also the format of exports."""

    id: Annotated[UUID, Meta(description="The exit reason's UUID.")]
    name: Annotated[str, Meta(description="The name to display.")]
    parent_id: Annotated[
        UUID | None, Meta(description="The id of the category of a subcategory, or null for a category.")
    ] = None


class ExitReason(ExitReasonRow, kw_only=True):
    """A reason for leaving. The parent of a subcategory is its category."""

    updated_at: UpdatedAt


class ExitReasonCreate(Struct, forbid_unknown_fields=True, kw_only=True):
    """A new exit reason."""

    name: Text255
    parent_id: ParentId = UNSET


class ExitReasonUpdate(Struct, forbid_unknown_fields=True, kw_only=True):
    """The changes of an exit reason. Omitted fields keep their values; null makes it a category."""

    name: Text255 | UnsetType = UNSET
    parent_id: ParentId = UNSET


class ExitReasonImport(Struct, forbid_unknown_fields=True, kw_only=True):
    """A record of an import. A new exit reason requires a name."""

    id: NewId | UnsetType = UNSET
    name: Text255 | UnsetType = UNSET
    parent_id: UuidText | None | UnsetType = UNSET


class ExitReasonListQuery(ResourceListQuery, frozen=True):
    """The query of the list."""

    sort: DefaultSort = UNSET
