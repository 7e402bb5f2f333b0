"""Sums of the invoices of one participant or provider: by claim status, and by month as a chart."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple

from plankeeper.console.components.chart_geometry import Chart, Series
from plankeeper.console.components.charts import MONEY, StackedBar, stacked_bar_chart
from plankeeper.console.components.pagination import with_query
from plankeeper.core.dates import Month
from plankeeper.core.formatting import format_date
from plankeeper.resources.invoices.queries import StatusSum

MAX_MONTHS = 36  # of a chart
SERIES = (
    Series("Paid", "good"),
    Series("In progress", "accent"),
    Series("On hold", "warn"),
    Series("Rejected or cancelled", "bad"),
)
# The part of SERIES to which a claim status belongs.
SERIES_OF_STATUS = defaultdict(lambda: 1, {"paid": 0, "on_hold": 2, "flagged": 2, "rejected": 3, "cancelled": 3})


class SpendSum(NamedTuple):
    """The invoices of one part of SERIES, or of all. `total` is in dollars."""

    name: str
    invoices: int
    total: Decimal


def spend_sums(sums: Sequence[StatusSum]) -> list[SpendSum]:
    """The sum of all invoices, and that of each part of SERIES."""
    parts = [[each for each in sums if SERIES_OF_STATUS[each.claim_status] == index] for index in range(len(SERIES))]
    named = [("Invoiced", sums), *((series.name, part) for series, part in zip(SERIES, parts, strict=True))]
    return [
        SpendSum(name, sum(each.count for each in part), sum((each.total for each in part), Decimal(0)))
        for name, part in named
    ]


def spend_chart(sums: Sequence[StatusSum], first: date, last: date, filters: Mapping[str, str]) -> Chart:
    """A bar for each month from `first` to `last`, which leads to its invoices, with these filters.

    Longer periods show the last MAX_MONTHS. A negative sum, such as that of a credit, has no bar.
    """
    months = _months(first, last)
    values: dict[date, list[Decimal]] = {month: [Decimal(0)] * len(SERIES) for month in months}
    for each in sums:
        if each.month in values:
            values[each.month][SERIES_OF_STATUS[each.claim_status]] += each.total
    bars = [
        StackedBar(
            _month_label(month, months[0]),
            [max(each, Decimal(0)) for each in values[month]],
            [None] * len(SERIES),
            _invoices_url(max(month, first), min(Month.of(month).last, last), filters),
            format_date(month)[2:],
        )
        for month in months
    ]
    return stacked_bar_chart("Invoices by month", SERIES, bars, unit=MONEY, head="Month")


def period_of(start: date | None, end: date | None, today: date) -> tuple[date, date, bool]:
    """The days of the sums, and whether they are the plan's: otherwise the last 12 months."""
    if start and end and start <= end:
        return start, end, True
    following = today + timedelta(days=1)
    first = following.replace(year=following.year - 1, day=1) + timedelta(days=following.day - 1)
    return first, today, False


def _months(first: date, last: date) -> list[date]:
    """The first days of the last MAX_MONTHS months of a period."""
    months = [Month.of(last)]
    while months[-1].first > first and len(months) < MAX_MONTHS:
        months.append(months[-1].previous)
    return [each.first for each in reversed(months)]


def _month_label(month: date, first: date) -> str:
    """`Jul`, with the year at the beginning and in January."""
    name, year = format_date(month).split()[1:]
    return f"{name} {year}" if month == first or month.month == 1 else name


def _invoices_url(first: date, last: date, filters: Mapping[str, str]) -> str:
    return with_query("/console/invoices", {**filters, "from": first.isoformat(), "to": last.isoformat()})


PlanState = Literal["not_started", "running", "ended", "undated"]

# The strip of an invoice's date: the plan is in its middle, with a margin at each side for dates outside the plan.
STRIP_MARGIN = 15
STRIP_WIDTH = 100


class PlanProgress(NamedTuple):
    """The progress of a plan: `percent` of its days have passed. `days` counts to its start, its end, or since it.

    A plan with only one of its dates, or with its end before its start, has no percentage.
    """

    state: PlanState
    percent: int | None
    days: int | None


def plan_progress(start: date | None, end: date | None, today: date) -> PlanProgress:
    """The progress on a day. The first and the last day belong to the plan: on the last day, 0 days are left."""
    if start and today < start:
        return PlanProgress("not_started", 0, (start - today).days)
    if end and today > end:
        return PlanProgress("ended", 100, (today - end).days)
    if not end:
        return PlanProgress("running" if start else "undated", None, None)
    percent = round(100 * (today - start).days / ((end - start).days + 1)) if start else None
    return PlanProgress("running", percent, (end - today).days)


def describe_exit(exit_date: date | None, today: date) -> str:
    """The exit date of an inactive participant, such as `Left 5 Jan 2026`."""
    if exit_date is None:
        return "Left, no exit date"
    return f"{'Left' if exit_date <= today else 'Leaves'} {format_date(exit_date)}"


def age_on(birth: date, today: date) -> int | None:
    """The age in whole years; null for a date of birth in the future."""
    years = today.year - birth.year - ((today.month, today.day) < (birth.month, birth.day))
    return years if years >= 0 else None


def strip_position(day: date, start: date, end: date) -> float:
    """The position of a day on the strip of a plan, from 0 to STRIP_WIDTH. Days far from the plan are at the edge."""
    plan_width = STRIP_WIDTH - 2 * STRIP_MARGIN
    position = STRIP_MARGIN + plan_width * (day - start).days / max(1, (end - start).days)
    return round(min(max(position, 1.0), STRIP_WIDTH - 1.0), 2)
