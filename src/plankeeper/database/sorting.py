"""Sorted lists: the statements that read one page of ids in another order than that of ids.

Rows with the same value are in order of their ids, rows without a value come last, and `descending` reverses both. A
page starts after a row: after its value and its id. Backward, it consists of the rows before that row, the nearest
first. Without filters, the sort's index serves the page. With filters, the page collects all matching rows and sorts
them, or walks the sort's index and discards the others.
"""

from typing import LiteralString, NamedTuple

from msgspec import Struct


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
    """What a statement is composed of: parameters are LiteralStrings such as `$2`.

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
    """A page that the sort's index serves. Rows without a value are a second part, which the index has apart."""
    value = page.sort.expression
    # The sum of both could exceed a bigint.
    length: LiteralString = f"least({page.limit}::numeric + {page.offset}, 9223372036854775807)::bigint"
    parts: list[LiteralString] = []
    if page.has_values:
        after = page.after_value(value)
        present: LiteralString = f" and {value} is not null" if page.sort.is_nullable else ""
        condition: LiteralString = f"{conditions}{present}" + (f" and {after}" if after else "")
        parts.append(_part(page, table, value, condition, length))
    if page.has_nulls:
        after = page.after_null()
        condition = f"{conditions} and {value} is null" + (f" and {after}" if after else "")
        parts.append(_part(page, table, value, condition, length))
    union: LiteralString = " union all ".join(parts)
    return f"""
    select id::text, value::text
    from ({union}) page
    order by {page.output_order}
    limit {page.limit} offset {page.offset}
"""


def _part(
    page: SortedPage, table: LiteralString, value: LiteralString, condition: LiteralString, length: LiteralString
) -> LiteralString:
    order = page.order_by(value, "id")
    return f"(select id, {value} as value from {table} where {condition} order by {order} limit {length})"


def compose_filtered(page: SortedPage, table: LiteralString, conditions: LiteralString) -> LiteralString:
    """A page of the rows that meet the conditions, each of which occurs once even if `table` repeats it."""
    return f"""
    with matching as materialized (
        select distinct id, {page.sort.expression} as value from {table} where {conditions}
    )
    select id::text, value::text
    from matching page
    where {page.start_condition()}
    order by {page.output_order}
    limit {page.limit} offset {page.offset}
"""


def compose_count_before(page: SortedPage, table: LiteralString, conditions: LiteralString) -> LiteralString:
    """The number of the rows that meet the conditions and precede the start of a page backward."""
    return f"""
    with matching as materialized (
        select distinct id, {page.sort.expression} as value from {table} where {conditions}
    )
    select count(*) from matching where {page.start_condition()}
"""
