"""Undo an import: its effect, the records that prevent it, and the undo itself."""

from datetime import UTC, datetime
from uuid import UUID

from plankeeper.console.edit_forms import translate_constraints
from plankeeper.console.event_changes import resource_name
from plankeeper.console.event_undo import REASONS
from plankeeper.console.pages.import_columns import IMPORT_KINDS
from plankeeper.console.pages.import_rows import record_url
from plankeeper.console.pages.import_runs import lock_imports
from plankeeper.console.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.errors import NotFound
from plankeeper.imports import store
from plankeeper.imports.schemas import Import
from plankeeper.imports.undo import (
    UndoBlockedError,
    UndoBlockers,
    can_be_undone,
    find_blockers,
    undo_import,
)
from plankeeper.resources.registry import CONSTRAINT_ERRORS

pages = Pages()


@pages.get("/imports/{import_id}/undo", role="manager")
async def form(request: PageRequest, import_id: UUID) -> HtmlPage:
    record = _require_undoable(await store.get(request.db, request.plan_manager_id, import_id))
    return _page(record, await find_blockers(request.db, request.plan_manager_id, record))


@pages.post("/imports/{import_id}/undo", role="manager", on_error=form)
async def undo(request: FormRequest, import_id: UUID) -> Redirect | HtmlPage:
    await lock_imports(request)
    record = _require_undoable(await store.select_for_update(request.tx, request.plan_manager_id, import_id))
    ctx = request.write_context
    ctx.notify, ctx.import_id = record.notify, record.id
    try:
        async with translate_constraints(request, CONSTRAINT_ERRORS):
            await undo_import(ctx, record)
    except UndoBlockedError as error:
        page = _page(record, error.blockers)
        page.status = 409
        return page
    await store.update_undone(request.tx, request.plan_manager_id, import_id, datetime.now(UTC), request.account.name)
    return Redirect(f"{PREFIX}/imports/{import_id}", "The import has been undone.")


def _require_undoable(record: Import | None) -> Import:
    """Raises NotFound for an import that was undone already, or can't be."""
    found = or_404(record)
    if found.state != "imported" or not can_be_undone(found):
        raise NotFound
    return found


def _page(record: Import, blockers: UndoBlockers) -> HtmlPage:
    return HtmlPage(
        "import_undo.html",
        {
            "record": record,
            "kind": IMPORT_KINDS[record.resource].label,
            "blockers": [
                (each, resource_name(each.event) if each.event else "", record_url(record.resource, each.row.record_id))
                for each in blockers.first
            ],
            "total": blockers.total,
            "reasons": REASONS,
        },
    )
