"""Operations on participants that the API and the console share."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.core.context import Disclosure, WriteContext, or_404
from plankeeper.core.errors import DomainError, FieldError, ValidationError
from plankeeper.core.fields import apply_patch
from plankeeper.core.json import to_json
from plankeeper.core.record_matches import external_id_error
from plankeeper.database.client import Executor
from plankeeper.database.errors import ConstraintViolation
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import is_changed, record_event, record_events
from plankeeper.resources import recheck_queue
from plankeeper.resources.account_managers.store import get_visible
from plankeeper.resources.bank_details import service as bank_details
from plankeeper.resources.notes import service as note_service
from plankeeper.resources.parents import Parent
from plankeeper.resources.participants import plans, store
from plankeeper.resources.participants.schemas import (
    REFERENCES,
    Participant,
    ParticipantRow,
    ParticipantUpdate,
    StoredParticipant,
    reference_ids,
    reference_names,
    with_references,
    without_references,
)
from plankeeper.resources.plans import store as plan_store
from plankeeper.resources.resource import Restored, Snapshot, stored_fields
from plankeeper.resources.team_members import service as team_service
from plankeeper.resources.team_members import store as team_store

EXIT_REASONS = ("exit_reason_category_id", "exit_reason_subcategory_id")


def unknown_reference(column: str) -> FieldError:
    """The error of a field whose id doesn't exist, or is hidden."""
    resource = "exit reason" if column in EXIT_REASONS else "account manager"
    return FieldError(column, f"must be the id of an {resource} of this plan manager", "not_found")


async def _unknown_reference(_db: Executor, _plan_manager_id: UUID, violation: ConstraintViolation) -> DomainError:
    return ValidationError(unknown_reference(violation.constraint.removeprefix("participants_").removesuffix("_fkey")))


CONSTRAINT_ERRORS = {
    "participants_external_id_key": external_id_error("participant"),
    "participants_account_manager_id_fkey": _unknown_reference,
    "participants_exit_reason_category_id_fkey": _unknown_reference,
    "participants_exit_reason_subcategory_id_fkey": _unknown_reference,
}


async def select_for_update(ctx: WriteContext, participant_id: UUID) -> StoredParticipant | None:
    """Lock a participant until the transaction ends."""
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [participant_id])
    return rows[0] if rows else None


async def create(ctx: WriteContext, change: ParticipantUpdate) -> Participant:
    now = datetime.now(UTC)
    new = apply_patch(change, StoredParticipant(id=uuid7(), created_at=now, updated_at=now))
    after, changes = await _prepare(ctx, None, new, change, {})
    await store.insert(ctx.tx, ctx.plan_manager_id, to_json([new]))
    await record_event(ctx, "participant.created", None, after, parts=await plans.write(ctx, changes))
    return after


async def update(ctx: WriteContext, participant_id: UUID, change: ParticipantUpdate) -> Participant:
    """Apply the fields that are set; raises NotFound."""
    return await save(ctx, or_404(await store.get_for_update(ctx.tx, ctx.plan_manager_id, participant_id)), change)


async def save(ctx: WriteContext, before: Participant, change: ParticipantUpdate) -> Participant:
    """Apply the fields that are set to a participant that `get_for_update` has returned."""
    old = without_references(before)
    new = apply_patch(change, old)
    if not is_changed(old, new):
        ctx.disclosed.append(Disclosure("viewed", "participant", before.id))
        return before
    new.updated_at = next_updated_at(before.updated_at)
    after, changes = await _prepare(ctx, old, new, change, reference_names(before))
    await store.update(ctx.tx, ctx.plan_manager_id, to_json([new]), before.updated_at)
    plan_events = await plans.write(ctx, changes)
    await recheck_queue.enqueue_changed(ctx, "participant", [(old, new)])
    await record_event(ctx, "participant.updated", before, after, parts=plan_events)
    return after


async def _prepare(
    ctx: WriteContext,
    old: StoredParticipant | None,
    new: StoredParticipant,
    change: ParticipantUpdate,
    known: Mapping[str, str],
) -> tuple[Participant, plans.PlanChanges]:
    """The participant as the API returns it, and the change of its current plan. `known` are names of references.

    Raises ValidationError with all errors. One is an account manager that the list hides: the foreign key accepts it.
    """
    names, errors = dict(known), list[FieldError]()
    if isinstance(manager_id := change.account_manager_id, str):
        manager = await get_visible(ctx.tx.reader, ctx.plan_manager_id, UUID(manager_id), ctx.settings.operator_name)
        if manager is None:
            errors.append(unknown_reference("account_manager_id"))
        elif manager.name is not None:
            names[str(manager.id)] = manager.name
    changes = await plans.apply_fields(ctx, [(old, new)])
    names = await _read_reference_names(ctx, [new], names)
    errors += [unknown_reference(each) for each in EXIT_REASONS if str(getattr(new, each) or "") not in {*names, ""}]
    errors += [error for _, error in changes.errors]
    if errors:
        raise ValidationError(*errors)
    return with_references(new, names), changes


class DeletedParts(NamedTuple):
    """The numbers of records that were deleted with a participant."""

    team_members: int
    plans: int
    notes: int


async def delete(ctx: WriteContext, participant_id: UUID) -> DeletedParts:
    """Delete a participant with its team, plans, notes and bank details; raises NotFound. Its invoices are kept."""
    parts = await _delete(ctx, participant_id)
    await bank_details.delete_of(ctx, "participant", [participant_id])
    return parts


