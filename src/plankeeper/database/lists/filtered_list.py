"""Lists: one page of ids, the total and the summary, for any set of filters and any order."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import LiteralString, NamedTuple, TypeVar, cast
from uuid import UUID

from msgspec import UNSET, Struct

from plankeeper.database.client import Executor
from plankeeper.database.connections import name_composed
from plankeeper.database.lists.groups import GroupKey, GroupSum, ListGroup, compose_groups
from plankeeper.database.lists.statements import (
    BY_ID,
    Direction,
    Filter,
    Parameters,
    Rows,
    Sort,
    SortedId,
    SortOrder,
    Start,
    compose_count,
    compose_count_before,
    compose_page,
    compose_summary,
    declared_filters,
)

T = TypeVar("T")


class ListSummary(Struct):
    """The number of matching rows, and the sum of their amounts; null for a list without amounts and if none has one.

    Where `count` has reached the limit, `amount` is that of some of the rows.
    """

    count: int
    amount: Decimal | None


class ListStatement(NamedTuple):
    """A composed statement with its values.

    `custom_plan`: PostgreSQL plans it for these values. Otherwise it has one plan for all values.
    """

    text: LiteralString
    values: Sequence[object]
    custom_plan: bool


class FilteredList:
    """A list with its filters and sorts.

    The fields of `query` declare its filters; `others` are those of the console, and of values that no query has.
    `id_type` is the type of its ids, `amount` the expression that a summary adds up. `group_keys` are what the rows can
    be grouped by, and `group_sums` the amounts of each group. The same filters and order always compose the same text,
    so that each connection prepares it once. Texts consist of literals of this package: pyright proves that each one is
    a `LiteralString`.
    """

    def __init__(
        self,
        table: LiteralString,
        query: type,
        others: Mapping[str, Filter] | None = None,
        sorts: Mapping[str, Sort] | None = None,
        id_type: LiteralString = "uuid",
        amount: LiteralString = "null::numeric",
        group_keys: Mapping[str, GroupKey] | None = None,
        group_sums: Mapping[str, GroupSum] | None = None,
    ) -> None:
        self.table: LiteralString = table
        self.name: LiteralString = table.split(" ")[-1]
        self.query = query
        self.filters: Mapping[str, Filter] = {**declared_filters(query), **(others or {})}
        self._names = list(self.filters)
        self.sorts = {"id": Sort("id", id_type), **(sorts or {})}
        self.id_type: LiteralString = id_type
        self.amount: LiteralString = amount
        self.group_keys = group_keys or {}
        self.group_sums = group_sums or {}

    async def page(
        self,
        db: Executor,
        plan_manager_id: UUID,
        values: Mapping[str, object],
        limit: int,
        offset: int = 0,
        order: SortOrder = BY_ID,
        start: Start | None = None,
        *,
        is_backward: bool = False,
    ) -> list[SortedId]:
        """The ids of one page after `start`, or backward from it, and one more, which shows whether others follow."""
        page = (limit + 1, offset)
        statement = self.page_statement(plan_manager_id, values, page, order, start, is_backward=is_backward)
        return await _run(db, SortedId, statement)

    async def summary(
        self, db: Executor, plan_manager_id: UUID, values: Mapping[str, object], max_rows: int
    ) -> ListSummary:
        """The number of matching rows and their amount, of at most `max_rows` rows."""
        [found] = await _run(db, ListSummary, self.summary_statement(plan_manager_id, values, max_rows))
        return found

    async def count_before(
        self, db: Executor, plan_manager_id: UUID, values: Mapping[str, object], order: SortOrder, start: Start
    ) -> int:
        """The number of matching rows before `start`."""
        [found] = await _run(db, int, self.count_before_statement(plan_manager_id, values, order, start))
        return found

    async def groups(
        self,
        db: Executor,
        plan_manager_id: UUID,
        values: Mapping[str, object],
        key: str,
        limit: int,
        parameters: Mapping[str, object],
    ) -> list[ListGroup]:
        """The groups of the matching rows by a key: the first `limit` ones, and one with all others.

        `parameters` has the values of the parameters of the list's keys and sums.
        """
        return await _run(db, ListGroup, self.group_statement(plan_manager_id, values, key, limit, parameters))

    async def count(self, db: Executor, plan_manager_id: UUID, values: Mapping[str, object]) -> int:
        """The number of matching rows."""
        [found] = await _run(db, int, self.count_statement(plan_manager_id, values))
        return found

    async def count_matching(self, db: Executor, plan_manager_id: UUID, query: object) -> int:
        """The number of rows that match the filters of a query."""
        return await self.count(db, plan_manager_id, self.values_of(query))

    def values_of(self, query: object, **extra: object) -> dict[str, object]:
        """The values of the filters in a query, and those that it doesn't have. A list of one value is that value."""
        values: dict[str, object] = {}
        for name, each in self.filters.items():
            value = extra.get(name, getattr(query, name, UNSET))
            if isinstance(value, list) and each.several:
                unique = list(dict.fromkeys(cast("list[object]", value)))
                value = unique[0] if len(unique) == 1 else unique
            if value is not UNSET:
                values[name] = value
        return values

    def page_statement(
        self,
        plan_manager_id: UUID,
        values: Mapping[str, object],
        page: tuple[int, int],
        order: SortOrder = BY_ID,
        start: Start | None = None,
        *,
        is_backward: bool = False,
    ) -> ListStatement:
        """One page; `page` is its limit and its offset."""
        parameters = Parameters()
        rows = self._rows_of(plan_manager_id, values, parameters)
        direction = self._direction(order, is_backward=is_backward)
        limit, offset = page
        text = compose_page(rows, direction, start, parameters, limit=limit, offset=offset, is_backward=is_backward)
        return self._finish("page", text, parameters, custom_plan=bool(values) or order != BY_ID)

    def count_statement(self, plan_manager_id: UUID, values: Mapping[str, object]) -> ListStatement:
        parameters = Parameters()
        text = compose_count(self._rows_of(plan_manager_id, values, parameters))
        return self._finish("count", text, parameters, custom_plan=bool(values))

    def summary_statement(self, plan_manager_id: UUID, values: Mapping[str, object], max_rows: int) -> ListStatement:
        parameters = Parameters()
        rows = self._rows_of(plan_manager_id, values, parameters)
        text = compose_summary(rows, self.amount, parameters.add(max_rows))
        return self._finish("summary", text, parameters, custom_plan=True)

    def count_before_statement(
        self, plan_manager_id: UUID, values: Mapping[str, object], order: SortOrder, start: Start
    ) -> ListStatement:
        parameters = Parameters()
        rows = self._rows_of(plan_manager_id, values, parameters)
        text = compose_count_before(rows, self._direction(order, is_backward=True), start, parameters)
        return self._finish("count_before", text, parameters, custom_plan=True)

    def group_statement(
        self,
        plan_manager_id: UUID,
        values: Mapping[str, object],
        key: str,
        limit: int,
        group_parameters: Mapping[str, object],
    ) -> ListStatement:
        parameters = Parameters()
        rows = self._rows_of(plan_manager_id, values, parameters)
        text = compose_groups(rows, self.group_keys[key], self.group_sums, group_parameters, limit, parameters)
        return self._finish("groups", text, parameters, custom_plan=True)

    def parse_id(self, text: str) -> UUID | int:
        """An id of the list from its text."""
        return UUID(text) if self.id_type == "uuid" else int(text)

    def _direction(self, order: SortOrder, *, is_backward: bool) -> Direction:
        return Direction(self.sorts[order.name], order.descending != is_backward, self.id_type)

    def _rows_of(self, plan_manager_id: UUID, values: Mapping[str, object], parameters: Parameters) -> Rows:
        conditions: list[LiteralString] = ["plan_manager_id = " + parameters.add(plan_manager_id)]
        for name in sorted(values, key=self._names.index):
            each, value = self.filters[name], values[name]
            condition = each.several if each.several and isinstance(value, list) else each.condition
            parts = cast("tuple[object, ...]", value if isinstance(value, tuple) else (value,))
            placeholders: list[LiteralString] = [parameters.add(part) for part in parts]
            conditions.append(condition.format(*placeholders))
        return Rows(self.table, " and ".join(conditions))

    def _finish(
        self, kind: LiteralString, text: LiteralString, parameters: Parameters, *, custom_plan: bool
    ) -> ListStatement:
        name_composed(text, f"{self.name}.{kind}")
        return ListStatement(text, parameters.values, custom_plan)


async def _run(db: Executor, row_type: type[T], statement: ListStatement) -> list[T]:
    return await db.rows(row_type, statement.text, *statement.values, custom_plan=statement.custom_plan)
