"""The document of an invoice: receiving it, storing it in place of the current one, sending it."""

from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.errors import NotFound
from plankeeper.core.files import Download, Upload
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import record_event
from plankeeper.resources.documents import service
from plankeeper.resources.documents import store as document_store
from plankeeper.resources.documents.schemas import Document, DocumentRow, StoredObject
from plankeeper.resources.invoices import check_store, store
from plankeeper.resources.invoices.service import check, recheck_others, resolve_stored


async def receive(ctx: ReadContext, invoice_id: UUID, upload: Upload) -> StoredObject:
    """Store the file of an invoice; raises NotFound, and the errors of `plankeeper.resources.documents.service`."""
    or_404(await store.exists(ctx.db, ctx.plan_manager_id, invoice_id) or None)
    return await service.receive(ctx, upload)


async def lock(ctx: WriteContext, invoice_id: UUID, file: StoredObject) -> None:
    """Lock an invoice that gets a document until the transaction ends."""
    # Before the invoice, as the check of another invoice with this document would wait for both.
    await store.lock_similar(ctx.tx, ctx.plan_manager_id, [f"document {file.sha256}"])
    await store.select_for_update(ctx.tx, ctx.plan_manager_id, [invoice_id])


async def attach(ctx: WriteContext, invoice_id: UUID, stored: StoredObject) -> Document:
    """Make a stored file the document of an invoice. The current one remains if it is the same file."""
    await lock(ctx, invoice_id, stored)
    before = or_404(await store.get(ctx.tx, ctx.plan_manager_id, invoice_id))
    current = before.document
    if current and (current.sha256, current.file_name) == (stored.sha256, stored.file_name):
        return current
    now = datetime.now(UTC)
    row = DocumentRow(
        id=uuid7(),
        invoice_id=invoice_id,
        object_key=stored.object_key,
        file_name=stored.file_name,
        media_type=stored.media_type,
        size=stored.size,
        sha256=stored.sha256,
        created_at=now,
        created_by=ctx.actor.display_name,
    )
    others = await check_store.list_similar(ctx.tx, ctx.plan_manager_id, [invoice_id])
    await document_store.insert(ctx.tx, ctx.plan_manager_id, row)
    updated_at = next_updated_at(before.updated_at)
    await store.set_document_key(ctx.tx, ctx.plan_manager_id, invoice_id, stored.object_key, updated_at)
    await check(ctx, [invoice_id])
    await resolve_stored(ctx, [before])
    after = or_404(await store.get(ctx.tx, ctx.plan_manager_id, invoice_id))
    await record_event(ctx, "invoice.document_added", before, after)
    others += await check_store.list_similar(ctx.tx, ctx.plan_manager_id, [invoice_id])
    await recheck_others(ctx, {*others} - {invoice_id})
    return Document(row.id, row.file_name, row.media_type, row.size, row.sha256)


async def open_current(ctx: ReadContext, invoice_id: UUID) -> Download:
    """The content of the current document; raises NotFound without one, and if its participant was erased."""
    row = or_404(await document_store.get(ctx.db, ctx.plan_manager_id, invoice_id))
    if await document_store.is_restricted(ctx.db, ctx.plan_manager_id, invoice_id):
        raise NotFound
    return service.open_document(ctx.settings, row)
