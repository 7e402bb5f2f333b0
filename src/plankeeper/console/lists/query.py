"""The query of a list's page: filters, order, page size and cursor, and the URLs of other pages of the list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from plankeeper.console.components.pagination import with_query
from plankeeper.console.lists.definition import ListDefinition, parse_sort
from plankeeper.console.lists.filters import FilterContext, ParsedFilter
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import PageRequest
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import SortOrder
from plankeeper.resources.viewer_limits import LIMIT, values_of

PAGE_SIZES: Sequence[int] = (50, 100)


@dataclass(frozen=True, slots=True)
class ListPageQuery:
    """`filters` has the texts of the filters that are set; `after` and `before` are encrypted cursors.

    `group` is the name of what the rows are grouped by; empty for the rows themselves.
    """

    definition: ListDefinition
    filters: Mapping[str, str]
    sort: str
    size: int
    after: str = ""
    before: str = ""
    group: str = ""

    @property
    def order(self) -> SortOrder:
        return parse_sort(self.sort)

    @property
    def params(self) -> dict[str, str]:
        """The parameters without the cursor and without default values."""
        params = dict(self.filters)
        if self.sort != self.definition.sort:
            params["sort"] = self.sort
        if self.size != page_sizes(self.definition)[0]:
            params["size"] = str(self.size)
        if self.group:
            params["group"] = self.group
        return params

    @property
    def recorded_params(self) -> dict[str, str]:
        """The parameters for the access log."""
        return {"list": self.definition.kind, **self.params}

    def url(self, suffix: str = "") -> str:
        """The path of this page; `suffix` is `.csv` or `.xlsx` for the file."""
        cursor = {"after": self.after} if self.after else {"before": self.before}
        return with_query(self.definition.path + suffix, self.params | cursor)

    @property
    def text(self) -> str:
        """The query as text, without a question mark."""
        return self.url().partition("?")[2]

    def first_page(self, **changes: Any) -> "ListPageQuery":
        """The same list from its beginning, with other filters, another order or another size."""
        return replace(self, **{"after": "", "before": "", **changes})

    def without(self, *names: str) -> "ListPageQuery":
        """The same list without some filters."""
        return self.first_page(filters={name: text for name, text in self.filters.items() if name not in names})


def page_sizes(definition: ListDefinition) -> Sequence[int]:
    """The numbers of rows that a page can have, the default first."""
    return (definition.page_size, *PAGE_SIZES) if definition.page_size else PAGE_SIZES


def parse_list_query(definition: ListDefinition, query: Form) -> ListPageQuery:
    """The query of a request. An unknown sort, size and group are ignored; filters are checked later."""
    filters = {name: text for name in definition.params if (text := query.text(name))}
    sort, size, group = query.text("sort"), query.text("size"), query.text("group")
    sizes = page_sizes(definition)
    return ListPageQuery(
        definition,
        filters,
        sort if sort.removeprefix("-") in definition.sorts else definition.sort,
        int(size) if size in map(str, sizes) else sizes[0],
        query.text("after"),
        query.text("before"),
        group if definition.find_grouping(group) else "",
    )


@dataclass(slots=True)
class ParsedFilters:
    """All filters of a request: by name, their values for the SQL, and the errors by parameter."""

    by_name: dict[str, ParsedFilter] = field(default_factory=dict[str, ParsedFilter])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    errors: dict[str, str] = field(default_factory=dict[str, str])


async def parse_filters(request: PageRequest, query: ListPageQuery) -> tuple[ListPageQuery, ParsedFilters]:
    """Parse the filters of a query, relative to today in the time zone of the console.

    The query is returned with the parameters that links have: a record is named by its id.
    """
    context = FilterContext(request, request.today)
    limit = limit_values(request, query.definition)
    parsed, filters = ParsedFilters(), dict[str, str]()
    for each in query.definition.filters:
        found = await each.parse(query.filters, context)
        parsed.by_name[each.name] = found
        parsed.values |= found.values
        parsed.errors |= found.errors
        own = {name: text for name in each.params if (text := query.filters.get(name))}
        filters |= own if found.params is None else found.params
    parsed.values |= limit
    return replace(query, filters=filters), parsed


def limit_values(request: PageRequest, definition: ListDefinition) -> dict[str, object]:
    """The values of the filter that limits an account's lists. Lists of other records than people's have none."""
    rows = definition.rows
    has_limit = isinstance(rows, FilteredList) and LIMIT in rows.filters
    return values_of(request.participants_of) if has_limit else {}
