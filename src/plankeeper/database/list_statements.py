"""The statements of filtered lists: one page of ids, the total and the summary, for any set of filters.

A list declares its filters once, the most selective first. Of the filters in a request, the first one in that order
leads: its condition is in the statement as declared, and its index serves the page. Every other condition is
wrapped in `(…) is true`, which no index matches. The plan therefore depends neither on statistics nor on values.

Statements consist only of literals of this package: pyright proves that each one is a `LiteralString`. The same set of
filters always yields the same text, so each connection prepares it once.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import LiteralString, NamedTuple

from plankeeper.database.connections import name_composed
from plankeeper.database.sorting import (
    AdaptiveConditions,
    Sort,
    SortedPage,
    compose_adaptive,
    compose_count_before,
    compose_filtered,
    compose_index_walk,
)

# Parameters by their numbers, put together from literals: an f-string that contains an integer is not a LiteralString.
_DIGITS: tuple[LiteralString, ...] = ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
_TENS: tuple[LiteralString, ...] = ("", "1", "2", "3")
_PARAMETERS: list[LiteralString] = ["$" + tens + ones for tens in _TENS for ones in _DIGITS]
_PAGE_PARAMETERS = 4  # the plan manager, the cursor, the limit and the offset precede the filters
_COUNT_PARAMETERS = 1  # the plan manager precedes the filters
_SUMMARY_PARAMETERS = 2  # the plan manager and the limit precede the filters
_SORTED_PARAMETERS = 3  # the plan manager, the limit and the offset precede the start and the filters
# The value and the id that a sorted page starts after. A row without a value has only an id.
_START_PARAMETERS: Mapping[LiteralString, tuple[LiteralString, ...]] = {
    "beginning": (),
    "value": ("$4", "$5"),
    "null": ("$4",),
}
_COUNT_BEFORE_PARAMETERS: Mapping[LiteralString, tuple[LiteralString, ...]] = {"value": ("$2", "$3"), "null": ("$2",)}
MAX_COMPOSED = 1000  # statements of one list that are kept; others are composed again

_PAGE = "select id from {table} where {conditions} order by id limit $3 offset $4"
# Without the inner offset, PostgreSQL may scan the primary key and discard every row that does not match.
_COLLECTED_PAGE = """
    select id from (select id from {table} where {conditions} offset 0) matching order by id limit $3 offset $4
"""
# One page for each value, then the first page of those: otherwise PostgreSQL sorts all rows of all values.
_LATERAL_PAGE = """
    select matching.id
    from (select distinct unnest({values}::{value_type}[]) as id) choice
    cross join lateral (
        select id from {table} where {conditions} order by id
        limit least($3::numeric + $4, 9223372036854775807)::bigint -- the sum of both could exceed a bigint
    ) matching
    order by matching.id limit $3 offset $4
"""
_COUNT = "select count(*) from {table} where {conditions}"
# Likewise: not knowing how many values there are, PostgreSQL would read the whole table.
_LATERAL_COUNT = """
    select coalesce(sum(matching.amount), 0)::bigint
    from (select distinct unnest({values}::{value_type}[]) as id) choice
    cross join lateral (select count(*) as amount from {table} where {conditions}) matching
"""
# A source may repeat a row.
_DISTINCT_PAGE = """
    with matching as materialized (select distinct id from {table} where {conditions})
    select id from matching order by id limit $3 offset $4
"""
# The limit bounds the work for a list that matches most rows.
_SUMMARY = """
    select count(*), sum(amount) as total
    from (select {amount} as amount from {table} where {conditions}{order} limit $2) counted
"""
# One filter alone is usually counted in its index, without reading the rows. The sum, which reads them, is only
# computed for as many rows as are counted.
_COUNT_BEFORE_SUM = """
    select count, case when count < $2 then (
            select sum(amount) from (select {amount} as amount from {table} where {conditions}{order} limit $2) summed
        ) end as total
    from (select count(*) from (select from {table} where {conditions}{order} limit $2) matching) counted
