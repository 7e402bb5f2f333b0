"""Note types: list, create, get, update, delete."""

from plankeeper.events.recorder import record_event
from plankeeper.http.context import Read, Write, found
from plankeeper.http.pagination import page_of
from plankeeper.http.routing import READ, WRITE, Routes
from plankeeper.http.schemas import Empty, Page, applied, json_text
from plankeeper.note_types import store
from plankeeper.note_types.schemas import NoteType, NoteTypeUpdate, NoteTypeCreate, NoteTypeListQuery, NoteTypeRow


async def _get_for_update(ctx: Write, note_type_id: int) -> NoteTypeRow | None:
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [note_type_id])
    return rows[0] if rows else None


routes = Routes("note_types", lock=_get_for_update)


@routes.get("/note-types", need=READ, extension=True)
async def list_(ctx: Read, query: NoteTypeListQuery) -> Page[NoteType]:
    """List note types."""
    rows = await store.list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.by_cursor else await store.count(ctx.db, ctx.plan_manager_id)
    return page_of(query, rows, total)


@routes.post("/note-types", need=WRITE, status=201)
async def create(ctx: Write, new: NoteTypeCreate) -> NoteType:
    """Create a note type."""
    [new_id] = await store.next_ids(ctx.tx, 1)
    after = await _upsert(ctx, applied(new, NoteTypeRow(id=new_id, note_type=new.note_type)))
    await record_event(ctx, "note_type.created", None, after)
    return after


@routes.get("/note-types/{note_type_id}", need=READ)
async def get(ctx: Read, note_type_id: int) -> NoteType:
    """Get a note type."""
    return found(next(iter(await store.get_many(ctx.db, ctx.plan_manager_id, [note_type_id])), None))


@routes.put("/note-types/{note_type_id}", need=WRITE, extension=True)
async def update(ctx: Write, note_type_id: int, change: NoteTypeUpdate) -> NoteType:
    """Update a note type. Absent members stay as they are; null clears a colour."""
    row = found(await _get_for_update(ctx, note_type_id))
    [before] = await store.get_many(ctx.tx, ctx.plan_manager_id, [note_type_id])
    after = await _upsert(ctx, applied(change, row))
    await record_event(ctx, "note_type.updated", before, after)
    return after


@routes.delete("/note-types/{note_type_id}", need=WRITE, extension=True)
async def delete(ctx: Write, note_type_id: int) -> Empty:
    """Delete a note type for good."""
    before = found(await store.delete(ctx.tx, ctx.plan_manager_id, note_type_id))
    await record_event(ctx, "note_type.deleted", before, None)
    return Empty()


async def _upsert(ctx: Write, row: NoteTypeRow) -> NoteType:
    await store.upsert(ctx.tx, ctx.plan_manager_id, json_text([row]))
    [after] = await store.get_many(ctx.tx, ctx.plan_manager_id, [row.id])
    return after
