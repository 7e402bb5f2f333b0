"""Charts of API requests: by day for a key, by minute and hour for a plan manager."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from http import HTTPStatus
from zoneinfo import ZoneInfo

from plankeeper.access.request_log.schemas import KeyDayCount, MinuteCount
from plankeeper.console.chart_geometry import BarList, Chart, Series
from plankeeper.console.charts import Bar, StackedBar, Unit, bar_list, stacked_bar_chart
from plankeeper.console.lists.filters import time_param
from plankeeper.console.pagination import with_query
from plankeeper.core.formatting import format_date, format_datetime

DAYS, HOURS, MINUTES = 30, 24, 60  # bars of the charts
MAX_CODES = 10
REQUESTS = Unit("request", "requests")
SERIES = (Series("Succeeded", "accent"), Series("Rejected (4xx)", "warn"), Series("Failed (5xx)", "bad"))
SERIES_OF_TIMES = (Series("Succeeded", "accent"), Series("Errors", "bad"))  # few, because there are many bars


def requests_by_day(counts: Iterable[KeyDayCount], today: date) -> Chart:
    """The requests of a key on the last DAYS days."""
    values: defaultdict[date, list[int]] = defaultdict(lambda: [0, 0, 0])
    for each in counts:
        values[each.day][_series_of(each.status)] += each.requests
    days = [today - timedelta(days=DAYS - 1 - index) for index in range(DAYS)]
    bars = [_bar(f"{day.day} {day:%b}", format_date(day), values[day]) for day in days]
    return stacked_bar_chart(f"Requests by day, last {DAYS} days", SERIES, bars, unit=REQUESTS, head="Day")


def errors_by_code(counts: Iterable[KeyDayCount], key_id: str) -> BarList:
    """The error codes of a key with their numbers of requests, the most frequent first. Each leads to its requests."""
    errors: Counter[tuple[int, str]] = Counter()
    for each in counts:
        if each.status >= HTTPStatus.BAD_REQUEST:
            errors[each.status, each.error_code] += each.requests
    bars = [
        Bar(
            f"{status} {code or _phrase(status)}",
            requests,
            with_query("/console/requests", {"key": key_id, "status": str(status)}),
            tone=SERIES[_series_of(status)].tone,
        )
        for (status, code), requests in errors.most_common(MAX_CODES)
    ]
    return bar_list(f"Errors by code, last {DAYS} days", bars, unit=REQUESTS)


def requests_by_minute(counts: Sequence[MinuteCount], now: datetime, zone: ZoneInfo) -> Chart:
    """The requests of a plan manager in the last MINUTES minutes."""
    last = now.replace(second=0, microsecond=0)
    return _chart_of_times(f"Requests by minute, last {MINUTES} minutes", counts, last, timedelta(minutes=1), zone)


def requests_by_hour(counts: Sequence[MinuteCount], now: datetime, zone: ZoneInfo) -> Chart:
    """The requests of a plan manager in the last HOURS hours."""
    last = now.replace(minute=0, second=0, microsecond=0)
    return _chart_of_times(f"Requests by hour, last {HOURS} hours", counts, last, timedelta(hours=1), zone)


def _chart_of_times(
    title: str, counts: Sequence[MinuteCount], last: datetime, step: timedelta, zone: ZoneInfo
) -> Chart:
    """Bars of a minute or an hour each; `last` is the beginning of the last one."""
    head, bars = ("Hour", HOURS) if step == timedelta(hours=1) else ("Minute", MINUTES)
    values: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    for each in counts:
        value = values[(each.minute - last) // step]
        value[0] += each.requests - each.rejected - each.failed
        value[1] += each.rejected + each.failed
    starts = [(index, last + index * step) for index in range(1 - bars, 1)]
    columns = [_bar_of_time(start, step, zone, values[index]) for index, start in starts]
    return stacked_bar_chart(title, SERIES_OF_TIMES, columns, unit=REQUESTS, head=head)


def _bar_of_time(start: datetime, step: timedelta, zone: ZoneInfo, values: Sequence[int]) -> StackedBar:
    """A bar that leads to the requests of its minute or hour on the same page."""
    name = format_datetime(start, zone)
    bar = _bar(name.partition(", ")[2], name, values)
    return replace(bar, url=with_query("", {"time": time_param(start, step)})) if any(values) else bar


def _bar(label: str, name: str, values: Sequence[int]) -> StackedBar:
    return StackedBar(label, values, [None] * len(values), None, name)


def _series_of(status: int) -> int:
    """The position in SERIES."""
    return 2 if status >= HTTPStatus.INTERNAL_SERVER_ERROR else 1 if status >= HTTPStatus.BAD_REQUEST else 0


def _phrase(status: int) -> str:
    """HTTP's phrase for a status; 499 is for a client that closed the connection."""
    return HTTPStatus(status).phrase if status in {*HTTPStatus} else "Connection closed by the client"
