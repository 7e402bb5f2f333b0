"""Import of plans. A row identifies its participant by id or number, and its plan by id or dates."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec import UNSET
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext
from plankeeper.core.fields import unset_to_none
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import is_changed, record_events
from plankeeper.resources.parents import resolve_participants
from plankeeper.resources.participants import plans, store
from plankeeper.resources.plans import rules, service
from plankeeper.resources.plans import store as plan_store
from plankeeper.resources.plans.schemas import Plan, PlanImport
from plankeeper.resources.upsert import (
    ImportCounts,
    ImportRow,
    InvalidRowsError,
    RowError,
    merge_record,
    upsert_each,
)

PlanImportRow = ImportRow[PlanImport]


class ImportedPlan(NamedTuple):
    """A row with its plan before and after the import. `replaced` is the plan whose place a new one takes."""

    row: PlanImportRow
    before: Plan | None
    after: Plan
    replaced: Plan | None


async def upsert(ctx: WriteContext, rows: Sequence[PlanImportRow]) -> ImportCounts:
    participant_ids = await _participants_of(ctx, rows)
    await _lock_participants(ctx, rows, participant_ids)
    plans_of = defaultdict[UUID, list[Plan]](list)
    for each in await plan_store.list_of_participants(ctx.tx, ctx.plan_manager_id, sorted({*participant_ids})):
        plans_of[each.participant_id].append(each)
    imported = [
        _build(row, participant_id, plans_of[participant_id])
        for row, participant_id in zip(rows, participant_ids, strict=True)
    ]
    if len({each.after.id for each in imported}) < len(rows):
        return await upsert_each(upsert, ctx, rows)
    changed = [each for each in imported if is_changed(each.before, each.after)]
    after = _plans_after(plans_of, changed)
    errors = [error for each in changed for error in _find_errors(each, after[each.after.participant_id])]
    if errors := errors + await _find_claimed(ctx, changed):
        raise InvalidRowsError(errors)
    edits: list[plans.Edit] = [(each.replaced, None) for each in changed if each.replaced]
    edits += [(each.before, each.after) for each in changed]
    await record_events(ctx, await plans.save_all(ctx, edits, after))
    for each in imported:
        each.row.values.id, each.row.values.participant_id = str(each.after.id), str(each.after.participant_id)
    created = sum(each.before is None for each in changed)
    return ImportCounts(created, len(changed) - created, len(rows) - len(changed))


async def _participants_of(ctx: WriteContext, rows: Sequence[PlanImportRow]) -> list[UUID]:
    """The participant of each row: that of the existing plan, or the one that the row names."""
    ids = [UUID(row.values.id) for row in rows if row.values.id is not UNSET]
    owners = {each.id: each.participant_id for each in await plan_store.get_many(ctx.tx, ctx.plan_manager_id, ids)}
    errors = list[RowError]()
    for row in rows:
        owner = owners.get(UUID(row.values.id)) if row.values.id is not UNSET else None
        named = unset_to_none(row.values.participant_id)
        if owner and named and UUID(named) != owner:
            errors.append(RowError(row.line_number, "participant_id", "can't be changed"))
        elif owner:
            row.values.participant_id = str(owner)
    if errors:
        raise InvalidRowsError(errors)
    return await resolve_participants(ctx.tx, ctx.plan_manager_id, rows)


async def _lock_participants(ctx: WriteContext, rows: Sequence[PlanImportRow], participant_ids: Sequence[UUID]) -> None:
    """Lock the participants of the rows; raises InvalidRowsError for those that don't exist."""
    found = await store.select_for_update(ctx.tx, ctx.plan_manager_id, sorted({*participant_ids}))
    known = {each.id for each in found}
    message = "must be the id of a participant of this plan manager"
    errors = [
        RowError(row.line_number, "participant_id", message)
        for row, id_ in zip(rows, participant_ids, strict=True)
        if id_ not in known
    ]
    if errors:
        raise InvalidRowsError(errors)


def _build(row: PlanImportRow, participant_id: UUID, existing: Sequence[Plan]) -> ImportedPlan:
    """The plan of a row. Without an id, it is about the plan of these dates.

    A new plan with an id takes the place of one that the participant's own fields have created for the same dates.
    """
    values, id_ = row.values, UUID(row.values.id) if row.values.id is not UNSET else None
    dates = (unset_to_none(values.start_date), unset_to_none(values.end_date))
    same_dates = next((each for each in existing if (each.start_date, each.end_date) == dates), None)
    before = next((each for each in existing if each.id == id_), None) if id_ else same_dates
    replaced = same_dates if id_ and before is None and same_dates and service.is_placeholder(same_dates) else None
    overrides = {"id": id_ or (before.id if before else uuid7()), "participant_id": participant_id}
    after = merge_record(Plan, row, overrides | {"components": before.components if before else []}, before)
    if values.components is not UNSET:
        old = before.components if before else []
        after.components, errors = service.merge_components(values.components, old, keeps_ids=True)
        if errors:
            raise InvalidRowsError([RowError(row.line_number, each.field, each.message) for each in errors])
    if before and is_changed(before, after):
        after.updated_at = next_updated_at(before.updated_at)
    return ImportedPlan(row, before, after, replaced)


def _plans_after(plans_of: Mapping[UUID, Sequence[Plan]], changed: Sequence[ImportedPlan]) -> dict[UUID, list[Plan]]:
    """All plans of the participants with changes, as they are after the import."""
    removed = {plan.id for each in changed for plan in (each.before, each.replaced) if plan}
    after = dict[UUID, list[Plan]]()
    for each in changed:
        id_ = each.after.participant_id
        after.setdefault(id_, [plan for plan in plans_of.get(id_, ()) if plan.id not in removed]).append(each.after)
    return after


def _find_errors(imported: ImportedPlan, plans_after: Sequence[Plan]) -> list[RowError]:
    plan = imported.after
    others = [each for each in plans_after if each is not plan]
    errors = [*rules.find_errors(plan), *service.find_overlaps(plan, others)]
    return [RowError(imported.row.line_number, each.field, each.message) for each in errors]


async def _find_claimed(ctx: WriteContext, changed: Sequence[ImportedPlan]) -> list[RowError]:
    """The errors of rows that remove a component to which a claimed line belongs."""
    errors = list[RowError]()
    for row, before, after, _ in changed:
        kept = {each.id for each in after.components}
        removed = [each.id for each in before.components if each.id not in kept] if before else []
        place = (ctx.tx, ctx.plan_manager_id, after.participant_id)
        if removed and await plan_store.has_claimed_line(*place, (None, None), removed):
            message = "must contain each component to which a claimed line of an invoice belongs"
            errors.append(RowError(row.line_number, "components", message))
    return errors
