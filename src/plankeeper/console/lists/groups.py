"""The groups of a list: a row for each with its sums, a chart, and their file."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from plankeeper.console.components.chart_geometry import BarList, Chart, Series
from plankeeper.console.components.charts import MONEY, Bar, StackedBar, bar_chart, bar_list, stacked_bar_chart
from plankeeper.console.components.record_picker import load_record_names
from plankeeper.console.lists.definition import Column, Format, Grouping, ListDefinition
from plankeeper.console.lists.query import ListPageQuery, ParsedFilters
from plankeeper.console.shell.routing import PageRequest
from plankeeper.core.dates import Month
from plankeeper.core.formatting import format_money
from plankeeper.core.ids import parse_uuid
from plankeeper.database.lists.groups import ListGroup
from plankeeper.resources.account_managers import store as account_manager_store

MAX_GROUPS = 100  # on the page, which adds up the others; the file has all
MAX_BARS = 12  # of a chart without months
MAX_MONTHS = 24  # of a chart


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group. `value` is that of a file: a date for a month. `url` is its list; null if no filter selects it."""

    label: str
    value: str | date
    url: str | None
    count: int
    sums: Sequence[Decimal]


@dataclass(slots=True)
class GroupTable:
    """The groups of a list with their total and their chart. `bars` are the groups if they aren't months."""

    definition: ListDefinition
    grouping: Grouping
    rows: Sequence[GroupRow]
    count: int
    sums: Sequence[Decimal]
    chart: Chart | None = None
    bars: BarList | None = None

    @property
    def summary(self) -> str:
        """`43 invoices · $31,204.10`."""
        return f"{self.definition.count_text(self.count)} · {format_money(self.sums[0])}"

    @property
    def has_bars(self) -> bool:
        return any(each.sums[0] for each in self.rows)


class Tab(NamedTuple):
    """A link, and whether it leads to the current page."""

    label: str
    url: str
    is_current: bool


def group_links(query: ListPageQuery) -> list[Tab]:
    """The choices of a list, and last the rows themselves if they are grouped; none if it can't be grouped."""
    choices = [(each.name, each.label) for each in query.definition.groupings]
    if query.group:
        choices.append(("", "No groups"))
    return [Tab(label, query.first_page(group=name).url(), name == query.group) for name, label in choices]


async def load_groups(
    request: PageRequest, query: ListPageQuery, filters: ParsedFilters, limit: int = MAX_GROUPS
) -> GroupTable:
    """The groups of a query that has a grouping: at most `limit` and one with all others."""
    definition = query.definition
    grouping = definition.find_grouping(query.group) or definition.groupings[0]
    found = await definition.table.groups(
        request.db,
        request.plan_manager_id,
        filters.values,
        grouping.name,
        limit,
        await definition.load_group_values(request),
    )
    labels = await grouping.load_labels(request, [each.key for each in found if each.key is not None])
    zone = request.settings.time_zone
    rows = [_row(query, grouping, each, labels, filters, zone, is_rest=each.place > limit) for each in found]
    sums = [sum((each.sums[index] for each in rows), Decimal(0)) for index in range(len(definition.group_amounts))]
    return GroupTable(definition, grouping, rows, sum(each.count for each in rows), sums)


def _row(
    query: ListPageQuery,
    grouping: Grouping,
    group: ListGroup,
    labels: Mapping[str, str],
    filters: ParsedFilters,
    zone: ZoneInfo,
    *,
    is_rest: bool,
) -> GroupRow:
    if is_rest:
        label = f"{group.groups:,} {'earlier' if grouping.is_month else 'others'}"
        return GroupRow(label, label, None, group.count, group.sums)
    params = grouping.params_of(group.key, filters.values, zone)
    url = _group_url(query, params) if params else None
    if group.key is None:
        return GroupRow(grouping.none_label, grouping.none_label, url, group.count, group.sums)
    if grouping.is_month:
        month = date.fromisoformat(group.key)
        return GroupRow(Month.of(month).title, month, url, group.count, group.sums)
    label = labels.get(group.key) or group.key
    return GroupRow(label, label, url, group.count, group.sums)


def _group_url(query: ListPageQuery, params: Mapping[str, str]) -> str | None:
    """The list of a group. None if another value of its filter is set, such as one that stands for several."""
    replaced = {name for each in query.definition.filters for name in each.params if {*each.params} & {*params}}
    if len(params) == 1 and any(query.filters.get(name, text) != text for name, text in params.items()):
        return None
    others = {name: text for name, text in query.filters.items() if name not in replaced}
    return query.first_page(filters=others | dict(params), group="").url()


