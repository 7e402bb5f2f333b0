"""Numbered pages of lists that are read as a whole: at most 5,000 lines."""

from typing import NamedTuple

from plankeeper.console.components.pagination import PAGE_SIZE, with_query
from plankeeper.console.shell.routing import PageRequest


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
    last, text = max(1, -(-total // PAGE_SIZE)), request.query.text("page")
    number = min(max(1, int(text)), last) if text.isascii() and text.isdigit() and len(text) < 4 else 1

    def page(wanted: int) -> str:
        return with_query(url, params | {"page": str(wanted) if wanted > 1 else ""})

    return PagePart(
        (number - 1) * PAGE_SIZE,
        min(number * PAGE_SIZE, total),
        total,
        page(number - 1) if number > 1 else None,
        page(number + 1) if number < last else None,
    )
