"""Documents that become invoices: people choose up to 50 files, or drop them onto the page."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct, to_builtins
from starlette.responses import JSONResponse, Response

from plankeeper.console.invoices.list import INVOICES
from plankeeper.console.invoices.pages import INVOICES_URL
from plankeeper.console.lists.query import parse_list_query
from plankeeper.console.lists.reading import record_url
from plankeeper.console.shell.forms import Form, Upload, UploadLimits
from plankeeper.console.shell.routing import HtmlPage, PageRequest, Pages
from plankeeper.core import files
from plankeeper.core.errors import DomainError, ValidationError
from plankeeper.database.client import Transaction
from plankeeper.resources.documents import service as document_service
from plankeeper.resources.invoices import check_store, documents, service
from plankeeper.resources.invoices.schemas import InvoiceUpdate

pages = Pages()

UPLOAD_URL = f"{INVOICES_URL}/upload"
MAX_FILES = 50
LIMITS = UploadLimits(
    20 * MAX_FILES,  # too many files are an error of the form, not of the request
    document_service.MAX_BYTES,
    "The files are larger than 20 MiB together. Choose fewer of them, and upload the others afterwards.",
)
# For one document.
DOCUMENT_LIMITS = UploadLimits(1, document_service.MAX_BYTES, "The file is larger than 20 MiB.")
# The list through which people go, to enter the new invoices one after the other.
_NEW_INVOICES = parse_list_query(INVOICES, Form([("warning", "missing_invoice_number"), ("sort", "received_at")]))


class UploadedFile(Struct):
    """What has become of a file: the invoice at `url`, or nothing because of `error`.

    `other_url` leads to another invoice with the same document.
    """

    name: str
    url: str | None = None
    edit_url: str | None = None
    other_url: str | None = None
    error: str | None = None


@pages.get("/invoices/upload", role="manager")
async def show(_request: PageRequest) -> HtmlPage:
    return _page([])


@pages.post("/invoices/upload", role="manager", on_error=show, upload=LIMITS)
async def upload(request: PageRequest) -> HtmlPage | Response:
    """Each file becomes an invoice in a transaction of its own. The page's script sends one, and takes JSON."""
    if not request.form.uploads:
        raise ValidationError(files="must be a PDF, PNG or JPEG file")
    if len(request.form.uploads) > MAX_FILES:
        raise ValidationError(files=f"must be at most {MAX_FILES} files")
    results = [await _add_invoice(request, each) for each in request.form.uploads]
    if request.form.text("response") == "json":
        return JSONResponse(to_builtins(results[0]))
    return _page(results)


def _page(results: Sequence[UploadedFile]) -> HtmlPage:
    added = [each for each in results if each.url]
    context: dict[str, Any] = {
        "added": added,
        "failed": [each for each in results if each.error],
        "upload_url": UPLOAD_URL,
        "max_files": MAX_FILES,
        "max_bytes": document_service.MAX_BYTES,
    }
    return HtmlPage("invoices/upload.html", context)


async def _add_invoice(request: PageRequest, file: Upload) -> UploadedFile:
    """Store a file, and add an invoice with it."""
    try:
        stored = await document_service.receive(
            request.read_context, files.Upload(file.name, files.single_chunk(file.content))
        )

        async def add(tx: Transaction) -> UUID:
            form = request.with_transaction(tx)
            invoice = await service.create(form.write_context, InvoiceUpdate())
            await documents.attach(form.write_context, invoice.id, stored)
            return invoice.id

        invoice_id = await request.db.write(add)
    except DomainError as error:
        return UploadedFile(file.name, error=error.detail)
    same = await check_store.same_document_ids(request.db, request.plan_manager_id, invoice_id, 1)
    page, _, query = record_url(_NEW_INVOICES, invoice_id).partition("?")
    return UploadedFile(
        file.name,
        url=f"{page}?{query}",
        edit_url=f"{page}/edit?{query}",
        other_url=f"{INVOICES_URL}/{same[0]}" if same else None,
    )
