"""Ranges of dates that depend on today, such as last month."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo


class DateRange(NamedTuple):
    """The first and the last day; null where the range is open."""

    first: date | None
    last: date | None


class TimeRange(NamedTuple):
    """A beginning and the time at which the range has ended; null where it is open."""

    start: datetime | None
    end: datetime | None


def day_bounds(days: DateRange, zone: ZoneInfo) -> TimeRange:
    """From the beginning of the first day to the end of the last one. Both are in the calendar, also in UTC."""
    first = None if days.first == date.min else days.first
    last = None if days.last == date.max else days.last
    start = datetime.combine(first, time(), zone) if first else None
    return TimeRange(start, datetime.combine(last + timedelta(days=1), time(), zone) if last else None)


@dataclass(frozen=True, slots=True)
class DatePreset:
    """A range that depends on today."""

    label: str
    range_of: Callable[[date], DateRange]


def _week(today: date, weeks: int = 0) -> DateRange:
    monday = today - timedelta(days=today.weekday()) + timedelta(weeks=weeks)
    return DateRange(monday, monday + timedelta(days=6))


def _months(today: date, first: int, count: int) -> DateRange:
    """`count` months, from the month that is `first` months after this one."""
    start = _month_start(today, first)
    return DateRange(start, _month_start(start, count) - timedelta(days=1))


def _month_start(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    return date(day.year + years, month + 1, 1)


def _quarter(today: date, quarters: int = 0) -> DateRange:
    return _months(today, 3 * quarters - (today.month - 1) % 3, 3)


def _financial_year(today: date) -> DateRange:
    """From 1 July to 30 June."""
    year = today.year if today.month > 6 else today.year - 1
    return DateRange(date(year, 7, 1), date(year + 1, 6, 30))


# For dates in the past, such as those of invoices.
PAST_PRESETS: Mapping[str, DatePreset] = {
    "today": DatePreset("Today", lambda today: DateRange(today, today)),
    "this_week": DatePreset("This week", _week),
    "last_week": DatePreset("Last week", lambda today: _week(today, -1)),
    "this_month": DatePreset("This month", lambda today: _months(today, 0, 1)),
    "last_month": DatePreset("Last month", lambda today: _months(today, -1, 1)),
    "last_30_days": DatePreset("Last 30 days", lambda today: DateRange(today - timedelta(days=29), today)),
    "this_quarter": DatePreset("This quarter", _quarter),
    "last_quarter": DatePreset("Last quarter", lambda today: _quarter(today, -1)),
    "this_financial_year": DatePreset("This financial year", _financial_year),
}
# For data that a server keeps for days or weeks, such as API requests.
LOG_PRESETS: Mapping[str, DatePreset] = {
    "today": DatePreset("Today", lambda today: DateRange(today, today)),
    "yesterday": DatePreset("Yesterday", lambda today: DateRange(today - timedelta(days=1), today - timedelta(days=1))),
    "last_7_days": DatePreset("Last 7 days", lambda today: DateRange(today - timedelta(days=6), today)),
    "last_30_days": DatePreset("Last 30 days", lambda today: DateRange(today - timedelta(days=29), today)),
}
# For the ends of plans: plans that have ended are a choice of their own.
PLAN_END_PRESETS: Mapping[str, DatePreset] = {
    "30d": DatePreset("In the next 30 days", lambda today: DateRange(today, today + timedelta(days=30))),
    "60d": DatePreset("In the next 60 days", lambda today: DateRange(today, today + timedelta(days=60))),
    "90d": DatePreset("In the next 90 days", lambda today: DateRange(today, today + timedelta(days=90))),
    "this_month": DatePreset("This month", lambda today: _months(today, 0, 1)._replace(first=today)),
    "this_quarter": DatePreset("This quarter", lambda today: _quarter(today)._replace(first=today)),
    "ended": DatePreset("Ended", lambda today: DateRange(None, today - timedelta(days=1))),
}
