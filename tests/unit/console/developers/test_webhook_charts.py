"""Charts of webhook attempts, without a database."""

from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.console.developers.webhooks import (
    HOURS,
    HealthStrip,
    attempt_strips,
    attempts_by_hour,
    first_hour,
)
from plankeeper.webhooks.schemas import AttemptHour

OWNER, FIRST, SECOND = UUID(int=1), UUID(int=2), UUID(int=3)
NOW = datetime(2026, 11, 23, 2, 30, 45, tzinfo=UTC)
SYDNEY = ZoneInfo("Australia/Sydney")


def hour(age: int, succeeded: int, failed: int, endpoint: UUID = FIRST) -> AttemptHour:
    return AttemptHour(OWNER, endpoint, NOW.replace(minute=0, second=0) - timedelta(hours=age), succeeded, failed)


def test_attempts_have_a_bar_for_each_hour() -> None:
    chart = attempts_by_hour([hour(23, 1, 0), hour(24, 9, 9), hour(0, 2, 3)], NOW, SYDNEY, "/deliveries")
    rows = {row.name: [cell.text for cell in row.cells] for row in chart.rows}
    assert (len(rows), chart.heads) == (HOURS, ("Hour", "Succeeded", "Failed", "Total"))
    assert {name: cells for name, cells in rows.items() if cells[-1] != "0"} == {
        "22 Nov 2026, 2:00 pm": ["1", "0", "1"],
        "23 Nov 2026, 1:00 pm": ["2", "3", "5"],
    }
    assert first_hour(NOW) == datetime(2026, 11, 22, 3, tzinfo=UTC)
    assert attempts_by_hour([], NOW, SYDNEY, "/deliveries").is_empty


def test_each_endpoint_with_attempts_has_a_strip_in_which_each_failure_is_visible() -> None:
    strips = attempt_strips([hour(1, 10, 0), hour(0, 1200, 3), hour(23, 0, 1, SECOND)], NOW)
    assert strips == {
        FIRST: HealthStrip(
            "Last 24 hours: 1,213 attempts, 3 failed", "M88 28v-1h3v1zM92 28v-26h3v26z", "M92 2v-2h3v2z"
        ),
        SECOND: HealthStrip("Last 24 hours: 1 attempt, 1 failed", "", "M0 28v-28h3v28z"),
    }
