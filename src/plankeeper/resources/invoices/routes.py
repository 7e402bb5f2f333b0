"""Invoices: list, get, and the status of the invoices with a number."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from plankeeper.core.context import AccessedKind, ReadContext, WriteContext, or_404
from plankeeper.core.errors import ErrorResource, NotFound
from plankeeper.core.files import Download
from plankeeper.core.lists import Page, build_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.resources.documents.schemas import Document, StoredObject
from plankeeper.resources.documents.service import MAX_BYTES
from plankeeper.resources.invoices import documents, store
from plankeeper.resources.invoices.queries import count, list_page
from plankeeper.resources.invoices.schemas import (
    Invoice,
    InvoiceListQuery,
    InvoiceStatusData,
    InvoiceStatusRequest,
    InvoiceStatusResponse,
)

router = Router("invoices")


@router.get("/invoices", scope=READ, extension=True, access_log="invoice")
async def list_(ctx: ReadContext, query: InvoiceListQuery) -> Page[Invoice]:
    """List invoices. Deleted invoices are included, and marked with `is_deleted`."""
    rows = await list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.uses_cursor else await count(ctx.db, ctx.plan_manager_id, query)
    return build_page(query, rows, total)


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
    max_body_bytes=MAX_BYTES,
    errors=("not_found",),
)
async def upload_document(ctx: WriteContext, invoice_id: UUID, file: StoredObject) -> Document:
    """Upload the document of an invoice: a PDF, PNG or JPEG of up to 20 MiB. It replaces the current one."""
    return await documents.attach(ctx, invoice_id, file)


@router.get("/invoices/{invoice_id}/document", scope=READ, extension=True, access_log="invoice")
async def download_document(ctx: ReadContext, invoice_id: UUID) -> Download:
    """Download the document of an invoice."""
    return await documents.open_current(ctx, invoice_id)


@router.get("/invoices/{invoice_id}", scope=READ, extension=True, has_etag=True, access_log="invoice")
async def get(ctx: ReadContext, invoice_id: UUID) -> Invoice:
    """Get an invoice. It contains its lines."""
    return or_404(await store.get(ctx.db, ctx.plan_manager_id, invoice_id))
