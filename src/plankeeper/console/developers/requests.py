"""Request log: recent API requests, newest first, and the page of each."""

import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus
from typing import Any, NamedTuple, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.access.api_keys import store as api_key_store
from plankeeper.access.request_log import store
from plankeeper.access.request_log.schemas import (
    MAX_KEPT_REQUESTS,
    KeyDayCount,
    LoggedFieldError,
    LoggedRequest,
    MinuteCount,
    RequestBatch,
)
from plankeeper.console.activity.undo import LONGEST_REQUEST
from plankeeper.console.components.chart_geometry import BarList, Chart, Series
from plankeeper.console.components.charts import (
    Bar,
    StackedBar,
    Unit,
    bar_list,
    stacked_bar_chart,
)
from plankeeper.console.components.pagination import with_query
from plankeeper.console.lists.dates import LOG_PRESETS, TimeRange
from plankeeper.console.lists.definition import (
    BuiltInView,
    Column,
    ListDefinition,
    Names,
    PagePosition,
    SourceCount,
    SourcePage,
    cut_source_page,
)
from plankeeper.console.lists.filters import ChoiceFilter, TextFilter, day_filter, time_filter, time_param
from plankeeper.console.lists.page import show_list
from plankeeper.console.lists.registration import add_files
from plankeeper.console.lists.saved_views import parse_query_text
from plankeeper.console.shell.routing import (
    HtmlPage,
    PageRequest,
    Pages,
)
from plankeeper.core.context import or_404
from plankeeper.core.errors import (
    CODES,
    DOCUMENTATION_PATH,
    FIELD_CODES,
    ErrorCode,
)
from plankeeper.core.formatting import format_date, format_datetime
from plankeeper.core.ids import parse_uuid, uuid7_lower_bound
from plankeeper.core.validation import HIDDEN_NAME
from plankeeper.events import activity_store
from plankeeper.events.schemas import RequestEvents

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


DAYS, HOURS, MINUTES = 30, 24, 60  # bars of the charts
MAX_CODES = 10
REQUEST_UNIT = Unit("request", "requests")
SERIES = (Series("Succeeded", "accent"), Series("Rejected (4xx)", "warn"), Series("Failed (5xx)", "bad"))
SERIES_OF_TIMES = (Series("Succeeded", "accent"), Series("Errors", "bad"))  # few, because there are many bars


def requests_by_day(counts: Iterable[KeyDayCount], today: date) -> Chart:
    """The requests of a key on the last DAYS days."""
    values: defaultdict[date, list[int]] = defaultdict(lambda: [0, 0, 0])
    for each in counts:
        values[each.day][_series_of(each.status)] += each.requests
    days = [today - timedelta(days=DAYS - 1 - index) for index in range(DAYS)]
    bars = [_bar(f"{day.day} {day:%b}", format_date(day), values[day]) for day in days]
    return stacked_bar_chart(f"Requests by day, last {DAYS} days", SERIES, bars, unit=REQUEST_UNIT, head="Day")


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
    return bar_list(f"Errors by code, last {DAYS} days", bars, unit=REQUEST_UNIT)


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
    return stacked_bar_chart(title, SERIES_OF_TIMES, columns, unit=REQUEST_UNIT, head=head)


def _bar_of_time(start: datetime, step: timedelta, zone: ZoneInfo, values: Sequence[int]) -> StackedBar:
    """A bar that leads to the requests of its minute or hour on the same page."""
    name = format_datetime(start, zone)
    label = name.partition(", ")[2]
    bar = _bar(label, name if step == timedelta(hours=1) else label, values)
    return replace(bar, url=with_query("", {"time": time_param(start, step)})) if any(values) else bar


def _bar(label: str, name: str, values: Sequence[int]) -> StackedBar:
    return StackedBar(label, values, [None] * len(values), None, name)


def _series_of(status: int) -> int:
    """The position in SERIES."""
    return 2 if status >= HTTPStatus.INTERNAL_SERVER_ERROR else 1 if status >= HTTPStatus.BAD_REQUEST else 0


def _phrase(status: int) -> str:
    """HTTP's phrase for a status; 499 is for a client that closed the connection."""
    return HTTPStatus(status).phrase if status in {*HTTPStatus} else "Connection closed by the client"


_STATUS = re.compile("[1-5]([0-9]{2}|xx)", re.IGNORECASE)
STATUSES = {"2xx": "Succeeded (2xx)", "4xx": "Rejected (4xx)", "5xx": "Failed (5xx)"}


