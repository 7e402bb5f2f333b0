"""Request log: recent API requests, newest first."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from plankeeper.api_keys import store as api_key_store
from plankeeper.api_keys.schemas import ApiKey
from plankeeper.console.chart_geometry import Chart
from plankeeper.console.lists.chips import chip_bar
from plankeeper.console.pagination import with_query
from plankeeper.console.request_charts import HOURS, requests_by_hour, requests_by_minute
from plankeeper.console.routing import PREFIX, HtmlPage, PageRequest, Pages
from plankeeper.http.parsing import parse_uuid
from plankeeper.request_log import count_store, store
from plankeeper.request_log.schemas import MAX_KEPT_REQUESTS, LoggedRequest

pages = Pages()

PAGE_SIZE = 100
# Batches of log entries that are read at a time: few first, in case they hold many requests each; then more, but never
# so many that other requests wait for long.
BATCH_SIZES = (20, 200, *[1000] * (MAX_KEPT_REQUESTS // 1000))
STATUSES = {"2xx": "succeeded", "4xx": "rejected", "5xx": "failed"}


class RequestCursor(NamedTuple):
    """The position of a request in the log: its batch, and the number of older requests in the batch."""

    batch: UUID
    older: int


@pages.get("/requests", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    max_lengths = {"key": 36, "status": 3, "text": 200, "request_id": 128}
    filters = {name: request.query.text(name)[:max_length] for name, max_length in max_lengths.items()}
    before = parse_cursor(request.query.text("before"))
    retention_days, is_filtered = request.settings.request_log_retention, any(filters.values())
    charts = await request_charts(request) if retention_days and not before and not is_filtered else None
    rows = await find_requests(request, request_filter(filters), before)
    older = None
    if len(rows) > PAGE_SIZE:
        cursor = rows[PAGE_SIZE - 1][0]
        older = with_query(f"{PREFIX}/requests", {**filters, "before": f"{cursor.batch}.{cursor.older}"})
    # Each worker logs its requests about once a second: requests of several workers are put in order here.
    requests = sorted((entry for _, entry in rows[:PAGE_SIZE]), key=lambda each: each.timestamp, reverse=True)
    keys_by_id = {
        str(each.id): each for each in await api_key_store.list_by_plan_manager(request.db, request.plan_manager_id)
    }
    context = {
        "requests": requests,
        "keys": keys_by_id,
        "older": older,
        "statuses": STATUSES,
        "is_filtered": is_filtered,
        "charts": charts,
    }
    return HtmlPage(
        "request_log.html",
        {
            **context,
            "filters": filters,
            "bar": chip_bar(f"{PREFIX}/requests", filters, filter_texts(filters, keys_by_id)),
            "before": before,
            "retention_days": retention_days,
            "max_entries": MAX_KEPT_REQUESTS,
        },
    )


async def request_charts(request: PageRequest) -> tuple[Chart, Chart]:
    """The requests of the plan manager by minute and by hour."""
    now, zone = datetime.now(UTC), request.settings.time_zone
    counts = await count_store.list_minutes(request.db, request.plan_manager_id, now - timedelta(hours=HOURS))
    return requests_by_minute(counts, now, zone), requests_by_hour(counts, now, zone)


def filter_texts(filters: dict[str, str], keys: Mapping[str, ApiKey]) -> dict[str, str]:
    """The filters that are set, in words."""
    key = keys.get(filters["key"])
    texts = {
        "key": f"API key: {key.name if key else 'deleted key'}",
        "status": f"Status: {filters['status']}",
        "text": f"Method or path: {filters['text']}",
        "request_id": f"Request ID: {filters['request_id']}",
    }
    return {name: text for name, text in texts.items() if filters[name]}


def request_filter(filters: dict[str, str]) -> Callable[[LoggedRequest], bool]:
    """A predicate for the requests that match all filters."""
    key, status, request_id = filters["key"], filters["status"].lower().rstrip("x"), filters["request_id"]
    words = filters["text"].lower().split()

    def matches(request: LoggedRequest) -> bool:
        if (key and request.key_id != key) or (request_id and request.request_id != request_id):
            return False
        if not str(request.status).startswith(status):
            return False
        text = f"{request.method} {request.path} {request.route}".lower() if words else ""
        return all(word in text for word in words)

    return matches


def with_request_id(request_id: str) -> Callable[[LoggedRequest], bool]:
    """A predicate for the requests with an id."""
    return request_filter({"key": "", "status": "", "text": "", "request_id": request_id})


async def find_requests(
    request: PageRequest,
    matches: Callable[[LoggedRequest], bool],
    before: RequestCursor | None,
    limit: int = PAGE_SIZE,
) -> list[tuple[RequestCursor, LoggedRequest]]:
    """The requests of one page and one more, newest first, from the stored requests before the cursor."""
    rows: list[tuple[RequestCursor, LoggedRequest]] = []
    newest, scanned = before.batch if before else None, 0
    for size in BATCH_SIZES:
        batches = await store.list_latest(request.db, request.plan_manager_id, newest, size + 1)
        for batch in batches[:size]:
            numbered = list(enumerate(batch.requests))
            if before and batch.id == before.batch:
                numbered = numbered[: before.older]
            scanned += len(numbered)
            rows += [(RequestCursor(batch.id, index), each) for index, each in reversed(numbered) if matches(each)]
            if len(rows) > limit or scanned >= MAX_KEPT_REQUESTS:
                return rows[: limit + 1]
        if len(batches) <= size:
            break
        newest = batches[-1].id
    return rows


def parse_cursor(text: str) -> RequestCursor | None:
    """The cursor of a page; null for the first page."""
    batch, _, older = text.partition(".")
    batch_id = parse_uuid(batch)
    return RequestCursor(batch_id, int(older)) if batch_id and re.fullmatch("[0-9]{1,6}", older) else None
