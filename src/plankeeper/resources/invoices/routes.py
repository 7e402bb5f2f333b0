"""Invoices: list, create, get, update, and the status of the invoices with a number."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from plankeeper.core.bulk import MAX_BODY_BYTES, BulkResult
from plankeeper.core.context import AccessedKind, ReadContext, WriteContext, or_404
from plankeeper.core.errors import DomainError, ErrorCode, ErrorResource, NotFound
from plankeeper.core.fields import unset_to_none
from plankeeper.core.files import Download
from plankeeper.core.lists import Page, build_page
from plankeeper.database.client import Executor
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.resources.documents.schemas import Document, StoredObject
from plankeeper.resources.documents.service import MAX_BYTES
from plankeeper.resources.invoices import actions, approval, documents, service, store
from plankeeper.resources.invoices.action_schemas import ActionReason, IgnoredWarningCode, LineSplit, WarningToIgnore
from plankeeper.resources.invoices.approval_schemas import Approval, Rejection
from plankeeper.resources.invoices.queries import count, list_page
from plankeeper.resources.invoices.schemas import (
    Invoice,
    InvoiceBulk,
    InvoiceBulkQuery,
    InvoiceListQuery,
    InvoiceQuery,
    InvoiceStatusData,
    InvoiceStatusRequest,
    InvoiceStatusResponse,
    InvoiceUpdate,
    SavedInvoice,
)
from plankeeper.resources.invoices.warning_details import add_warnings

WITHOUT_WARNINGS = InvoiceQuery()
router = Router("invoices", service.CONSTRAINT_ERRORS, lock=service.select_for_update)


@router.get("/invoices", scope=READ, extension=True, access_log="invoice")
async def list_(ctx: ReadContext, query: InvoiceListQuery) -> Page[Invoice]:
    """List invoices. Deleted invoices are included, and marked with `is_deleted`."""
    rows = await list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.uses_cursor else await count(ctx.db, ctx.plan_manager_id, query)
    await _include(ctx.db, ctx, query, rows)
    return build_page(query, rows, total)


@router.post("/invoices", scope=WRITE, extension=True, creates=True, status=201)
async def create(ctx: WriteContext, query: InvoiceQuery, change: InvoiceUpdate) -> SavedInvoice:
    """Create an invoice. No field is required."""
    saved = await service.create(ctx, change)
    await _include(ctx.tx, ctx, query, [saved])
    return saved


@router.post(
    "/invoices/bulk",
    scope=WRITE,
    extension=True,
    errors=("invoice_locked",),
    max_body_bytes=MAX_BODY_BYTES,
    find_errors=service.find_errors,
)
async def save_many(ctx: WriteContext, query: InvoiceBulkQuery, bulk: InvoiceBulk) -> BulkResult[SavedInvoice]:
    """Create and update up to 500 invoices. Either all items are saved, or none."""
    saved = await service.save_many(ctx, query, bulk.items)
    await _include(ctx.tx, ctx, query, saved)
    return BulkResult(saved)


_LINE = "/invoices/{invoice_id}/lines/{line_id}"
_LOCKABLE: tuple[ErrorCode, ...] = ("invalid_transition", "invoice_locked")


@router.post("/invoices/{invoice_id}/hold", scope=WRITE, extension=True, errors=("invalid_transition",))
async def hold(ctx: WriteContext, invoice_id: UUID, body: ActionReason) -> Invoice:
    """Put an invoice on hold: it is left out of claim batches and payment runs until it is released."""
    return await actions.hold(ctx, invoice_id, body.reason)


@router.post("/invoices/{invoice_id}/release", scope=WRITE, extension=True, errors=("invalid_transition",))
async def release(ctx: WriteContext, invoice_id: UUID) -> Invoice:
    """Release an invoice that is on hold."""
    return await actions.release(ctx, invoice_id)


@router.post("/invoices/{invoice_id}/cancel", scope=WRITE, extension=True, errors=_LOCKABLE)
async def cancel(ctx: WriteContext, invoice_id: UUID, body: ActionReason) -> Invoice:
    """Cancel an invoice with its lines."""
    return await actions.cancel(ctx, invoice_id, body.reason)


@router.post("/invoices/{invoice_id}/reopen", scope=WRITE, extension=True, errors=("invalid_transition",))
async def reopen(ctx: WriteContext, invoice_id: UUID) -> Invoice:
    """Reopen a cancelled invoice, or one that is excluded from claims."""
    return await actions.reopen(ctx, invoice_id)


@router.post("/invoices/{invoice_id}/wont-claim", scope=WRITE, extension=True, errors=_LOCKABLE)
async def wont_claim(ctx: WriteContext, invoice_id: UUID, body: ActionReason) -> Invoice:
    """Exclude an invoice from claims."""
    return await actions.wont_claim(ctx, invoice_id, body.reason)


@router.post("/invoices/{invoice_id}/request-approval", scope=WRITE, extension=True, errors=("invalid_transition",))
async def request_approval(ctx: WriteContext, invoice_id: UUID) -> Invoice:
    """Ask for the approval of an invoice. People are mailed as soon as it waits for nothing else."""
    return await approval.request_approval(ctx, invoice_id)


@router.post("/invoices/{invoice_id}/approve", scope=WRITE, extension=True, errors=("invalid_transition",))
async def approve(ctx: WriteContext, invoice_id: UUID, body: Approval) -> Invoice:
    """Record that the participant or a team member has approved an invoice."""
    return await approval.decide(ctx, invoice_id, "approve", _member_id(body), unset_to_none(body.reason))


@router.post("/invoices/{invoice_id}/reject", scope=WRITE, extension=True, errors=("invalid_transition",))
async def reject(ctx: WriteContext, invoice_id: UUID, body: Rejection) -> Invoice:
    """Record that the participant or a team member has rejected an invoice."""
    return await approval.decide(ctx, invoice_id, "reject", _member_id(body), body.reason)


def _member_id(body: Approval | Rejection) -> UUID | None:
    return UUID(body.team_member_id) if isinstance(body.team_member_id, str) else None


@router.post("/invoices/{invoice_id}/ignore-warning", scope=WRITE, extension=True, errors=("invalid_transition",))
async def ignore_warning(ctx: WriteContext, invoice_id: UUID, body: WarningToIgnore) -> Invoice:
    """Ignore a warning of an invoice."""
    if not await service.ignore(ctx, invoice_id, body.code, body.reason):
        raise DomainError("invalid_transition", f"The invoice has no warning {body.code} that counts.")
    return or_404(await store.get(ctx.tx, ctx.plan_manager_id, invoice_id))


@router.post("/invoices/{invoice_id}/restore-warning", scope=WRITE, extension=True, errors=("invalid_transition",))
async def restore_warning(ctx: WriteContext, invoice_id: UUID, body: IgnoredWarningCode) -> Invoice:
    """Have an ignored warning of an invoice count again."""
    if not await service.restore(ctx, invoice_id, body.code):
        raise DomainError("invalid_transition", f"The warning {body.code} of the invoice isn't ignored.")
    return or_404(await store.get(ctx.tx, ctx.plan_manager_id, invoice_id))


@router.post(_LINE + "/cancel", scope=WRITE, extension=True, errors=_LOCKABLE)
async def cancel_line(ctx: WriteContext, invoice_id: UUID, line_id: UUID, body: ActionReason) -> Invoice:
    """Cancel a line. Other lines of the invoice can be claimed or paid."""
    return await actions.cancel_line(ctx, invoice_id, line_id, body.reason)


@router.post(_LINE + "/reopen", scope=WRITE, extension=True, errors=_LOCKABLE)
async def reopen_line(ctx: WriteContext, invoice_id: UUID, line_id: UUID) -> Invoice:
    """Reopen a cancelled line."""
    return await actions.reopen_line(ctx, invoice_id, line_id)


@router.post(_LINE + "/retry", scope=WRITE, extension=True, errors=_LOCKABLE)
async def retry_line(ctx: WriteContext, invoice_id: UUID, line_id: UUID) -> Invoice:
    """Put a rejected line up for the next claim batch as it is."""
    return await actions.retry_line(ctx, invoice_id, line_id)


@router.post(_LINE + "/split", scope=WRITE, extension=True, errors=_LOCKABLE)
async def split_line(ctx: WriteContext, invoice_id: UUID, line_id: UUID, body: LineSplit) -> Invoice:
    """Split a line at a date, such as the first day of a funding period. The line keeps its id and the first part."""
    return await actions.split_line(ctx, invoice_id, line_id, body)


def _list_invoices(response: InvoiceStatusResponse) -> Mapping[AccessedKind, Sequence[UUID]]:
    return {"invoice": [each.id for each in response.data.invoices]}


@router.post("/invoices/status", scope=READ, extension=True, errors=("not_found",), access_log=_list_invoices)
async def status(ctx: ReadContext, body: InvoiceStatusRequest) -> InvoiceStatusResponse:
    """Ask where invoices stand. Returns all invoices with a number from providers with an email. `read` is enough."""
    invoices = await store.find_by_provider_and_number(
        ctx.db, ctx.plan_manager_id, body.provider_email, body.invoice_number
    )
    if not invoices:
        raise NotFound(ErrorResource("invoice", None), "No provider with this email has an invoice with this number.")
    message = "1 invoice found." if len(invoices) == 1 else f"{len(invoices)} invoices found."
    return InvoiceStatusResponse(success=True, message=message, data=InvoiceStatusData(invoices))


@router.put(
    "/invoices/{invoice_id}/document",
    scope=WRITE,
    extension=True,
    receive_file=documents.receive,
    lock=documents.lock,
    max_body_bytes=MAX_BYTES,
    errors=("not_found",),
)
async def upload_document(ctx: WriteContext, invoice_id: UUID, file: StoredObject) -> Document:
    """Upload the document of an invoice: a PDF, PNG or JPEG of up to 20 MiB. It replaces the current one."""
    return await documents.attach(ctx, invoice_id, file)


@router.get("/invoices/{invoice_id}/document", scope=READ, extension=True, has_etag=True, access_log="invoice")
async def download_document(ctx: ReadContext, invoice_id: UUID) -> Download:
    """Download the document of an invoice."""
    return await documents.open_current(ctx, invoice_id)


@router.get("/invoices/{invoice_id}", scope=READ, extension=True, has_etag=True, access_log="invoice")
async def get(ctx: ReadContext, invoice_id: UUID, query: InvoiceQuery = WITHOUT_WARNINGS) -> Invoice:
    """Get an invoice. It contains its lines."""
    invoice = or_404(await store.get(ctx.db, ctx.plan_manager_id, invoice_id))
    await _include(ctx.db, ctx, query, [invoice])
    return invoice


@router.put("/invoices/{invoice_id}", scope=WRITE, extension=True, errors=("invoice_locked",))
async def update(ctx: WriteContext, invoice_id: UUID, query: InvoiceQuery, change: InvoiceUpdate) -> SavedInvoice:
    """Update an invoice. Omitted fields keep their values; null clears a value. `line_items` replaces the lines."""
    saved = await service.update(ctx, invoice_id, change)
    await _include(ctx.tx, ctx, query, [saved])
    return saved


async def _include(
    db: Executor,
    ctx: ReadContext | WriteContext,
    query: InvoiceQuery | InvoiceBulkQuery | InvoiceListQuery,
    invoices: Sequence[Invoice],
) -> None:
    """Add the warnings with their facts if the request asks for them."""
    if "warnings" in (unset_to_none(query.include) or ()):
        await add_warnings(db, ctx.plan_manager_id, invoices, ctx.settings.today)
