"""A provider's statement that it needn't quote an ABN: record it, open its file, revoke it."""

from uuid import UUID

from plankeeper.console.invoices.upload import DOCUMENT_LIMITS
from plankeeper.console.providers.form import PROVIDERS_URL
from plankeeper.console.shell.form_reader import FormReader
from plankeeper.console.shell.routing import FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.files import Download, Upload, single_chunk
from plankeeper.core.formatting import format_date
from plankeeper.resources.documents import service as document_service
from plankeeper.resources.documents import store as document_store
from plankeeper.resources.providers import statements, store

pages = Pages()


@pages.get("/providers/{provider_id}/abn-statement", role="manager", permission="override_blocks")
async def edit(request: PageRequest, provider_id: UUID) -> HtmlPage:
    place = (request.db, request.plan_manager_id, provider_id)
    provider, document = or_404(await store.get(*place)), await document_store.get_statement(*place)
    context = {
        "provider": provider,
        "document": document,
        "form": request.form,
        "stores_files": request.settings.storage_url is not None,
    }
    return HtmlPage("providers/statement.html", context)


@pages.post(
    "/providers/{provider_id}/abn-statement",
    role="manager",
    permission="override_blocks",
    on_error=edit,
    upload=DOCUMENT_LIMITS,
)
async def record(request: PageRequest, provider_id: UUID) -> Redirect:
    """Store the file, if the server stores documents, and record the statement."""
    stores_files, uploads = request.settings.storage_url is not None, request.form.uploads
    with FormReader(request.form) as fields:
        day = fields.read_date("statement_date")
        if day > request.today:
            fields.reject("statement_date", "must be today or earlier")
        if stores_files and len(uploads) != 1:
            fields.reject("files", "must be a PDF, PNG or JPEG file")
    stored = None
    if stores_files:
        file = Upload(uploads[0].name, single_chunk(uploads[0].content))
        stored = await statements.receive(request.read_context, provider_id, file)
    await request.db.write(
        lambda tx: statements.record(request.with_transaction(tx).write_context, provider_id, day, stored)
    )
    flash = f"Statement of {format_date(day)} recorded. Claims are made without an ABN."
    return Redirect(f"{PROVIDERS_URL}/{provider_id}", flash)


@pages.post("/providers/{provider_id}/abn-statement/revoke", role="manager", permission="override_blocks")
async def revoke(request: FormRequest, provider_id: UUID) -> Redirect:
    await statements.revoke(request.write_context, provider_id)
    return Redirect(f"{PROVIDERS_URL}/{provider_id}", "Statement revoked. Claims need an ABN again.")


@pages.get("/providers/{provider_id}/abn-statement/file", role="manager", permission="override_blocks")
async def download(request: PageRequest, provider_id: UUID) -> Download:
    document = or_404(await document_store.get_statement(request.db, request.plan_manager_id, provider_id))
    file = await document_service.open_checked(request.settings, document)
    request.record_access("exported", "provider", provider_id)
    return file
