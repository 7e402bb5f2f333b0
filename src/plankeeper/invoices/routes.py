"""Invoices: list, get, and where those of a number stand."""

from uuid import UUID

from plankeeper.http.context import Read, found
from plankeeper.http.errors import NotFound
from plankeeper.http.pagination import page_of
from plankeeper.http.routing import READ, Routes
from plankeeper.http.schemas import Page
from plankeeper.invoices import store
from plankeeper.invoices.queries import list_page
from plankeeper.invoices.schemas import (
    Invoice,
    InvoiceListQuery,
    InvoiceStatusResponse,
    InvoiceStatusData,
    InvoiceStatusRequest,
    InvoiceWithLines,
)
from plankeeper.invoices.totals import count

routes = Routes("invoices")


@routes.get("/invoices", need=READ, extension=True)
async def list_(ctx: Read, query: InvoiceListQuery) -> Page[Invoice]:
    """List invoices, deleted ones too."""
    rows = await list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.by_cursor else await count(ctx.db, ctx.plan_manager_id, query)
    return page_of(query, rows, total)


@routes.post("/invoices/status", need=READ, extension=True)
async def status(ctx: Read, body: InvoiceStatusRequest) -> InvoiceStatusResponse:
    """Ask where invoices stand: all of a number from a provider with an email."""
    invoices = await store.find_by_provider_and_number(
        ctx.db, ctx.plan_manager_id, body.provider_email, body.invoice_number
    )
    if not invoices:
        raise NotFound
    message = "1 invoice found." if len(invoices) == 1 else f"{len(invoices)} invoices found."
    return InvoiceStatusResponse(success=True, message=message, data=InvoiceStatusData(invoices))


@routes.get("/invoices/{invoice_id}", need=READ, extension=True)
async def get(ctx: Read, invoice_id: UUID) -> InvoiceWithLines:
    """Get an invoice with its lines."""
    return found(next(iter(await store.get_many(ctx.db, ctx.plan_manager_id, [invoice_id])), None))
