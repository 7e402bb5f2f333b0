"""Plans of participants. A participant's row is the lock of its plans, and has the dates of the current one.

The contract knows only the current plan, as three fields of the participant. Writing them edits that plan, or creates
it; writing a plan changes them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, Disclosure, WriteContext, or_404
from plankeeper.core.errors import DomainError, ErrorResource, FieldError, NotFound, ValidationError
from plankeeper.core.json import to_json
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import Change, is_changed, record_event, record_events
from plankeeper.resources import recheck_queue
from plankeeper.resources.participants import rules as participant_rules
from plankeeper.resources.participants import store
from plankeeper.resources.participants.schemas import (
    ParticipantRow,
    reference_names,
    with_references,
    without_references,
)
from plankeeper.resources.plans import rules, service
from plankeeper.resources.plans import store as plan_store
from plankeeper.resources.plans.schemas import Plan, PlanCreate, PlanUpdate

BATCH_SIZE = 500
# The fields of a participant, and those of its plan.
FIELDS = {"is_pace_plan": "is_pace_plan", "plan_start_date": "start_date", "plan_end_date": "end_date"}


Edit = tuple[Plan | None, Plan | None]  # a plan before and after a change


class PlanChanges(NamedTuple):
    """Changes of plans that aren't written yet.

    `next_changes` are those of participants with several plans. `errors` have the index of the participant.
    """

    edits: list[Edit]
    next_changes: dict[UUID, date | None]
    errors: list[tuple[int, FieldError]]


# Writing the fields of participants


async def apply_fields(
    ctx: WriteContext, changed: Sequence[tuple[ParticipantRow | None, ParticipantRow]]
) -> PlanChanges:
    """The changes of plans that follow from changed participants: each before, null for a new one, and after.

    Sets the three fields of each participant after the change to its current plan. Locks those that exist. The errors
    include those of the participants themselves.
    """
    day, changes = ctx.settings.today, PlanChanges([], {}, [])
    for index, (_, participant) in enumerate(changed):
        changes.errors.extend((index, error) for error in participant_rules.find_errors(participant, day))
    fields = {index: given for index, pair in enumerate(changed) if (given := _changed_fields(*pair))}
    existing = [changed[index][1].id for index in fields if changed[index][0]]
    plans = defaultdict[UUID, list[Plan]](list)
    if existing:
        await store.select_for_update(ctx.tx, ctx.plan_manager_id, existing)
        for each in await plan_store.list_of_participants(ctx.tx, ctx.plan_manager_id, existing):
            plans[each.participant_id].append(each)
    for index, given in fields.items():
        participant = changed[index][1]
        before = plans[participant.id]
        current = rules.current_plan(before, day)
        plan = _edit(current, participant.id, given)
        others = [each for each in before if each is not current]
        errors = [*rules.find_errors(plan), *service.find_overlaps(plan, others)] if plan else []
        if errors:
            name = next((name for name in given if name != "is_pace_plan"), "is_pace_plan")
            changes.errors.append((index, FieldError(name, errors[0].message)))
            continue
        after = [*others, plan] if plan else others
        changes.edits.append((current, plan))
        if before and len(before) + len(after) > 2:
            changes.next_changes[participant.id] = rules.next_change(after, day)
        _set_fields(participant, after, day)
    return changes


def _changed_fields(old: ParticipantRow | None, new: ParticipantRow) -> dict[str, Any]:
    """The fields that an update changes, or that a new participant has."""
    defaults = ParticipantRow(id=new.id)
    return {name: getattr(new, name) for name in FIELDS if getattr(new, name) != getattr(old or defaults, name)}


def _edit(plan: Plan | None, participant_id: UUID, given: Mapping[str, Any]) -> Plan | None:
    """A plan with other values, or a new one; None for one without any content."""
    values = {FIELDS[name]: value for name, value in given.items()}
    if plan:
        values["updated_at"] = next_updated_at(plan.updated_at)
    after = replace(plan or Plan(id=uuid7(), participant_id=participant_id), **values)
    is_empty = not (after.start_date or after.end_date or after.is_pace_plan) and service.is_placeholder(after)
    return None if is_empty else after


def _set_fields(participant: ParticipantRow, plans: Sequence[Plan], day: date) -> None:
    current = rules.current_plan(plans, day)
    participant.is_pace_plan = current.is_pace_plan if current else False
    participant.plan_start_date = current.start_date if current else None
    participant.plan_end_date = current.end_date if current else None


async def write(ctx: WriteContext, changes: PlanChanges) -> list[Change]:
    """Write changes, after the participants themselves. Returns the events to record."""
    await _write_plans(ctx, changes.edits)
    if changes.next_changes:
        await store.set_next_plan_changes(ctx.tx, ctx.plan_manager_id, changes.next_changes)
    return [_event(*each) for each in changes.edits]


async def _write_plans(ctx: WriteContext, edits: Sequence[Edit]) -> None:
    created = [after for before, after in edits if after and before is None]
    updated = [after for before, after in edits if before and after and is_changed(before, after)]
    deleted = [before.id for before, after in edits if before and after is None]
    if deleted:
        await plan_store.delete_many(ctx.tx, ctx.plan_manager_id, deleted)
    if updated:
        await plan_store.update_many(ctx.tx, ctx.plan_manager_id, to_json(updated))
    if created:
        await plan_store.insert(ctx.tx, ctx.plan_manager_id, to_json(created))


def _event(before: Plan | None, after: Plan | None) -> Change:
    type_ = "plan.updated" if before and after else "plan.created" if after else "plan.deleted"
    return type_, before, after


# Writing plans


async def lock(ctx: WriteContext, participant_id: UUID, plan_id: UUID) -> Plan | None:
    """Lock a plan until the transaction ends."""
    plans = await _lock_plans(ctx, participant_id)
    return next((each for each in plans if each.id == plan_id), None)


async def create(ctx: WriteContext, participant_id: UUID, new: PlanCreate) -> Plan:
    """Create a plan; raises NotFound, and ValidationError for one that overlaps another."""
    plans = await _lock_plans(ctx, participant_id)
    plan = service.apply_change(new, Plan(id=uuid7(), participant_id=participant_id), plans)
    return await _save(ctx, None, plan, [*plans, plan])


async def update(
    ctx: WriteContext, participant_id: UUID, plan_id: UUID, change: PlanUpdate, *, keeps_ids: bool = False
) -> Plan:
    """Apply the fields that are set; raises NotFound, ValidationError, and DomainError `plan_in_use`.

    `keeps_ids`: a component with an unknown id is a new one, so that a removed one can be restored.
    """
    plans = await _lock_plans(ctx, participant_id)
    old = or_404(next((each for each in plans if each.id == plan_id), None))
    others = [each for each in plans if each is not old]
    new = service.apply_change(change, old, others, keeps_ids=keeps_ids)
    if not is_changed(old, new):
        ctx.disclosed.append(Disclosure("viewed", "participant", participant_id))
        return old
    kept = {each.id for each in new.components}
    if removed := [each.id for each in old.components if each.id not in kept]:
        await _require_unclaimed(ctx, old, (None, None), removed)
    new.updated_at = next_updated_at(old.updated_at)
    return await _save(ctx, old, new, [*others, new])


async def delete(ctx: WriteContext, participant_id: UUID, plan_id: UUID) -> None:
    """Delete a plan; raises NotFound, and DomainError `plan_in_use` if a line of it is claimed."""
    plans = await _lock_plans(ctx, participant_id)
    old = or_404(next((each for each in plans if each.id == plan_id), None))
    await _require_unclaimed(ctx, old, (old.start_date, old.end_date), [each.id for each in old.components])
    await _write_plans(ctx, [(old, None)])
    events = await _project_and_recheck(ctx, {participant_id: [each for each in plans if each is not old]})
    await record_event(ctx, "plan.deleted", old, None, parts=events)


async def _lock_plans(ctx: WriteContext, participant_id: UUID) -> list[Plan]:
    """The plans of a participant, which nobody else can change until the transaction ends; raises NotFound."""
    if not await store.select_for_update(ctx.tx, ctx.plan_manager_id, [participant_id]):
        raise NotFound
    return await plan_store.list_of_participants(ctx.tx, ctx.plan_manager_id, [participant_id])


async def _require_unclaimed(
    ctx: WriteContext, plan: Plan, dates: tuple[date | None, date | None], component_ids: Sequence[UUID]
) -> None:
    place = (ctx.tx, ctx.plan_manager_id, plan.participant_id)
    if await plan_store.has_claimed_line(*place, dates, component_ids):
        raise DomainError("plan_in_use", resource=ErrorResource("plan", str(plan.id)))


async def _save(ctx: WriteContext, before: Plan | None, after: Plan, plans: Sequence[Plan]) -> Plan:
    await _write_plans(ctx, [(before, after)])
    events = await _project_and_recheck(ctx, {after.participant_id: plans})
    await record_event(ctx, *_event(before, after), parts=events)
    return after


async def save_all(ctx: WriteContext, edits: Sequence[Edit], plans: Mapping[UUID, Sequence[Plan]]) -> list[Change]:
    """Write plans of locked participants. `plans` are all of theirs after it. Returns the events to record."""
    await _write_plans(ctx, edits)
    return [*(_event(*each) for each in edits), *await _project_and_recheck(ctx, plans)]


async def _project_and_recheck(ctx: WriteContext, plans: Mapping[UUID, Sequence[Plan]]) -> list[Change]:
    events = await _project(ctx, plans)
    await recheck_queue.enqueue(ctx, "participant", plans)
    return events


async def _project(ctx: WriteContext, plans: Mapping[UUID, Sequence[Plan]]) -> list[Change]:
    """Set the fields of locked participants to their current plans. Returns the events to record."""
    day, changed, events = ctx.settings.today, list[ParticipantRow](), list[Change]()
    for before in await store.get_many(ctx.tx, ctx.plan_manager_id, list(plans)):
        row = without_references(before)
        _set_fields(row, plans[before.id], day)
        row.updated_at = next_updated_at(before.updated_at)
        after = with_references(row, reference_names(before))
        if is_changed(before, after):
            changed.append(row)
            events.append(("participant.updated", before, after))
    if changed:
        await store.update_many(ctx.tx, ctx.plan_manager_id, to_json(changed))
    next_changes = {id_: rules.next_change(each, day) for id_, each in plans.items()}
    await store.set_next_plan_changes(ctx.tx, ctx.plan_manager_id, next_changes)
    return events


# Together with participants


async def delete_all(ctx: WriteContext, participant_ids: Sequence[UUID]) -> list[Plan]:
    """Delete the plans of participants that the caller has locked, and is about to delete. Returns them."""
    plans = await plan_store.list_of_participants(ctx.tx, ctx.plan_manager_id, participant_ids)
    await plan_store.delete_many(ctx.tx, ctx.plan_manager_id, [each.id for each in plans])
    return plans


async def restore_all(ctx: WriteContext, participant_id: UUID, records: Iterable[Mapping[str, Any]]) -> list[Change]:
    """Insert the plans of a restored participant again, and set its fields. Returns the events of the plans."""
    plans = [from_record(each) for each in records]
    if plans:
        await _write_plans(ctx, [(None, each) for each in plans])
        await _project(ctx, {participant_id: plans})
    return [_event(None, each) for each in plans]


def from_record(record: Mapping[str, Any]) -> Plan:
    """A deleted plan. Columns that were added since have their default values."""
    return msgspec.convert(dict(record) | {"updated_at": datetime.now(UTC)}, Plan)


async def restore(ctx: WriteContext, plan: Plan) -> bool:
    """Insert a deleted plan again. Returns false if its participant no longer exists.

    Raises ValidationError if it overlaps another one by now.
    """
    if not await store.select_for_update(ctx.tx, ctx.plan_manager_id, [plan.participant_id]):
        return False
    plans = await plan_store.list_of_participants(ctx.tx, ctx.plan_manager_id, [plan.participant_id])
    if errors := list(service.find_overlaps(plan, plans)):
        raise ValidationError(*errors)
    await _save(ctx, None, plan, [*plans, plan])
    return True


# At midnight


async def switch_due(db: Database, settings: Settings) -> None:
    """Set the fields of participants whose next plan has become the current one."""
    due = defaultdict[UUID, list[UUID]](list)
    for each in await store.list_plan_changes(db, settings.today, BATCH_SIZE):
        due[each.plan_manager_id].append(each.id)
    for plan_manager_id, ids in due.items():
        async with db.transaction() as tx:
            await _switch(WriteContext(tx, plan_manager_id, settings, SYSTEM), ids)


async def _switch(ctx: WriteContext, participant_ids: Sequence[UUID]) -> None:
    day = ctx.settings.today
    locked = await store.select_due_for_update(ctx.tx, ctx.plan_manager_id, participant_ids, day)
    plans: dict[UUID, list[Plan]] = {each: [] for each in locked}
    for each in await plan_store.list_of_participants(ctx.tx, ctx.plan_manager_id, locked):
        plans[each.participant_id].append(each)
    await record_events(ctx, await _project_and_recheck(ctx, plans))
