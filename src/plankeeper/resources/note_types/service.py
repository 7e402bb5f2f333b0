"""Operations on note types that the API and the console share."""

from datetime import UTC, datetime

from msgspec.structs import asdict

from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.fields import apply_patch
from plankeeper.core.json import to_json
from plankeeper.database.timestamps import next_updated_at
from plankeeper.events.recorder import is_changed, record_event
from plankeeper.resources.note_types import store
from plankeeper.resources.note_types.schemas import (
    NoteType,
    NoteTypeCreate,
    NoteTypeUpdate,
    NoteTypeVersion,
)


async def select_for_update(ctx: WriteContext, note_type_id: int) -> NoteTypeVersion | None:
    """Lock a note type until the transaction ends."""
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [note_type_id])
    return rows[0] if rows else None


async def create(ctx: WriteContext, new: NoteTypeCreate) -> NoteType:
    [new_id] = await store.next_ids(ctx.tx, 1)
    row = apply_patch(new, NoteTypeVersion(id=new_id, note_type=new.note_type, updated_at=datetime.now(UTC)))
    await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([row]))
    after = _note_type(ctx, row)
    await record_event(ctx, "note_type.created", None, after)
    return after


async def update(ctx: WriteContext, note_type_id: int, change: NoteTypeUpdate) -> NoteType:
    """Apply the fields that are set; raises NotFound."""
    old = or_404(await select_for_update(ctx, note_type_id))
    new = apply_patch(change, old)
    if is_changed(old, new):
        new.updated_at = next_updated_at(old.updated_at)
        await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([new]))
        await record_event(ctx, "note_type.updated", _note_type(ctx, old), _note_type(ctx, new))
    return _note_type(ctx, new)


async def delete(ctx: WriteContext, note_type_id: int) -> None:
    """Delete a note type; raises NotFound."""
    before = or_404(await store.delete(ctx.tx, ctx.plan_manager_id, note_type_id))
    await record_event(ctx, "note_type.deleted", before, None)


def _note_type(ctx: WriteContext, row: NoteTypeVersion) -> NoteType:
    return NoteType(plan_manager_id=ctx.plan_manager_id, **asdict(row))
