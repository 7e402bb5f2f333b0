"""Note types: list, create, get, update, delete."""

from plankeeper.events.recorder import record
from plankeeper.http.context import Read, Write, found
from plankeeper.http.pagination import page_of
from plankeeper.http.routing import READ, WRITE, Routes
from plankeeper.http.schemas import Empty, Page, applied, json_text
from plankeeper.note_types import store
from plankeeper.note_types.schemas import NoteType, NoteTypeChange, NoteTypeCreate, NoteTypeListQuery, NoteTypeRecord


async def _locked(call: Write, note_type_id: int) -> NoteTypeRecord | None:
    rows = await store.records_for_update(call.tx, call.plan_manager_id, [note_type_id])
    return rows[0] if rows else None


routes = Routes("note_types", lock=_locked)


@routes.get("/note-types", need=READ, extension=True)
async def list_(call: Read, query: NoteTypeListQuery) -> Page[NoteType]:
    """List note types."""
    rows = await store.page(call.db, call.plan_manager_id, query)
    total = None if query.by_cursor else await store.count(call.db, call.plan_manager_id)
    return page_of(query, rows, total)


@routes.post("/note-types", need=WRITE, status=201)
async def create(call: Write, new: NoteTypeCreate) -> NoteType:
    """Create a note type."""
    [new_id] = await store.next_ids(call.tx, 1)
    after = await _put(call, applied(new, NoteTypeRecord(id=new_id, note_type=new.note_type)))
    await record(call, "note_type.created", None, after)
    return after


@routes.get("/note-types/{note_type_id}", need=READ)
async def get(call: Read, note_type_id: int) -> NoteType:
    """Get a note type."""
    return found(next(iter(await store.fetch(call.db, call.plan_manager_id, [note_type_id])), None))


@routes.put("/note-types/{note_type_id}", need=WRITE, extension=True)
async def update(call: Write, note_type_id: int, change: NoteTypeChange) -> NoteType:
    """Update a note type. Absent members stay as they are; null clears a colour."""
    kept = found(await _locked(call, note_type_id))
    [before] = await store.fetch(call.tx, call.plan_manager_id, [note_type_id])
    after = await _put(call, applied(change, kept))
    await record(call, "note_type.updated", before, after)
    return after


@routes.delete("/note-types/{note_type_id}", need=WRITE, extension=True)
async def delete(call: Write, note_type_id: int) -> Empty:
    """Delete a note type for good."""
    before = found(await store.remove(call.tx, call.plan_manager_id, note_type_id))
    await record(call, "note_type.deleted", before, None)
    return Empty()


async def _put(call: Write, new: NoteTypeRecord) -> NoteType:
    await store.put(call.tx, call.plan_manager_id, json_text([new]))
    [after] = await store.fetch(call.tx, call.plan_manager_id, [new.id])
    return after
