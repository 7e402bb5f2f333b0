"""Sorted lists: the statements that read one page of ids in another order than that of ids.

Rows with the same value are in order of their ids, rows without a value come last, and `descending` reverses both. A
page starts after a row: after its value and its id. Backward, it consists of the rows before that row, the nearest
first. Without filters, the sort's index serves the page. With filters, the page collects all matching rows and sorts
them, or scans the sort's index and discards the others. An adaptive page does either, depending on the rows.
"""

from typing import LiteralString, NamedTuple

from msgspec import Struct

# The limit of an adaptive page's index scan, as a multiple of its rows. A scan that doesn't fill the page costs no more
# than collecting the rows: it is tried only if at least as many rows match.
_WALKED_PAGES: LiteralString = "20"


class Sort(NamedTuple):
    """An order of a list: the expression that an index `(plan_manager_id, expression, id)` holds, and its type.

    `is_text`: the index has text_pattern_ops, which compares by code point.
    """

    expression: LiteralString
    type: LiteralString
    is_nullable: bool = False
    is_text: bool = False


class SortedId(Struct):
    """A row of a page, with the value that it is sorted by as text."""

    id: str
    value: str | None


class Start(NamedTuple):
    """The row that a page starts after; `value` is null for a row without one."""

    value: str | None
    id: str


class SortedPage(NamedTuple):
    """The parts of a statement: parameters are LiteralStrings such as `$2`.

    `value`, `id`: the parameters of the start, null at the beginning of the list and, for `value`, after a row without
    one.
    """

    sort: Sort
    descending: bool
    limit: LiteralString
    offset: LiteralString
    id_type: LiteralString
    id: LiteralString | None
    value: LiteralString | None
    is_backward: bool = False

    @property
    def _is_reversed(self) -> bool:
        """Whether the statement returns the highest value first."""
        return self.descending != self.is_backward

    def order_by(self, value: LiteralString, id_: LiteralString, nulls: LiteralString = "") -> LiteralString:
        return f"{value}{self._using}{nulls}, {id_}" + (" desc" if self._is_reversed else "")

    @property
    def output_order(self) -> LiteralString:
        # Qualified: without the name of the table, PostgreSQL would sort by the texts that the statement returns.
        return self.order_by("page.value", "page.id", " nulls first" if self.is_backward else " nulls last")

    @property
    def _using(self) -> LiteralString:
        if self.sort.is_text:
            return " using ~>~" if self._is_reversed else " using ~<~"
        return " desc" if self._is_reversed else ""

    @property
    def _is_after(self) -> LiteralString:
        return "<" if self._is_reversed else ">"

    def after_value(self, expression: LiteralString) -> LiteralString | None:
        """The condition on rows with a value; null if the page starts at the beginning or after a row without one."""
        if self.value is None:
            return None
        is_after = self._is_after
        value: LiteralString = self.value + "::text::" + self.sort.type
        id_ = self._typed_id
        if self.sort.is_text:  # PostgreSQL compares rows only by the default operators
            return f"{expression} ~{is_after}=~ {value} and ({expression} ~{is_after}~ {value} or id {is_after} {id_})"
        return f"({expression}, id) {is_after} ({value}, {id_})"

    def after_null(self) -> LiteralString | None:
        """The condition on the ids of rows without a value; null if all of them follow."""
        if self.value is not None or self.id is None:
            return None
        return f"id {self._is_after} {self._typed_id}"

    @property
    def has_values(self) -> bool:
        """Whether rows with a value can be on the page."""
        return self.id is None or self.value is not None or self.is_backward

    @property
    def has_nulls(self) -> bool:
        """Whether rows without a value can be on the page."""
        return self.sort.is_nullable and not (self.is_backward and self.value is not None)

    def start_condition(self) -> LiteralString:
        """The condition on the columns `value` and `id` of the rows that follow the start, or precede it."""
        if (after_null := self.after_null()) is not None:
            condition: LiteralString = f"value is null and {after_null}"
            return f"({condition}) or value is not null" if self.is_backward else condition
        if (after_value := self.after_value("value")) is not None:
            return after_value if self.is_backward else f"({after_value}) or value is null"
        return "true"

    @property
    def _typed_id(self) -> LiteralString:
        return (self.id or "") + "::text::" + self.id_type


def compose_index_walk(page: SortedPage, table: LiteralString, conditions: LiteralString) -> LiteralString:
    """A page that the sort's index serves. Rows without a value are a second part, which is separate in the index.

    The rows before the offset are counted in the index: neither are they returned from a part nor sorted.
    """
    value = page.sort.expression
    if page.has_values and page.has_nulls:
        compose = _compose_parts_backward if page.is_backward else _compose_parts
        return compose(page, table, conditions)
    condition = _value_condition(page, conditions) if page.has_values else _null_condition(page, conditions)
    return f"""
    select id::text, value::text
    from (
        select id, {value} as value from {table} where {condition}
        order by {page.order_by(value, "id")} limit {page.limit} offset {page.offset}
    ) page
    order by {page.output_order}
"""


def _value_condition(page: SortedPage, conditions: LiteralString) -> LiteralString:
    value = page.sort.expression
    after = page.after_value(value)
    present: LiteralString = f" and {value} is not null" if page.sort.is_nullable else ""
    return f"{conditions}{present}" + (f" and {after}" if after else "")


