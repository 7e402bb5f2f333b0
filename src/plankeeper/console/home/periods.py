"""The periods that the home page sums up, as days and as times of the console's time zone. Weeks begin on Monday."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.console.components.pagination import with_query
from plankeeper.console.shell.routing import PREFIX
from plankeeper.core.formatting import format_date
from plankeeper.resources.invoices.statistics_cache import StatisticsPeriods
from plankeeper.resources.office_settings.service_standard import ServiceStandard

PAST_WEEKS = 12  # of received invoices, with the current one
FUTURE_WEEKS = 13  # of ends of plans, with the current one
SPEND_DAYS = 90
ENDING_DAYS = 30
DEFAULT_STANDARD = ServiceStandard()


class Days(NamedTuple):
    """A first and a last day."""

    first: date
    last: date

    @property
    def label(self) -> str:
        """`16 Nov`."""
        return short_date(self.first)

    @property
    def name(self) -> str:
        """`16 Nov to 22 Nov 2026`."""
        return f"{short_date(self.first)} to {format_date(self.last)}"


class Age(NamedTuple):
    """From `least` to `most` days ago; null for no limit."""

    least: int
    most: int | None

    @property
    def label(self) -> str:
        return f"{self.least}–{self.most} days" if self.most else f"{self.least - 1}+ days"

    def params(self, today: date) -> dict[str, str]:
        """The parameters of the list of invoices that were received then."""
        last = {"received_to": (today - timedelta(days=self.least)).isoformat()} if self.least else {}
        first = {"received_from": (today - timedelta(days=self.most)).isoformat()} if self.most else {}
        return first | last


# From the oldest to the youngest, as SQL counts them from the limits.
AGES = (Age(31, None), Age(15, 30), Age(8, 14), Age(0, 7))


def past_weeks(today: date) -> list[Days]:
    """The weeks of received invoices, the oldest first."""
    first = _monday(today) - timedelta(weeks=PAST_WEEKS - 1)
    return [_week(first + timedelta(weeks=index)) for index in range(PAST_WEEKS)]


def future_weeks(today: date) -> list[Days]:
    """The weeks of ends of plans, from today on."""
    weeks = [_week(_monday(today) + timedelta(weeks=index)) for index in range(FUTURE_WEEKS)]
    return [weeks[0]._replace(first=today), *weeks[1:]]


def limits(periods: Sequence[Days]) -> list[date]:
    """The first day of each period, and the day after the last one."""
    return [*(each.first for each in periods), periods[-1].last + timedelta(days=1)]


def spend_days(today: date) -> Days:
    return Days(today - timedelta(days=SPEND_DAYS - 1), today)


def statistics_periods(today: date, zone: ZoneInfo, standard: ServiceStandard = DEFAULT_STANDARD) -> StatisticsPeriods:
    """The periods of invoices as times."""
    spend_start, spend_end = limits([spend_days(today)])
    return StatisticsPeriods(
        ages=tuple(_midnight(today - timedelta(days=each.most), zone) for each in AGES if each.most),
        weeks=tuple(_midnight(each, zone) for each in limits(past_weeks(today))),
        spend_start=_midnight(spend_start, zone),
        spend_end=_midnight(spend_end, zone),
        late_before=_midnight(standard.first_in_time(today), zone),
    )


def short_date(day: date) -> str:
    """`21 Nov`."""
    return format_date(day).rsplit(" ", 1)[0]


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _week(first: date) -> Days:
    return Days(first, first + timedelta(days=6))


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone)


class HomeLinks(NamedTuple):
    """The lists of everyone, or of an account manager."""

    account_manager_id: UUID | None

    def invoices(self, **params: str) -> str:
        """The list of invoices that aren't deleted."""
        return with_query(f"{PREFIX}/invoices", {**params, "deleted": "no", **self._scope})

    def participants(self, **params: str) -> str:
        """The list of active participants."""
        return with_query(f"{PREFIX}/participants", {"status": "Active", **params, **self._scope})

    def plans(self, **params: str) -> str:
        """The list of the plans of active participants."""
        return with_query(f"{PREFIX}/plans", {"status": "Active", **params, **self._scope})

    @property
    def _scope(self) -> dict[str, str]:
        return {"account_manager": str(self.account_manager_id)} if self.account_manager_id else {}
