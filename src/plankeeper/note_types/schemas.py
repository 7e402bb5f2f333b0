"""Schemas of note types."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.http.pagination import DefaultSort, NumberedListQuery
from plankeeper.http.schemas import AwareDatetime, Text255

Title = Annotated[str, Meta(max_length=255, pattern=r"\S", extra={"message": "must not be blank"})]
Color = Annotated[Text255 | None | UnsetType, Meta(description="Any string, such as `#0b7285` or `teal`.")]


class NoteType(Struct):
    """A type of note."""

    id: int
    note_type: str
    plan_manager_id: UUID
    badge_color: str | None
    highlight_color: str | None


class NoteTypeDetails(NoteType):
    """A type of note with all members."""

    updated_at: AwareDatetime


class NoteTypeCreate(Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of a create."""

    note_type: Title
    badge_color: Color = UNSET
    highlight_color: Color = UNSET


class NoteTypeUpdate(Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of an update. Omitted members keep their values; null clears a colour."""

    note_type: Title | UnsetType = UNSET
    badge_color: Color = UNSET
    highlight_color: Color = UNSET


class NoteTypeRow(Struct, kw_only=True):
    """A row of the table; also the format of exports."""

    id: int
    note_type: str
    badge_color: str | None = None
    highlight_color: str | None = None


class NoteTypeImport(NoteTypeCreate):
    """A record of an import."""

    id: Annotated[int, Meta(ge=1, le=2**53)] | UnsetType = UNSET


class NoteTypeListQuery(NumberedListQuery):
    """The query of the list."""

    sort: DefaultSort = UNSET
