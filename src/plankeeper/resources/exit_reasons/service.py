"""Operations on exit reasons."""

from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.errors import DomainError, FieldError, ValidationError
from plankeeper.core.fields import apply_patch
from plankeeper.core.json import to_json
from plankeeper.database.client import Executor
from plankeeper.database.errors import ConstraintViolation
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import is_changed, record_event
from plankeeper.resources.exit_reasons import store
from plankeeper.resources.exit_reasons.schemas import ExitReason, ExitReasonCreate, ExitReasonUpdate


async def _in_use_error(_db: Executor, _plan_manager_id: UUID, violation: ConstraintViolation) -> DomainError:
    is_category = violation.constraint == "exit_reasons_parent_id_fkey"
    use = "Other exit reasons belong to this category" if is_category else "A participant has this exit reason"
    return DomainError("exit_reason_in_use", f"{use}, so it cannot be deleted.")


# Only a delete can violate them: a parent is checked and locked first.
CONSTRAINT_ERRORS = {
    "participants_exit_reason_category_id_fkey": _in_use_error,
    "participants_exit_reason_subcategory_id_fkey": _in_use_error,
    "exit_reasons_parent_id_fkey": _in_use_error,
}


async def select_for_update(ctx: WriteContext, exit_reason_id: UUID) -> ExitReason | None:
    """Lock an exit reason until the transaction ends."""
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [exit_reason_id])
    return rows[0] if rows else None


async def create(ctx: WriteContext, new: ExitReasonCreate) -> ExitReason:
    after = apply_patch(new, ExitReason(id=uuid7(), name=new.name, updated_at=datetime.now(UTC)))
    await _require_two_levels(ctx, after)
    await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([after]))
    await record_event(ctx, "exit_reason.created", None, after)
    return after


async def update(ctx: WriteContext, exit_reason_id: UUID, change: ExitReasonUpdate) -> ExitReason:
    """Apply the fields that are set; raises NotFound."""
    old = or_404(await select_for_update(ctx, exit_reason_id))
    new = apply_patch(change, old)
    if is_changed(old, new):
        if new.parent_id != old.parent_id:
            await _require_two_levels(ctx, new)
        new.updated_at = next_updated_at(old.updated_at)
        await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([new]))
        await record_event(ctx, "exit_reason.updated", old, new)
    return new


async def delete(ctx: WriteContext, exit_reason_id: UUID) -> None:
    """Delete an exit reason; raises NotFound. The database rejects it if something refers to the exit reason."""
    before = or_404(await store.delete(ctx.tx, ctx.plan_manager_id, exit_reason_id))
    await record_event(ctx, "exit_reason.deleted", before, None)


async def _require_two_levels(ctx: WriteContext, reason: ExitReason) -> None:
    """Reject a parent that isn't a category, and a parent of a category with subcategories."""
    if reason.parent_id is None:
        return
    parent = await select_for_update(ctx, reason.parent_id)
    if parent is None:
        message = "must be the id of an exit reason of this plan manager"
        raise ValidationError(FieldError("parent_id", message, "not_found"))
    if parent.parent_id is not None or parent.id == reason.id:
        message = "must be the id of a category: of another exit reason, without a parent"
        raise ValidationError(FieldError("parent_id", message, "inconsistent"))
    if await store.has_subcategories(ctx.tx, ctx.plan_manager_id, reason.id):
        message = "must be null, because this exit reason is the parent of others"
        raise ValidationError(FieldError("parent_id", message, "inconsistent"))
