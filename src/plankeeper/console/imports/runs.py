"""Checks a file and imports it. A check is a complete import that is rolled back."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from msgspec import Struct

from plankeeper.console.activity.undo import REASONS
from plankeeper.console.components.edit_forms import EditConflictError, translate_constraints
from plankeeper.console.components.events import resource_name
from plankeeper.console.imports.columns import IMPORT_KINDS
from plankeeper.console.imports.rows import record_url
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.errors import NotFound, ValidationError
from plankeeper.imports import file_store as files
from plankeeper.imports import store
from plankeeper.imports.mapped_import import count_outcomes, import_mapped, to_record
from plankeeper.imports.reader import UnreadableFileError
from plankeeper.imports.schemas import CheckedRow, Import, ImportOptions, ImportRowRecord, OutcomeCounts
from plankeeper.imports.source_files import SourceFile, open_source
from plankeeper.imports.undo import (
    UndoBlockedError,
    UndoBlockers,
    can_be_undone,
    find_blockers,
    undo_import,
)
from plankeeper.resources.registry import CONSTRAINT_ERRORS

MAX_LINES = 60_000
MAX_SECONDS = 60
_MAX_MESSAGE = 2000


class _RollbackError(Exception):
    """Rolls back a check, or an import that differs from its check."""


def open_upload(content: bytes) -> SourceFile:
    """The file with its columns. Raises ValidationError for a file that isn't text, is empty, or has too many lines."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValidationError(file="is encoded in UTF-16: save it as CSV UTF-8")
    if content.startswith(b"PK\x03\x04"):
        raise ValidationError(file="is a spreadsheet: save it as CSV UTF-8")
    if not content.removeprefix(b"\xef\xbb\xbf").strip():
        raise ValidationError(file="is empty")
    lines = content.count(b"\n") + content.count(b"\r") - content.count(b"\r\n")
    if lines > MAX_LINES:
        raise ValidationError(
            file=f"has more than {MAX_LINES:,} lines: split it, or ask your IT administrator to run plankeeper import"
        )
    try:
        return open_source(content)
    except UnreadableFileError as error:
        raise ValidationError(file=str(error)[:_MAX_MESSAGE]) from None


async def lock_imports(request: FormRequest) -> None:
    """Raises EditConflictError if another import of the plan manager is running."""
    if not await files.try_lock_import(request.tx, request.plan_manager_id):
        raise EditConflictError("Another import is running for this plan manager. Try again when it is finished.")


def _import_slot(request: FormRequest) -> AbstractContextManager[None]:
    return request.import_limit.slot(request.account.account_id, request.plan_manager_id)


async def check_file(request: FormRequest, record: Import, file: SourceFile, options: ImportOptions) -> None:
    """Save the result that an import would have for each row. Raises ValidationError if it takes too long."""
    counts, ctx = OutcomeCounts(), replace(request.write_context, import_id=record.id)
    await store.delete_rows(request.tx, request.plan_manager_id, record.id)
    try:
        with _import_slot(request):
            async with _time_limit(), request.db.transaction() as tx:
                await _check_rows(request, replace(ctx, tx=tx, notify=False), file, options, counts)
    except _RollbackError:
        pass
    await store.update_checked(request.tx, request.plan_manager_id, record.id, options, counts)


def options_of(record: Import) -> ImportOptions:
    """The options with which a file was checked."""
    mapping, lines = record.mapping, record.included_lines
    options = ImportOptions(record.resource, mapping, record.existing, lines)
    options.clears_empty, options.sets_states = record.clears_empty, record.sets_states
    return options


async def _check_rows(
    request: FormRequest, ctx: WriteContext, file: SourceFile, options: ImportOptions, counts: OutcomeCounts
) -> None:
    """Raises _RollbackError. The results are saved in the request's own transaction, which stays."""
    async for results in import_mapped(ctx, file, options, request.has_permission):
        count_outcomes(counts, results)
        await store.insert_many(request.tx, [to_record(ctx, each, is_check=True) for each in results])
    raise _RollbackError


async def run_import(request: FormRequest, record: Import, file: SourceFile, *, notify: bool) -> bool:
    """Import a file as it was checked. False if other data has changed since: then it's only checked again."""
    options = options_of(record)
    ctx = replace(request.write_context, import_id=record.id, notify=notify)
    try:
        with _import_slot(request):
            async with _time_limit(), request.tx.savepoint():
                await _import_rows(request, ctx, record, file, options)
    except _RollbackError:
        ctx.tx.changed_feeds.discard(ctx.plan_manager_id)
        await check_file(request, record, file, options)
        return False
    await store.update_imported(ctx.tx, ctx.plan_manager_id, record.id, datetime.now(UTC), notify=notify)
    await files.delete(ctx.tx, ctx.plan_manager_id, record.id)
    return True


async def _import_rows(
    request: FormRequest, ctx: WriteContext, record: Import, file: SourceFile, options: ImportOptions
) -> None:
    """Raises _RollbackError if a row's result isn't that of the check."""
    checked_ids, written_ids = set[str](), set[str]()
    async for results in import_mapped(ctx, file, options, request.has_permission):
        lines = (results[0].line_number, results[-1].line_number)
        checked = await store.delete_checked_rows(ctx.tx, ctx.plan_manager_id, record.id, *lines)
        written = [to_record(ctx, each, is_check=True) for each in results]
        if [_effect(each, checked_ids) for each in checked] != [_effect(each, written_ids) for each in written]:
            raise _RollbackError
        await store.insert_many(ctx.tx, [to_record(ctx, each, is_check=False) for each in results])


class _Parents(Struct):
    """The records that a record belongs to, from the record of an event."""

    participant_id: str | None = None
    provider_id: str | None = None


def _effect(row: CheckedRow | ImportRowRecord, seen_ids: set[str]) -> tuple[object, ...]:
    """What a row does, without the ids and times that differ from a check to its import.

    Of a later row of the same record, it's only the outcome: an earlier one may have given the record new ids.
    """
    is_first, id_ = row.record_id not in seen_ids, row.record_id
    if row.outcome in ("rejected", "unconfirmed") or id_ is None:
        return row.line_number, row.outcome, id_
    seen_ids.add(id_)
    if not is_first:
        return row.line_number, row.outcome
    if row.outcome == "created":
        parents = msgspec.json.decode(row.after or "{}", type=_Parents)
        # A team member's id begins with that of the participant.
        return row.line_number, row.outcome, id_.rpartition("/")[0], parents, row.problems
    return row.line_number, row.outcome, id_, row.before, row.problems


@asynccontextmanager
async def _time_limit() -> AsyncGenerator[None]:
    """Raises ValidationError for what takes too long."""
    limit = asyncio.timeout(MAX_SECONDS)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise ValidationError(
            file=f"takes longer than {MAX_SECONDS} seconds: ask your IT administrator to run plankeeper import"
        ) from None


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
        "imports/undo.html",
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
