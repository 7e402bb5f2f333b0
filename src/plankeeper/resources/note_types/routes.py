"""Note types: list, create, get, update, delete."""

from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.fields import EmptyResponse
from plankeeper.core.lists import Page, read_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.resources.note_types import service, store
from plankeeper.resources.note_types.schemas import (
    NoteType,
    NoteTypeCreate,
    NoteTypeListQuery,
    NoteTypeUpdate,
)

router = Router("note_types", service.CONSTRAINT_ERRORS, lock=service.select_for_update)


@router.get("/note-types", scope=READ, extension=True)
async def list_(ctx: ReadContext, query: NoteTypeListQuery) -> Page[NoteType]:
    """List note types. The cursors of this list are integers."""
    return await read_page(query, store.list_page, store.LIST.count_matching, ctx.db, ctx.plan_manager_id)


@router.post("/note-types", scope=WRITE, creates=True, status=201)
async def create(ctx: WriteContext, new: NoteTypeCreate) -> NoteType:
    """Create a note type. Only `note_type` is required."""
    return await service.create(ctx, new)


@router.get("/note-types/{note_type_id}", scope=READ, has_etag=True)
async def get(ctx: ReadContext, note_type_id: int) -> NoteType:
    """Get a note type. Its id is an integer."""
    return or_404(await store.get(ctx.db, ctx.plan_manager_id, note_type_id))


@router.put("/note-types/{note_type_id}", scope=WRITE, extension=True)
async def update(ctx: WriteContext, note_type_id: int, change: NoteTypeUpdate) -> NoteType:
    """Update a note type. Omitted fields keep their values; null clears a colour."""
    return await service.update(ctx, note_type_id, change)


@router.delete("/note-types/{note_type_id}", scope=WRITE, extension=True, errors=("note_type_in_use",))
async def delete(ctx: WriteContext, note_type_id: int) -> EmptyResponse:
    """Delete a note type. This is permanent, and only possible if no note has it."""
    await service.delete(ctx, note_type_id)
    return EmptyResponse()
