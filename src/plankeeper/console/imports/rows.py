"""The rows of an import as its pages show them: names, values before and after, problems."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from html import escape
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import Raw

from plankeeper.console.components.events import NAME_FIELDS, record_path
from plankeeper.console.components.labels import field_label
from plankeeper.core.formatting import format_date, truncate
from plankeeper.imports.schemas import Import, ImportedRow, Problem
from plankeeper.resources.registry import RESOURCES

PAGE_SIZE = 50
MAX_PAGE_BYTES = 55_000  # of the rows: the page with its assets stays below 100 KB
MAX_LENGTH = 200  # characters of a value or of a message
PREVIEW_CHANGES, MAX_PREVIEW_LENGTH = 3, 40  # changes of a row before it is opened, characters of a value
_HIDDEN = {"id", "created_at", "updated_at", "plan_manager_id", "user_id", "pm_profile_id", "state_management"}
_NAME_FIELDS = (*NAME_FIELDS, "participant_number")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_ROW_BYTES, _CHANGE_BYTES = 420, 110  # of markup


class ShownChange(NamedTuple):
    """A field of a record with its values before and after an import; null if there is none."""

    label: str
    before: str | None
    after: str | None
    is_edit: bool

    @property
    def text(self) -> str:
        """`Suburb Bondi`; `Suburb Box Hill → Bondi` of a changed record."""
        before, after = (truncate(each or "—", MAX_PREVIEW_LENGTH) for each in (self.before, self.after))
        return f"{self.label} {before} → {after}" if self.is_edit else f"{self.label} {after}"


class ShownProblem(NamedTuple):
    """A problem of a row, in words."""

    text: str
    is_warning: bool


class ShownRow(NamedTuple):
    """A row of an import. `name` is empty if the row has none.

    `is_confirmable` are the rows that seem to be about another person, whether they are included or not.
    """

    row: ImportedRow
    name: str
    url: str | None
    changes: list[ShownChange]
    problems: list[ShownProblem]
    is_confirmable: bool

    @property
    def preview(self) -> str:
        """The first problem, or the first changes, in a line."""
        if self.problems:
            return self.problems[0].text
        return " · ".join(each.text for each in self._first_changes)

    @property
    def more(self) -> int:
        """The number of problems and changes that aren't in the preview."""
        shown = 1 if self.problems else len(self._first_changes)
        return len(self.problems) + len(self.changes) - shown

    @property
    def _first_changes(self) -> list[ShownChange]:
        """Without the names of a new record, which the row begins with."""
        own = [each for each in self.changes if each.is_edit or (each.after or "") not in self.name]
        return (own or self.changes)[:PREVIEW_CHANGES]


def show_rows(record: Import, rows: Iterable[ImportedRow]) -> list[ShownRow]:
    """The first rows, as many as a page can show."""
    shown: list[ShownRow] = []
    size = 0
    for row in rows:
        each = _show_row(record, row)
        size += _ROW_BYTES + _escaped_size(each.name, each.preview, *(problem.text for problem in each.problems))
        size += sum(_CHANGE_BYTES + _escaped_size(*change[:3]) for change in each.changes)
        if size > MAX_PAGE_BYTES and shown:
            break
        shown.append(each)
    return shown


def record_url(resource: str, key: str | None) -> str | None:
    """The page of a record; null if it has none."""
    return record_path(RESOURCES[resource].kind, key) if key else None


def name_of(fields: Mapping[str, Any]) -> str:
    """The display name of a record."""
    full_name = " ".join(each for each in (fields.get("first_name"), fields.get("last_name")) if each)
    return truncate(full_name or next((str(fields[each]) for each in _NAME_FIELDS if fields.get(each)), ""), 60)


def _show_row(record: Import, row: ImportedRow) -> ShownRow:
    after, before = _fields(row.after), _fields(row.before)
    cells = _cell_fields(record, row.cells)
    problems = msgspec.json.decode(row.problems, type=list[Problem]) if row.problems else []
    exists = row.outcome != "rejected" and (row.outcome != "created" or record.state == "imported")
    is_unconfirmed = row.outcome == "unconfirmed"
    return ShownRow(
        row,
        name_of((before and {**after, **before}) or after or cells),
        record_url(record.resource, row.record_id) if exists else None,
        _changes(before, cells if is_unconfirmed else after),
        [ShownProblem(_problem_text(each), each.is_warning) for each in problems],
        is_unconfirmed or row.line_number in record.included_lines,
    )


def _problem_text(problem: Problem) -> str:
    """`State “XX”: must be one of …`."""
    value = f" “{truncate(problem.value, MAX_LENGTH)}”" if problem.value else ""
    field = f"{field_label(problem.field)}{value}: " if problem.field else ""
    return field + truncate(problem.message, MAX_LENGTH)


def _fields(raw: Raw | None) -> dict[str, Any]:
    return msgspec.json.decode(raw) if raw else {}


def _cell_fields(record: Import, cells: Sequence[str] | None) -> dict[str, str]:
    """The cells of a row by field, for the name of a row that has no record."""
    if not cells or not record.mapping:
        return {}
    return {field: cell.strip() for field, cell in zip(record.mapping, cells, strict=False) if field}


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[ShownChange]:
    """The changed fields of a record; of a new one, the fields that have a value."""
    names = list(before) if before else [name for name, value in after.items() if _has_value(value)]
    return [
        ShownChange(_label(name), _text(before.get(name)) if before else None, _text(after.get(name)), bool(before))
        for name in names
        if name not in _HIDDEN
    ]


def _has_value(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(cast("dict[str, Any]", value).get("id"))
    return value not in (None, False, "", [])


def _label(name: str) -> str:
    return field_label({"account_manager": "account_manager_id"}.get(name, name))


def _text(value: Any) -> str | None:
    """A value for readers."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return _text(fields.get("name") or fields.get("label"))
    if isinstance(value, list):
        items = cast("list[Any]", value)
        texts = [_text(each.get("label") if isinstance(each, dict) else each) for each in items]  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        return truncate(", ".join(filter(None, texts)), MAX_LENGTH) or f"{len(items)} lines"
    text = str(value)
    return format_date(date.fromisoformat(text)) if _DATE.fullmatch(text) else truncate(text, MAX_LENGTH)


def _escaped_size(*texts: str | None) -> int:
    """The bytes that texts take in a page, where they are escaped."""
    return sum(len(escape(each or "").encode()) for each in texts)
