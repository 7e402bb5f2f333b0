"""The document of an invoice: images of its pages, and the file."""

from uuid import UUID

from starlette.responses import Response

from plankeeper.console.shell.forms import parse_number
from plankeeper.console.shell.routing import PageRequest, Pages
from plankeeper.core.context import or_404
from plankeeper.core.errors import NotFound
from plankeeper.core.files import Download
from plankeeper.resources.documents import rendering, service, store
from plankeeper.resources.documents.schemas import MAX_PAGES, DocumentRow

pages = Pages()


@pages.get("/invoices/{invoice_id}/document", role="viewer", is_limited=True)
async def download(request: PageRequest, invoice_id: UUID) -> Download:
    document = await _get_or_404(request, invoice_id)
    file = await service.open_checked(request.settings, document)
    request.record_access("exported", "invoice", invoice_id)
    return file


@pages.get("/invoices/{invoice_id}/document/pages/{number}", role="viewer", is_limited=True)
async def show_page(request: PageRequest, invoice_id: UUID, number: str) -> Response:
    """The image of a page, or a placeholder."""
    page = or_404(parse_number(number, MAX_PAGES))
    document = await _get_or_404(request, invoice_id)
    image = await rendering.render_page(request.settings, request.plan_manager_id, document, page)
    request.record_access("viewed", "invoice", invoice_id)
    headers = {"server-timing": f'pages;desc="{image.pages}"'}  # for document-pages.js
    return Response(image.content, media_type=image.media_type, headers=headers)


async def is_hidden(request: PageRequest, invoice_id: UUID) -> bool:
    """Whether the participant was erased, so that only people who make payments see the document that is kept."""
    if request.has_permission("make_payments"):
        return False
    return await store.is_restricted(request.executor, request.plan_manager_id, invoice_id)


async def _get_or_404(request: PageRequest, invoice_id: UUID) -> DocumentRow:
    """The document; raises NotFound if its participant was erased, and the account can't make payments."""
    if await is_hidden(request, invoice_id):
        raise NotFound
    return or_404(await store.get(request.db, request.plan_manager_id, invoice_id))
