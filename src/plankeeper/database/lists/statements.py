"""The statements of lists, composed of literals: one page of ids, the number of rows, and their amount.

Rows with the same value of the sort are in order of their ids, and rows without a value come last. `descending`
reverses values and ids. A page starts after a row: after its value and its id. Backward, it consists of the rows before
that row, the nearest first.

PostgreSQL plans each statement for its values: only then does it know whether a filter matches few rows, which it
collects and sorts, or many, so that it walks the sort's index until the page is full.
"""

from typing import Any, LiteralString, NamedTuple, get_args, get_type_hints

from msgspec import Struct

from plankeeper.database.combined_writes import NUMBERS
from plankeeper.database.number_keys import number_key

_NUMBERED: list[LiteralString] = ["$" + each for each in NUMBERS]  # parameters by their numbers


# PostgreSQL assumes that the rows which a filter matches are spread evenly over the order, and would walk the sort's
# index for a page of them even if they all stand at its end. A page is therefore planned as if so many of its rows were
# read: a walk then costs more than collecting and sorting the rows, unless they are many. Among 1,000,000 invoices, a
# page of those of a month takes 20 ms in any order; without this, it can take 0.9 s.
_PLANNED_ROWS = 10_000


class Parameters:
    """The values of a statement, numbered in the order in which they are added."""

    def __init__(self) -> None:
        self.values: list[object] = []

    def add(self, value: object) -> LiteralString:
        """The parameter of a value, such as `$1`."""
        self.values.append(value)
        return _NUMBERED[len(self.values)]


class Sort(NamedTuple):
    """An order of a list: the expression that an index `(plan_manager_id, expression, id)` holds, and its type."""

    expression: LiteralString
    type: LiteralString
    is_nullable: bool = False


BY_UPDATED_AT = {"updated_at": Sort("updated_at", "timestamptz")}


class SortOrder(NamedTuple):
    """The order that a request asks for: the name of one of the list's sorts, and its direction."""

    name: str
    descending: bool


BY_ID = SortOrder("id", descending=False)


class SortedId(Struct):
    """A row of a page, with the value that it is sorted by as text."""

    id: str
    value: str | None


class Start(NamedTuple):
    """The row that a page starts after; `value` is null for a row without one."""

    value: str | None
    id: str


class Rows(NamedTuple):
    """The rows of a statement: of a table, those that meet some conditions."""

    table: LiteralString
    conditions: LiteralString


class Direction(NamedTuple):
    """A sort, and whether the statement returns the highest values first."""

    sort: Sort
    is_reversed: bool
    id_type: LiteralString

    @property
    def is_by_id(self) -> bool:
        return self.sort.expression == "id"

    def order_by(self, value: LiteralString, id_: LiteralString, nulls: LiteralString = "") -> LiteralString:
        way: LiteralString = " desc" if self.is_reversed else ""
        by_id = id_ + way
        return by_id if self.is_by_id else f"{value}{way}{nulls}, {by_id}"

    def after(self, start: Start, parameters: Parameters) -> LiteralString:
        """The condition on the rows that follow `start` among those with a value, or among those without."""
        sign: LiteralString = "<" if self.is_reversed else ">"
        if self.is_by_id or start.value is None:
            return f"id {sign} {parameters.add(start.id)}::text::{self.id_type}"
        value: LiteralString = f"{parameters.add(start.value)}::text::{self.sort.type}"
        return f"({self.sort.expression}, id) {sign} ({value}, {parameters.add(start.id)}::text::{self.id_type})"


