"""Reads one page of a list, its summary, and the position of a record with its neighbours."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from uuid import UUID

import msgspec

from plankeeper.console.lists.definition import MAX_COUNTED, ListDefinition, PagePosition, RowSource
from plankeeper.console.lists.query import ListPageQuery, parse_filters, parse_list_query
from plankeeper.console.shell.forms import parse_form
from plankeeper.console.shell.routing import FormRequest, PageRequest
from plankeeper.core.errors import ValidationError
from plankeeper.core.lists import decrypt_cursor, encrypt_cursor, in_order
from plankeeper.database.client import Executor
from plankeeper.database.lists.cursor_keys import get_key
from plankeeper.database.lists.filtered_list import ListSummary
from plankeeper.database.lists.statements import SortedId, Start
from plankeeper.resources.viewer_limits import LIMIT

BATCH_SIZE = 500  # rows that are read at once for a file or a change


@dataclass(slots=True)
class RowsPage:
    """One page of rows. `position` is that of the first row, from 1; null if it would take too long to find.

    `count` is exact, or null for more than MAX_COUNTED rows; `amount` is their sum.
    """

    rows: Sequence[Any] = ()
    count: int | None = 0
    amount: Decimal | None = None
    position: int | None = 1
    previous: ListPageQuery | None = None
    next: ListPageQuery | None = None
    count_text: str = ""  # instead of the count


async def read_source_page(
    request: PageRequest, source: RowSource, query: ListPageQuery, values: Mapping[str, Any]
) -> RowsPage:
    """The page of a list with a source. The number of rows before it isn't known."""
    found = await source.read_page(
        request, values, PagePosition(query.size, query.after, query.before, not query.order.descending)
    )
    count = await source.count(request, values)
    return RowsPage(
        found.rows,
        count.number,
        position=None,
        previous=query.first_page(before=found.previous) if found.previous else None,
        next=query.first_page(after=found.next) if found.next else None,
        count_text=count.text,
    )


@dataclass(slots=True)
class ListReader:
    """Reads the rows of a list with the values of its filters."""

    db: Executor
    plan_manager_id: UUID
    query: ListPageQuery
    values: Mapping[str, Any]
    _key: bytes | None = field(default=None, init=False)

    async def read_summary(self) -> ListSummary:
        """The number of rows and their amount, of at most one more than MAX_COUNTED."""
        rows = self.query.definition.table
        return await rows.summary(self.db, self.plan_manager_id, self.values, MAX_COUNTED + 1)

    async def read_page(self) -> RowsPage:
        """The page of the query; the first one if its cursor belongs to another list."""
        summary = await self.read_summary()
        is_counted = summary.count <= MAX_COUNTED
        start = await self._open(self.query.after or self.query.before)
        is_backward = bool(self.query.before) and not self.query.after and start is not None
        found = await self.read_ids(start, self.query.size, is_backward=is_backward)
        has_more = len(found) > self.query.size
        ids = found[: self.query.size]
        if is_backward:
            ids.reverse()
        page = RowsPage(await self.get_rows(ids), summary.count if is_counted else None, summary.amount)
        has_previous, has_next = (has_more, True) if is_backward else (start is not None, has_more)
        if ids and has_previous:
            page.previous = self.query.first_page(before=await self._seal(ids[0]))
        if ids and has_next:
            page.next = self.query.first_page(after=await self._seal(ids[-1]))
        if not is_counted:
            page.amount = None
            page.position = None if has_previous else 1
        elif ids and has_previous:
            page.position = 1 + await self.count_before(Start(ids[0].value, ids[0].id))
        return page

    async def read_batches(self) -> AsyncIterator[list[Any]]:
        """All rows, at most BATCH_SIZE at a time."""
        start: Start | None = None
        while True:
            found = await self.read_ids(start, BATCH_SIZE)
            yield await self.get_rows(found[:BATCH_SIZE])
            if len(found) <= BATCH_SIZE:
                return
            start = Start(found[BATCH_SIZE - 1].value, found[BATCH_SIZE - 1].id)

    async def read_ids(self, start: Start | None, limit: int, *, is_backward: bool = False) -> list[SortedId]:
        """The ids after a start, or before it, the nearest first: one more than `limit`."""
        place = (self.db, self.plan_manager_id, self.values, limit, 0, self.query.order, start)
        return await self.query.definition.table.page(*place, is_backward=is_backward)

    async def count_before(self, start: Start) -> int:
        """The number of rows before a row."""
        rows = self.query.definition.table
        return await rows.count_before(self.db, self.plan_manager_id, self.values, self.query.order, start)

    async def find(self, record_id: UUID, *, is_filtered: bool = True) -> Start | None:
        """The position of a record in the order of the list; null if the list doesn't contain it.

        Not filtered: also of a record that doesn't match the filters any more.
        """
        rows = self.query.definition.table
        values = {name: each for name, each in self.values.items() if is_filtered or name == LIMIT}
        values |= {"id": [record_id]}
        found = await rows.page(self.db, self.plan_manager_id, values, 1, 0, self.query.order)
        return Start(found[0].value, found[0].id) if found else None

    async def get_rows(self, ids: Sequence[SortedId]) -> list[Any]:
        """The rows with these ids, in this order, without those that no longer exist."""
        definition = self.query.definition
        parsed = [definition.table.parse_id(each.id) for each in ids]
        rows = await definition.get_rows(self.db, self.plan_manager_id, parsed) if parsed else ()
        return in_order(parsed, rows)

    @property
    def _associated_data(self) -> bytes:
        definition = self.query.definition
        content = ["console", self.plan_manager_id, definition.kind, self.query.order, dict(self.values)]
        return msgspec.msgpack.encode(content, enc_hook=str)

    async def _get_key(self) -> bytes:
        if self._key is None:
            self._key = await get_key(self.db)
        return self._key

    async def _seal(self, row: SortedId) -> str:
        return encrypt_cursor(await self._get_key(), Start(row.value, row.id), self._associated_data)

    async def _open(self, cursor: str) -> Start | None:
        """The row of a cursor; null for one of another list, such as that of yesterday's date preset."""
        if not cursor:
            return None
        try:
            return decrypt_cursor(await self._get_key(), cursor, self._associated_data)
        except ValidationError:
            return None


