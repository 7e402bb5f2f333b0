"""Request log: recent API requests, newest first."""

from datetime import UTC, datetime, timedelta

from plankeeper.console.chart_geometry import Chart
from plankeeper.console.lists.download import download_list
from plankeeper.console.lists.page import show_list
from plankeeper.console.lists.requests import REQUESTS
from plankeeper.console.request_charts import HOURS, requests_by_hour, requests_by_minute
from plankeeper.console.routing import Download, HtmlPage, PageRequest, Pages
from plankeeper.request_log import count_store

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


async def request_charts(request: PageRequest) -> tuple[Chart, Chart]:
    """The requests of the plan manager by minute and by hour."""
    now, zone = datetime.now(UTC), request.settings.time_zone
    counts = await count_store.list_minutes(request.db, request.plan_manager_id, now - timedelta(hours=HOURS))
    return requests_by_minute(counts, now, zone), requests_by_hour(counts, now, zone)