def add_chart(table: GroupTable, today: date) -> None:
    """Months are bars over time, from the earliest; other groups are a list of bars, the longest first."""
    amounts = table.definition.group_amounts
    title = f"{amounts[0].label} by {table.grouping.label.lower()}"
    if not table.grouping.is_month:
        table.bars = bar_list(title, _listed_bars(table), unit=MONEY)
        return
    months = _charted_months(table, today)
    parts = [(index, Series(each.label, each.tone)) for index, each in enumerate(amounts) if each.tone]
    if parts and all(each.sums[index] >= 0 for _, each in months for index, _ in parts):
        stacks = [
            StackedBar(f"{month:%b %y}", [each.sums[index] for index, _ in parts], [None] * 9, each.url, each.label)
            for month, each in months
        ]
        table.chart = stacked_bar_chart(title, [each for _, each in parts], stacks, unit=MONEY, head="Month")
        return
    bars = [Bar(f"{month:%b %y}", each.sums[0], each.url, each.label) for month, each in months]
    table.chart = bar_chart(title, bars, unit=MONEY, head="Month")


def _charted_months(table: GroupTable, today: date) -> list[tuple[date, GroupRow]]:
    """The last MAX_MONTHS until the present one, with those of no rows: mistaken dates can be far in the future."""
    found = {each.value: each for each in table.rows if isinstance(each.value, date)}
    if not found:
        return []
    last = max((each for each in found if each <= today), default=max(found))
    nothing = [Decimal(0)] * len(table.definition.group_amounts)
    months = list[tuple[date, GroupRow]]()
    month = last
    while len(months) < MAX_MONTHS and month >= min(found):
        months.append((month, found.get(month) or GroupRow(Month.of(month).title, month, None, 0, nothing)))
        month = Month.of(month).previous.first
    return months[::-1]


def _listed_bars(table: GroupTable) -> list[Bar]:
    bars = [Bar(each.label, each.sums[0], each.url) for each in table.rows[:MAX_BARS]]
    rest = table.rows[MAX_BARS:]
    if rest:
        bars.append(Bar("All others", sum((each.sums[0] for each in rest), Decimal(0)), tone="muted"))
    return bars


class FileColumns(NamedTuple):
    """The columns of a file of groups, and the values of its rows."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]


def file_columns(table: GroupTable) -> FileColumns:
    """A row for each group, without the total: spreadsheets would add it up as well. Months are their first days."""
    kind: Format = "date" if table.grouping.is_month else "text"
    columns = [
        Column("group", table.grouping.label, kind),
        Column("count", table.definition.many.capitalize(), "text"),
        *(Column(each.name, each.label, "money") for each in table.definition.group_amounts),
    ]
    return FileColumns(columns, [(each.value, each.count, *each.sums) for each in table.rows])


# What most lists are grouped by.


def month_params(
    fields: tuple[str, str], params: tuple[str, str]
) -> Callable[[str | None, Mapping[str, Any], ZoneInfo], Mapping[str, str] | None]:
    """The days of a month that are also in the range that is set. `fields` are those of the SQL."""

    def params_of(key: str | None, values: Mapping[str, Any], zone: ZoneInfo) -> Mapping[str, str] | None:
        if key is None:
            return None
        first = date.fromisoformat(key)
        last = Month.of(first).last
        start, end = (values.get(name) for name in fields)
        first = max(first, start.astimezone(zone).date() if isinstance(start, datetime) else start or first)
        if isinstance(end, datetime):  # the beginning of the next day
            end = end.astimezone(zone).date() - timedelta(days=1)
        return dict(zip(params, (first.isoformat(), min(last, end or last).isoformat()), strict=True))

    return params_of


def one_param(
    name: str, none: Mapping[str, str] | None = None
) -> Callable[[str | None, Mapping[str, Any], ZoneInfo], Mapping[str, str] | None]:
    """The filter whose value is the key. `none` is the filter of rows without a key, if there is one."""

    def params_of(key: str | None, _values: Mapping[str, Any], _zone: ZoneInfo) -> Mapping[str, str] | None:
        return none if key is None else {name: key}

    return params_of


def fixed_labels(labels: Mapping[str, str]) -> Callable[[PageRequest, Sequence[str]], Awaitable[Mapping[str, str]]]:
    """The labels of keys that are always the same."""

    async def load_labels(_request: PageRequest, _keys: Sequence[str]) -> Mapping[str, str]:
        return labels

    return load_labels


async def provider_labels(request: PageRequest, keys: Sequence[str]) -> Mapping[str, str]:
    """The names of providers, by id."""
    ids = [found for each in keys if (found := parse_uuid(each))]
    return {str(id_): name for id_, name in (await load_record_names(request, [], ids)).items()}


async def account_manager_labels(request: PageRequest, keys: Sequence[str]) -> Mapping[str, str]:
    """The names of account managers, by id."""
    ids = [found for each in keys if (found := parse_uuid(each))]
    found = await account_manager_store.get_many(request.db, request.plan_manager_id, ids)
    return {str(each.id): each.name or "No name" for each in found}
