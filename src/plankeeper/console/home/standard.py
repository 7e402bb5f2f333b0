"""How the office keeps its service standard: the picture of the last months, and a sentence on the current one."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from plankeeper.console.components.chart_geometry import Cell, Row
from plankeeper.console.components.charts import Unit
from plankeeper.console.components.line_charts import LineChart, Period, Series, line_chart
from plankeeper.console.components.pagination import with_query
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.core.dates import Month, last_months
from plankeeper.resources.office_settings.service_standard import ServiceStandard
from plankeeper.resources.service_standard.months import MONTHS, Numbers, Part, sum_months
from plankeeper.resources.service_standard.service import StandardNumbers, StandardPeriod

REPORT_URL = f"{PREFIX}/reports/service-standard"
PERCENT = Unit("%", "%")
LABELS: dict[Part, str] = {"claimed": "Claimed in time", "paid": "Paid in time"}
PATIENCE = 1.0  # seconds that Home waits for the numbers


class MonthNumbers(NamedTuple):
    """A month with both parts of the standard."""

    month: Month
    claimed: Numbers
    paid: Numbers

    @property
    def name(self) -> str:
        """`November 2026`."""
        return self.month.title

    def of(self, part: Part) -> Numbers:
        return self.claimed if part == "claimed" else self.paid


class StandardCard(NamedTuple):
    """What Home shows. `chart` is null if no month has anything to count."""

    chart: LineChart | None
    sentence: str


def period_of(request: PageRequest, standard: ServiceStandard) -> StandardPeriod:
    return StandardPeriod(request.today, request.settings.time_zone, standard)


def month_numbers(numbers: StandardNumbers, today: date) -> list[MonthNumbers]:
    """The last months, the first one first, of all account managers together."""
    months = last_months(today, MONTHS)[::-1]
    claimed, paid = sum_months(months, numbers.claimed), sum_months(months, numbers.paid)
    return [MonthNumbers(each, claimed[each.first], paid[each.first]) for each in months]


def late_url(part: Part, month: Month, account_manager_id: UUID | None = None) -> str:
    """The list of the invoices of a month that are late."""
    scope = {"account_manager": str(account_manager_id)} if account_manager_id else {}
    return with_query(f"{PREFIX}/invoices", {"standard": f"{part}_late.{month.text}", **scope})


def standard_card(numbers: StandardNumbers, standard: ServiceStandard, today: date) -> StandardCard:
    months = month_numbers(numbers, today)
    sentence = describe_month(months[-1], standard)
    return StandardCard(
        standard_chart(months, sentence, today) if any(_has_share(each) for each in months) else None, sentence
    )


def _has_share(month: MonthNumbers) -> bool:
    return bool(month.claimed.counted or month.paid.counted)


def standard_chart(months: Sequence[MonthNumbers], summary: str, today: date) -> LineChart:
    """The shares of both parts by month."""
    return line_chart(
        "standard",
        "Service standard, in percent",
        Period(months[0].month.first, months[-1].month.last),
        [
            Series(LABELS["claimed"], "accent", _shares(months, "claimed"), is_stepped=True),
            Series(LABELS["paid"], "good", _shares(months, "paid"), is_stepped=True, is_dashed=True),
        ],
        unit=PERCENT,
        today=today,
        summary=f"Service standard by month. {summary}",
        heads=("Month", *LABELS.values()),
        rows=[(each.month.last, Row(each.name, [_cell(each, "claimed"), _cell(each, "paid")])) for each in months],
    )


def _shares(months: Sequence[MonthNumbers], part: Part) -> list[tuple[date, Decimal]]:
    """A month without a share continues the line of the one before."""
    return [(each.month.first, share) for each in months if (share := each.of(part).percent) is not None]


def _cell(month: MonthNumbers, part: Part) -> Cell:
    numbers = month.of(part)
    if numbers.percent is None:
        return Cell("—", None)
    text = f"{numbers.percent:f}% of {numbers.counted:,}"
    return Cell(text, late_url(part, month.month) if numbers.late else None)


def describe_month(month: MonthNumbers, standard: ServiceStandard) -> str:
    """One sentence on the current month."""
    claimed, paid = month.claimed, month.paid
    parts = list[str]()
    if claimed.counted:
        days = _days(standard.days_to_claim)
        parts.append(f"{_of(claimed, 'invoice')} received were claimed within {days} ({claimed.percent:f}%)")
    if paid.counted:
        days = _days(standard.days_to_pay)
        what = "" if claimed.counted else " invoices"
        parts.append(
            f"{paid.in_time:,} of {paid.counted:,}{what} were paid within {days} of the money ({paid.percent:f}%)"
        )
    if not parts:
        return f"In {month.name}, no invoice counts for the service standard yet."
    return f"In {month.name}, {', and '.join(parts)}."


def _of(numbers: Numbers, one: str) -> str:
    return f"{numbers.in_time:,} of {numbers.counted:,} {one if numbers.counted == 1 else one + 's'}"


def _days(count: int) -> str:
    return f"{count} business {'day' if count == 1 else 'days'}"
