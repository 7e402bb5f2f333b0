"""Schemas of notes."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.context import Actor, ActorKind
from plankeeper.core.fields import (
    EXTENSION,
    AwareDatetime,
    CreatedAt,
    LongText,
    NewId,
    SearchText,
    Text50,
    Text255,
    UpdatedAt,
    UuidText,
    component,
)
from plankeeper.core.lists import DefaultSort, ResourceListQuery
from plankeeper.database.lists.statements import Filter

NotedKind = Literal["participant", "provider", "invoice"]
_Kind = Annotated[NotedKind, component("NotedKind", "The kinds of records that can have notes.")]
NoteText = Annotated[LongText, Meta(pattern=r"\S", extra={"message": "must not be blank"})]
NoteTypeId = Annotated[int, Meta(ge=1, le=2**53)]


class NotedResource(Struct, frozen=True):
    """The record that a note is about."""

    kind: Annotated[_Kind, Meta(description="`participant`, `provider` or `invoice`.")]
    id: Annotated[UUID, Meta(description="The record's UUID.")]


class Note(Struct, kw_only=True):
    """A note on a participant, a provider or an invoice, with the name and the colours of its type."""

    id: Annotated[UUID, Meta(description="The note's UUID.")]
    resource: Annotated[NotedResource, Meta(description="The record that the note is about: its `kind` and `id`.")]
    note_type_id: Annotated[int, Meta(description="The id of its note type.")]
    note_type: Annotated[str, Meta(description="The name of its type.")]
    badge_color: Annotated[str | None, Meta(description="The badge colour of its type, or null.")]
    highlight_color: Annotated[str | None, Meta(description="The highlight colour of its type, or null.")]
    text: Annotated[str, Meta(description="The text. It must contain a character that isn't white space.")]
    pinned: Annotated[bool, Meta(description="Whether it is shown before the other notes of the record.")]
    alert: Annotated[
        bool,
        Meta(
            description="Whether it is shown with every invoice of the participant or provider, which then has the"
            " warning `flagged_participant` or `flagged_provider`."
        ),
    ]
    author: Annotated[
        Actor, Meta(description="Who wrote it, as events name their `actor`. An import can set the author.")
    ]
    created_at: CreatedAt
    updated_at: UpdatedAt


class NewNotedResource(Struct, forbid_unknown_fields=True, kw_only=True):
    """The record that a new note is about."""

    kind: _Kind
    id: UuidText


class NoteCreate(Struct, forbid_unknown_fields=True, kw_only=True):
    """A new note."""

    resource: Annotated[NewNotedResource, EXTENSION]
    note_type_id: Annotated[NoteTypeId, EXTENSION]
    text: Annotated[NoteText, EXTENSION]
    pinned: Annotated[bool | UnsetType, EXTENSION] = UNSET
    alert: Annotated[bool | UnsetType, EXTENSION] = UNSET


class NoteUpdate(Struct, forbid_unknown_fields=True, kw_only=True):
    """The changes of a note. Omitted fields keep their values. A note stays on its record."""

    note_type_id: Annotated[NoteTypeId | UnsetType, EXTENSION] = UNSET
    text: Annotated[NoteText | UnsetType, EXTENSION] = UNSET
    pinned: Annotated[bool | UnsetType, EXTENSION] = UNSET
    alert: Annotated[bool | UnsetType, EXTENSION] = UNSET


class NoteRow(Struct, kw_only=True):
    """A row of the table; also the format of exports."""

    id: UUID
    resource_kind: NotedKind
    resource_id: UUID
    note_type_id: int
    text: str
    pinned: bool = False
    alert: bool = False
    author_kind: ActorKind = "system"
    author_id: str | None = None
    author_name: str | None = None
    created_at: AwareDatetime


class NoteVersion(NoteRow, kw_only=True):
    """A row with the time of its last change."""

    updated_at: AwareDatetime


class NoteImport(Struct, forbid_unknown_fields=True, kw_only=True):
    """A record of an import. It names its record by kind and id, or a participant by number; its type by id or name."""

    id: NewId | UnsetType = UNSET
    resource_kind: _Kind | UnsetType = UNSET
    resource_id: UuidText | UnsetType = UNSET
    participant_number: Text50 | UnsetType = UNSET
    note_type_id: NoteTypeId | UnsetType = UNSET
    note_type: Text255 | UnsetType = UNSET
    text: NoteText | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    alert: bool | UnsetType = UNSET
    author_kind: ActorKind | UnsetType = UNSET
    author_id: Text255 | None | UnsetType = UNSET
    author_name: Text255 | None | UnsetType = UNSET
    created_at: AwareDatetime | UnsetType = UNSET


class NoteListQuery(ResourceListQuery, frozen=True):
    """Filters of the list, combined with AND."""

    sort: DefaultSort = UNSET
    q: Annotated[
        SearchText | UnsetType,
        EXTENSION,
        Meta(description="Returns items with these words in the text, ignoring accents, case and punctuation."),
    ] = UNSET
    resource_kind: Annotated[
        _Kind | UnsetType,
        EXTENSION,
        Meta(description="Returns items on records of this kind: `participant`, `provider` or `invoice`."),
        Filter("resource_kind = {}"),
    ] = UNSET
    resource_id: Annotated[
        UuidText | UnsetType,
        EXTENSION,
        Meta(description="Returns items on the record with this UUID."),
        Filter("resource_id = {}"),
    ] = UNSET
    note_type_id: Annotated[
        NoteTypeId | UnsetType,
        EXTENSION,
        Meta(description="Returns items of this note type."),
        Filter("note_type_id = {}"),
    ] = UNSET
    pinned: Annotated[
        bool | UnsetType,
        EXTENSION,
        Meta(description="Returns items that are pinned, or that aren't."),
        Filter("pinned = {}"),
    ] = UNSET
    alert: Annotated[
        bool | UnsetType,
        EXTENSION,
        Meta(description="Returns items that are alerts, or that aren't."),
        Filter("alert = {}"),
    ] = UNSET
