"""Import: a file is checked, and shown with what it would do; then it is imported, or not."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.console.edit_forms import Conflict
from plankeeper.console.pages.import_preview import MOST_LINES, tried
from plankeeper.console.routing import PREFIX, Act, Download, Look, Page, Pages
from plankeeper.http.context import found
from plankeeper.http.errors import Invalid, NotFound
from plankeeper.import_export.csv_templates import sample
from plankeeper.import_files import store
from plankeeper.import_files.schemas import ImportFile

pages = Pages()

IMPORT = f"{PREFIX}/import"
KEPT = 4  # files of one account
# In the order in which they refer to each other, with which record a line is about.
KINDS = {
    "exit-reasons": ("Exit reasons", "id"),
    "account-managers": ("Account managers", "id, or else email"),
    "participants": ("Participants", "id"),
    "providers": ("Providers", "id"),
    "note-types": ("Note types", "id"),
    "team-members": ("Team members", "participant and email, or else id"),
    "invoices": ("Invoices", "id"),
}


@pages.get("/import", need="manager")
async def new(look: Look) -> Page:
    chosen = look.form.text("resource") or look.query.text("resource")
    return Page("import.html", {"kinds": KINDS, "chosen": chosen, "lines": MOST_LINES})


@pages.get("/import/{name}", need="manager")
async def template(_look: Look, name: str) -> Download:
    resource = name.removesuffix(".csv")
    if resource not in KINDS or name == resource:
        raise NotFound
    return Download(name, "text/csv; charset=utf-8", _once(sample(resource).encode()))


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


@pages.post("/import", need="manager", again=new, upload=True)
async def check(act: Act) -> Page:
    resource, upload = act.form.text("resource"), act.form.upload
    if resource not in KINDS:
        raise Invalid(resource="must be one of the list")
    if upload is None:
        raise Invalid(file="must be chosen")
    await _claim(act)
    trial = await tried(act, resource, upload.content, keep=False)
    file = ImportFile(uuid7(), resource, upload.name, upload.content, act.account.account_id, datetime.now(UTC))
    if trial.does_something:
        await store.insert(act.tx, act.plan_manager_id, file)
        await store.remove_all_but(act.tx, act.plan_manager_id, act.account.account_id, KEPT)
    return Page("import_preview.html", {"file": file, "kind": KINDS[resource][0], "trial": trial, "late": False})


@pages.get("/import/files/{file_id}", need="manager")
async def waiting(look: Look, file_id: UUID) -> Page:
    file = found(await store.named(look.db, look.plan_manager_id, file_id, look.account.account_id))
    return Page("import_waiting.html", {"file": file, "kind": KINDS[file.resource][0]})


@pages.post("/import/files/{file_id}", need="manager", again=waiting)
async def run(act: Act, file_id: UUID) -> Page:
    await _claim(act)
    file = found(await store.take(act.tx, act.plan_manager_id, file_id, act.account.account_id))
    trial = await tried(act, file.resource, file.content, keep=True, notify=bool(act.form.text("notify")))
    shown = {"file": file, "kind": KINDS[file.resource][0], "trial": trial, "late": True}
    if trial.report.bad_lines:
        # Something else was changed since the check: the file must be checked anew.
        return Page("import_preview.html", shown, 409)
    return Page("import_done.html", shown)


async def _claim(act: Act) -> None:
    if not await store.claim(act.tx, act.plan_manager_id):
        raise Conflict("Another import of this plan manager is running. Try again when it is done.")
