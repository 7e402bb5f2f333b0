"""Participants and their plans as resources."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from plankeeper.core.context import WriteContext
from plankeeper.core.record_matches import MatchField
from plankeeper.events.recorder import Change
from plankeeper.resources import recheck_queue
from plankeeper.resources.participants import bulk, plan_imports, plans, service, store
from plankeeper.resources.participants.rules import is_ndis_number
from plankeeper.resources.participants.schemas import (
    REFERENCES,
    ParticipantImport,
    ParticipantRow,
    ParticipantUpdate,
)
from plankeeper.resources.plans import service as plan_service
from plankeeper.resources.plans import store as plan_store
from plankeeper.resources.plans.schemas import Plan, PlanImport, PlanRow, PlanUpdate
from plankeeper.resources.resource import Dependents, Resource, Restored, Snapshot, by_uuid, record_key, uuids
from plankeeper.resources.upsert import InvalidRowsError, RecordUpserter, RowError, created_or_updated


class _PlansAndRechecks:
    """The plans that follow from the fields of imported participants, and the invoices to check again."""

    async def prepare(
        self, ctx: WriteContext, changed: Sequence[tuple[int, ParticipantRow | None, ParticipantRow]]
    ) -> "_Prepared":
        await _require_not_erased(ctx, {after.id: number for number, before, after in changed if before is None})
        pairs = [(before, after) for _, before, after in changed]
        prepared = await plans.apply_fields(ctx, pairs)
        if prepared.errors:
            errors = [RowError(changed[index][0], each.field, each.message) for index, each in prepared.errors]
            raise InvalidRowsError(errors)
        return prepared, pairs

    async def write(self, ctx: WriteContext, prepared: "_Prepared") -> Sequence[Change]:
        plan_changes, pairs = prepared
        events = await plans.write(ctx, plan_changes)
        await recheck_queue.enqueue_changed(ctx, "participant", pairs)
        return events


_Prepared = tuple[plans.PlanChanges, Sequence[tuple[ParticipantRow | None, ParticipantRow]]]


async def _require_not_erased(ctx: WriteContext, line_numbers: Mapping[UUID, int]) -> None:
    """Raise InvalidRowsError for new participants with the id of an erased one, whose kept records they would get."""
    erased = await store.list_erased(ctx.tx, ctx.plan_manager_id, [*line_numbers]) if line_numbers else []
    message = "belongs to a person whose data was erased; leave it out to create a new participant"
    if erased:
        raise InvalidRowsError([RowError(line_numbers[each], "id", message) for each in erased])


def _check(values: ParticipantImport) -> str | None:
    number = values.participant_number
    if not isinstance(number, str) or is_ndis_number(number):
        return None
    return f"participant_number {number!r} is not a 9-digit scheme number"


RESOURCE = Resource(
    kind="participant",
    import_schema=ParticipantImport,
    upsert=RecordUpserter(
        record_type=ParticipantRow,
        select_for_update=store.select_for_import,
        save=store.update_many,
        insert=store.insert,
        get_many=store.get_many,
        event_type=created_or_updated("participant"),
        part=_PlansAndRechecks(),
    ),
    export_schema=ParticipantRow,
    export=store.export,
    tables=("participants", "plans"),
    check=_check,
    match_fields=bulk.MATCH_FIELDS,
    get_many=by_uuid(store.get_many),
    lock=by_uuid(store.select_for_import),
    update_schema=ParticipantUpdate,
    update=lambda ctx, key, change: service.update(ctx, UUID(key), change),
    delete_many=lambda ctx, keys: service.delete_many(ctx, uuids(keys)),
    constraint_errors=service.CONSTRAINT_ERRORS,
    references=REFERENCES,
    remove=service.remove,
    restore=service.restore,
)


async def _update_plan(ctx: WriteContext, key: str, change: PlanUpdate) -> Plan:
    participant_id, _, plan_id = key.partition("/")
    return await plans.update(ctx, UUID(participant_id), UUID(plan_id), change, keeps_ids=True)


async def _delete_plans(ctx: WriteContext, keys: Sequence[str]) -> None:
    for each in await plan_store.get_many(ctx.tx, ctx.plan_manager_id, uuids(keys)):
        await plans.delete(ctx, each.participant_id, each.id)


async def _restore_plan(ctx: WriteContext, snapshot: Snapshot) -> Restored:
    """Nothing if the participant no longer exists."""
    plan = plans.from_record(snapshot.record)
    return Restored([record_key(plan)] if await plans.restore(ctx, plan) else [], [])


PLANS = Resource(
    kind="plan",
    import_schema=PlanImport,
    upsert=plan_imports.upsert,
    export_schema=PlanRow,
    export=plan_store.export,
    tables=("plans",),
    match_fields={"external_id": MatchField("external_id", plan_store.list_by_external_ids)},
    get_many=by_uuid(plan_store.get_many),
    lock=by_uuid(store.lock_of_plans),
    update_schema=PlanUpdate,
    update=_update_plan,
    delete_many=_delete_plans,
    constraint_errors=plan_service.CONSTRAINT_ERRORS,
    dependents=(Dependents("participant", "has_plans", by_uuid(plan_store.list_participants_with_budgets)),),
    restore=_restore_plan,
)
