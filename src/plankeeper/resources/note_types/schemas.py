"""Schemas of note types."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import AwareDatetime, Text255, UpdatedAt
from plankeeper.core.lists import DefaultSort, NumberedListQuery

Title = Annotated[str, Meta(max_length=255, pattern=r"\S", extra={"message": "must not be blank"})]
Color = Text255 | None | UnsetType


class NoteType(Struct):
    """A kind of note."""

    id: Annotated[int, Meta(description="An integer from one sequence for all plan managers.")]
    note_type: Annotated[
        str, Meta(description="The name of the type. It must contain a character that isn't white space.")
    ]
    plan_manager_id: Annotated[UUID, Meta(description="The UUID of the plan manager that the note type belongs to.")]
    badge_color: Annotated[str | None, Meta(description="Any text, such as `#0b7285` or `teal`, or null.")]
    highlight_color: Annotated[str | None, Meta(description="Any text, such as `#e3fafc` or `white`, or null.")]
    updated_at: UpdatedAt


class NoteTypeCreate(Struct, forbid_unknown_fields=True, kw_only=True):
    """A new note type."""

    note_type: Title
    badge_color: Color = UNSET
    highlight_color: Color = UNSET


class NoteTypeUpdate(Struct, forbid_unknown_fields=True, kw_only=True):
    """The changes of a note type. Omitted fields keep their values; null clears a colour."""

    note_type: Title | UnsetType = UNSET
    badge_color: Color = UNSET
    highlight_color: Color = UNSET


class NoteTypeRow(Struct, kw_only=True):
    """A row of the table; also the format of exports."""

    id: int
    note_type: str
    badge_color: str | None = None
    highlight_color: str | None = None


class NoteTypeVersion(NoteTypeRow, kw_only=True):
    """A row with the time of its last change."""

    updated_at: AwareDatetime


class NoteTypeImport(NoteTypeCreate):
    """A record of an import."""

    id: Annotated[int, Meta(ge=1, le=2**53)] | UnsetType = UNSET


class NoteTypeListQuery(NumberedListQuery, frozen=True):
    """The query of the list."""

    sort: DefaultSort = UNSET
