"""Invoice view sessions: list and get."""

from plankeeper.http.context import Read, found
from plankeeper.http.pagination import page_of
from plankeeper.http.parsing import LooseId
from plankeeper.http.routing import READ, Routes
from plankeeper.http.schemas import Page
from plankeeper.invoice_view_sessions import store
from plankeeper.invoice_view_sessions.schemas import InvoiceViewSession, InvoiceViewSessionListQuery

routes = Routes("invoice_view_sessions")


@routes.get("/invoice-view-sessions", need=READ, extension=True)
async def list_(ctx: Read, query: InvoiceViewSessionListQuery) -> Page[InvoiceViewSession]:
    """List invoice view sessions."""
    rows = await store.list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.by_cursor else await store.count(ctx.db, ctx.plan_manager_id, query)
    return page_of(query, rows, total)


@routes.get("/invoice-view-sessions/{session_id}", need=READ)
async def get(ctx: Read, session_id: LooseId) -> InvoiceViewSession:
    """Get an invoice view session."""
    return found(await store.get(ctx.db, ctx.plan_manager_id, session_id))
