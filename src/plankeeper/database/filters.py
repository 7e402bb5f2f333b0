"""Filtered lists: the statements that read one page of ids, and the total, for any set of filters.

A list declares its filters once, the most selective first. Of the filters in a request, the first one in that order
leads: its condition stands in the statement as declared, and its index serves the page. Every other condition is
wrapped in `(…) is true`, which no index matches. The plan therefore depends neither on statistics nor on values.

Statements consist only of literals of this package: pyright proves that each one is a `LiteralString`. The same set of
filters always yields the same text, so each connection prepares it once.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from typing import LiteralString, NamedTuple, Protocol
from uuid import UUID

from msgspec import UNSET

from plankeeper.database.client import Executor
from plankeeper.database.statement_names import composed

# A table of literals, because an f-string that contains an integer is not a LiteralString.
_PARAMETERS: tuple[LiteralString, ...] = ("$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12")
_PAGE_PARAMETERS = 4  # the plan manager, the cursor, the limit and the offset precede the filters
_COUNT_PARAMETERS = 1  # the plan manager precedes the filters

_PAGE = "select id from {table} where {conditions} order by id limit $3 offset $4"
# Without `materialized`, PostgreSQL may walk the primary key and discard every row that does not match.
_MATERIALIZED_PAGE = """
    with matching as materialized (select id from {table} where {conditions})
    select id from matching order by id limit $3 offset $4
"""
# One page for each value, then the first page of those: otherwise PostgreSQL sorts all rows of all values.
_LATERAL_PAGE = """
    select matching.id
    from (select distinct unnest({values}::uuid[]) as id) choice
    cross join lateral (
        select id from {table} where {conditions} order by id limit $3::bigint + $4::bigint
    ) matching
    order by matching.id limit $3 offset $4
"""
_COUNT = "select count(*) from {table} where {conditions}"


class Filter(NamedTuple):
    """A condition on some fields of a query, with a `{}` for the value of each field in turn.

    `materialize`: the condition's index is not ordered by id, so a page collects all matching ids and sorts them.
    `each_value`: the condition for one value, `choice.id`, of an array: a page merges the pages of the values.
    """

    fields: tuple[str, ...]
    condition: LiteralString
    materialize: bool = False
    each_value: LiteralString | None = None


class PageQuery(Protocol):
    """The members that the query of every list has."""

    @property
    def start(self) -> str: ...
    @property
    def limit(self) -> int: ...
    @property
    def offset(self) -> int: ...


class FilteredList:
    """The SQL of a list: WHERE by the filters of the request and the cursor, ORDER BY id, LIMIT and OFFSET.

    `scope` is a condition on the rows of the table that always holds.
    """

    def __init__(self, table: LiteralString, filters: Sequence[Filter], scope: LiteralString | None = None) -> None:
        self.table: LiteralString = table
        self.filters = tuple(filters)
        self.scope: LiteralString | None = scope
        self.fields = tuple(dict.fromkeys(name for each in self.filters for name in each.fields))
        # Keyed by sets of declared fields, of which there are at most 64: the caches need no limit.
        self.page_statement = cache(self._compose_page)
        self.count_statement = cache(self._compose_count)

    async def page_ids(self, db: Executor, plan_manager_id: UUID, query: PageQuery) -> list[UUID]:
        """The ids of one page and one more, which shows whether another page follows."""
        names = self.used_fields(query)
        statement, values = self.page_statement(names), [getattr(query, name) for name in names]
        return await db.rows(UUID, statement, plan_manager_id, query.start, query.limit + 1, query.offset, *values)

    async def count(self, db: Executor, plan_manager_id: UUID, query: PageQuery) -> int:
        """The number of matching rows."""
        names = self.used_fields(query)
        statement, values = self.count_statement(names), [getattr(query, name) for name in names]
        return await db.one(int, statement, plan_manager_id, *values)

    def used_fields(self, query: PageQuery) -> tuple[str, ...]:
        """The fields that a query filters by, in the order of the statements' parameters."""
        return tuple(name for name in self.fields if getattr(query, name) is not UNSET)

    def filters_of(self, names: Sequence[str]) -> list[Filter]:
        """The filters that cover a set of fields, the leading one first; each field belongs to one filter."""
        remaining, filters = set(names), list[Filter]()
        for each in self.filters:
            if remaining.issuperset(each.fields):
                remaining.difference_update(each.fields)
                filters.append(each)
        return filters

    def statements(self) -> Iterator[tuple[tuple[str, ...], LiteralString, LiteralString]]:
        """For each set of fields that a query can use: the fields, the page's and the total's statement."""
        for size in range(len(self.fields) + 1):
            for names in combinations(self.fields, size):
                yield names, self.page_statement(names), self.count_statement(names)

    def _compose_page(self, names: tuple[str, ...]) -> LiteralString:
        statement = self._page_text(names)
        composed[statement] = f"{self.table}.page"
        return statement

    def _page_text(self, names: tuple[str, ...]) -> LiteralString:
        filters = self.filters_of(names)
        parameters = dict(zip(names, _PARAMETERS[_PAGE_PARAMETERS:], strict=False))
        if filters and filters[0].each_value:
            lead = filters[0]._replace(condition=filters[0].each_value)
            conditions = self._conditions([lead, *filters[1:]], parameters, "plan_manager_id = $1 and id > $2")
            return _LATERAL_PAGE.format(table=self.table, conditions=conditions, values=parameters[lead.fields[0]])
        template = _MATERIALIZED_PAGE if filters and filters[0].materialize else _PAGE
        conditions = self._conditions(filters, parameters, "plan_manager_id = $1 and id > $2")
        return template.format(table=self.table, conditions=conditions)

    def _compose_count(self, names: tuple[str, ...]) -> LiteralString:
        parameters = dict(zip(names, _PARAMETERS[_COUNT_PARAMETERS:], strict=False))
        conditions = self._conditions(self.filters_of(names), parameters, "plan_manager_id = $1")
        statement = _COUNT.format(table=self.table, conditions=conditions)
        composed[statement] = f"{self.table}.count"
        return statement

    def _conditions(
        self, filters: Sequence[Filter], parameters: dict[str, LiteralString], tenant: LiteralString
    ) -> LiteralString:
        conditions: list[LiteralString] = [tenant]
        if self.scope:
            conditions.append(self.scope)
        for position, each in enumerate(filters):
            values: list[LiteralString] = [parameters[name] for name in each.fields]
            condition = each.condition.format(*values)
            conditions.append(condition if position == 0 else "(" + condition + ") is true")
        return " and ".join(conditions)
