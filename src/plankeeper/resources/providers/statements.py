"""A supplier's statement that it needn't quote an ABN: its day and its file. With it, claims need no ABN."""

from datetime import UTC, date, datetime
from uuid import UUID

from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.errors import DomainError
from plankeeper.core.files import Upload
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import record_event
from plankeeper.resources import recheck_queue
from plankeeper.resources.documents import service as document_service
from plankeeper.resources.documents import store as document_store
from plankeeper.resources.documents.schemas import DocumentRow, StoredObject
from plankeeper.resources.providers import store
from plankeeper.resources.providers.schemas import Provider

NOT_EXEMPT = "The provider has no statement, so it must quote an ABN already."


async def receive(ctx: ReadContext, provider_id: UUID, upload: Upload) -> StoredObject:
    """Store the file of a statement; raises NotFound, and the errors of `plankeeper.resources.documents.service`."""
    or_404(await store.get(ctx.db, ctx.plan_manager_id, provider_id))
    return await document_service.receive(ctx, upload)


async def record(ctx: WriteContext, provider_id: UUID, day: date, file: StoredObject | None) -> Provider:
    """Record a statement in place of the current one; raises NotFound. `file` is null without a storage."""
    before = await _select_for_update(ctx, provider_id)
    now = datetime.now(UTC)
    await document_store.replace_statement(ctx.tx, ctx.plan_manager_id, provider_id, now)
    if file:
        row = DocumentRow(
            id=uuid7(),
            provider_id=provider_id,
            object_key=file.object_key,
            file_name=file.file_name,
            media_type=file.media_type,
            size=file.size,
            sha256=file.sha256,
            created_at=now,
            created_by=ctx.actor.display_name,
        )
        await document_store.insert_statement(ctx.tx, ctx.plan_manager_id, row)
    return await _save(ctx, before, replace(before, abn_exempt=True, abn_statement_date=day))


async def revoke(ctx: WriteContext, provider_id: UUID) -> Provider:
    """Have the provider quote an ABN again; raises NotFound, and DomainError if it must already.

    The statement's file is kept, because claims that were made without an ABN rely on it.
    """
    before = await _select_for_update(ctx, provider_id)
    if not before.abn_exempt:
        raise DomainError("invalid_transition", NOT_EXEMPT)
    await document_store.replace_statement(ctx.tx, ctx.plan_manager_id, provider_id, datetime.now(UTC))
    return await _save(ctx, before, replace(before, abn_exempt=False, abn_statement_date=None))


async def _select_for_update(ctx: WriteContext, provider_id: UUID) -> Provider:
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [provider_id])
    return or_404(rows[0] if rows else None)


async def _save(ctx: WriteContext, before: Provider, after: Provider) -> Provider:
    """Write a changed provider, with its event. Another file of the same day changes only the provider's version."""
    after.updated_at = next_updated_at(before.updated_at)
    await store.set_statement(ctx.tx, ctx.plan_manager_id, after)
    if after.abn_exempt and not before.abn_exempt:
        await recheck_queue.enqueue(ctx, "provider", [after.id], {after.id})
    await record_event(ctx, "provider.updated", before, after)
    return after