async def _delete(ctx: WriteContext, participant_id: UUID) -> DeletedParts:
    """Delete a participant with its team, plans and notes. Its bank details are kept, for the trash."""
    await store.lock_person(ctx.tx, ctx.plan_manager_id, participant_id)
    old = or_404(await select_for_update(ctx, participant_id))
    [before] = await with_reference_names(ctx, old)
    member_ids = await team_store.select_ids_for_update(ctx.tx, ctx.plan_manager_id, participant_id)
    team = await team_store.get_many(ctx.tx, ctx.plan_manager_id, [participant_id] * len(member_ids), member_ids)
    await team_store.delete_team(ctx.tx, ctx.plan_manager_id, participant_id)
    deleted = await plans.delete_all(ctx, [participant_id])
    notes = await note_service.delete_of(ctx, "participant", [participant_id])
    await store.delete(ctx.tx, ctx.plan_manager_id, participant_id)
    await recheck_queue.enqueue(ctx, "participant", [participant_id])
    await record_events(ctx, [("team_member.deleted", member, None) for member in team])
    await record_events(ctx, [*(("plan.deleted", plan, None) for plan in deleted), *notes])
    await record_event(ctx, "participant.deleted", before, None)
    return DeletedParts(len(team), len(deleted), len(notes))


async def delete_many(ctx: WriteContext, participant_ids: Sequence[UUID]) -> None:
    """Delete participants that the caller has locked, and that have no team. Their invoices are kept."""
    before = await store.get_many(ctx.tx, ctx.plan_manager_id, participant_ids)
    deleted = await plans.delete_all(ctx, participant_ids)
    notes = await note_service.delete_of(ctx, "participant", participant_ids)
    await store.delete_many(ctx.tx, ctx.plan_manager_id, participant_ids)
    await recheck_queue.enqueue(ctx, "participant", participant_ids)
    events = [*(("plan.deleted", each, None) for each in deleted), *notes]
    await record_events(ctx, [*events, *(("participant.deleted", each, None) for each in before)])
    await bank_details.delete_of(ctx, "participant", [each.id for each in before])


async def remove(ctx: WriteContext, participant_id: UUID) -> tuple[str | None, Snapshot]:
    """Delete a participant with its team; raises NotFound. Returns its name and its content, for `restore`.

    Its bank details are kept until the entry of the trash is deleted.
    """
    await store.lock_person(ctx.tx, ctx.plan_manager_id, participant_id)
    row = or_404(await select_for_update(ctx, participant_id))
    ids = await team_store.select_ids_for_update(ctx.tx, ctx.plan_manager_id, participant_id)
    team = await team_store.select_for_update(ctx.tx, ctx.plan_manager_id, [participant_id] * len(ids), ids)
    references = reference_ids(row)
    names = await store.reference_names(ctx.tx, ctx.plan_manager_id, references) if references else {}
    own_plans = await plan_store.list_of_participants(ctx.tx, ctx.plan_manager_id, [participant_id])
    notes = await note_service.list_of(ctx, "participant", participant_id)
    await _delete(ctx, participant_id)
    name = " ".join(filter(None, (row.first_name, row.last_name))) or None
    records = [[stored_fields(each) for each in parts] for parts in (team, own_plans, notes)]
    return name, Snapshot(stored_fields(row), records[0], names, *records[1:])


async def restore(ctx: WriteContext, snapshot: Snapshot) -> Restored:
    """Insert a removed participant again, with its team, plans and notes. New columns have their defaults."""
    participant_id = UUID(snapshot.record["id"])
    default = stored_fields(ParticipantRow(id=participant_id, created_at=datetime.now(UTC)))
    record = default | snapshot.record
    changes = await _clear_missing_references(ctx, record, snapshot.names)
    await store.insert(ctx.tx, ctx.plan_manager_id, to_json([record]))
    plan_events = await plans.restore_all(ctx, participant_id, snapshot.plans)
    after = or_404(await store.get(ctx.tx, ctx.plan_manager_id, participant_id))
    note_events, lost = await note_service.restore_all(ctx, snapshot.notes)
    await recheck_queue.enqueue(ctx, "participant", [participant_id])
    await record_event(ctx, "participant.restored", None, after, parts=[*plan_events, *note_events])
    parent = Parent(after.id, after.email, after.participant_number)
    team = await team_service.restore(ctx, parent, snapshot.team)
    return Restored([str(participant_id)], [*changes, *lost, *team.changes])


async def _clear_missing_references(ctx: WriteContext, record: dict[str, Any], names: Mapping[str, str]) -> list[str]:
    """Clear the references to records that no longer exist."""
    ids = [UUID(record[column]) for column, _ in REFERENCES.values() if record[column]]
    existing = await store.reference_names(ctx.tx, ctx.plan_manager_id, ids) if ids else {}
    changes = list[str]()
    for column, label in REFERENCES.values():
        if record[column] and record[column] not in existing:
            changes.append(f"The {label} {names.get(record[column]) or ''} no longer exists.".replace("  ", " "))
            record[column] = None
    return changes


async def with_reference_names(ctx: WriteContext, *rows: StoredParticipant) -> list[Participant]:
    """The rows as the API returns them, with the names of their references."""
    names = await _read_reference_names(ctx, rows, {})
    return [with_references(row, names) for row in rows]


async def _read_reference_names(
    ctx: WriteContext, rows: Sequence[StoredParticipant], known: Mapping[str, str]
) -> dict[str, str]:
    """The names of the rows' references by id, without those that don't exist. `known` are names that were read."""
    unknown = [each for each in reference_ids(*rows) if str(each) not in known]
    return {**known, **(await store.reference_names(ctx.tx.reader, ctx.plan_manager_id, unknown) if unknown else {})}
