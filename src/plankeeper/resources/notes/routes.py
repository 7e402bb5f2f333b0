"""Notes: list, create, get, update, delete."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from plankeeper.core.context import AccessedKind, ReadContext, WriteContext, or_404
from plankeeper.core.fields import EmptyResponse
from plankeeper.core.lists import Page, read_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.resources.notes import service, store
from plankeeper.resources.notes.queries import count, list_page
from plankeeper.resources.notes.schemas import Note, NoteCreate, NoteListQuery, NoteUpdate

router = Router("notes", lock=service.select_for_update)


def _list_records(page: Page[Note]) -> Mapping[AccessedKind, Sequence[UUID]]:
    return _records(page.data)


def _get_record(note: Note) -> Mapping[AccessedKind, Sequence[UUID]]:
    return _records([note])


def _records(notes: Sequence[Note]) -> Mapping[AccessedKind, Sequence[UUID]]:
    """The participants and invoices of notes, for the access log."""
    found = dict[AccessedKind, list[UUID]]()
    for each in notes:
        if each.resource.kind != "provider":
            found.setdefault(each.resource.kind, []).append(each.resource.id)
    return {kind: list(dict.fromkeys(ids)) for kind, ids in found.items()}


@router.get("/notes", scope=READ, extension=True, access_log=_list_records)
async def list_(ctx: ReadContext, query: NoteListQuery) -> Page[Note]:
    """List notes. Filters are combined with AND."""
    return await read_page(query, list_page, count, ctx.db, ctx.plan_manager_id)


@router.post("/notes", scope=WRITE, extension=True, status=201, creates=True)
async def create(ctx: WriteContext, new: NoteCreate) -> Note:
    """Create a note on a participant, a provider or an invoice."""
    return await service.create(ctx, new)


@router.get("/notes/{note_id}", scope=READ, extension=True, has_etag=True, access_log=_get_record)
async def get(ctx: ReadContext, note_id: UUID) -> Note:
    """Get a note."""
    return or_404(await store.get(ctx.db, ctx.plan_manager_id, note_id))


@router.put("/notes/{note_id}", scope=WRITE, extension=True)
async def update(ctx: WriteContext, note_id: UUID, change: NoteUpdate) -> Note:
    """Update a note. Omitted fields keep their values. A note stays on its record."""
    return await service.update(ctx, note_id, change)


@router.delete("/notes/{note_id}", scope=WRITE, extension=True)
async def delete(ctx: WriteContext, note_id: UUID) -> EmptyResponse:
    """Delete a note permanently."""
    await service.delete(ctx, note_id)
    return EmptyResponse()
