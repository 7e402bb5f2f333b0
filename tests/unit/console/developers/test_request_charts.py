"""Charts of API requests, without a database."""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.access.request_log.schemas import KeyDayCount, MinuteCount
from plankeeper.console.components.chart_geometry import Chart
from plankeeper.console.developers.requests import (
    DAYS,
    HOURS,
    MINUTES,
    errors_by_code,
    requests_by_day,
    requests_by_hour,
    requests_by_minute,
)

OWNER, KEY = UUID(int=1), UUID(int=2)
TODAY = date(2026, 11, 23)
NOW = datetime(2026, 11, 23, 2, 30, 45, tzinfo=UTC)
SYDNEY = ZoneInfo("Australia/Sydney")


def day(age: int, status: int, requests: int, error_code: str = "") -> KeyDayCount:
    return KeyDayCount(OWNER, KEY, TODAY - timedelta(days=age), status, error_code, requests)


def minute(age: int, requests: int, rejected: int = 0, failed: int = 0) -> MinuteCount:
    start = NOW.replace(second=0, microsecond=0)
    return MinuteCount(OWNER, start - timedelta(minutes=age), requests, rejected, failed)


def rows_with_values(chart: Chart) -> dict[str, list[str]]:
    """The rows of the chart's table that count something."""
    values = {row.name: [cell.text for cell in row.cells] for row in chart.rows}
    return {name: cells for name, cells in values.items() if cells[-1] != "0"}


def test_the_requests_of_a_key_have_a_bar_for_each_day() -> None:
    counts = [
        day(0, 200, 5),
        day(0, 404, 2, "not_found"),
        day(0, 429, 1, "rate_limited"),
        day(29, 201, 7),
        day(30, 200, 9),
    ]
    chart = requests_by_day(counts, TODAY)
    assert (len(chart.columns), chart.heads) == (DAYS, ("Day", "Succeeded", "Rejected (4xx)", "Total"))
    assert rows_with_values(chart) == {"25 Oct 2026": ["7", "0", "7"], "23 Nov 2026": ["5", "3", "8"]}
    assert chart.columns[-1].tooltip == "23 Nov 2026: 8 requests. Succeeded: 5. Rejected (4xx): 3"
    assert requests_by_day([], TODAY).is_empty


def test_errors_are_listed_by_code_with_links_to_their_requests() -> None:
    counts = [
        day(0, 200, 5),
        day(0, 404, 2, "not_found"),
        day(3, 404, 2, "not_found"),
        day(1, 503, 9, "service_unavailable"),
        day(1, 499, 1),
        day(1, 418, 1),
    ]
    listed = errors_by_code(counts, "the-key")
    assert [(each.name, each.text, each.tone, each.url) for each in listed.bars] == [
        ("503 service_unavailable", "9", "bad", "/console/requests?key=the-key&status=503"),
        ("404 not_found", "4", "warn", "/console/requests?key=the-key&status=404"),
        ("499 Connection closed by the client", "1", "warn", "/console/requests?key=the-key&status=499"),
        ("418 I'm a Teapot", "1", "warn", "/console/requests?key=the-key&status=418"),
    ]
    assert errors_by_code([day(0, 200, 5)], "the-key").is_empty


def test_the_requests_of_a_plan_manager_have_a_bar_for_each_minute_and_hour() -> None:
    counts = [minute(24 * 60, 99), minute(59, 6, 1, 2), minute(31, 3), minute(30, 4), minute(0, 1, 0, 1)]
    by_minute = requests_by_minute(counts, NOW, SYDNEY)
    assert (len(by_minute.columns), by_minute.columns[0].label, by_minute.columns[-1].tooltip) == (
        MINUTES, "12:31 pm", "1:30 pm: 1 request",
    )  # fmt: skip
    assert rows_with_values(by_minute) == {
        "12:31 pm": ["3", "3", "6"],
        "12:59 pm": ["3", "0", "3"],
        "1:00 pm": ["4", "0", "4"],
        "1:30 pm": ["0", "1", "1"],
    }
    by_hour = requests_by_hour(counts, NOW, SYDNEY)
    assert (len(by_hour.columns), by_hour.heads) == (
        HOURS, ("Hour", "Succeeded", "Errors", "Total"),
    )  # fmt: skip
    assert rows_with_values(by_hour) == {
        "23 Nov 2026, 12:00 pm": ["6", "3", "9"],
        "23 Nov 2026, 1:00 pm": ["4", "1", "5"],
    }
