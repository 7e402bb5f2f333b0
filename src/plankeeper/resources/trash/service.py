"""Deleting records to the trash, and restoring them. The API's delete is permanent and doesn't use it."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec
from msgspec import Raw
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.json import to_json
from plankeeper.events.recorder import record_event
from plankeeper.resources.bank_details import store as bank_details
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.participants.store import lock_person
from plankeeper.resources.registry import BY_KIND
from plankeeper.resources.resource import Snapshot
from plankeeper.resources.trash import store
from plankeeper.resources.trash.store import (
    RecordReference,
    RestoredEntry,
    TrashEntry,
    TrashKind,
)
from plankeeper.resources.undo import undo_deletion

_PURGED = {"participant": "participant.purged", "provider": "provider.purged"}


async def delete(ctx: WriteContext, kind: TrashKind, resource_id: UUID) -> TrashEntry:
    """Delete a record with its team, and put them in the trash; raises NotFound. Its invoices are kept."""
    remove = BY_KIND[kind].remove
    if remove is None:
        raise LookupError(f"a {kind} can't be restored")
    name, snapshot = await remove(ctx, resource_id)
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


async def restore(ctx: WriteContext, entry_id: UUID) -> RestoredEntry:
    """Insert the record of an entry again, with its id and its team.

    Raises NotFound, also if the record has been restored already, and DomainError if its id is in use again.
    """
    found = or_404(await store.get(ctx.tx, ctx.plan_manager_id, entry_id))
    if found.kind == "participant":
        await lock_person(ctx.tx, ctx.plan_manager_id, found.resource_id)
    entry = or_404(await store.delete(ctx.tx, ctx.plan_manager_id, entry_id))
    restored = await undo_deletion(ctx, entry.kind, msgspec.json.decode(entry.snapshot, type=Snapshot))
    return RestoredEntry(entry, restored.changes)


async def delete_permanently(ctx: WriteContext, entry_id: UUID) -> TrashEntry:
    """Delete an entry before it expires; raises NotFound."""
    entry = or_404(await store.delete(ctx.tx, ctx.plan_manager_id, entry_id))
    await bank_details.delete_of_missing(ctx.tx, ctx.plan_manager_id, [Payee(entry.kind, entry.resource_id)])
    await record_event(ctx, _PURGED[entry.kind], None, RecordReference(entry.resource_id))
    return entry