"""
_DISTINCT_COUNT = "select count(distinct id) from {table} where {conditions}"


class Filter(NamedTuple):
    """A condition on some fields of a query, with a `{}` for the value of each field in turn.

    `materialize`: the condition's index is not ordered by id, so a page collects all matching ids and sorts them.
    `each_value`: the condition for one value, `choice.id`, of an array of `value_type`: a page merges the pages of the
    values.
    `order`: the column that the condition's index is ordered by. A summary reads the rows in this order: not knowing
    how narrow a range is, PostgreSQL might read all rows of another index. A scan in this order uses the condition.
    `amount`: the expression that a summary adds up for the rows of this condition, if it is less than for other rows.
    `is_narrow`: few rows match any value, so a sorted page always collects them.
    `alternatives`: conditions that make up the condition with `or`. Each has an index of its own, so the rows of each
    are read apart, which may repeat a row. Its filter must be declared first.
    `is_search`: the condition costs much for each row, so a page of a search with many matches scans the sort's index.
    """

    fields: tuple[str, ...]
    condition: LiteralString
    materialize: bool = False
    each_value: LiteralString | None = None
    value_type: LiteralString = "uuid"
    alternatives: tuple[LiteralString, ...] = ()
    order: LiteralString | None = None
    is_narrow: bool = False
    amount: LiteralString | None = None
    is_search: bool = False


def several(field: str) -> str:
    """The field of several values of an enum."""
    return f"several_{field}"


def number_filter(field: LiteralString, digits: LiteralString) -> Filter:
    """The filter of a number that is the same with and without spaces; other texts are compared as they are."""
    spaceless: LiteralString = f"replace({field}, ' ', '')"
    is_same: LiteralString = f"{spaceless} = replace({{0}}, ' ', '')"
    is_number: LiteralString = f"{spaceless} ~ '^[0-9]{{{{{digits}}}}}$'"
    return Filter((field,), f"{is_same} and ({field} = {{0}} or {is_number})", is_narrow=True)


def enum_filters(field: str, column: LiteralString, value: LiteralString = "{}") -> tuple[Filter, Filter]:
    """The filters of an enum: for one value, whose rows an index has in order of id, and for several."""
    return (
        Filter((field,), column + " = " + value),
        Filter(
            (several(field),),
            column + " = any ({}::text[])",
            each_value=column + " = choice.id",
            value_type="text",
        ),
    )


class SortOrder(NamedTuple):
    """The order that a request asks for: the name of one of the list's sorts, and its direction."""

    name: str
    descending: bool


class Reading(NamedTuple):
    """How a sorted page is read: after the start or backward from it, and whether by scanning the sort's index.

    A scan suits a list that matches many rows; otherwise a page collects all matching rows. Null: a scan if the list
    isn't filtered.
    """

    is_backward: bool = False
    scans_index: bool | None = None


FORWARD = Reading()


def _has_alternatives(filters: Sequence[Filter]) -> bool:
    return bool(filters) and bool(filters[0].alternatives)


def _alternatives(lead: Filter) -> list[Filter]:
    """A filter for each alternative."""
    return [lead._replace(condition=each) for each in lead.alternatives]


