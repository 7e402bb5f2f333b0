"""The page of a list: the values for the template `list.html`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple

from plankeeper.console.components.record_picker import RecordPicker
from plankeeper.console.lists.definition import MAX_COUNTED, BuiltInView, Column, ListDefinition, Names, select_columns
from plankeeper.console.lists.filters import (
    DateRangeFilter,
    ListFilter,
    ParsedFilter,
    RecordFilter,
)
from plankeeper.console.lists.groups import GroupTable, Tab, add_chart, group_links, load_groups
from plankeeper.console.lists.query import (
    ListPageQuery,
    ParsedFilters,
    page_sizes,
    parse_filters,
    parse_list_query,
)
from plankeeper.console.lists.reading import ListReader, RowsPage, read_source_page, record_url
from plankeeper.console.lists.saved_views import DENSITIES, ColumnChoice, ListExtras, column_choices, load_extras
from plankeeper.console.lists.selection import MAX_MATCHING
from plankeeper.console.shell.routing import HtmlPage, PageRequest
from plankeeper.core.formatting import format_money
from plankeeper.database.lists.filtered_list import FilteredList


class Chip(NamedTuple):
    """A filter that is set, and the list without it."""

    text: str
    remove_url: str


class Header(NamedTuple):
    """The head of a column; `url` sorts by it, `direction` is that of a list that is sorted by it."""

    column: Column
    url: str | None
    direction: str | None


class Choice(NamedTuple):
    """A choice of a filter, with the address of the list that it filters."""

    name: str
    detail: str
    url: str


class FilterField(NamedTuple):
    """A filter in the form. `texts` are those of its parameters, `errors` its messages.

    `choices` are the records to choose from, each a link. `picker` is the field of a record. `options` are the values
    of a choice, or the periods of a range of dates, with their labels.
    """

    filter: ListFilter
    texts: Sequence[str]
    errors: dict[str, str]
    choices: Sequence[Choice] = ()
    picker: RecordPicker | None = None
    options: Mapping[str, str] = MappingProxyType({})


class ListRow(NamedTuple):
    """A row: its id and page, its values by column, and whether it is shown in grey."""

    id: Any
    url: str
    cells: Sequence[Any]
    is_past: bool
    source: Any  # the row as read


@dataclass(slots=True)
class ListPage:
    """The values of the page. `count` is null for more rows than are counted; `amount` is their sum.

    `groups` is null where the rows themselves are shown.
    """

    definition: ListDefinition
    query: ListPageQuery
    fields: Sequence[FilterField]
    headers: Sequence[Header]
    chips: Sequence[Chip]
    tabs: Sequence[Tab]
    sizes: Sequence[Tab]
    rows: Sequence[ListRow]
    count: int | None
    amount: Decimal | None
    position: int | None
    previous_url: str | None
    next_url: str | None
    has_errors: bool
    saved: ListExtras
    read_at: datetime
    count_text: str = ""
    can_download: bool = True
    groups: GroupTable | None = None

    @property
    def is_shown(self) -> bool:
        """Whether there are rows, here or on a neighbouring page, or groups."""
        return bool(self.rows or self.next_url or self.previous_url or (self.groups and self.groups.rows))

    @property
    def group_links(self) -> Sequence[Tab]:
        return group_links(self.query)

    @property
    def summary(self) -> str:
        """`43 invoices · $31,204.10`."""
        if self.groups:
            return self.groups.summary
        if self.count_text:
            return self.count_text
        if self.count is None:
            return f"More than {self.definition.count_text(MAX_COUNTED)}"
        text = self.definition.count_text(self.count)
        return text if self.amount is None else f"{text} · {format_money(self.amount)}"

    @property
    def can_select_all(self) -> bool:
        return self.count is not None and self.count <= MAX_MATCHING

    @property
    def max_matching_text(self) -> str:
        return self.definition.count_text(MAX_MATCHING)

    @property
    def column_choices(self) -> Sequence[ColumnChoice]:
        return column_choices(self.definition, self.saved.settings)

    @property
    def densities(self) -> Mapping[str, str]:
        return DENSITIES

    @property
    def csv_url(self) -> str:
        """The file of the list."""
        return self.query.first_page().url(".csv")

    @property
    def xlsx_url(self) -> str:
        return self.query.first_page().url(".xlsx")

    @property
    def clear_url(self) -> str:
        """The list without filters."""
        return self.query.first_page(filters={}).url()

    @property
    def position_text(self) -> str | None:
        """`51–93 of 93`; null where all rows are on the page, and deep in a list that isn't counted."""
        if self.position is None or not self.rows or (self.count is not None and self.count <= len(self.rows)):
            return None
        last = self.position + len(self.rows) - 1
        return f"{self.position:,}–{last:,}" + ("" if self.count is None else f" of {self.count:,}")


async def show_list(
    request: PageRequest, definition: ListDefinition, template: str = "lists/list.html", **context: Any
) -> HtmlPage:
    """The page of a list. If a filter is invalid, no rows are shown, and the message is beside its field.

    `template` extends `list.html` and has more values from `context`.
    """
    shown = await load_list(request, definition)
    return HtmlPage(template, {"list": shown, **context}, 422 if shown.has_errors else 200)


