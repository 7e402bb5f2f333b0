"""Imports: upload a file, map its columns, review the check, import the valid rows, undo."""

import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from plankeeper.console.components.downloads import csv_chunks, csv_row
from plankeeper.console.components.pagination import with_query
from plankeeper.console.imports.columns import (
    IMPORT_KINDS,
    choose_options,
    columns_context,
    options_for,
    require_valid_mapping,
)
from plankeeper.console.imports.rows import (
    PAGE_SIZE,
    ShownRow,
    name_of,
    show_rows,
)
from plankeeper.console.imports.runs import (
    MAX_LINES,
    check_file,
    lock_imports,
    open_upload,
    options_of,
    run_import,
)
from plankeeper.console.shell.forms import Form, UploadLimits, parse_form, parse_number
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.context import AccessedKind, or_404
from plankeeper.core.errors import NotFound, ValidationError
from plankeeper.core.files import Download
from plankeeper.core.ids import parse_uuid
from plankeeper.events import store as event_store
from plankeeper.imports import file_store as files
from plankeeper.imports import store
from plankeeper.imports.columns import PROBLEM_COLUMN
from plankeeper.imports.schemas import Import, ImportedRow, ImportFile, ImportRowFilter, Problem
from plankeeper.imports.source_files import SourceFile
from plankeeper.imports.undo import can_be_undone
from plankeeper.imports.writer import csv_template

pages = Pages()

MAX_FILES = 4  # files of one account
UPLOAD_LIMITS = UploadLimits(1, 10 * 1024**2, "The file is larger than 10 MiB. Use `plankeeper import` for it.")
LIST_SIZE = 40
EXPORT_BATCH_SIZE = 500
_MAX_LINE_NUMBER = 10**8 - 1  # that an address or a form can name
OUTCOMES = {
    "created": "New",
    "changed": "Changed",
    "unconfirmed": "Unconfirmed",
    "unchanged": "Unchanged",
    "skipped": "Skipped",
    "rejected": "Errors",
    "warnings": "With warnings",
}


@pages.get("/imports", role="manager")
async def list_(request: PageRequest) -> HtmlPage:
    before = parse_uuid(request.query.text("before"))
    rows = await store.list_page(request.db, request.plan_manager_id, before, request.account.account_id, LIST_SIZE + 1)
    older = with_query(f"{PREFIX}/imports", {"before": str(rows[LIST_SIZE - 1].id)}) if len(rows) > LIST_SIZE else None
    shown = rows[:LIST_SIZE]
    checked = [each.digest for each in shown if not each.is_finished]
    same = await store.list_same_files(request.db, request.plan_manager_id, checked) if checked else []
    context = {"imports": shown, "same_files": {each.digest: each for each in same}}
    return HtmlPage("imports/imports.html", context | {"kinds": IMPORT_KINDS, "older": older, "before": before})


@pages.get("/imports/new", role="manager")
async def new(request: PageRequest) -> HtmlPage:
    selected = request.form.text("resource") or request.query.text("kind")
    choices = {"": "Detect automatically", **{name: kind.label for name, kind in IMPORT_KINDS.items()}}
    return HtmlPage(
        "imports/new.html", {"kinds": IMPORT_KINDS, "choices": choices, "selected": selected, "max_lines": MAX_LINES}
    )


@pages.get("/imports/templates/{name}", role="manager")
async def template(_request: PageRequest, name: str) -> Download:
    resource = name.removesuffix(".csv")
    or_404(IMPORT_KINDS.get(resource) if name != resource else None)
    return Download.of_bytes(name, "text/csv; charset=utf-8", csv_template(resource).encode())


