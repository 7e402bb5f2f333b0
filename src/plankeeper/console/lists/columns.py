"""The columns of a list: their values on the page and in a CSV file."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast
from zoneinfo import ZoneInfo

from plankeeper.console.labels import humanize

# The format of a column's values on a page: see `macros/list.html`.
Format = Literal[
    "record",
    "text",
    "date",
    "datetime",
    "money",
    "email",
    "phone",
    "ndis_number",
    "abn",
    "tags",
    "yes_no",
    "claim_status",
    "approval_status",
    "participant_status",
    "plan_end",
    "link",
    "record_time",
    "code",
    "request_status",
    "request_id",
    "delivery_status",
]
Names = Mapping[Any, Any]  # of the records that rows refer to, by id; other values of them in files


class Link(NamedTuple):
    """A value that leads to another record; the path is null if the record doesn't exist."""

    text: str
    path: str | None


class Checked(NamedTuple):
    """A text with a message about an invalid value; null if it is valid."""

    text: str
    problem: str | None


class Column(NamedTuple):
    """A column, which holds the row's field `name` or, if set, what `read` returns.

    `sort` is the name of the list's sort, if the column has one. `is_grouped`: the sort keeps the rows of one record
    together, in the order of the ids of these records, not of their names.
    """

    name: str
    label: str
    format: Format
    read: Callable[[Any, Names], Any] | None = None
    sort: str | None = None
    is_default: bool = True
    is_grouped: bool = False

    def value(self, row: Any, names: Names) -> Any:
        """The value of the column in a row."""
        return self.read(row, names) if self.read else getattr(row, self.name)

    @property
    def is_amount(self) -> bool:
        return self.format == "money"

    @property
    def css_class(self) -> str:
        """The class of its cells; empty for short values, which are never broken. `w`: texts, which may wrap."""
        if self.name == "created_at":
            return "received"
        wrapping = dict.fromkeys(("text", "email"), "w")  # and those with links and tags
        return {"money": "amount", "code": "path", "request_id": "one-line", **wrapping}.get(self.format, "")


def select_columns(columns: Sequence[Column], names: Sequence[str] | None) -> list[Column]:
    """The columns with these names, in the list's order; the first one is always shown. Null: the default columns."""
    return [
        each
        for position, each in enumerate(columns)
        if position == 0 or (each.is_default if names is None else each.name in names)
    ]


def csv_text(column: Column, value: Any, zone: ZoneInfo) -> str:
    """A value in a CSV file, in a form that spreadsheets recognise; a status as on the page.

    Dates are `2026-10-31`, times of the zone `2026-10-31 17:42`, numbers plain.
    """
    if isinstance(value, str) and column.format in ("claim_status", "approval_status"):
        value = humanize(value)
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case Link() | Checked():
            return value.text
        case datetime():
            seconds = ":%S" if column.format == "record_time" else ""
            return f"{value.astimezone(zone):%Y-%m-%d %H:%M{seconds}}"
        case list():
            items = cast("list[str]", value)
            return "; ".join(items)
        case _:
            return str(value)
