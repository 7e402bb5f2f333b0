"""Reads the log of API requests, whose rows are batches: the requests of a page, their number, and all of them."""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from plankeeper.access.request_log import store
from plankeeper.access.request_log.schemas import MAX_KEPT_REQUESTS, LoggedRequest, RequestBatch
from plankeeper.console.lists.dates import TimeRange
from plankeeper.console.lists.definition import PagePosition, SourceCount, SourcePage, cut_source_page
from plankeeper.console.routing import PageRequest
from plankeeper.core.ids import parse_uuid

# Batches of log entries that are read at a time: few first, in case they hold many requests each; then more, but never
# so many that other requests wait for long.
BATCH_SIZES = (20, 200, *[1000] * (MAX_KEPT_REQUESTS // 1000))
FILE_BATCH_SIZE = 500  # requests in a chunk of a file


class RequestCursor(NamedTuple):
    """The position of a request in the log: its batch, and the number of older requests in the batch."""

    batch: UUID
    older: int


class KeptRequest(NamedTuple):
    """A request of the log with its position."""

    cursor: RequestCursor
    request: LoggedRequest

    @property
    def id(self) -> str:
        return f"{self.cursor.batch}.{self.cursor.older}"


async def get_request(request: PageRequest, text: str) -> KeptRequest | None:
    """The request of the plan manager with an id as in `KeptRequest.id`."""
    cursor = parse_cursor(text)
    batch = await store.get(request.db, request.plan_manager_id, cursor.batch) if cursor else None
    if cursor is None or batch is None or cursor.older >= len(batch.requests):
        return None
    return KeptRequest(cursor, batch.requests[cursor.older])


class RequestSource:
    """The rows of the list of requests."""

    async def read_page(self, request: PageRequest, values: Mapping[str, Any], place: PagePosition) -> SourcePage:
        start = parse_cursor(place.start)
        place = place if start else PagePosition(place.size)
        found = await find_requests(request, request_filter(values), start, place.size, is_backward=place.is_backward)
        page = cut_source_page(place, found, lambda row: row.id, lambda row: row.id)
        page.rows = in_order_of_time(page.rows)
        return page

    async def count(self, request: PageRequest, values: Mapping[str, Any]) -> SourceCount:
        """The number of the latest requests, of which the log keeps as many as are counted."""
        if not values:
            stored = await store.count(request.db, request.plan_manager_id)
            return SourceCount(stored if stored <= MAX_KEPT_REQUESTS else None)
        return SourceCount(len(await find_requests(request, request_filter(values), None, MAX_KEPT_REQUESTS)))

    async def read_batches(self, request: PageRequest, values: Mapping[str, Any]) -> AsyncIterator[Sequence[Any]]:
        start: RequestCursor | None = None
        while True:
            found = await find_requests(request, request_filter(values), start, FILE_BATCH_SIZE)
            rows = found[:FILE_BATCH_SIZE]
            yield in_order_of_time(rows)
            if len(found) <= FILE_BATCH_SIZE:
                return
            start = rows[-1].cursor


def in_order_of_time(rows: Sequence[KeptRequest]) -> list[KeptRequest]:
    """The requests newest first: each worker logs its own about once a second."""
    return sorted(rows, key=lambda each: each.request.timestamp, reverse=True)


def request_filter(values: Mapping[str, Any]) -> Callable[[LoggedRequest], bool]:
    """A predicate for the requests that match all filters."""
    key, status, request_id = (values.get(name, "") for name in ("key", "status", "request_id"))
    words: Sequence[str] = values.get("words", ())
    ranges = [each for name in ("days", "time") if (each := values.get(name))]

    def matches(request: LoggedRequest) -> bool:
        if (key and request.key_id != key) or (request_id and request.request_id != request_id):
            return False
        if not str(request.status).startswith(status) or not all(_is_in(request, each) for each in ranges):
            return False
        text = f"{request.method} {request.path} {request.route}".lower() if words else ""
        return all(word in text for word in words)

    return matches


def _is_in(request: LoggedRequest, times: TimeRange) -> bool:
    at = request.responded_at
    return (times.start is None or at >= times.start) and (times.end is None or at < times.end)


async def find_requests(
    request: PageRequest,
    matches: Callable[[LoggedRequest], bool],
    start: RequestCursor | None,
    limit: int,
    *,
    is_backward: bool = False,
) -> list[KeptRequest]:
    """The requests of one page and one more, from the stored requests older than the start, or newer: nearest first."""
    rows: list[KeptRequest] = []
    position, scanned = start.batch if start else None, 0
    list_batches = store.list_earliest if is_backward else store.list_latest
    for size in BATCH_SIZES:
        batches = await list_batches(request.db, request.plan_manager_id, position, size + 1)
        for batch in batches[:size]:
            numbered = _requests_from(batch, start, is_backward=is_backward)
            scanned += len(numbered)
            rows += [each for each in numbered if matches(each.request)]
            if len(rows) > limit or scanned >= MAX_KEPT_REQUESTS:
                return rows[: limit + 1]
        if len(batches) <= size:
            break
        position = batches[-1].id
    return rows


def _requests_from(batch: RequestBatch, start: RequestCursor | None, *, is_backward: bool) -> list[KeptRequest]:
    """The requests of a batch beyond the start, nearest first."""
    rows = [KeptRequest(RequestCursor(batch.id, index), each) for index, each in enumerate(batch.requests)]
    if start is None or batch.id != start.batch:
        return rows if is_backward else rows[::-1]
    return rows[start.older + 1 :] if is_backward else rows[: start.older][::-1]


def parse_cursor(text: str) -> RequestCursor | None:
    """The cursor of a page; null for the first page."""
    batch, _, older = text.partition(".")
    batch_id = parse_uuid(batch)
    return RequestCursor(batch_id, int(older)) if batch_id and re.fullmatch("[0-9]{1,6}", older) else None