class Outcome(NamedTuple):
    """The status of a response, with the code of its error and the fields that were invalid."""

    status: int
    error_code: str | None
    field_errors: Sequence[LoggedFieldError] = ()
    errors_total: int = 0

    def __str__(self) -> str:
        return f"{self.status} {self.error_code or ''}".rstrip()


async def load_keys(request: PageRequest, chosen: str) -> Mapping[str, str]:
    """The names of the API keys, and of a deleted one if it is chosen."""
    keys = await api_key_store.list_by_plan_manager(request.db, request.plan_manager_id)
    names = {str(each.id): f"{each.name} …{each.last_four}" for each in keys}
    return names | ({chosen: "deleted key"} if chosen and chosen not in names else {})


async def load_statuses(_request: PageRequest, chosen: str) -> Mapping[str, str]:
    """Groups of statuses, and a single one if it is chosen."""
    return STATUSES | ({chosen: STATUSES.get(chosen.lower(), chosen)} if _STATUS.fullmatch(chosen) else {})


async def load_names(request: PageRequest, rows: Sequence[Any]) -> Names:
    """The names of the API keys by id."""
    names: Names = await load_keys(request, "") if rows else {}
    return names


def list_field_errors(request: LoggedRequest) -> list[str]:
    """The fields that were invalid, each with its code."""
    more = request.errors_total - len(request.field_errors)
    return [*map(str, request.field_errors), *([f"{more:,} more"] if more > 0 else [])]


def _key(row: KeptRequest, names: Names) -> str:
    return names.get(row.request.key_id) or "deleted key"


def _line(row: KeptRequest, _names: Names) -> str:
    return f"{row.request.method} {row.request.path}"


def _outcome(row: KeptRequest, _names: Names) -> Outcome:
    return Outcome(row.request.status, row.request.error_code, row.request.field_errors, row.request.errors_total)


def _field_errors(row: KeptRequest, _names: Names) -> list[str]:
    return list_field_errors(row.request)


def _duration(row: KeptRequest, _names: Names) -> str:
    return f"{row.request.duration_ms} ms"


def _user_agent(row: KeptRequest, _names: Names) -> str:
    return row.request.user_agent or ""


async def _text_values(_request: PageRequest, text: str) -> Mapping[str, object]:
    return {"words": text.lower().split()}


async def _id_values(_request: PageRequest, text: str) -> Mapping[str, object]:
    return {"request_id": text}


FILE_COLUMNS = (
    Column("field_errors", "Invalid fields", "tags", _field_errors, is_default=False),
    Column("user_agent", "User agent", "text", _user_agent, is_default=False),
)
COLUMNS = (
    Column("at", "Time", "record_time", path="request.responded_at"),
    Column("request", "Request", "code", _line),
    Column("status", "Status", "request_status", _outcome),
    Column("duration", "Duration", "text", _duration),
    Column("key", "API key", "text", _key),
    Column("request_id", "Request ID", "request_id", path="request.request_id"),
    *FILE_COLUMNS,
)
FILTERS = (
    TextFilter("text", "Method or path", _text_values, placeholder="PUT participants", is_search=True),
    ChoiceFilter("key", "API key", {}, lambda choice: {"key": choice}, load_choices=load_keys),
    ChoiceFilter("status", "Status", {}, lambda choice: {"status": choice.rstrip("xX")}, load_choices=load_statuses),
    day_filter("Date", LOG_PRESETS),
    time_filter("Time"),
    TextFilter("request_id", "Request ID", _id_values),
)
REQUESTS = ListDefinition(
    kind="requests",
    title="Requests",
    one="request",
    many="requests",
    rows=RequestSource(),
    columns=COLUMNS,
    filters=FILTERS,
    sort="-at",
    page_size=25,  # beside charts
    empty="There are no recent API requests.",
    views=(BuiltInView("Rejected", {"status": "4xx"}), BuiltInView("Failed", {"status": "5xx"})),
    load_names=load_names,
    file_columns=FILE_COLUMNS,
)

pages = Pages()

# Parameters of pages that have the charts: others show a part of the requests.
CHART_PARAMS = {"time", "size"}


@pages.get("/requests", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    retention_days = request.settings.request_log_retention
    charts = await request_charts(request) if retention_days and CHART_PARAMS.issuperset(request.query) else None
    return await show_list(
        request, REQUESTS, "developers/request_log.html", charts=charts, retention_days=retention_days
    )


add_files(pages, REQUESTS)


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
    return HtmlPage("developers/logged_request.html", context)


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
