"""The declaration of a list: its rows, columns, filters, built-in views and bulk actions.

Rows are stored records, or come from a source with its own cursors, newest first: the activity, API requests,
deliveries of webhooks.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Protocol, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.console.components.chart_geometry import Tone
from plankeeper.console.components.fields import FieldKind, FormField
from plankeeper.console.components.labels import field_label, humanize
from plankeeper.console.lists.filters import ListFilter
from plankeeper.console.shell.routing import PREFIX, PageRequest, RequiredRole
from plankeeper.core.context import AccessedKind, ListDisclosed
from plankeeper.core.xlsx import Cell
from plankeeper.database.client import Executor
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import SortOrder

# The format of a column's values on a page: see `lists/list_macros.html`.
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
    """A link to another record; the path is null if the record doesn't exist."""

    text: str
    path: str | None


class Checked(NamedTuple):
    """A text with a message about an invalid value; null if it is valid."""

    text: str
    problem: str | None


class Column(NamedTuple):
    """A column, which holds the row's field `name` or, if set, what `read` returns, or what is at the `path` of a field
    in a row, such as `actor.id`.

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
    path: str = ""

    def value(self, row: Any, names: Names) -> Any:
        """The value of the column in a row."""
        return self.read(row, names) if self.read else attrgetter(self.path or self.name)(row)

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


_FORMATS: Mapping[FieldKind, Format] = {
    "email": "email",
    "phone": "phone",
    "ndis_number": "ndis_number",
    "abn": "abn",
    "date": "date",
    "checkbox": "yes_no",
}


def field_column(
    field: FormField,
    read: Callable[[Any, Names], Any] | None = None,
    *,
    sort: str | None = None,
    is_default: bool = True,
) -> Column:
    """The column of a field of the records' form."""
    return Column(field.name, field_label(field.name), _FORMATS.get(field.kind, "text"), read, sort, is_default)


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


def xlsx_cell(column: Column, value: Any, zone: ZoneInfo) -> Cell:
    """A value in an XLSX file: numbers, dates and times of the zone as such, others as in a CSV file."""
    match value:
        case bool():
            return csv_text(column, value, zone)
        case datetime():
            return value.astimezone(zone).replace(tzinfo=None)
        case date() | int() | Decimal():
            return value
        case _:
            return csv_text(column, value, zone)


class PagePosition(NamedTuple):
    """The start of a page of a list: after a row, before one, or at the beginning."""

    size: int
    after: str = ""
    before: str = ""
    is_ascending: bool = False  # whether the oldest rows come first, in lists that have this order

    @property
    def is_backward(self) -> bool:
        return bool(self.before) and not self.after

    @property
    def start(self) -> str:
        return self.after or self.before


@dataclass(slots=True)
class SourcePage:
    """The rows of a page, with the cursors of the pages before and after it; empty where there is none."""

    rows: Sequence[Any]
    previous: str = ""
    next: str = ""


class SourceCount(NamedTuple):
    """The number of matching rows; null for more than are counted. `text` says it if the number is not exact."""

    number: int | None
    text: str = ""


class RowSource(Protocol):
    """Reads the rows of a list, newest first, with the values of its filters."""

    async def read_page(self, request: PageRequest, values: Mapping[str, Any], place: PagePosition) -> SourcePage: ...

    async def count(self, request: PageRequest, values: Mapping[str, Any]) -> SourceCount: ...

    def read_batches(self, request: PageRequest, values: Mapping[str, Any]) -> AsyncIterator[Sequence[Any]]:
        """All rows, for a file."""
        ...


def cut_source_page(
    place: PagePosition, found: Sequence[Any], first_cursor: Callable[[Any], str], last_cursor: Callable[[Any], str]
) -> SourcePage:
    """The page of rows that were found from its start on, nearest first; one more shows that others follow.

    The cursors are those of a row for the pages before and after it.
    """
    rows = list(found[: place.size])
    if place.is_backward:
        rows.reverse()
    has_more = len(found) > place.size
    has_previous, has_next = (has_more, True) if place.is_backward else (bool(place.start), has_more)
    page = SourcePage(rows)
    if rows and has_previous:
        page.previous = first_cursor(rows[0])
    if rows and has_next:
        page.next = last_cursor(rows[-1])
    return page


MAX_COUNTED = 10_000  # rows of a list: counting them takes about 10 ms


class BuiltInView(NamedTuple):
    """A view that every plan manager has: its name, its filters, and its order unless it's that of the list."""

    name: str
    params: Mapping[str, str]
    sort: str = ""


class ListButton(NamedTuple):
    """A link beside the heading, for accounts with a role. The first one is also offered where no row matches."""

    label: str
    path: str
    role: str


class BulkAction(NamedTuple):
    """An action on several rows at once, for accounts with a role: its page, which gets their ids, and its label."""

    path: str
    label: str
    role: str = "manager"


def _never(_row: Any) -> bool:
    return False


