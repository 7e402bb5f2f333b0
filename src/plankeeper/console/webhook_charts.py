"""Charts of the attempts to send webhooks, by hour."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.console.chart_geometry import Chart, Series
from plankeeper.console.charts import STRIP_HEIGHT, StackedBar, Unit, stacked_bar_chart
from plankeeper.console.lists.filters import time_param
from plankeeper.console.pagination import with_query
from plankeeper.core.formatting import format_datetime
from plankeeper.webhooks.schemas import AttemptHour

HOURS = 24
ATTEMPTS = Unit("attempt", "attempts")
SERIES = (Series("Succeeded", "accent"), Series("Failed", "bad"))


@dataclass(frozen=True, slots=True)
class HealthStrip:
    """Bars of 24 hours, 4 units each, as two paths: the page of all endpoints stays small."""

    summary: str
    succeeded: str
    failed: str


def first_hour(now: datetime) -> datetime:
    """The beginning of the first bar."""
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)


def attempts_by_hour(hours: Sequence[AttemptHour], now: datetime, zone: ZoneInfo, path: str) -> Chart:
    """The attempts of one endpoint in the last HOURS hours. Each bar leads to the list at `path`, of its hour."""
    bars = _bars(hours, now, zone, path)
    return stacked_bar_chart(f"Attempts by hour, last {HOURS} hours", SERIES, bars, unit=ATTEMPTS, head="Hour")


def attempt_strips(hours: Sequence[AttemptHour], now: datetime) -> dict[UUID, HealthStrip]:
    """The same for each endpoint that had attempts, as small bars for a list."""
    by_endpoint: defaultdict[UUID, list[AttemptHour]] = defaultdict(list)
    for each in hours:
        by_endpoint[each.webhook_endpoint_id].append(each)
    return {endpoint_id: _strip(of_endpoint, first_hour(now)) for endpoint_id, of_endpoint in by_endpoint.items()}


def _strip(hours: Sequence[AttemptHour], first: datetime) -> HealthStrip:
    highest = max(each.succeeded + each.failed for each in hours)
    succeeded, failed = "", ""
    for each in hours:
        x, top = 4 * ((each.hour - first) // timedelta(hours=1)), STRIP_HEIGHT
        # A failure is visible, however many attempts succeeded.
        red = max(round(STRIP_HEIGHT * each.failed / highest), 2) if each.failed else 0
        green = max(round(STRIP_HEIGHT * each.succeeded / highest), 1) if each.succeeded else 0
        green = min(green, STRIP_HEIGHT - red)
        succeeded += f"M{x} {top}v-{green}h3v{green}z" if green else ""
        failed += f"M{x} {top - green}v-{red}h3v{red}z" if red else ""
    return HealthStrip(_summary(hours), succeeded, failed)


def _summary(hours: Sequence[AttemptHour]) -> str:
    succeeded, failed = sum(each.succeeded for each in hours), sum(each.failed for each in hours)
    return f"Last {HOURS} hours: {ATTEMPTS.format(succeeded + failed)}, {failed:,} failed"


def _bars(hours: Sequence[AttemptHour], now: datetime, zone: ZoneInfo, path: str) -> list[StackedBar]:
    values = {each.hour: (each.succeeded, each.failed) for each in hours}
    first = first_hour(now)
    starts = [first + timedelta(hours=index) for index in range(HOURS)]
    return [
        StackedBar(
            format_datetime(start, zone).partition(", ")[2],
            values.get(start, (0, 0)),
            (None, None),
            with_query(path, {"time": time_param(start, timedelta(hours=1))}) if start in values else None,
            format_datetime(start, zone),
        )
        for start in starts
    ]