class ListStatements:
    """The SQL of a list: WHERE by the filters of the request and the cursor, ORDER BY id or a sort, LIMIT and OFFSET.

    `scope` is a condition on the rows of the table that always holds. `id_type` is the type of its ids. `amount` is
    the expression that a summary adds up.
    """

    def __init__(
        self,
        table: LiteralString,
        filters: Sequence[Filter],
        scope: LiteralString | None = None,
        sorts: Mapping[str, Sort] | None = None,
        id_type: LiteralString = "uuid",
        amount: LiteralString | None = None,
    ) -> None:
        self.table: LiteralString = table
        self.name: LiteralString = table.split(" ")[-1]
        self.filters = tuple(filters)
        self.scope: LiteralString | None = scope
        self.sorts = {"id": Sort("id", id_type), **(sorts or {})}
        self.id_type: LiteralString = id_type
        self.amount: LiteralString | None = amount
        self.fields = tuple(dict.fromkeys(name for each in self.filters for name in each.fields))
        self.enums = tuple(name for name in self.fields if several(name) in self.fields)
        # Keyed by sets of declared fields, which are many for a list with many filters.
        self.page_statement = lru_cache(MAX_COMPOSED)(self._compose_page)
        self.count_statement = lru_cache(MAX_COMPOSED)(self._compose_count)
        self.sorted_statement = lru_cache(MAX_COMPOSED)(self._compose_sorted)
        self.adaptive_statement = lru_cache(MAX_COMPOSED)(self._compose_adaptive)
        self.summary_statement = lru_cache(MAX_COMPOSED)(self._compose_summary)
        self.count_before_statement = lru_cache(MAX_COMPOSED)(self._compose_count_before)

    def filters_of(self, names: Sequence[str]) -> list[Filter]:
        """The filters that cover a set of fields, the leading one first; each field belongs to one filter."""
        remaining, filters = set(names), list[Filter]()
        for each in self.filters:
            if remaining.issuperset(each.fields):
                remaining.difference_update(each.fields)
                filters.append(each)
        return filters

    def collects(self, names: Sequence[str]) -> bool:
        """Whether a sorted page collects the rows, because few match."""
        filters = self.filters_of(names)
        return bool(filters) and filters[0].is_narrow

    def adapts(self, names: Sequence[str], order: SortOrder | None = None) -> bool:
        """Whether the page of a filtered list is adaptive; without an order, in that of ids.

        Not if the index of the leading filter serves the page in its order, and not if PostgreSQL can't read a part of
        the filter's rows, as in indexes that aren't ordered.
        """
        lead = next(iter(self.filters_of(names)), None)
        if lead is None or self.scope or lead.is_narrow:
            return False
        if lead.is_search:
            return True
        if order is None:
            return lead.materialize and lead.order is not None
        return (not lead.materialize or lead.order is not None) and not self._is_in_order(names, order)

    def _is_in_order(self, names: Sequence[str], order: SortOrder) -> bool:
        """Whether the index of the only filter has the rows in the order of the sort."""
        filters = self.filters_of(names)
        return len(filters) == 1 and filters[0].order == self.sorts[order.name].expression

    def field_sets(self) -> list[tuple[str, ...]]:
        """No filter, every filter alone, every pair of filters, and all together, as their fields."""
        groups = [*combinations(self.filters, 0), *combinations(self.filters, 1), *combinations(self.filters, 2)]
        names = [{name for each in group for name in each.fields} for group in (*groups, self.filters)]
        return [*dict.fromkeys(tuple(name for name in self.fields if name in group) for group in names)]

    def statements(self) -> Iterator[tuple[tuple[str, ...], LiteralString, LiteralString]]:
        """For each of these sets of fields: the fields, the page's and the total's statement."""
        for names in self.field_sets():
            yield names, self.page_statement(names), self.count_statement(names)

    def sorted_statements(self) -> Iterator[tuple[tuple[str, ...], SortOrder, LiteralString, LiteralString]]:
        """The pages of each order: the fields, the order, what the page starts after, the statement.

        Without filters, with each filter alone, and with all of them.
        """
        alone = [each.fields for each in self.filters]
        for names in dict.fromkeys(((), *alone, self.fields)):
            for order in (SortOrder(name, descending) for name in self.sorts for descending in (False, True)):
                for start in _START_PARAMETERS:
                    if start != "null" or self.sorts[order.name].is_nullable:
                        yield names, order, start, self.sorted_statement(names, order, start)

    def _compose_page(self, names: tuple[str, ...]) -> LiteralString:
        statement = self._page_text(names)
        name_composed(statement, f"{self.name}.page")
        return statement

    def _page_text(self, names: tuple[str, ...]) -> LiteralString:
        filters = self.filters_of(names)
        parameters = dict(zip(names, _PARAMETERS[1 + _PAGE_PARAMETERS :], strict=False))
        tenant: LiteralString = "plan_manager_id = $1 and id > $2"
        if filters and filters[0].each_value:
            return self._for_each_value(_LATERAL_PAGE, filters, parameters, tenant)
        table, conditions = self._source(filters, parameters, tenant)
        if _has_alternatives(filters):
            return _DISTINCT_PAGE.format(table=table, conditions=conditions)
        template = _COLLECTED_PAGE if filters and filters[0].materialize else _PAGE
        return template.format(table=table, conditions=conditions)

    def _for_each_value(
        self,
        template: LiteralString,
        filters: Sequence[Filter],
        parameters: Mapping[str, LiteralString],
        tenant: LiteralString,
    ) -> LiteralString:
        lead = filters[0]._replace(condition=filters[0].each_value or "")
        conditions = self._conditions([lead, *filters[1:]], parameters, tenant)
        values = parameters[lead.fields[0]]
        return template.format(table=self.table, conditions=conditions, values=values, value_type=lead.value_type)

    def _compose_sorted(
        self, names: tuple[str, ...], order: SortOrder, start: LiteralString, reading: Reading = FORWARD
    ) -> LiteralString:
        filters = self.filters_of(names)
        parameters = self._sorted_parameters(names, start)
        is_unfiltered = not (filters or self.scope) or self._is_in_order(names, order)
        scans_index = is_unfiltered if reading.scans_index is None else reading.scans_index and not self.collects(names)
        is_lead = not scans_index or (bool(filters) and filters[0].order == self.sorts[order.name].expression)
        table, conditions = self._source(filters, parameters, "plan_manager_id = $1", is_lead=is_lead)
        page = self._sorted_page(order, start, reading)
        if scans_index:
            statement = compose_index_walk(page, table, conditions)
        else:
            statement = compose_filtered(page, table, conditions, is_distinct=_has_alternatives(filters))
        name_composed(statement, f"{self.name}.sorted_page")
        return statement

    def _compose_adaptive(self, names: tuple[str, ...], order: SortOrder, start: LiteralString) -> LiteralString:
        filters = self.filters_of(names)
        parameters = self._sorted_parameters(names, start)
        tenant: LiteralString = "plan_manager_id = $1"
        source, collected = self._source(filters, parameters, tenant)
        conditions = AdaptiveConditions(
            source,
            lead=self._source(filters[:1], parameters, tenant)[1],
            collected=collected,
            walked=self._conditions(filters, parameters, tenant, is_lead=False),
            is_distinct=_has_alternatives(filters),
        )
        statement = compose_adaptive(self._sorted_page(order, start, FORWARD), self.table, conditions)
        name_composed(statement, f"{self.name}.adaptive_page")
        return statement

    def _sorted_page(self, order: SortOrder, start: LiteralString, reading: Reading) -> SortedPage:
        after = _START_PARAMETERS[start]
        return SortedPage(
            self.sorts[order.name],
            order.descending,
            limit="$2",
            offset="$3",
            id_type=self.id_type,
            id=after[-1] if after else None,
            value=after[0] if start == "value" else None,
            is_backward=reading.is_backward,
        )

    def _sorted_parameters(self, names: Sequence[str], start: LiteralString) -> dict[str, LiteralString]:
        first = 1 + _SORTED_PARAMETERS + len(_START_PARAMETERS[start])
        return dict(zip(names, _PARAMETERS[first:], strict=False))

    def _compose_count_before(self, names: tuple[str, ...], order: SortOrder, start: LiteralString) -> LiteralString:
        filters = self.filters_of(names)
        after = _COUNT_BEFORE_PARAMETERS[start]
        parameters = dict(zip(names, _PARAMETERS[1 + _COUNT_PARAMETERS + len(after) :], strict=False))
        table, conditions = self._source(filters, parameters, "plan_manager_id = $1")
        page = SortedPage(
            self.sorts[order.name],
            order.descending,
            limit="",
            offset="",
            id_type=self.id_type,
            id=after[-1],
            value=after[0] if start == "value" else None,
            is_backward=True,
        )
        statement = compose_count_before(page, table, conditions, is_distinct=_has_alternatives(filters))
        name_composed(statement, f"{self.name}.count_before")
        return statement

    def _compose_summary(self, names: tuple[str, ...]) -> LiteralString:
        filters = self.filters_of(names)
        parameters = dict(zip(names, _PARAMETERS[1 + _SUMMARY_PARAMETERS :], strict=False))
        tenant: LiteralString = "plan_manager_id = $1"
        lead = filters[0] if filters else None
        amount: LiteralString = (lead.amount if lead else None) or self.amount or "null::numeric"
        if _has_alternatives(filters):
            statement = self._alternatives_summary(filters, parameters, tenant, amount)
        else:
            has_sum = amount != "null::numeric"
            template = _COUNT_BEFORE_SUM if lead and len(filters) == 1 and has_sum else _SUMMARY
            order: LiteralString = f" order by {lead.order}" if lead and lead.order else ""
            conditions = self._conditions(filters, parameters, tenant)
            statement = template.format(amount=amount, table=self.table, conditions=conditions, order=order)
        name_composed(statement, f"{self.name}.summary")
        return statement

    def _alternatives_summary(
        self,
        filters: Sequence[Filter],
        parameters: Mapping[str, LiteralString],
        tenant: LiteralString,
        amount: LiteralString,
    ) -> LiteralString:
        """The limit applies to the rows of each alternative, and to those of all of them."""
        sets = [[each, *filters[1:]] for each in _alternatives(filters[0])]
        conditions: list[LiteralString] = [self._conditions(each, parameters, tenant) for each in sets]
        parts: list[LiteralString] = [
            f"(select id, {amount} as amount from {self.table} where {each} limit $2)" for each in conditions
        ]
        found: LiteralString = " union all ".join(parts)
        return f"""
    select count(*), sum(amount) as total
    from (select distinct id, amount from ({found}) found limit $2) counted
"""

    def _compose_count(self, names: tuple[str, ...]) -> LiteralString:
        filters = self.filters_of(names)
        parameters = dict(zip(names, _PARAMETERS[1 + _COUNT_PARAMETERS :], strict=False))
        tenant: LiteralString = "plan_manager_id = $1"
        if filters and filters[0].each_value:
            statement = self._for_each_value(_LATERAL_COUNT, filters, parameters, tenant)
        else:
            table, conditions = self._source(filters, parameters, tenant)
            template = _DISTINCT_COUNT if _has_alternatives(filters) else _COUNT
            statement = template.format(table=table, conditions=conditions)
        name_composed(statement, f"{self.name}.count")
        return statement

    def _source(
        self,
        filters: Sequence[Filter],
        parameters: Mapping[str, LiteralString],
        tenant: LiteralString,
        *,
        is_lead: bool = True,
    ) -> tuple[LiteralString, LiteralString]:
        """The source of the rows, and the conditions on them. `is_lead`: the first condition selects the index."""
        if not is_lead or not _has_alternatives(filters):
            return self.table, self._conditions(filters, parameters, tenant, is_lead=is_lead)
        parts: list[LiteralString] = [
            f"select * from {self.table} where {self._conditions([each], parameters, tenant)}"
            for each in _alternatives(filters[0])
        ]
        source: LiteralString = " union all ".join(parts)
        others = [filters[0]._replace(condition="true"), *filters[1:]]
        return f"({source}) found", self._conditions(others, parameters, tenant)

    def _conditions(
        self,
        filters: Sequence[Filter],
        parameters: Mapping[str, LiteralString],
        tenant: LiteralString,
        *,
        is_lead: bool = True,
    ) -> LiteralString:
        conditions: list[LiteralString] = [tenant]
        if self.scope:
            conditions.append(self.scope)
        for position, each in enumerate(filters):
            values: list[LiteralString] = [parameters[name] for name in each.fields]
            condition = each.condition.format(*values)
            conditions.append(condition if is_lead and position == 0 else "(" + condition + ") is true")
        return " and ".join(conditions)