MAX_QUERY_LENGTH = 4000


@dataclass(frozen=True, slots=True)
class ListPlace:
    """The position of a record in a list: `position` of `total`, with the pages of its neighbours.

    If the record doesn't match the filters any more, `matches_filters` is false and `position` is null. In a list of
    more than 10,000 records, `position` and `total` are null. `query` is the value of `list` for links to pages that
    keep the position.
    """

    title: str
    one: str
    query: str
    back_url: str
    matches_filters: bool = False
    previous_url: str | None = None
    next_url: str | None = None
    position: int | None = None
    total: int | None = None

    @property
    def suffix(self) -> str:
        """The query that keeps the position in the address of a page of the record."""
        return _suffix(self.query)


async def list_position(request: PageRequest, definition: ListDefinition, record_id: UUID) -> ListPlace | None:
    """The position of a record in the list of the parameter `list`; null if the page wasn't opened from a list.

    For a form, it is the position after the form's write.
    """
    text = request.query.raw("list") if "list" in request.query else None
    if text is None or len(text) > MAX_QUERY_LENGTH:
        return None
    try:
        query = parse_list_query(definition, parse_form(text.encode()))
    except ValidationError:
        return None
    query, filters = await parse_filters(request, query)
    if filters.errors:
        return ListPlace(definition.title, definition.one, text, query.url())
    db = request.tx if isinstance(request, FormRequest) else request.db
    reader = ListReader(db, request.plan_manager_id, query, filters.values)
    return await _find_place(reader, record_id)


async def _find_place(reader: ListReader, record_id: UUID) -> ListPlace:
    query = reader.query
    start = await reader.find(record_id)
    matches_filters = start is not None
    start = start or await reader.find(record_id, is_filtered=False)
    if start is None:
        return ListPlace(query.definition.title, query.definition.one, query.text, query.url())
    count = (await reader.read_summary()).count
    is_counted = count <= MAX_COUNTED
    return ListPlace(
        query.definition.title,
        query.definition.one,
        query.text,
        query.url(),
        matches_filters,
        await _neighbour_url(reader, start, is_backward=True),
        await _neighbour_url(reader, start, is_backward=False),
        1 + await reader.count_before(start) if matches_filters and is_counted else None,
        count if is_counted else None,
    )


async def _neighbour_url(reader: ListReader, start: Start, *, is_backward: bool) -> str | None:
    found = await reader.read_ids(start, 1, is_backward=is_backward)
    return record_url(reader.query, found[0].id) if found else None


def record_url(query: ListPageQuery, record_id: object) -> str:
    """The page of a record, with its position in the list."""
    return query.definition.record_path(record_id) + _suffix(query.text)


def _suffix(text: str) -> str:
    return f"?list={quote(text, safe='=')}"
