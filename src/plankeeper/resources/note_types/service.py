"""Operations on note types that the API and the console share."""

from datetime import UTC, datetime
from uuid import UUID

from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.errors import DomainError
from plankeeper.core.fields import apply_patch
from plankeeper.core.json import to_json
from plankeeper.database.client import Executor
from plankeeper.database.errors import ConstraintViolation
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import is_changed, record_event
from plankeeper.resources.note_types import store
from plankeeper.resources.note_types.schemas import (
    NoteType,
    NoteTypeCreate,
    NoteTypeUpdate,
    NoteTypeVersion,
)


async def _in_use_error(_db: Executor, _plan_manager_id: UUID, _violation: ConstraintViolation) -> DomainError:
    return DomainError("note_type_in_use", "Notes have this note type, so it cannot be deleted.")


# Only a delete can violate it, if a note is created at the same moment: a note locks its type first.
CONSTRAINT_ERRORS = {"notes_note_type_id_fkey": _in_use_error}


async def select_for_update(ctx: WriteContext, note_type_id: int) -> NoteTypeVersion | None:
    """Lock a note type until the transaction ends."""
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [note_type_id])
    return rows[0] if rows else None


async def create(ctx: WriteContext, new: NoteTypeCreate) -> NoteType:
    [new_id] = await store.next_ids(ctx.tx, 1)
    default = NoteType(new_id, new.note_type, ctx.plan_manager_id, None, None, datetime.now(UTC))
    after = apply_patch(new, default)
    await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([after]))
    await record_event(ctx, "note_type.created", None, after)
    return after


async def update(ctx: WriteContext, note_type_id: int, change: NoteTypeUpdate) -> NoteType:
    """Apply the fields that are set; raises NotFound."""
    return await save(ctx, or_404(await store.get_for_update(ctx.tx, ctx.plan_manager_id, note_type_id)), change)


async def save(ctx: WriteContext, before: NoteType, change: NoteTypeUpdate) -> NoteType:
    """Apply the fields that are set to a note type that `get_for_update` has returned."""
    after = apply_patch(change, before)
    if is_changed(before, after):
        after.updated_at = next_updated_at(before.updated_at)
        await store.update(ctx.tx, ctx.plan_manager_id, to_json([after]), before.updated_at)
        await record_event(ctx, "note_type.updated", before, after)
    return after


async def delete(ctx: WriteContext, note_type_id: int) -> None:
    """Delete a note type; raises NotFound, and DomainError `note_type_in_use` if notes have it."""
    if count := await store.count_notes(ctx.tx, ctx.plan_manager_id, note_type_id):
        use = "1 note has this note type" if count == 1 else f"{count:,} notes have this note type"
        raise DomainError("note_type_in_use", f"{use}, so it cannot be deleted.")
    before = or_404(await store.delete(ctx.tx, ctx.plan_manager_id, note_type_id))
    await record_event(ctx, "note_type.deleted", before, None)
