"""One page of a list of resources, for any set of filters and any order."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from plankeeper.database.client import Executor
from plankeeper.database.cursor_keys import get_key
from plankeeper.database.filters import FORWARD, FilteredList, SortOrder
from plankeeper.database.sorting import Start
from plankeeper.http.cursors import open_cursor, seal_cursor
from plankeeper.http.pagination import PageRows, R, SortableQuery, in_order

# Returns a plan manager's rows with some ids, in any order. Unknown ids are ignored.
GetMany = Callable[[Executor, UUID, Sequence[Any]], Awaitable[Sequence[R]]]


async def fetch_page(
    db: Executor,
    plan_manager_id: UUID,
    query: SortableQuery,
    filtered_list: FilteredList,
    get_many: GetMany[R],
    **extra: object,
) -> PageRows[R]:
    """One page of a list. `extra` are the values of filters that the query doesn't have.

    Rows that are deleted while the page is read are left out. Raises ValidationError for a sealed cursor of another
    list.
    """
    if query.order:
        ids, next_cursor = await _sorted_ids(db, plan_manager_id, query, query.order, filtered_list, extra)
    else:
        ids = await filtered_list.page_ids(db, plan_manager_id, query, **extra)
        next_cursor = str(ids[query.limit - 1]) if len(ids) > query.limit else None
    page = ids[: query.limit]
    rows: Sequence[R] = await get_many(db, plan_manager_id, page) if page else ()
    return PageRows(in_order(page, rows), has_more=len(ids) > query.limit, next_cursor=next_cursor)


async def _sorted_ids(
    db: Executor,
    plan_manager_id: UUID,
    query: SortableQuery,
    order: SortOrder,
    filtered_list: FilteredList,
    extra: dict[str, object],
) -> tuple[list[Any], str | None]:
    """The ids of a page and one more, and the cursor of the next page."""
    values = filtered_list.filter_values(query, extra)
    associated_data = msgspec.msgpack.encode([plan_manager_id, filtered_list.name, order, values], enc_hook=str)
    key = await get_key(db) if query.uses_cursor else None
    start = open_cursor(key, str(query.after), associated_data) if key and query.has_sealed_cursor else None
    found = await filtered_list.sorted_ids(db, plan_manager_id, query, order, start, FORWARD, **extra)
    next_cursor = None
    if key and len(found) > query.limit:
        last = found[query.limit - 1]
        next_cursor = seal_cursor(key, Start(last.value, last.id), associated_data)
    return [filtered_list.parse_id(each.id) for each in found], next_cursor