@pages.post("/imports", role="manager", on_error=new, upload=UPLOAD_LIMITS)
async def upload(request: FormRequest) -> Redirect:
    resource, uploaded = request.form.text("resource"), next(iter(request.form.uploads), None)
    if resource and resource not in IMPORT_KINDS:
        raise ValidationError(resource="must be one of the options")
    if uploaded is None:
        raise ValidationError(file="is required")
    await lock_imports(request)
    file = open_upload(uploaded.content)
    options, is_certain = await options_for(request, file, resource)
    record = Import(
        id=uuid7(),
        resource=options.resource,
        file_name=uploaded.name,
        digest=hashlib.sha256(uploaded.content).hexdigest(),
        existing=options.existing,
        clears_empty=options.clears_empty,
        notify=False,
        state="uploaded",
        created_by=request.account.account_id,
        created_by_name=request.account.name,
        created_at=datetime.now(UTC),
        imported_at=None,
        undone_at=None,
        undone_by_name=None,
        columns=file.columns,
        mapping=options.mapping,
    )
    await store.insert(request.tx, request.plan_manager_id, record)
    stored = ImportFile(
        record.id, record.resource, record.file_name, uploaded.content, record.created_by, record.created_at
    )
    await files.insert(request.tx, request.plan_manager_id, stored)
    await files.delete_all_but_newest(request.tx, request.plan_manager_id, record.created_by, MAX_FILES)
    if not is_certain:
        return Redirect(f"{PREFIX}/imports/{record.id}/columns")
    await check_file(request, record, file, options)
    return Redirect(f"{PREFIX}/imports/{record.id}")


@pages.get("/imports/{file_id}/columns", role="manager")
async def columns(request: PageRequest, file_id: UUID) -> HtmlPage:
    record = await _get_own(request, file_id)
    file = open_upload(await _get_content(request, record))
    options, _ = await choose_options(request, record, file)
    return HtmlPage("imports/columns.html", columns_context(record, file, options))


@pages.post("/imports/{file_id}/columns", role="manager", on_error=columns)
async def save_columns(request: FormRequest, file_id: UUID) -> Redirect:
    record = await _get_own(request, file_id)
    await lock_imports(request)
    file = open_upload(await _get_content(request, record))
    options, choices = await choose_options(request, record, file)
    require_valid_mapping(options, file.columns)
    if choices:
        await store.upsert_mappings(request.tx, request.plan_manager_id, options.resource, choices)
    await check_file(request, record, file, options)
    return Redirect(f"{PREFIX}/imports/{file_id}")


@pages.get("/imports/{import_id}", role="manager")
async def get(request: PageRequest, import_id: UUID) -> HtmlPage | Redirect:
    record = or_404(await store.get(request.db, request.plan_manager_id, import_id))
    if not record.is_finished:
        _require_own(request, record)
    if record.state == "uploaded":
        return Redirect(f"{PREFIX}/imports/{import_id}/columns")
    same_file = (
        None if record.is_finished else await store.get_same_file(request.db, request.plan_manager_id, record.digest)
    )
    context = await _rows_context(request, record) | {
        "record": record,
        "kind": IMPORT_KINDS[record.resource].label,
        "same_file": same_file,
        "hours": request.settings.import_file_retention,
        "rejected_days": request.settings.rejected_row_retention,
        "can_be_undone": record.state != "undone" and can_be_undone(record) and record.written_count > 0,
    }
    return HtmlPage("imports/done.html" if record.is_finished else "imports/import_check.html", context)


@pages.post("/imports/{import_id}", role="manager", on_error=get)
async def confirm(request: FormRequest, import_id: UUID) -> Redirect:
    await lock_imports(request)
    record = or_404(await store.select_for_update(request.tx, request.plan_manager_id, import_id))
    if record.state != "checked":
        raise NotFound
    _require_own(request, record)
    content = await _get_content(request, record)
    same_file = await store.get_same_file(request.tx, request.plan_manager_id, record.digest)
    if same_file and not request.form.text("again"):
        raise ValidationError(again="must be ticked to import the same file another time")
    file = open_upload(content)
    record = await _save_included(request, record, file)
    if record.unconfirmed_count and not record.written_count:
        raise ValidationError(include="must be ticked for at least one row: there is nothing else to import")
    if await run_import(request, record, file, notify=bool(request.form.text("notify"))):
        return Redirect(f"{PREFIX}/imports/{import_id}", _done_message(record))
    return Redirect(
        f"{PREFIX}/imports/{import_id}",
        "Nothing was imported, because other data has changed since the file was checked. This is the new check.",
    )


