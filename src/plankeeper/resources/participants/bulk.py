"""Creates and updates many participants in one transaction."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from msgspec import UNSET

from plankeeper.core.bulk import (
    MAX_ITEMS,
    existing_ids,
    find_id_errors,
    find_matches,
    in_item_order,
    item_error,
    item_ids,
    without_id,
)
from plankeeper.core.context import Disclosure, ReadContext, WriteContext
from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.core.fields import apply_patch
from plankeeper.core.json import to_json
from plankeeper.core.lists import in_order
from plankeeper.core.record_matches import MatchField
from plankeeper.database.client import Executor
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import is_changed, record_events
from plankeeper.resources import recheck_queue
from plankeeper.resources.account_managers import store as account_managers
from plankeeper.resources.account_managers.schemas import AccountManagerListQuery
from plankeeper.resources.exit_reasons import store as exit_reasons
from plankeeper.resources.participants import plans, store
from plankeeper.resources.participants.schemas import (
    Participant,
    ParticipantBulkItem,
    ParticipantBulkQuery,
    StoredParticipant,
)
from plankeeper.resources.participants.service import EXIT_REASONS, unknown_reference, with_reference_names

MATCH_FIELDS = {
    "external_id": MatchField("external_id", store.list_by_external_ids),
    "participant_number": MatchField("participant_number", store.list_by_numbers, digits=9),
}


async def save_many(
    ctx: WriteContext, query: ParticipantBulkQuery, items: Sequence[ParticipantBulkItem]
) -> list[Participant]:
    """Create or update a participant for each item, in their order. Raises ValidationError with all errors."""
    if query.match is not UNSET:  # so that two requests don't create a participant each for the same value
        await store.lock_matches(ctx.tx, ctx.plan_manager_id)
    items, errors = await find_matches(ctx.tx, ctx.plan_manager_id, items, MATCH_FIELDS, query.match, "participant")
    found = await store.select_for_update(ctx.tx, ctx.plan_manager_id, existing_ids(items))
    old = {each.id: each for each in found}
    errors += find_id_errors(items, set(old), "participant")
    before = {each.id: each for each in await with_reference_names(ctx, *old.values())}
    now = datetime.now(UTC)
    new = [
        apply_patch(without_id(item), old.get(id_) or StoredParticipant(id=id_, created_at=now, updated_at=now))
        for item, id_ in zip(items, item_ids(items), strict=True)
    ]
    changed = [is_changed(old.get(each.id), each) for each in new]
    changes = [(index, item) for index, item in enumerate(items) if changed[index]]
    errors += await _find_unknown_references(ctx.tx, ctx.plan_manager_id, ctx.settings.operator_name, changes)
    plan_changes = await plans.apply_fields(ctx, [(old.get(new[index].id), new[index]) for index, _ in changes])
    errors += [
        item_error(changes[number][0], each.field, each.message, each.code) for number, each in plan_changes.errors
    ]
    if errors:
        raise ValidationError(*in_item_order(errors))
    unchanged = [each.id for each, differs in zip(new, changed, strict=True) if not differs]
    ctx.disclosed += [Disclosure("viewed", "participant", each) for each in unchanged]
    created = [each for each in new if each.id not in old]
    updated = [each for each, differs in zip(new, changed, strict=True) if differs and each.id in old]
    if created:
        await store.insert(ctx.tx, ctx.plan_manager_id, to_json(created))
    await _update_many(ctx, old, updated)
    plan_events = await plans.write(ctx, plan_changes)
    ids = [each.id for each in new]
    after = in_order(ids, await store.get_many(ctx.tx, ctx.plan_manager_id, ids))
    await record_events(ctx, [*(_change(before.get(each.id), each) for each in after), *plan_events])
    return after


async def _update_many(
    ctx: WriteContext, old: Mapping[UUID, StoredParticipant], updated: Sequence[StoredParticipant]
) -> None:
    for each in updated:
        each.updated_at = next_updated_at(old[each.id].updated_at)
    if updated:
        await store.update_many(ctx.tx, ctx.plan_manager_id, to_json(updated))
        await recheck_queue.enqueue_changed(ctx, "participant", [(old[each.id], each) for each in updated])


async def find_errors(
    ctx: ReadContext, query: ParticipantBulkQuery, items: Sequence[ParticipantBulkItem]
) -> list[FieldError]:
    """The errors of items without a match, of unknown ids, and of ids that occur twice."""
    items, errors = await find_matches(ctx.db, ctx.plan_manager_id, items, MATCH_FIELDS, query.match, "participant")
    found = await store.get_many(ctx.db, ctx.plan_manager_id, existing_ids(items))
    return [
        *errors,
        *find_id_errors(items, {each.id for each in found}, "participant"),
        *await _find_unknown_references(
            ctx.db, ctx.plan_manager_id, ctx.settings.operator_name, list(enumerate(items))
        ),
    ]


async def _find_unknown_references(
    db: Executor, plan_manager_id: UUID, operator: str, changes: Sequence[tuple[int, ParticipantBulkItem]]
) -> list[FieldError]:
    """The errors of items that refer to an unknown account manager or exit reason."""
    managers = _sent_ids(changes, ("account_manager_id",))
    query = AccountManagerListQuery(id=[str(each) for each in managers], limit=MAX_ITEMS)
    visible = await account_managers.list_page(db, plan_manager_id, query, operator)
    reasons = await exit_reasons.list_existing(db, plan_manager_id, list(_sent_ids(changes, EXIT_REASONS)))
    known = {name: set(reasons) for name in EXIT_REASONS}
    known["account_manager_id"] = {each.id for each in visible}
    return [
        item_error(index, name, unknown_reference(name).message, "not_found")
        for index, item in changes
        for name, ids in known.items()
        if isinstance(id_ := getattr(item, name), str) and UUID(id_) not in ids
    ]


def _sent_ids(changes: Sequence[tuple[int, ParticipantBulkItem]], names: Sequence[str]) -> set[UUID]:
    """The ids that the items have in some fields."""
    sent = (getattr(item, name) for _, item in changes for name in names)
    return {UUID(each) for each in sent if isinstance(each, str)}


def _change(before: Participant | None, after: Participant) -> tuple[str, Participant | None, Participant]:
    return "participant.updated" if before else "participant.created", before, after
