"""The notes that the pages of records show, and those to show while an invoice is reviewed."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.resources.note_types import store as note_type_store
from plankeeper.resources.note_types.schemas import NoteTypeListQuery
from plankeeper.resources.notes import store
from plankeeper.resources.notes.schemas import Note, NotedKind

MAX_NOTES = 30  # of a record on its page
MAX_REVIEW_NOTES = 30
MAX_TYPES = 200  # in the form of a note
MAX_LENGTH = 10_000  # of a text
_PATHS: Mapping[NotedKind, str] = {"participant": "participants", "provider": "providers", "invoice": "invoices"}


class RecordNotes(NamedTuple):
    """The notes of a record's page: pinned ones first, of each the newest first. `types` are the choices of the form.

    `has_more`: the record has more notes than these.
    """

    kind: NotedKind
    resource_id: UUID
    notes: Sequence[Note]
    has_more: bool
    types: Mapping[str, str]

    @property
    def url(self) -> str:
        """The address to which the form of a new note is sent."""
        return f"{record_url(self.kind, self.resource_id)}/notes"


def record_url(kind: NotedKind, resource_id: UUID) -> str:
    """The page of the record that a note is about."""
    return f"{PREFIX}/{_PATHS[kind]}/{resource_id}"


async def record_notes(request: PageRequest, kind: NotedKind, resource_id: UUID) -> RecordNotes:
    """The notes of a record's page, for the macro `notes_section`."""
    notes = await store.list_shown(request.db, request.plan_manager_id, kind, resource_id, MAX_NOTES + 1)
    types = await note_type_choices(request) if request.has_role("manager") else {}
    return RecordNotes(kind, resource_id, notes[:MAX_NOTES], len(notes) > MAX_NOTES, types)


async def note_type_choices(request: PageRequest) -> dict[str, str]:
    """The names of the note types by id, for a select."""
    query = NoteTypeListQuery(limit=MAX_TYPES, after="0")
    types = await note_type_store.list_page(request.executor, request.plan_manager_id, query)
    return {str(each.id): each.note_type for each in types}


async def review_notes(
    request: PageRequest, invoice_id: UUID, participant_id: UUID | None, provider_id: UUID | None
) -> list[Note]:
    """The notes to show whenever an invoice is reviewed, from one statement: alerts first, then pinned notes.

    They are the pinned notes and the alerts of the invoice, of its participant and of its provider, at most
    MAX_REVIEW_NOTES. Ids of deleted records, and none, have no notes. The macro `review_notes` of
    `notes/macros.html` shows them.
    """
    ids = (invoice_id, participant_id, provider_id)
    return await store.list_for_review(request.db, request.plan_manager_id, *ids, MAX_REVIEW_NOTES)
