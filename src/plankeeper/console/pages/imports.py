"""Import: upload a file, preview its changes, then confirm the import."""

from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.console.edit_forms import EditConflictError
from plankeeper.console.pages.import_preview import MAX_LINES, preview_import
from plankeeper.console.routing import Download, FormRequest, HtmlPage, PageRequest, Pages
from plankeeper.http.context import or_404
from plankeeper.http.errors import NotFound, ValidationError
from plankeeper.import_export.csv_templates import csv_template
from plankeeper.import_files import store
from plankeeper.import_files.schemas import ImportFile

pages = Pages()

MAX_FILES = 4  # files of one account
# Ordered by their references to each other, with the columns that identify a record.
IMPORT_KINDS = {
    "exit-reasons": ("Exit reasons", "id"),
    "account-managers": ("Account managers", "ID or email"),
    "participants": ("Participants", "id"),
    "providers": ("Providers", "id"),
    "note-types": ("Note types", "id"),
    "team-members": ("Team members", "participant and email, or ID"),
    "invoices": ("Invoices", "id"),
}


@pages.get("/import", role="manager")
async def new(request: PageRequest) -> HtmlPage:
    selected = request.form.text("resource") or request.query.text("resource")
    return HtmlPage("import.html", {"kinds": IMPORT_KINDS, "selected": selected, "max_lines": MAX_LINES})


@pages.get("/import/{name}", role="manager")
async def template(_request: PageRequest, name: str) -> Download:
    resource = name.removesuffix(".csv")
    if resource not in IMPORT_KINDS or name == resource:
        raise NotFound
    return Download.of_bytes(name, "text/csv; charset=utf-8", csv_template(resource).encode())


@pages.post("/import", role="manager", on_error=new, upload=True)
async def check(request: FormRequest) -> HtmlPage:
    resource, upload = request.form.text("resource"), request.form.upload
    if resource not in IMPORT_KINDS:
        raise ValidationError(resource="must be one of the options")
    if upload is None:
        raise ValidationError(file="is required")
    await _lock_imports(request)
    preview = await preview_import(request, resource, upload.content, commit=False)
    file = ImportFile(uuid7(), resource, upload.name, upload.content, request.account.account_id, datetime.now(UTC))
    if preview.has_changes:
        await store.insert(request.tx, request.plan_manager_id, file)
        await store.delete_all_but_newest(request.tx, request.plan_manager_id, request.account.account_id, MAX_FILES)
    return HtmlPage(
        "import_preview.html",
        {
            "file": file,
            "kind": IMPORT_KINDS[resource][0],
            "preview": preview,
            "is_stale": False,
            "hours": request.settings.import_file_retention,
        },
    )


@pages.get("/import/files/{file_id}", role="manager")
async def confirm_form(request: PageRequest, file_id: UUID) -> HtmlPage:
    key = (request.plan_manager_id, file_id, request.account.account_id)
    file = or_404(await store.get_summary(request.db, *key, request.settings.import_file_retention))
    return HtmlPage("import_waiting.html", {"file": file, "kind": IMPORT_KINDS[file.resource][0]})


@pages.post("/import/files/{file_id}", role="manager", on_error=confirm_form)
async def run_import(request: FormRequest, file_id: UUID) -> HtmlPage:
    await _lock_imports(request)
    key = (request.plan_manager_id, file_id, request.account.account_id)
    file = or_404(await store.pop(request.tx, *key, request.settings.import_file_retention))
    preview = await preview_import(
        request, file.resource, file.content, commit=True, notify=bool(request.form.text("notify"))
    )
    context = {"file": file, "kind": IMPORT_KINDS[file.resource][0], "preview": preview, "is_stale": True, "hours": 1}
    if preview.report.rejected_lines:
        # Other data has changed since the preview, so the file must be checked again.
        return HtmlPage("import_preview.html", context, 409)
    return HtmlPage("import_done.html", context)


async def _lock_imports(request: FormRequest) -> None:
    if not await store.try_lock_import(request.tx, request.plan_manager_id):
        raise EditConflictError("Another import is running for this plan manager. Try again when it is finished.")
