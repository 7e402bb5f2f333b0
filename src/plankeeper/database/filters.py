"""Filtered lists: read one page of ids, and the total, for any set of filters. The statements: `list_statements`."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, LiteralString, Protocol, cast
from uuid import UUID

from msgspec import UNSET, Struct

from plankeeper.database.client import Executor
from plankeeper.database.list_statements import (
    FORWARD,
    Filter,
    ListStatements,
    Reading,
    SortOrder,
    enum_filters,
    number_filter,
    several,
)
from plankeeper.database.sorting import SortedId, Start

__all__ = [
    "FORWARD",
    "Filter",
    "FilteredList",
    "ListSummary",
    "PageQuery",
    "Reading",
    "SortOrder",
    "enum_filters",
    "number_filter",
    "several",
]

# Up to this offset, a page may read the rows before it. Beyond it, a page reads only an index before its rows.
MAX_SHALLOW_OFFSET = 1000


class ListSummary(Struct):
    """The number of matching rows, and the sum of their amounts; null for a list without amounts and if none has one.

    Where `count` has reached the limit, `total` may be null, too.
    """

    count: int
    total: Decimal | None


class PageQuery(Protocol):
    """The fields of every list's query."""

    @property
    def start(self) -> str | int: ...
    @property
    def limit(self) -> int: ...
    @property
    def offset(self) -> int: ...


class FilteredList(ListStatements):
    """A list with its filters and sorts, which reads pages, totals and summaries."""

    async def page_ids(self, db: Executor, plan_manager_id: UUID, query: PageQuery, **extra: object) -> list[Any]:
        """The ids of one page and one more, which shows whether another page follows.

        `extra` are the values of filters that the query doesn't have.
        """
        values = self.filter_values(query, extra)
        names = tuple(values)
        if query.offset <= MAX_SHALLOW_OFFSET and self.adapts(names):
            start = Start(str(query.start), str(query.start))
            found = await self.sorted_ids(db, plan_manager_id, query, SortOrder("id", False), start, FORWARD, **extra)
            return [self.parse_id(each.id) for each in found]
        statement = self.page_statement(names)
        page = (query.start, query.limit + 1, query.offset)
        return await db.rows(UUID, statement, plan_manager_id, *page, *values.values())

    async def sorted_ids(
        self,
        db: Executor,
        plan_manager_id: UUID,
        query: PageQuery,
        order: SortOrder,
        start: Start | None,
        reading: Reading = FORWARD,
        **extra: object,
    ) -> list[SortedId]:
        """The ids of one page in another order, after `start`, or backward from it."""
        values = self.filter_values(query, extra)
        names, kind = tuple(values), _start_kind(start)
        is_adaptive = reading == FORWARD and query.offset <= MAX_SHALLOW_OFFSET and self.adapts(names, order)
        if is_adaptive:
            statement = self.adaptive_statement(names, order, kind)
        else:
            statement = self.sorted_statement(names, order, kind, reading)
        page = (query.limit + 1, query.offset)
        return await db.rows(SortedId, statement, plan_manager_id, *page, *_start_values(start), *values.values())

    async def summary(
        self, db: Executor, plan_manager_id: UUID, query: PageQuery, max_rows: int, **extra: object
    ) -> ListSummary:
        """The number of matching rows and their amount, of at most `max_rows` rows."""
        values = self.filter_values(query, extra)
        statement = self.summary_statement(tuple(values))
        return await db.one(ListSummary, statement, plan_manager_id, max_rows, *values.values())

    async def count_before(
        self, db: Executor, plan_manager_id: UUID, query: PageQuery, order: SortOrder, start: Start, **extra: object
    ) -> int:
        """The number of matching rows before `start`."""
        values = self.filter_values(query, extra)
        statement = self.count_before_statement(tuple(values), order, _start_kind(start))
        return await db.one(int, statement, plan_manager_id, *_start_values(start), *values.values())

    async def count(self, db: Executor, plan_manager_id: UUID, query: PageQuery, **extra: object) -> int:
        """The number of matching rows."""
        values = self.filter_values(query, extra)
        return await db.one(int, self.count_statement(tuple(values)), plan_manager_id, *values.values())

    def filter_values(self, query: PageQuery, extra: Mapping[str, object]) -> dict[str, object]:
        """The fields that a request filters by, with their values, in the order of the statements' parameters.

        Several values of an enum are those of another field. A single one in a list is filtered by as such.
        """
        values = {name: extra.get(name, getattr(query, name, UNSET)) for name in self.fields}
        for name in self.enums:
            chosen = values[name]
            if isinstance(chosen, list):
                unique = list(dict.fromkeys(cast("list[object]", chosen)))
                values[name], values[several(name)] = (unique[0], UNSET) if len(unique) == 1 else (UNSET, unique)
        return {name: value for name, value in values.items() if value is not UNSET}

    def parse_id(self, text: str) -> UUID | int:
        """An id of the list from its text."""
        return UUID(text) if self.id_type == "uuid" else int(text)


def _start_kind(start: Start | None) -> LiteralString:
    if start is None:
        return "beginning"
    return "null" if start.value is None else "value"


def _start_values(start: Start | None) -> list[str]:
    """The parameters of a start."""
    return [] if start is None else [start.id] if start.value is None else [start.value, start.id]
