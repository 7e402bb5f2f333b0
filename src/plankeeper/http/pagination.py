"""Pages: a store is asked for one row more than the limit, which tells whether there are more."""

from typing import TypeVar

from plankeeper.http.schemas import ListQuery, Page, PaginationMeta

T = TypeVar("T")


def build_page(query: ListQuery, rows: list[T], total: int | None, cursor_field: str = "id") -> Page[T]:
    """One page: in offset mode with the total, in cursor mode (total null) with the next cursor.

    `rows` may hold one more than the limit. `cursor` names the member whose value `after` takes.
    """
    has_more = len(rows) > query.limit
    items = rows[: query.limit]
    next_cursor = str(getattr(items[-1], cursor_field)) if has_more and total is None else None
    return Page(items, PaginationMeta(query.limit, query.offset, has_more, total, next_cursor))
