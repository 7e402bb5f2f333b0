"""Links of list pages to the first and the next page."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from plankeeper.core.lists import PageRows

PAGE_SIZE = 50


def with_query(url: str, params: Mapping[str, str]) -> str:
    """The URL with those parameters that are not empty."""
    query = urlencode({name: value for name, value in params.items() if value})
    return f"{url}?{query}" if query else url


def paginate_links(
    url: str, params: Mapping[str, str], rows: PageRows[Any], after: object, fragment: str = ""
) -> dict[str, str | None]:
    """`next` and `first` for the macro `pager`."""
    return {
        "next": with_query(url, {**params, "after": rows.next_cursor}) + fragment if rows.next_cursor else None,
        "first": with_query(url, params) + fragment if after else None,
    }