@pages.post("/imports/{import_id}/included", role="manager", on_error=get)
async def include(request: FormRequest, import_id: UUID) -> Redirect:
    """Save which unconfirmed rows are included, check the file again, and go to another page of its rows."""
    await lock_imports(request)
    record = or_404(await store.select_for_update(request.tx, request.plan_manager_id, import_id))
    _require_own(request, record)
    await _save_included(request, record, open_upload(await _get_content(request, record)))
    goal = parse_form(request.form.text("goal").encode())
    query = {name: goal.text(name) for name in ("show", "after", "before") if goal.text(name)}
    return Redirect(with_query(f"{PREFIX}/imports/{import_id}", query))


async def _save_included(request: FormRequest, record: Import, file: SourceFile) -> Import:
    """The import after the choices of a page: checked again if they have changed."""
    shown, ticked = (_line_numbers(request.form, name) for name in ("line", "include"))
    lines = sorted(set(record.included_lines) - shown | ticked & shown)
    if lines == record.included_lines:
        return record
    options = msgspec.structs.replace(options_of(record), included_lines=lines)
    await check_file(request, record, file, options)
    return or_404(await store.get(request.tx, request.plan_manager_id, record.id))


def _line_numbers(form: Form, name: str) -> set[int]:
    numbers = (parse_number(each, _MAX_LINE_NUMBER) for each in form.getlist(name))
    return {each for each in numbers if each is not None}


@pages.get("/imports/{import_id}/rejected.csv", role="manager")
async def rejected(request: PageRequest, import_id: UUID) -> Download:
    """The rows that are left out: their original columns and the problems."""
    record = or_404(await store.get(request.db, request.plan_manager_id, import_id))
    if not record.is_finished:
        _require_own(request, record)
    names = record.columns or ["Line of the file"]
    batches = _rejected_batches(request, record, len(names))
    chunks = csv_chunks(request, "rejected rows", f"import={import_id}", [*names, PROBLEM_COLUMN], batches)
    return Download("rejected-rows.csv", "text/csv; charset=utf-8", chunks)


async def _rejected_batches(request: PageRequest, record: Import, width: int) -> AsyncIterator[list[bytes]]:
    for outcome in ("rejected", "unconfirmed"):
        after, place = 0, (request.db, request.plan_manager_id, record.id)
        while rows := await store.list_rows(*place, after, ImportRowFilter(outcome), EXPORT_BATCH_SIZE):
            yield [_rejected_row(each, width) for each in rows]
            after = rows[-1].line_number


def _rejected_row(row: ImportedRow, width: int) -> bytes:
    cells = [*(row.cells or []), *[""] * width][:width]
    problems = msgspec.json.decode(row.problems, type=list[Problem]) if row.problems else []
    texts = [f"{each.field}: {each.message}" if each.field else each.message for each in problems]
    return csv_row([*cells, "; ".join(texts)])


async def _get_own(request: PageRequest, import_id: UUID) -> Import:
    """An unfinished import of the account; raises NotFound."""
    record = or_404(await store.get(request.db, request.plan_manager_id, import_id))
    _require_own(request, record)
    return record


def _require_own(request: PageRequest, record: Import) -> None:
    """Raises NotFound unless the import waits for this account to confirm it."""
    is_open = record.state in ("uploaded", "checked") and record.created_by == request.account.account_id
    age = datetime.now(UTC) - record.created_at
    if not is_open or age > timedelta(hours=request.settings.import_file_retention):
        raise NotFound


async def _get_content(request: PageRequest, record: Import) -> bytes:
    """The file of an import; raises NotFound after its retention."""
    key = (request.plan_manager_id, record.id, request.account.account_id)
    return or_404(await files.get_content(request.db, *key, request.settings.import_file_retention))