def compose_page(
    rows: Rows,
    direction: Direction,
    start: Start | None,
    parameters: Parameters,
    *,
    limit: int,
    offset: int,
    is_backward: bool,
) -> LiteralString:
    """A page: at most `limit` ids after `start`, or, backward, before it.

    A CTE is planned by itself, returns its rows in their order, and reads no more of them than the page takes.
    """
    parts = _parts(direction, start, parameters, is_backward=is_backward)
    value = direction.sort.expression
    select: LiteralString = f"select id, {value} as value from {rows.table} where {rows.conditions}"
    limit_: LiteralString = parameters.add(limit)
    planned: LiteralString = parameters.add(max(limit, _PLANNED_ROWS))
    offset_: LiteralString = parameters.add(offset)
    order: LiteralString = f"order by {direction.order_by(value, 'id')} limit {planned}"
    if len(parts) == 1:
        # The texts are computed for the rows of the page alone, not for those before the offset.
        return f"""
    with nearest as materialized ({select}{parts[0]} {order} offset {offset_})
    select id::text, value::text
    from (select id, value from nearest limit {limit_}) page
    order by {direction.order_by("page.value", "page.id")}
"""
    first, second = parts
    rest: LiteralString = "0"  # of the offset, after the rows of the first part
    if offset:
        skipped: LiteralString = f"select from {rows.table} where {rows.conditions}{first} limit {offset_}"
        rest = f"""case when (select count(*) from page) = 0
            then {offset_} - (select count(*) from ({skipped}) skipped) else 0 end"""
    nulls: LiteralString = " nulls first" if is_backward else " nulls last"
    return f"""
    with nearest as materialized ({select}{first} {order} offset {offset_}),
    page as materialized (select id, value from nearest limit {limit_}),
    others as materialized ({select}{second} and (select count(*) from page) < {limit_} {order} offset {rest})
    select id::text, value::text
    from (select id, value from page union all (select id, value from others limit {limit_})) page
    order by {direction.order_by("page.value", "page.id", nulls)}
    limit {limit_}
"""


def _parts(
    direction: Direction, start: Start | None, parameters: Parameters, *, is_backward: bool
) -> list[LiteralString]:
    """The conditions of the rows with a value and of those without, which are apart in the sort's index.

    A page continues with the second part if the first one doesn't fill it.
    """
    after: LiteralString = f" and {direction.after(start, parameters)}" if start else ""
    if not direction.sort.is_nullable:
        return [after]
    present: LiteralString = f" and {direction.sort.expression} is not null"
    absent: LiteralString = f" and {direction.sort.expression} is null"
    if start is None:
        return [absent, present] if is_backward else [present, absent]
    if start.value is None:
        return [absent + after, present] if is_backward else [absent + after]
    return [present + after] if is_backward else [present + after, absent]


def compose_count_before(rows: Rows, direction: Direction, start: Start, parameters: Parameters) -> LiteralString:
    """The number of rows before `start`, in a direction backward from it."""
    before = direction.after(start, parameters)
    if direction.sort.is_nullable and start.value is None:
        value = direction.sort.expression
        before = f"({value} is not null or {value} is null and {before})"
    return f"select count(*) from {rows.table} where {rows.conditions} and {before}"


def compose_count(rows: Rows) -> LiteralString:
    return f"select count(*) from {rows.table} where {rows.conditions}"


def compose_summary(rows: Rows, amount: LiteralString, limit: LiteralString) -> LiteralString:
    """The number of rows and their amount. The limit bounds the work for a list that matches most rows."""
    return f"""
    select count(*), sum(amount) as amount
    from (select {amount} as amount from {rows.table} where {rows.conditions} limit {limit}) counted
"""


class Filter(NamedTuple):
    """A condition on the value of a field, `{}`, or on the values of a tuple, `{0}` and `{1}`.

    A field of a query declares its filter in its annotation, beside its type and its description. `several`: the
    condition on a list of values, for a field that accepts one or several. `label`: its name in the console.
    """

    condition: LiteralString
    several: LiteralString | None = None
    label: str = ""


def declared_filters(query: type) -> dict[str, Filter]:
    """The filters of a query's fields."""
    hints: dict[str, Any] = get_type_hints(query, include_extras=True)
    found = {name: [each for each in get_args(hint) if isinstance(each, Filter)] for name, hint in hints.items()}
    return {name: filters[0] for name, filters in found.items() if filters}


def enum_filter(column: LiteralString, type_: LiteralString = "text", *, label: str = "") -> Filter:
    """The filter of one or several values of a column."""
    return Filter(column + " = {}", column + " = any ({}::" + type_ + "[])", label)


def number_filter(column: LiteralString, digits: LiteralString) -> Filter:
    """The filter of a number that is the same with and without spaces and hyphens; other texts are compared exactly."""
    key = number_key(column, digits)
    is_same: LiteralString = f"{key} = {number_key('{0}', digits)}"
    is_number: LiteralString = f"{key} ~ '^[0-9]{{{{{digits}}}}}$'"
    return Filter(f"{is_same} and ({column} = {{0}} or {is_number})")