def _null_condition(page: SortedPage, conditions: LiteralString) -> LiteralString:
    after = page.after_null()
    return f"{conditions} and {page.sort.expression} is null" + (f" and {after}" if after else "")


def _compose_parts(page: SortedPage, table: LiteralString, conditions: LiteralString) -> LiteralString:
    """The rows with a value, and only if they don't fill the page, those without."""
    value = page.sort.expression
    order = page.order_by(value, "id")
    with_value, without = _value_condition(page, conditions), _null_condition(page, conditions)
    return f"""
    with present as materialized (
        select id, {value} as value from {table} where {with_value}
        order by {order} limit {page.limit} offset {page.offset}
    )
    select id::text, value::text
    from (
        select id, value from present
        union all (
            select id, {value} from {table} where {without} and (select count(*) from present) < {page.limit}
            order by {order} limit {page.limit}
            offset case when (select count(*) from present) = 0 then {page.offset} - (
                select count(*)
                from (select from {table} where {with_value} order by {order} limit {page.offset}) preceding
            ) else 0 end
        )
    ) page
    order by {page.output_order}
    limit {page.limit}
"""


def _compose_parts_backward(page: SortedPage, table: LiteralString, conditions: LiteralString) -> LiteralString:
    """The rows without a value before the start, then those with one."""
    value = page.sort.expression
    order = page.order_by(value, "id")
    # The sum of both could exceed a bigint.
    length: LiteralString = f"least({page.limit}::numeric + {page.offset}, 9223372036854775807)::bigint"
    parts: list[LiteralString] = [
        f"(select id, {value} as value from {table} where {condition} order by {order} limit {length})"
        for condition in (_value_condition(page, conditions), _null_condition(page, conditions))
    ]
    union: LiteralString = " union all ".join(parts)
    return f"""
    select id::text, value::text
    from ({union}) page
    order by {page.output_order}
    limit {page.limit} offset {page.offset}
"""


def compose_filtered(
    page: SortedPage, table: LiteralString, conditions: LiteralString, *, is_distinct: bool = False
) -> LiteralString:
    """A page of the rows that meet the conditions. `is_distinct`: each occurs once even if `table` repeats it."""
    return f"""
    select id::text, value::text
    from {_matching_rows(page, table, conditions, is_distinct=is_distinct)} page
    where {page.start_condition()}
    order by {page.output_order}
    limit {page.limit} offset {page.offset}
"""


def _matching_rows(
    page: SortedPage, table: LiteralString, conditions: LiteralString, *, is_distinct: bool = False
) -> LiteralString:
    """All rows that meet the conditions. Because of the offset, PostgreSQL doesn't scan the index of the order instead.

    Unlike `materialized`, it doesn't store the rows before it sorts them.
    """
    select: LiteralString = "select distinct" if is_distinct else "select"
    return f"({select} id, {page.sort.expression} as value from {table} where {conditions} offset 0)"


class AdaptiveConditions(NamedTuple):
    """The conditions of an adaptive page: that of the leading filter, all of them with it, and all without an index.

    `source` is what the first two select from. It may repeat a row if it `is_distinct`.
    """

    source: LiteralString
    lead: LiteralString
    collected: LiteralString
    walked: LiteralString
    is_distinct: bool = False


def compose_adaptive(page: SortedPage, table: LiteralString, conditions: AdaptiveConditions) -> LiteralString:
    """A page of filtered rows that reads few of them, whether few or many match. Not backward.

    If the leading filter matches many rows, the page scans the sort's index for a few times its length. Only if that
    doesn't fill it, it collects all matching rows.
    """
    value = page.sort.expression
    name: LiteralString = table.split(" ")[-1]
    tenant: LiteralString = "plan_manager_id = $1"
    condition = _value_condition(page, tenant) if page.has_values else _null_condition(page, tenant)
    bound: LiteralString = f"{_WALKED_PAGES} * ({page.limit}::bigint + {page.offset})"
    collected: LiteralString = f"{conditions.collected} and (select count(*) from nearest) < {page.limit}"
    matching = _matching_rows(page, conditions.source, collected, is_distinct=conditions.is_distinct)
    lead: LiteralString = f"select from {conditions.source} where {conditions.lead} limit {bound}"
    return f"""
    with nearest as materialized (
        select id, value
        from (
            select *, {value} as value
            from {table}
            where {condition}
                and (select count(*) from ({lead}) lead) = {bound}
            order by {page.order_by(value, "id")}
            limit {bound}
        ) {name}
        where {conditions.walked}
        order by {page.order_by("value", "id")}
        limit {page.limit} offset {page.offset}
    )
    select id::text, value::text
    from (
        select id, value from nearest where (select count(*) from nearest) = {page.limit}
        union all (
            select id, value
            from {matching} page
            where {page.start_condition()}
            order by {page.output_order}
            limit {page.limit} offset {page.offset}
        )
    ) page
    order by {page.output_order}
"""


def compose_count_before(
    page: SortedPage, table: LiteralString, conditions: LiteralString, *, is_distinct: bool = False
) -> LiteralString:
    """The number of the rows that meet the conditions and precede the start of a page backward."""
    return f"""
    select count(*) from {_matching_rows(page, table, conditions, is_distinct=is_distinct)} page
    where {page.start_condition()}
"""
