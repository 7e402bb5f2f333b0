"""Operations on participants that the API and the console share."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.core.context import Disclosure, WriteContext, or_404
from plankeeper.core.errors import DomainError, FieldError, ValidationError
from plankeeper.core.fields import apply_patch
from plankeeper.core.json import to_json
from plankeeper.core.record_matches import external_id_error
from plankeeper.database.client import Executor
from plankeeper.database.errors import ConstraintViolation
from plankeeper.database.timestamps import next_updated_at
from plankeeper.events.recorder import is_changed, record_event, record_events
from plankeeper.resources.account_managers.store import get_visible
from plankeeper.resources.participants import store
from plankeeper.resources.participants.schemas import (
    Participant,
    ParticipantUpdate,
    ParticipantVersion,
    UnlockedParticipant,
    reference_ids,
    with_references,
)
from plankeeper.resources.team_members import store as team_store


async def _unknown_reference(_db: Executor, _plan_manager_id: UUID, violation: ConstraintViolation) -> DomainError:
    column = violation.constraint.removeprefix("participants_").removesuffix("_fkey")
    resource = "account manager" if column == "account_manager_id" else "exit reason"
    return ValidationError(FieldError(column, f"must be the id of an {resource} of this plan manager", "not_found"))


CONSTRAINT_ERRORS = {
    "participants_external_id_key": external_id_error("participant"),
    "participants_account_manager_id_fkey": _unknown_reference,
    "participants_exit_reason_category_id_fkey": _unknown_reference,
    "participants_exit_reason_subcategory_id_fkey": _unknown_reference,
}


async def select_for_update(ctx: WriteContext, participant_id: UUID) -> ParticipantVersion | None:
    """Lock a participant until the transaction ends."""
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [participant_id])
    return rows[0] if rows else None


async def create(ctx: WriteContext, change: ParticipantUpdate) -> Participant:
    now = datetime.now(UTC)
    new = apply_patch(change, ParticipantVersion(id=uuid7(), created_at=now, updated_at=now))
    await _require_visible_account_manager(ctx, change)
    [after] = await with_reference_names(ctx, new)
    await store.insert(ctx.tx, ctx.plan_manager_id, to_json([new]))
    await record_event(ctx, "participant.created", None, after)
    return after


async def update(ctx: WriteContext, participant_id: UUID, change: ParticipantUpdate) -> Participant:
    """Apply the fields that are set; raises NotFound."""
    old = or_404(await _get_for_update(ctx, participant_id))
    new = apply_patch(change, old)
    known = old.reference_names if isinstance(old, UnlockedParticipant) else None
    if not is_changed(old, new):
        ctx.disclosed.append(Disclosure("viewed", "participant", participant_id))
        [unchanged] = await with_reference_names(ctx, old, known=known)
        return unchanged
    await _require_visible_account_manager(ctx, change)
    new.updated_at = next_updated_at(old.updated_at)
    before, after = await with_reference_names(ctx, old, new, known=known)
    is_moved = (old.status, old.state) != (new.status, new.state)
    if isinstance(old, UnlockedParticipant):
        await store.update_version(ctx.tx, ctx.plan_manager_id, to_json(new), old.xmin, is_moved=is_moved)
    else:
        await store.update(ctx.tx, ctx.plan_manager_id, to_json(new), is_moved=is_moved)
    await record_event(ctx, "participant.updated", before, after)
    return after


async def _get_for_update(ctx: WriteContext, participant_id: UUID) -> ParticipantVersion | None:
    """The version of a participant without a lock in an optimistic transaction, otherwise its row with a lock."""
    if ctx.tx.is_optimistic:
        return await ctx.tx.reader.load(store.get_many_unlocked, ctx.plan_manager_id, participant_id)
    return await select_for_update(ctx, participant_id)


async def delete(ctx: WriteContext, participant_id: UUID) -> int:
    """Delete a participant with its team members, whose number it returns; raises NotFound. Its invoices are kept."""
    await store.lock_person(ctx.tx, ctx.plan_manager_id, participant_id)
    old = or_404(await select_for_update(ctx, participant_id))
    [before] = await with_reference_names(ctx, old)
    member_ids = await team_store.select_ids_for_update(ctx.tx, ctx.plan_manager_id, participant_id)
    team = await team_store.get_many(ctx.tx, ctx.plan_manager_id, [participant_id] * len(member_ids), member_ids)
    await team_store.delete_team(ctx.tx, ctx.plan_manager_id, participant_id)
    await store.delete(ctx.tx, ctx.plan_manager_id, participant_id)
    await record_events(ctx, [("team_member.deleted", member, None) for member in team])
    await record_event(ctx, "participant.deleted", before, None)
    return len(team)


async def delete_many(ctx: WriteContext, participant_ids: Sequence[UUID]) -> None:
    """Delete participants that the caller has locked, and that have no team. Their invoices are kept."""
    before = await store.get_many(ctx.tx, ctx.plan_manager_id, participant_ids)
    await store.delete_many(ctx.tx, ctx.plan_manager_id, participant_ids)
    await record_events(ctx, [("participant.deleted", each, None) for each in before])


async def with_reference_names(
    ctx: WriteContext, *rows: ParticipantVersion, known: Mapping[str, str] | None = None
) -> list[Participant]:
    """The rows as the API returns them, with the names of their references. `known` are names that were read."""
    names = dict(known or {})
    if unknown := [each for each in reference_ids(*rows) if str(each) not in names]:
        names |= await store.reference_names(ctx.tx.reader, ctx.plan_manager_id, unknown)
    return [with_references(row, names) for row in rows]


async def _require_visible_account_manager(ctx: WriteContext, change: ParticipantUpdate) -> None:
    """Reject an account manager that the list hides: the foreign key accepts it."""
    manager_id = change.account_manager_id
    if not isinstance(manager_id, str):
        return
    if await get_visible(ctx.tx.reader, ctx.plan_manager_id, UUID(manager_id), ctx.settings.operator_name) is None:
        message = "must be the id of an active account manager"
        raise ValidationError(FieldError("account_manager_id", message, "not_found"))
