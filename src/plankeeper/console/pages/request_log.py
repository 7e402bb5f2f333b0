"""Request log: recent API requests, newest first, and the page of each."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import cast

from plankeeper.access.request_log import store
from plankeeper.access.request_log.schemas import LoggedRequest
from plankeeper.console.batch_undo import LONGEST_REQUEST
from plankeeper.console.chart_geometry import Chart
from plankeeper.console.lists.page import show_list
from plankeeper.console.lists.requests import REQUESTS, load_keys
from plankeeper.console.lists.saved_views import parse_query_text
from plankeeper.console.lists.selection import download_list
from plankeeper.console.logged_requests import get_request
from plankeeper.console.request_charts import HOURS, requests_by_hour, requests_by_minute
from plankeeper.console.routing import Download, HtmlPage, PageRequest, Pages
from plankeeper.core.context import or_404
from plankeeper.core.errors import (
    CODES,
    DOCUMENTATION_PATH,
    FIELD_CODES,
    ErrorCode,
)
from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.core.validation import HIDDEN_NAME
from plankeeper.events import activity_store
from plankeeper.events.schemas import RequestEvents

pages = Pages()

# Parameters of pages that have the charts: others show a part of the requests.
CHART_PARAMS = {"time", "size"}


@pages.get("/requests", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    retention_days = request.settings.request_log_retention
    charts = await request_charts(request) if retention_days and CHART_PARAMS.issuperset(request.query) else None
    return await show_list(request, REQUESTS, "request_log.html", charts=charts, retention_days=retention_days)


@pages.get("/requests.csv", role="viewer")
async def download(request: PageRequest) -> Download:
    return await download_list(request, REQUESTS)


@pages.get("/requests/{logged_request_id}", role="viewer")
async def get(request: PageRequest, logged_request_id: str) -> HtmlPage:
    logged = or_404(await get_request(request, logged_request_id)).request
    keys = await load_keys(request, logged.key_id)
    error = CODES.get(cast("ErrorCode", logged.error_code))
    context = {
        "logged": logged,
        "key_name": keys[logged.key_id],
        "error": error,
        "field_sentences": FIELD_CODES,
        "has_hidden_name": any(each.field.endswith(HIDDEN_NAME) for each in logged.field_errors),
        "documentation_path": DOCUMENTATION_PATH,
        "events": await list_events(request, logged),
        "back_url": parse_query_text(REQUESTS, request.query.raw("list"), keep_page=True).url(),
    }
    return HtmlPage("logged_request.html", context)


async def list_events(request: PageRequest, logged: LoggedRequest) -> Sequence[RequestEvents]:
    """The events that the request recorded, by type. A failed request, and a read, recorded none."""
    if logged.status >= HTTPStatus.BAD_REQUEST or logged.method in ("GET", "HEAD"):
        return []
    at = logged.responded_at
    start, end = (uuid7_lower_bound(at + each) for each in (-LONGEST_REQUEST, LONGEST_REQUEST))
    place = (request.db, request.plan_manager_id, start, end)
    return await activity_store.count_by_type(*place, logged.request_id, logged.key_id)


async def request_charts(request: PageRequest) -> tuple[Chart, Chart]:
    """The requests of the plan manager by minute and by hour."""
    now, zone = datetime.now(UTC), request.settings.time_zone
    counts = await store.list_minutes(request.db, request.plan_manager_id, now - timedelta(hours=HOURS))
    return requests_by_minute(counts, now, zone), requests_by_hour(counts, now, zone)
