"""Links of list pages to the first and the next page."""

from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import urlencode

PAGE_SIZE = 50


class HasId(Protocol):
    """A row of a list."""

    @property
    def id(self) -> object: ...


def with_query(url: str, params: Mapping[str, str]) -> str:
    """The URL with those parameters that are not empty."""
    query = urlencode({name: value for name, value in params.items() if value})
    return f"{url}?{query}" if query else url


def paginate_links(
    url: str, params: Mapping[str, str], rows: Sequence[HasId], after: object, fragment: str = ""
) -> dict[str, str | None]:
    """`next` and `first` for the macro `pager`. `rows` has one row more than a page if there is a next page."""
    has_next = len(rows) > PAGE_SIZE
    return {
        "next": with_query(url, {**params, "after": str(rows[PAGE_SIZE - 1].id)}) + fragment if has_next else None,
        "first": with_query(url, params) + fragment if after else None,
    }
