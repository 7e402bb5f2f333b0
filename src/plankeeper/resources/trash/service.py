"""Deleting records to the trash, and restoring them. The API's delete is permanent and doesn't use it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import asyncpg
import msgspec
from msgspec import Raw, Struct
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.errors import DomainError
from plankeeper.core.json import to_json
from plankeeper.events.recorder import record_event
from plankeeper.resources.parents import Parent
from plankeeper.resources.participants import service as participant_service
from plankeeper.resources.participants import store as participant_store
from plankeeper.resources.participants.schemas import ParticipantRow, reference_ids
from plankeeper.resources.providers import service as provider_service
from plankeeper.resources.providers import store as provider_store
from plankeeper.resources.providers.schemas import ProviderRecord
from plankeeper.resources.team_members import service
from plankeeper.resources.team_members import store as team_store
from plankeeper.resources.trash import store
from plankeeper.resources.trash.schemas import (
    JsonObject,
    RecordReference,
    Restored,
    Snapshot,
    TrashEntry,
    TrashKind,
)

_PURGED = {"participant": "participant.purged", "provider": "provider.purged"}
# The references of a participant, with their labels.
_REFERENCES = {
    "account_manager_id": "account manager",
    "exit_reason_category_id": "exit reason",
    "exit_reason_subcategory_id": "specific exit reason",
}


async def delete_participant(ctx: WriteContext, participant_id: UUID) -> TrashEntry:
    """Delete a participant with its team, and put them in the trash; raises NotFound. Its invoices are kept."""
    await participant_store.lock_person(ctx.tx, ctx.plan_manager_id, participant_id)
    row = or_404(await participant_service.select_for_update(ctx, participant_id))
    member_ids = await team_store.select_ids_for_update(ctx.tx, ctx.plan_manager_id, participant_id)
    team = await team_store.select_for_update(
        ctx.tx, ctx.plan_manager_id, [participant_id] * len(member_ids), member_ids
    )
    ids = reference_ids(row)
    names = await participant_store.reference_names(ctx.tx, ctx.plan_manager_id, ids) if ids else {}
    await participant_service.delete(ctx, participant_id)
    name = " ".join(filter(None, (row.first_name, row.last_name))) or None
    return await _insert(ctx, "participant", participant_id, name, _snapshot(row, team, names))


async def delete_provider(ctx: WriteContext, provider_id: UUID) -> TrashEntry:
    """Delete a provider and put it in the trash; raises NotFound. Its invoices are kept."""
    provider = or_404(await provider_service.select_for_update(ctx, provider_id))
    await provider_service.delete(ctx, provider_id)
    return await _insert(ctx, "provider", provider_id, provider.entity_name, _snapshot(provider, [], {}))


async def restore(ctx: WriteContext, entry_id: UUID) -> Restored:
    """Insert the record of an entry again, with its id and its team.

    Raises NotFound, also if the record has been restored already, and DomainError if its id is in use again.
    """
    found = or_404(await store.get(ctx.tx, ctx.plan_manager_id, entry_id))
    if found.kind == "participant":
        await participant_store.lock_person(ctx.tx, ctx.plan_manager_id, found.resource_id)
    entry = or_404(await store.delete(ctx.tx, ctx.plan_manager_id, entry_id))
    snapshot = msgspec.json.decode(entry.snapshot, type=Snapshot)
    restore_record = _restore_participant if entry.kind == "participant" else _restore_provider
    try:
        async with ctx.tx.savepoint():
            changes = await restore_record(ctx, entry.resource_id, snapshot)
    except asyncpg.UniqueViolationError:
        raise DomainError(
            "precondition_failed",
            f"Another {entry.kind} has the same ID, or was created at the same moment. Nothing was restored.",
        ) from None
    return Restored(entry.kind, entry.resource_id, entry.name, changes)


async def delete_permanently(ctx: WriteContext, entry_id: UUID) -> TrashEntry:
    """Delete an entry before it expires; raises NotFound."""
    entry = or_404(await store.delete(ctx.tx, ctx.plan_manager_id, entry_id))
    await record_event(ctx, _PURGED[entry.kind], None, RecordReference(entry.resource_id))
    return entry


def _snapshot(row: Struct, team: Sequence[Struct], names: dict[str, str]) -> Snapshot:
    return Snapshot(_to_object(row), [_to_object(each) for each in team], names)


def _to_object(row: Struct) -> JsonObject:
    """A row as JSON, without the time of its last change: restoring it is a change."""
    record = msgspec.json.decode(to_json(row), type=JsonObject)
    record.pop("updated_at", None)
    return record


async def _insert(
    ctx: WriteContext, kind: TrashKind, resource_id: UUID, name: str | None, snapshot: Snapshot
) -> TrashEntry:
    entry = TrashEntry(
        id=uuid7(),
        kind=kind,
        resource_id=resource_id,
        name=name,
        deleted_at=datetime.now(UTC),
        deleted_by=ctx.actor.name,
        snapshot=Raw(to_json(snapshot)),
    )
    await store.insert(ctx.tx, ctx.plan_manager_id, entry)
    return entry


async def _restore_participant(ctx: WriteContext, participant_id: UUID, snapshot: Snapshot) -> list[str]:
    """Returns sentences about the values that could not be restored."""
    # Columns that were added since have their default values.
    default = _to_object(ParticipantRow(id=participant_id, created_at=datetime.now(UTC)))
    record = default | snapshot.record
    changes = await _clear_missing_references(ctx, record, snapshot.names)
    await participant_store.insert(ctx.tx, ctx.plan_manager_id, to_json([record]))
    after = or_404(await participant_store.get(ctx.tx, ctx.plan_manager_id, participant_id))
    await record_event(ctx, "participant.restored", None, after)
    parent = Parent(after.id, after.email, after.participant_number)
    return changes + (await service.restore(ctx, parent, snapshot.team)).changes


async def _restore_provider(ctx: WriteContext, provider_id: UUID, snapshot: Snapshot) -> list[str]:
    record = _to_object(ProviderRecord(id=provider_id, created_at=datetime.now(UTC))) | snapshot.record
    await provider_store.insert(ctx.tx, ctx.plan_manager_id, to_json([record]))
    after = or_404(await provider_store.get(ctx.tx, ctx.plan_manager_id, provider_id))
    await record_event(ctx, "provider.restored", None, after)
    return []


async def _clear_missing_references(ctx: WriteContext, record: JsonObject, names: dict[str, str]) -> list[str]:
    """Clear the references to records that no longer exist."""
    ids = [UUID(record[column]) for column in _REFERENCES if record[column]]
    existing = await participant_store.reference_names(ctx.tx, ctx.plan_manager_id, ids) if ids else {}
    changes = list[str]()
    for column, label in _REFERENCES.items():
        if record[column] and record[column] not in existing:
            changes.append(f"The {label} {names.get(record[column]) or ''} no longer exists.".replace("  ", " "))
            record[column] = None
    return changes