async def load_list(request: PageRequest, definition: ListDefinition) -> ListPage:
    """The values of a list's page. Errors of its filters are added to the errors of the request."""
    query = parse_list_query(definition, request.query)
    query, filters = await parse_filters(request, query)
    saved = await load_extras(request, query)
    columns = select_columns(definition.columns, saved.settings.columns)
    groups = await _read_groups(request, query, filters) if query.group and not filters.errors else None
    page = RowsPage() if filters.errors or groups else await _read_rows(request, query, filters)
    request.errors = {**request.errors, **filters.errors}
    request.record_disclosed(definition.disclosed(page.rows), query.recorded_params)
    names = await definition.load_names(request, page.rows)
    return ListPage(
        definition=definition,
        query=query,
        fields=[_field(query, each, filters.by_name[each.name]) for each in definition.filters],
        headers=[_header(query, each) for each in columns],
        chips=_chips(query, filters),
        tabs=_tabs(query),
        sizes=[
            Tab(str(each), query.first_page(size=each).url(), each == query.size)
            for each in page_sizes(query.definition)
        ],
        rows=[_row(query, each, columns, names) for each in page.rows],
        count=page.count,
        amount=page.amount,
        position=page.position,
        previous_url=page.previous.url() if page.previous else None,
        next_url=page.next.url() if page.next else None,
        has_errors=bool(filters.errors),
        saved=saved,
        read_at=datetime.now(request.settings.time_zone),
        count_text=page.count_text,
        can_download=request.has_role(definition.download_role) and request.role_details.can_download,
        groups=groups,
    )


async def _read_groups(request: PageRequest, query: ListPageQuery, filters: ParsedFilters) -> GroupTable:
    groups = await load_groups(request, query, filters)
    add_chart(groups, request.today)
    return groups


async def _read_rows(request: PageRequest, query: ListPageQuery, filters: ParsedFilters) -> RowsPage:
    rows = query.definition.rows
    if not isinstance(rows, FilteredList):
        return await read_source_page(request, rows, query, filters.values)
    page = await ListReader(request.db, request.plan_manager_id, query, filters.values).read_page()
    page.count = await _exact_count(request, query, filters, page)
    return page


async def _exact_count(
    request: PageRequest, query: ListPageQuery, filters: ParsedFilters, page: RowsPage
) -> int | None:
    """The number of rows; for more than are counted, the one that is stored, if there is one."""
    exact_count = query.definition.exact_count
    if page.count is not None or exact_count is None:
        return page.count
    return await exact_count(request.db, request.plan_manager_id, filters.values)


def _field(query: ListPageQuery, each: ListFilter, parsed: ParsedFilter) -> FilterField:
    texts = [query.filters.get(name, "") for name in each.params]
    choices, options = list[Choice](), parsed.choices
    if isinstance(each, DateRangeFilter):
        options = {name: preset.label for name, preset in each.presets.items()}
    if isinstance(each, RecordFilter):
        candidates = (
            [(found.id, found.label, found.detail) for found in parsed.picker.candidates] if parsed.picker else []
        )
        constants = [(name, label, "") for name, (label, _) in each.choices.items()]
        choices += [
            Choice(name, detail, _with(query, each, {each.name: value}).url())
            for value, name, detail in (*candidates, *constants)
        ]
    return FilterField(each, texts, parsed.errors, choices, parsed.picker, options)


def _with(query: ListPageQuery, each: ListFilter, params: dict[str, str]) -> ListPageQuery:
    """The list with one filter set to other values."""
    others = {name: text for name, text in query.filters.items() if name not in each.params}
    return query.first_page(filters=others | params)


def _header(query: ListPageQuery, column: Column) -> Header:
    """A column is first sorted as its values are usually looked for: amounts and times from the highest."""
    if column.sort is None:
        return Header(column, None, None)
    order = query.order
    if order.name == column.sort:
        sort = column.sort if order.descending else f"-{column.sort}"
        direction = "other" if column.is_grouped else "descending" if order.descending else "ascending"
        return Header(column, query.first_page(sort=sort).url(), direction)
    is_descending = column.format in ("money", "date", "datetime")
    return Header(column, query.first_page(sort=f"-{column.sort}" if is_descending else column.sort).url(), None)


def _chips(query: ListPageQuery, filters: ParsedFilters) -> list[Chip]:
    return [
        Chip(chip, query.without(*each.params).url())
        for each in query.definition.filters
        if (chip := filters.by_name[each.name].chip)
    ]


def _tabs(query: ListPageQuery) -> list[Tab]:
    views = [BuiltInView("All", {}), *query.definition.views]
    return [
        Tab(
            each.name,
            query.first_page(filters=each.params, sort=each.sort or query.definition.sort).url(),
            dict(query.filters) == dict(each.params),
        )
        for each in views
    ]


def _row(query: ListPageQuery, row: Any, columns: Sequence[Column], names: Names) -> ListRow:
    values = [each.value(row, names) for each in columns] if query.definition.is_table else []
    return ListRow(row.id, record_url(query, row.id), values, query.definition.is_past(row), row)
