"""Operations on providers that the API and the console share."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from uuid import UUID

from msgspec import UNSET
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.core.bulk import (
    existing_ids,
    find_id_errors,
    find_matches,
    in_item_order,
    item_ids,
    without_id,
)
from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.core.fields import apply_patch
from plankeeper.core.json import to_json
from plankeeper.core.record_matches import MatchField, external_id_error
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import is_changed, record_event, record_events
from plankeeper.resources import recheck_queue
from plankeeper.resources.bank_details import service as bank_details
from plankeeper.resources.notes import service as note_service
from plankeeper.resources.providers import store
from plankeeper.resources.providers.schemas import (
    Provider,
    ProviderBulkItem,
    ProviderBulkQuery,
    ProviderRecord,
    ProviderUpdate,
)
from plankeeper.resources.resource import Restored, Snapshot, stored_fields

MATCH_FIELDS = {
    "external_id": MatchField("external_id", store.list_by_external_ids),
    "abn": MatchField("abn", store.list_by_abns, digits=11),
}
CONSTRAINT_ERRORS = {"providers_external_id_key": external_id_error("provider")}


async def select_for_update(ctx: WriteContext, provider_id: UUID) -> Provider | None:
    """Lock a provider until the transaction ends."""
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [provider_id])
    return rows[0] if rows else None


async def create(ctx: WriteContext, change: ProviderUpdate) -> Provider:
    now = datetime.now(UTC)
    after = apply_patch(change, Provider(id=uuid7(), created_at=now, updated_at=now))
    await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([after]))
    await record_event(ctx, "provider.created", None, after)
    return after


async def save_many(ctx: WriteContext, query: ProviderBulkQuery, items: Sequence[ProviderBulkItem]) -> list[Provider]:
    """Create or update a provider for each item, in their order. Raises ValidationError with all errors."""
    if query.match is not UNSET:  # so that two requests don't create a provider each for the same value
        await store.lock_matches(ctx.tx, ctx.plan_manager_id)
    items, errors = await find_matches(ctx.tx, ctx.plan_manager_id, items, MATCH_FIELDS, query.match, "provider")
    found = await store.select_for_update(ctx.tx, ctx.plan_manager_id, existing_ids(items))
    before = {each.id: each for each in found}
    errors += find_id_errors(items, set(before), "provider")
    if errors:
        raise ValidationError(*in_item_order(errors))
    now = datetime.now(UTC)
    after = [
        apply_patch(without_id(item), before.get(id_) or Provider(id=id_, created_at=now, updated_at=now))
        for item, id_ in zip(items, item_ids(items), strict=True)
    ]
    changed = [each for each in after if is_changed(before.get(each.id), each)]
    for each in changed:
        each.updated_at = next_updated_at(each.updated_at) if each.id in before else now
    if changed:
        await store.upsert(ctx.tx, ctx.plan_manager_id, to_json(changed))
    changes = [(before.get(each.id), each) for each in changed]
    await enqueue_changed(ctx, changes)
    await record_events(ctx, [("provider.updated" if old else "provider.created", old, new) for old, new in changes])
    return after


async def find_errors(
    ctx: ReadContext, query: ProviderBulkQuery, items: Sequence[ProviderBulkItem]
) -> list[FieldError]:
    """The errors of items without a match, of unknown ids, and of ids that occur twice."""
    items, errors = await find_matches(ctx.db, ctx.plan_manager_id, items, MATCH_FIELDS, query.match, "provider")
    found = await store.get_many(ctx.db, ctx.plan_manager_id, existing_ids(items))
    return [*errors, *find_id_errors(items, {each.id for each in found}, "provider")]


async def update(ctx: WriteContext, provider_id: UUID, change: ProviderUpdate) -> Provider:
    """Apply the fields that are set; raises NotFound."""
    return await save(ctx, or_404(await store.get_for_update(ctx.tx, ctx.plan_manager_id, provider_id)), change)


async def save(ctx: WriteContext, before: Provider, change: ProviderUpdate) -> Provider:
    """Apply the fields that are set to a provider that `get_for_update` has returned."""
    after = apply_patch(change, before)
    if is_changed(before, after):
        after.updated_at = next_updated_at(before.updated_at)
        await store.update(ctx.tx, ctx.plan_manager_id, to_json([after]), before.updated_at)
        await enqueue_changed(ctx, [(before, after)])
        await record_event(ctx, "provider.updated", before, after)
    return after


async def delete(ctx: WriteContext, provider_id: UUID) -> None:
    """Delete a provider with its notes and bank details; raises NotFound. Its invoices are kept."""
    await _delete(ctx, provider_id)
    await bank_details.delete_of(ctx, "provider", [provider_id])


async def _delete(ctx: WriteContext, provider_id: UUID) -> None:
    """Delete a provider with its notes. Its bank details are kept, for the trash."""
    before = or_404(await store.delete(ctx.tx, ctx.plan_manager_id, provider_id))
    notes = await note_service.delete_of(ctx, "provider", [provider_id])
    await _enqueue_removed(ctx, [before])
    await record_event(ctx, "provider.deleted", before, None, parts=notes)


async def delete_many(ctx: WriteContext, provider_ids: Sequence[UUID]) -> None:
    """Delete those of the providers that exist. Their invoices are kept."""
    before = await store.delete_many(ctx.tx, ctx.plan_manager_id, provider_ids)
    notes = await note_service.delete_of(ctx, "provider", [each.id for each in before])
    await _enqueue_removed(ctx, before)
    await record_events(ctx, [*notes, *(("provider.deleted", each, None) for each in before)])
    await bank_details.delete_of(ctx, "provider", [each.id for each in before])


async def remove(ctx: WriteContext, provider_id: UUID) -> tuple[str | None, Snapshot]:
    """Delete a provider; raises NotFound. Returns its name and its content, from which it can be restored.

    Its bank details are kept until the entry of the trash is deleted.
    """
    provider = or_404(await select_for_update(ctx, provider_id))
    notes = await note_service.list_of(ctx, "provider", provider_id)
    await _delete(ctx, provider_id)
    return provider.entity_name, Snapshot(stored_fields(provider), notes=[stored_fields(each) for each in notes])


async def restore(ctx: WriteContext, snapshot: Snapshot) -> Restored:
    """Insert a removed provider again, with its notes. Columns that were added since have their default values."""
    provider_id = UUID(snapshot.record["id"])
    record = stored_fields(ProviderRecord(id=provider_id, created_at=datetime.now(UTC))) | snapshot.record
    await store.insert(ctx.tx, ctx.plan_manager_id, to_json([record]))
    after = or_404(await store.get(ctx.tx, ctx.plan_manager_id, provider_id))
    if record.get("abn_exempt"):
        after = replace(after, abn_exempt=True, abn_statement_date=date.fromisoformat(record["abn_statement_date"]))
        await store.set_statement(ctx.tx, ctx.plan_manager_id, after)
    notes, lost = await note_service.restore_all(ctx, snapshot.notes)
    await _enqueue_removed(ctx, [after])
    await record_event(ctx, "provider.restored", None, after, parts=notes)
    return Restored([str(provider_id)], lost)


async def enqueue_changed(ctx: WriteContext, pairs: Sequence[tuple[ProviderRecord | None, ProviderRecord]]) -> None:
    """Queue the invoices of written providers, each before and after, and of others with a changed ABN."""
    await recheck_queue.enqueue_changed(ctx, "provider", pairs)
    changed = [pair for pair in pairs if pair[0] and _abn_key(pair[0]) != _abn_key(pair[1])]
    await _enqueue_same_abn(ctx, [each for pair in changed for each in pair if each])


async def _enqueue_removed(ctx: WriteContext, providers: Sequence[Provider]) -> None:
    """Queue the invoices of deleted or restored providers, and of others with their ABNs."""
    await recheck_queue.enqueue(ctx, "provider", [each.id for each in providers])
    await _enqueue_same_abn(ctx, providers)


async def _enqueue_same_abn(ctx: WriteContext, providers: Sequence[ProviderRecord]) -> None:
    """Queue the invoices of other providers with an ABN of these: their invoices are compared to find duplicates."""
    abns = {key for each in providers if (key := _abn_key(each))}
    if abns:
        found = await store.list_by_abns(ctx.tx, ctx.plan_manager_id, sorted(abns))
        own = {each.id for each in providers}
        await recheck_queue.enqueue(ctx, "provider", sorted(each.id for each in found if each.id not in own))


def _abn_key(provider: ProviderRecord) -> str:
    """What providers with the same ABN have in common, as `number_keys.abn_key` compares them."""
    return MATCH_FIELDS["abn"].normalize(provider.abn or "").replace(" ", "")
