"""Note types: list, create, get, update, delete."""

from plankeeper.events.recorder import record_event
from plankeeper.http.context import ReadContext, WriteContext, or_404
from plankeeper.http.json import to_json
from plankeeper.http.pagination import Page, build_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.http.schemas import EmptyResponse, apply_patch
from plankeeper.note_types import store
from plankeeper.note_types.schemas import NoteType, NoteTypeCreate, NoteTypeListQuery, NoteTypeRow, NoteTypeUpdate


async def _get_for_update(ctx: WriteContext, note_type_id: int) -> NoteTypeRow | None:
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [note_type_id])
    return rows[0] if rows else None


router = Router("note_types", lock=_get_for_update)


@router.get("/note-types", scope=READ, extension=True)
async def list_(ctx: ReadContext, query: NoteTypeListQuery) -> Page[NoteType]:
    """List note types."""
    rows = await store.list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.uses_cursor else await store.count(ctx.db, ctx.plan_manager_id)
    return build_page(query, rows, total)


@router.post("/note-types", scope=WRITE, status=201)
async def create(ctx: WriteContext, new: NoteTypeCreate) -> NoteType:
    """Create a note type."""
    [new_id] = await store.next_ids(ctx.tx, 1)
    after = await _upsert(ctx, apply_patch(new, NoteTypeRow(id=new_id, note_type=new.note_type)))
    await record_event(ctx, "note_type.created", None, after)
    return after


@router.get("/note-types/{note_type_id}", scope=READ, etag=True)
async def get(ctx: ReadContext, note_type_id: int) -> NoteType:
    """Get a note type."""
    return or_404(next(iter(await store.get_many(ctx.db, ctx.plan_manager_id, [note_type_id])), None))


@router.put("/note-types/{note_type_id}", scope=WRITE, extension=True)
async def update(ctx: WriteContext, note_type_id: int, change: NoteTypeUpdate) -> NoteType:
    """Update a note type. Absent members stay as they are; null clears a colour."""
    row = or_404(await _get_for_update(ctx, note_type_id))
    [before] = await store.get_many(ctx.tx, ctx.plan_manager_id, [note_type_id])
    after = await _upsert(ctx, apply_patch(change, row))
    await record_event(ctx, "note_type.updated", before, after)
    return after


@router.delete("/note-types/{note_type_id}", scope=WRITE, extension=True)
async def delete(ctx: WriteContext, note_type_id: int) -> EmptyResponse:
    """Delete a note type for good."""
    before = or_404(await store.delete(ctx.tx, ctx.plan_manager_id, note_type_id))
    await record_event(ctx, "note_type.deleted", before, None)
    return EmptyResponse()


async def _upsert(ctx: WriteContext, row: NoteTypeRow) -> NoteType:
    await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([row]))
    [after] = await store.get_many(ctx.tx, ctx.plan_manager_id, [row.id])
    return after