class Grouping(NamedTuple):
    """What the rows of a list can be grouped by: a key of its SQL with the same `name`.

    `params_of` returns the filters that select a group, given its key and the values of the filters that are set; null
    if no filter does. `load_labels` returns the names of keys; others are shown as they are. `none_label` is that of
    rows without a key. The keys of months are their first days, and their groups are shown over time.
    """

    name: str
    label: str
    params_of: Callable[[str | None, Mapping[str, Any], ZoneInfo], Mapping[str, str] | None]
    load_labels: Callable[[PageRequest, Sequence[str]], Awaitable[Mapping[str, str]]]
    none_label: str
    is_month: bool = False


class GroupAmount(NamedTuple):
    """A sum of groups, which has the same `name` in the list's SQL. `tone` is for one that is a part of the bars."""

    name: str
    label: str
    tone: Tone | None = None


async def no_group_values(_request: PageRequest) -> Mapping[str, object]:
    """For lists whose keys and sums have no parameters."""
    return {}


async def no_rows(_db: Executor, _plan_manager_id: UUID, _ids: Sequence[Any]) -> Sequence[Any]:
    """For lists whose rows aren't read by their ids."""
    return []


async def no_names(_request: PageRequest, _rows: Sequence[Any]) -> Names:
    """For lists whose rows don't refer to other records."""
    return {}


@dataclass(frozen=True, slots=True)
class ListDefinition:
    """A list of the console.

    `rows` are stored records with their filters and sorts, or a source that is read newest first. `get_rows` returns
    the records with some ids; `load_names` the names of the records that rows refer to. `sort` is the
    default order, `empty` the text of a list without rows and filters. `is_past` selects rows that are shown in grey,
    with `past_label`. `accessed_kind` is the kind of record that rows disclose; if they disclose others,
    `list_disclosed` lists their ids. `exact_count` returns the number of rows for values of the filters, if it is
    known without counting. `role` is required for the page, `download_role` for the file.
    """

    kind: str
    title: str
    one: str
    many: str
    rows: FilteredList | RowSource
    columns: Sequence[Column]
    filters: Sequence[ListFilter]
    sort: str
    empty: str
    get_rows: Callable[[Executor, UUID, Sequence[Any]], Awaitable[Sequence[Any]]] = no_rows
    page_size: int | None = None  # the rows of a page, unless a person asks for more; None: as usual
    buttons: Sequence[ListButton] = ()
    views: Sequence[BuiltInView] = ()
    actions: Sequence[BulkAction] = ()
    load_names: Callable[[PageRequest, Sequence[Any]], Awaitable[Names]] = no_names
    is_past: Callable[[Any], bool] = _never
    past_label: str = ""
    accessed_kind: AccessedKind | None = None
    list_disclosed: ListDisclosed | None = None
    exact_count: Callable[[Executor, UUID, Mapping[str, object]], Awaitable[int | None]] | None = None

    groupings: Sequence[Grouping] = ()
    group_amounts: Sequence[GroupAmount] = ()  # in the order of the SQL; the first one is that of the chart
    load_group_values: Callable[[PageRequest], Awaitable[Mapping[str, object]]] = no_group_values

    is_table: bool = True  # otherwise a template shows the rows, and the columns are those of the file
    page_path: str = ""  # if the list isn't at `/console/` and its kind
    owner_id: UUID | None = None  # of the record whose list it is: such a list has no saved views
    section: str = ""  # of the menu, if it isn't the kind
    role: RequiredRole = "viewer"
    download_role: RequiredRole = "viewer"
    file_columns: Sequence[Column] = ()  # that each file has, whichever columns the page shows
    load_file_names: Callable[[PageRequest, Sequence[Any]], Awaitable[Names]] | None = None  # if files need more

    @property
    def form_value(self) -> str:
        """The value of the list in forms: its kind, with the id of the record whose list it is."""
        return f"{self.kind}.{self.owner_id}" if self.owner_id else self.kind

    @property
    def path(self) -> str:
        return self.page_path or f"{PREFIX}/{self.kind}"

    @property
    def table(self) -> FilteredList:
        """The stored records of the list; raises TypeError for a list with a source."""
        if not isinstance(self.rows, FilteredList):
            raise TypeError(f"the list {self.kind} has no stored records")
        return self.rows

    def record_path(self, row_id: object) -> str:
        return f"{self.path}/{row_id}"

    @property
    def params(self) -> tuple[str, ...]:
        """The parameters of all filters."""
        return tuple(name for each in self.filters for name in each.params)

    @property
    def sorts(self) -> set[str]:
        """The sorts of the columns, and that of the list."""
        return {each.sort for each in self.columns if each.sort} | {parse_sort(self.sort).name}

    def find_grouping(self, name: str) -> Grouping | None:
        return next((each for each in self.groupings if each.name == name), None)

    def disclosed(self, rows: Sequence[Any]) -> Mapping[AccessedKind, Sequence[UUID]]:
        """The ids of the records that rows disclose, by kind."""
        if self.list_disclosed:
            return self.list_disclosed(rows)
        return {self.accessed_kind: [each.id for each in rows]} if self.accessed_kind else {}

    def count_text(self, count: int) -> str:
        """`43 invoices`."""
        return f"{count:,} {self.one if count == 1 else self.many}"


def parse_sort(text: str) -> SortOrder:
    """The order of `-total` or `total`."""
    return SortOrder(text.removeprefix("-"), text.startswith("-"))
