"""Sources of lists with their own cursors, newest first: the activity, API requests, deliveries of webhooks."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from plankeeper.console.routing import PageRequest


class PagePosition(NamedTuple):
    """The start of a page of a list: after a row, before one, or at the beginning."""

    size: int
    after: str = ""
    before: str = ""
    is_ascending: bool = False  # whether the oldest rows come first, in lists that have this order

    @property
    def is_backward(self) -> bool:
        return bool(self.before) and not self.after

    @property
    def start(self) -> str:
        return self.after or self.before


@dataclass(slots=True)
class SourcePage:
    """The rows of a page, with the cursors of the pages before and after it; empty where there is none."""

    rows: Sequence[Any]
    previous: str = ""
    next: str = ""


class SourceCount(NamedTuple):
    """The number of matching rows; null for more than are counted. `text` says it if the number is not exact."""

    number: int | None
    text: str = ""


class RowSource(Protocol):
    """Reads the rows of a list, newest first, with the values of its filters."""

    async def read_page(self, request: PageRequest, values: Mapping[str, Any], place: PagePosition) -> SourcePage: ...

    async def count(self, request: PageRequest, values: Mapping[str, Any]) -> SourceCount: ...

    def read_batches(self, request: PageRequest, values: Mapping[str, Any]) -> AsyncIterator[Sequence[Any]]:
        """All rows, for a file."""
        ...


def cut_source_page(
    place: PagePosition, found: Sequence[Any], first_cursor: Callable[[Any], str], last_cursor: Callable[[Any], str]
) -> SourcePage:
    """The page of rows that were found from its start on, nearest first; one more shows that others follow.

    The cursors are those of a row for the pages before and after it.
    """
    rows = list(found[: place.size])
    if place.is_backward:
        rows.reverse()
    has_more = len(found) > place.size
    has_previous, has_next = (has_more, True) if place.is_backward else (bool(place.start), has_more)
    page = SourcePage(rows)
    if rows and has_previous:
        page.previous = first_cursor(rows[0])
    if rows and has_next:
        page.next = last_cursor(rows[-1])
    return page
