"""The page of a link to approve an invoice, for people without an account. Only its buttons decide."""

from uuid import UUID

from starlette.responses import Response

from plankeeper.console.invoices.pages import read_reason
from plankeeper.console.shell.forms import parse_number
from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import Access, or_404
from plankeeper.core.errors import DomainError, NotFound
from plankeeper.resources.documents import rendering
from plankeeper.resources.documents import store as document_store
from plankeeper.resources.documents.schemas import MAX_PAGES, DocumentRow
from plankeeper.resources.invoices.action_schemas import MAX_REASON_LENGTH
from plankeeper.resources.invoices.approval import BY_LINK, Decision, LinkView, decide_by_link, open_link
from plankeeper.resources.invoices.approval_mails import visible_lines
from plankeeper.resources.invoices.approval_store import get_name
from plankeeper.resources.providers import store as provider_store

pages = Pages()


@pages.get("/approvals/{approval_token}", role="anyone")
async def show(request: PageRequest, approval_token: str) -> HtmlPage:
    """Mail scanners request it too, so it changes nothing."""
    view = await open_link(request.executor, approval_token)
    return await _wrong_link(request) if view is None else await _page(request, approval_token, view)


@pages.post("/approvals/{approval_token}/approve", role="anyone", on_error=show)
async def approve(request: FormRequest, approval_token: str) -> HtmlPage | Redirect:
    return await _decide(request, approval_token, "approve", None)


@pages.post("/approvals/{approval_token}/reject", role="anyone", on_error=show)
async def reject(request: FormRequest, approval_token: str) -> HtmlPage | Redirect:
    if await open_link(request.tx, approval_token) is None:
        return await _wrong_link(request)
    return await _decide(request, approval_token, "reject", read_reason(request.form))


@pages.get("/approvals/{approval_token}/pages/{number}", role="anyone")
async def show_document_page(request: PageRequest, approval_token: str, number: str) -> Response:
    """The image of a page of the document, or a placeholder."""
    page = or_404(parse_number(number, MAX_PAGES))
    view = await open_link(request.db, approval_token)
    if view is None or view.state != "open":
        await request.limit_wrong_links()
        raise NotFound
    document = or_404(await _get_document(request, view.plan_manager_id, view.invoice.id))
    image = await rendering.render_page(request.settings, view.plan_manager_id, document, page)
    return Response(image.content, media_type=image.media_type)


async def _decide(request: FormRequest, token: str, decision: Decision, reason: str | None) -> HtmlPage | Redirect:
    view = await decide_by_link(request.tx, request.settings, token, decision, reason, request.request_id)
    if view is None:
        return await _wrong_link(request)
    return Redirect(f"{PREFIX}/approvals/{token}") if view.state == "open" else await _page(request, token, view)


async def _wrong_link(request: PageRequest) -> HtmlPage:
    """The same page for every link that doesn't work. Raises DomainError if there were too many from one address."""
    await request.limit_wrong_links()
    return HtmlPage("invoices/approval_link_wrong.html", {}, 404)


async def _page(request: PageRequest, token: str, view: LinkView) -> HtmlPage:
    if view.state != "open":
        status = 200 if view.state == "decided" else 409
        return HtmlPage("invoices/approval_link_closed.html", {"view": view}, status)
    place, invoice = (request.executor, view.plan_manager_id), view.invoice
    request.on_access(Access(view.plan_manager_id, BY_LINK, "viewed", "invoice", request.request_id, invoice.id))
    providers = await provider_store.get_many(*place, [invoice.pm_provider_id]) if invoice.pm_provider_id else []
    context = {
        "view": view,
        "invoice": invoice,
        "lines": visible_lines(invoice),
        "provider": next(iter(providers), None),
        "participant_name": await get_name(*place, view.link.participant_id, None),
        "page_count": await _count_pages(request, view.plan_manager_id, invoice.id),
        "approval_token": token,
        "max_length": MAX_REASON_LENGTH,
    }
    return HtmlPage("invoices/approval_link.html", context)


async def _get_document(request: PageRequest, plan_manager_id: UUID, invoice_id: UUID) -> DocumentRow | None:
    """The document; none if the participant was erased, so that it is kept only as a financial record."""
    if await document_store.is_restricted(request.executor, plan_manager_id, invoice_id):
        return None
    return await document_store.get(request.executor, plan_manager_id, invoice_id)


async def _count_pages(request: PageRequest, plan_manager_id: UUID, invoice_id: UUID) -> int:
    """The number of images of the document; 0 without one, or while the storage fails."""
    document = await _get_document(request, plan_manager_id, invoice_id)
    if document is None:
        return 0
    try:
        return await rendering.count_pages(request.settings, plan_manager_id, document)
    except (DomainError, NotFound):
        return 0
