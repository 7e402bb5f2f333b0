"""Pages of lines: those after a line, and numbered ones of lists that are read as a whole, of at most 5,000 lines."""

from collections.abc import Mapping
from typing import NamedTuple

from plankeeper.console.components.pagination import PAGE_SIZE, with_query
from plankeeper.console.shell.forms import parse_number
from plankeeper.console.shell.routing import PageRequest
from plankeeper.core.ids import parse_uuid
from plankeeper.resources.claims.eligibility import LineKey


def key_text(key: LineKey) -> str:
    """A line in an address or a form."""
    return f"{key[0]}.{key[1]}"


def parse_key(text: str) -> LineKey | None:
    """The line of a `key_text`; null for another text."""
    first, _, second = text.partition(".")
    invoice_id, line_id = parse_uuid(first), parse_uuid(second)
    return (invoice_id, line_id) if invoice_id and line_id else None


def key_links(
    url: str, params: Mapping[str, str], last: LineKey | None, after: LineKey | None
) -> dict[str, str | None]:
    """`next` and `first` for the macro `pager`. `last` is the last line of the page, if more follow it."""
    return {
        "next": with_query(url, {**params, "after": key_text(last)}) if last else None,
        "first": with_query(url, params) if after else None,
    }


class PagePart(NamedTuple):
    """The rows of a list that a page shows, from 0, and the addresses of the pages before and after it."""

    first: int
    end: int
    total: int
    previous: str | None
    next: str | None

    @property
    def text(self) -> str:
        """`51–60 of 60`."""
        return f"{self.first + 1:,}–{self.end:,} of {self.total:,}"


def select_part(request: PageRequest, total: int, url: str, params: dict[str, str]) -> PagePart:
    """The page that the address names; the nearest one for a number that doesn't exist."""
    last = max(1, -(-total // PAGE_SIZE))
    number = min(parse_number(request.query.text("page"), 999) or 1, last)

    def page(wanted: int) -> str:
        return with_query(url, params | {"page": str(wanted) if wanted > 1 else ""})

    return PagePart(
        (number - 1) * PAGE_SIZE,
        min(number * PAGE_SIZE, total),
        total,
        page(number - 1) if number > 1 else None,
        page(number + 1) if number < last else None,
    )
