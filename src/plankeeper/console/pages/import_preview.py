"""Imports and their preview: the import runs in a savepoint, which a preview rolls back after reading the changes."""

import asyncio
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from uuid_utils.compat import uuid7

from plankeeper.console.pages.activity import FieldChange, field_changes, resource_name
from plankeeper.console.routing import FormRequest
from plankeeper.events import store as event_store
from plankeeper.events.schemas import Event
from plankeeper.http.context import WriteContext
from plankeeper.http.errors import ValidationError
from plankeeper.import_export.constraint_errors import CONSTRAINT_ERRORS
from plankeeper.import_export.importer import ImportReport, import_file
from plankeeper.import_export.reader import ImportRow, RowError, UnreadableFileError
from plankeeper.import_export.registry import RESOURCES, Resource
from plankeeper.import_export.upsert import ImportCounts, InvalidRowsError
from plankeeper.note_types import store as note_type_store

MAX_LINES = 30_000
MAX_SECONDS = 30
MAX_RECORDS_SHOWN = 50  # records whose changes are shown
_MAX_BYTES = 60_000  # of all shown changes: the page stays below 100 KB
_MAX_LENGTH = 200  # characters of a value or of an error message


class RecordChanges(NamedTuple):
    """The name of a record that an import changes, and its changes."""

    name: str
    changes: list[FieldChange]


@dataclass(slots=True)
class ImportPreview:
    """The result of an import, or of its preview."""

    report: ImportReport
    changed: list[RecordChanges] = field(default_factory=list[RecordChanges])

    @property
    def more_changed(self) -> int:
        return max(0, self.report.counts.changed - len(self.changed))

    @property
    def more_errors(self) -> int:
        return self.report.error_count - len(self.report.errors)

    @property
    def has_changes(self) -> bool:
        return not self.report.rejected_lines and self.report.counts.created + self.report.counts.changed > 0


class _RollbackError(Exception):
    """Rolls back the savepoint of an import."""


async def preview_import(
    request: FormRequest, resource: str, content: bytes, *, commit: bool, notify: bool = False
) -> ImportPreview:
    """Imports a file. Without `commit`, or with invalid lines, nothing is written. Raises ValidationError for a file
    that cannot be read.
    """
    require_size(content)
    ctx = replace(request.write_context, notify=notify and commit, import_id=uuid7())
    preview = ImportPreview(ImportReport())
    timeout = asyncio.timeout(MAX_SECONDS)
    try:
        with request.import_limit:
            async with timeout, request.tx.savepoint():
                await _import_into(ctx, resource, content, preview, commit=commit)
    except _RollbackError:
        pass
    except UnreadableFileError as error:
        raise ValidationError(file=_truncate(str(error), 2000)) from None
    except TimeoutError:
        if not timeout.expired():
            raise
        raise ValidationError(
            file=f"takes longer than {MAX_SECONDS} seconds: ask the operator to run plankeeper import"
        ) from None
    preview.report.errors = [each._replace(message=_truncate(each.message)) for each in preview.report.errors]
    return preview


async def _import_into(
    ctx: WriteContext, resource: str, content: bytes, preview: ImportPreview, *, commit: bool
) -> None:
    """Raises _RollbackError for a preview, and for a file with invalid lines."""
    preview.report = await import_file(
        ctx, _resource(resource), io.BytesIO(content), CONSTRAINT_ERRORS, _ignore_progress, exclusive=False
    )
    if commit and not preview.report.rejected_lines:
        return
    updates = (
        await event_store.updates_by_import(ctx.tx, ctx.plan_manager_id, ctx.import_id, MAX_RECORDS_SHOWN)
        if ctx.import_id
        else []
    )
    preview.changed = _record_changes(updates, ctx.settings.time_zone)
    raise _RollbackError


def require_size(content: bytes) -> None:
    """Raises ValidationError for a file that is not text, is empty, or has too many lines."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValidationError(file="is encoded in UTF-16: save it as CSV UTF-8")
    if content.startswith(b"PK\x03\x04"):
        raise ValidationError(file="is a spreadsheet: save it as CSV UTF-8")
    if not content.removeprefix(b"\xef\xbb\xbf").strip():
        raise ValidationError(file="is empty")
    lines = content.count(b"\n") + content.count(b"\r") - content.count(b"\r\n")
    if lines > MAX_LINES:
        raise ValidationError(
            file=f"has more than {MAX_LINES:,} lines: split it, or ask the operator to run plankeeper import"
        )


def _resource(name: str) -> Resource:
    resource = RESOURCES[name]
    return replace(resource, upsert=_upsert_known_note_types) if name == "note-types" else resource


async def _upsert_known_note_types(ctx: WriteContext, lines: Sequence[ImportRow[Any]]) -> ImportCounts:
    """Imports note types with existing ids or without an id. The ids come from one sequence for all plan managers,
    which an import advances past the ids in its file, and no rollback resets it: only the operator's command may do so.
    """
    ids = [line.values.id for line in lines if isinstance(line.values.id, int)]
    known = {each.id for each in await note_type_store.get_many(ctx.tx, ctx.plan_manager_id, ids)}
    unknown = [line for line in lines if isinstance(line.values.id, int) and line.values.id not in known]
    if unknown:
        reason = "must be the id of a note type, or empty for a new one"
        raise InvalidRowsError([RowError(line.line_number, "id", reason) for line in unknown])
    return await RESOURCES["note-types"].upsert(ctx, lines)


def _record_changes(updates: list[Event], zone: ZoneInfo) -> list[RecordChanges]:
    """The records that change, limited by the size of the page."""
    records: list[RecordChanges] = []
    bytes_left = _MAX_BYTES
    for event in updates:
        changes = [
            FieldChange(_truncate(each.name), _truncate_optional(each.before), _truncate_optional(each.after))
            for each in field_changes(event, zone)
        ]
        name = _truncate(resource_name(event, before_change=True) or event.resource.id, 60)
        bytes_left -= (
            600
            + 2 * _escaped_size(name)
            + sum(300 + _escaped_size(each.name, each.before, each.after) for each in changes)
        )
        if bytes_left < 0:
            break
        records.append(RecordChanges(name, changes))
    return records


def _escaped_size(*texts: str | None) -> int:
    """The bytes that texts take in a page, where they are escaped."""
    return sum(len(escape(each or "").encode()) for each in texts)


def _truncate_optional(text: str | None) -> str | None:
    return text if text is None else _truncate(text)


def _truncate(text: str, max_length: int = _MAX_LENGTH) -> str:
    return text if len(text) <= max_length else text[:max_length] + "…"


def _ignore_progress(_lines: int) -> None:
    """The console shows no progress of an import."""
