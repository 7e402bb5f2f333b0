"""Charts of the attempts to send webhooks, by hour."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.console.chart_geometry import Chart, Series, Strip
from plankeeper.console.charts import StackedBar, Unit, stacked_bar_chart, strip
from plankeeper.console.formatting import format_datetime
from plankeeper.webhooks.schemas import AttemptHour

HOURS = 24
ATTEMPTS = Unit("attempt", "attempts")
SERIES = (Series("Succeeded", "accent"), Series("Failed", "bad"))


def first_hour(now: datetime) -> datetime:
    """The beginning of the first bar."""
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)


def attempts_by_hour(hours: Sequence[AttemptHour], now: datetime, zone: ZoneInfo) -> Chart:
    """The attempts of one endpoint in the last HOURS hours."""
    bars = _bars(hours, now, zone)
    return stacked_bar_chart(f"Attempts by hour, last {HOURS} hours", SERIES, bars, unit=ATTEMPTS, head="Hour")


def attempt_strips(hours: Sequence[AttemptHour], now: datetime, zone: ZoneInfo) -> dict[UUID, Strip]:
    """The same for each endpoint that had attempts, as small bars for a list."""
    by_endpoint: defaultdict[UUID, list[AttemptHour]] = defaultdict(list)
    for each in hours:
        by_endpoint[each.webhook_endpoint_id].append(each)
    title = f"Last {HOURS} hours"
    return {
        endpoint_id: strip(title, _bars(of_endpoint, now, zone), SERIES, unit=ATTEMPTS, summary=_summary(of_endpoint))
        for endpoint_id, of_endpoint in by_endpoint.items()
    }


def _summary(hours: Sequence[AttemptHour]) -> str:
    succeeded, failed = sum(each.succeeded for each in hours), sum(each.failed for each in hours)
    return f"Last {HOURS} hours: {ATTEMPTS.format(succeeded + failed)}, {failed:,} failed"


def _bars(hours: Sequence[AttemptHour], now: datetime, zone: ZoneInfo) -> list[StackedBar]:
    values = {each.hour: (each.succeeded, each.failed) for each in hours}
    first = first_hour(now)
    starts = [first + timedelta(hours=index) for index in range(HOURS)]
    return [
        StackedBar(
            format_datetime(start, zone).partition(", ")[2],
            values.get(start, (0, 0)),
            (None, None),
            None,
            format_datetime(start, zone),
        )
        for start in starts
    ]
