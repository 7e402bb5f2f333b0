"""Invoice view sessions: list and get."""

from plankeeper.core.context import ReadContext, or_404
from plankeeper.core.ids import UuidOr404
from plankeeper.core.lists import Page, read_page
from plankeeper.http.routing import READ, Router
from plankeeper.resources.invoice_view_sessions import store
from plankeeper.resources.invoice_view_sessions.schemas import InvoiceViewSession, InvoiceViewSessionListQuery

router = Router("invoice_view_sessions")


@router.get("/invoice-view-sessions", scope=READ, extension=True)
async def list_(ctx: ReadContext, query: InvoiceViewSessionListQuery) -> Page[InvoiceViewSession]:
    """List invoice view sessions. Sessions that are still open are included."""
    return await read_page(query, store.list_page, store.LIST.count_matching, ctx.db, ctx.plan_manager_id)


@router.get("/invoice-view-sessions/{session_id}", scope=READ, has_etag=True)
async def get(ctx: ReadContext, session_id: UuidOr404) -> InvoiceViewSession:
    """Get an invoice view session. Its durations grow until it ends."""
    return or_404(await store.get(ctx.db, ctx.plan_manager_id, session_id))
