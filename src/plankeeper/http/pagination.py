"""Pages: a store is asked for one row more than the limit, which tells whether there are more."""

from typing import TypeVar

from plankeeper.http.schemas import ListQuery, Page, PaginationMeta

T = TypeVar("T")


def page_of(query: ListQuery, rows: list[T], total: int | None, cursor: str = "id") -> Page[T]:
    """One page: in offset mode with the total, in cursor mode (total null) with the next cursor.

    `rows` may hold one more than the limit. `cursor` names the member whose value `after` takes.
    """
    more = len(rows) > query.limit
    page = rows[: query.limit]
    following = str(getattr(page[-1], cursor)) if more and total is None else None
    return Page(page, PaginationMeta(query.limit, query.offset, more, total, following))