async def _rows_context(request: PageRequest, record: Import) -> dict[str, Any]:
    """The rows that the filter selects, the filters with their counts, and the links to other pages."""
    show = request.query.text("show")
    show = show if show in OUTCOMES else ""
    page = await _read_rows(request, record, show)
    counts = {name: getattr(record, f"{'warning' if name == 'warnings' else name}_count") for name in OUTCOMES}
    counts["unconfirmed"] += len(record.included_lines)
    links = {
        name: with_query("", {"show": show, **place}) if place else None
        for name, place in (("previous", page.previous), ("next", page.next))
    }
    return {
        "rows": page.rows,
        "show": show,
        "outcomes": OUTCOMES,
        "filters": {name: (label, counts[name]) for name, label in OUTCOMES.items() if counts[name] or name == show},
        "links": links,
        "has_ticks": any(each.is_confirmable for each in page.rows),
    }


class RowsPage(NamedTuple):
    """A page of rows, and the cursors of the pages before and after it."""

    rows: list[ShownRow]
    previous: dict[str, str] | None
    next: dict[str, str] | None


async def _read_rows(request: PageRequest, record: Import, show: str) -> RowsPage:
    """The rows of a page. Where few rows precede a page, the page before it is the first one."""
    outcome = None if show in ("", "warnings") else show
    lines = record.included_lines if show == "unconfirmed" else ()
    filter_ = ImportRowFilter(outcome, lines, with_warnings=show == "warnings")
    place = (request.db, request.plan_manager_id, record.id)
    before, after = (parse_number(request.query.text(name), _MAX_LINE_NUMBER) or 0 for name in ("before", "after"))
    if before:
        found = await store.list_rows_before(*place, before, filter_, PAGE_SIZE + 1)
        shown = show_rows(record, found[:PAGE_SIZE])
        if len(found) > len(shown):
            shown.reverse()
            return await _rows_page(request, record, shown, has_previous=True, has_next=True)
        after = 0
    found = await store.list_rows(*place, after, filter_, PAGE_SIZE + 1)
    shown = show_rows(record, found[:PAGE_SIZE])
    return await _rows_page(request, record, shown, has_previous=bool(after), has_next=len(found) > len(shown))


async def _rows_page(
    request: PageRequest, record: Import, shown: list[ShownRow], *, has_previous: bool, has_next: bool
) -> RowsPage:
    rows = [each.row for each in shown]
    names = await _names(request, rows)
    _record_access(request, record, rows)
    return RowsPage(
        [each._replace(name=each.name or names.get(each.row.event_id, "")) for each in shown],
        {"before": str(rows[0].line_number)} if rows and has_previous else None,
        {"after": str(rows[-1].line_number)} if rows and has_next else None,
    )


async def _names(request: PageRequest, rows: list[ImportedRow]) -> dict[UUID | None, str]:
    """The names of imported records, from their events."""
    ids = [each.event_id for each in rows if each.event_id]
    events = await event_store.get_many(request.db, request.plan_manager_id, ids) if ids else []
    return {each.id: name_of(msgspec.json.decode(each.data or b"{}")) for each in events}


def _record_access(request: PageRequest, record: Import, rows: list[ImportedRow]) -> None:
    """The records that rows show, as soon as they exist. A team member's id starts with that of the participant."""
    kinds: dict[str, AccessedKind] = {
        "participants": "participant",
        "team-members": "participant",
        "invoices": "invoice",
    }
    if record.resource in kinds:
        exist = [each for each in rows if each.record_id and (record.imported_at or each.outcome != "created")]
        ids = [UUID(str(each.record_id).partition("/")[0]) for each in exist]
        request.record_list(kinds[record.resource], ids, {})


def _done_message(record: Import) -> str:
    return f"{record.written_count:,} row{'s' if record.written_count != 1 else ''} imported."
