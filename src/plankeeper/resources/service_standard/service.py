"""The numbers of the service standard for the console."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.core.dates import Month, last_months
from plankeeper.database.client import Executor
from plankeeper.resources.office_settings.service_standard import ServiceStandard
from plankeeper.resources.service_standard import store
from plankeeper.resources.service_standard.months import (
    MONTHS,
    Deadlines,
    ManagerNumbers,
    Numbers,
    Part,
    deadlines,
    without_start,
)
from plankeeper.resources.service_standard.store import MonthRow

MONTHS_AT_ONCE = 3
MIN_AGE = 300.0  # seconds; the numbers of 1,000,000 invoices take about 5 s


class StandardPeriod(NamedTuple):
    """What the numbers depend on besides the invoices."""

    today: date
    zone: ZoneInfo
    standard: ServiceStandard


class StandardNumbers(NamedTuple):
    """The numbers of the current month and of the twelve before, by account manager. Months without any are left out.

    `claimed` are the invoices by the month in which they were received, `paid` those by the month of their results.
    """

    claimed: tuple[ManagerNumbers, ...]
    paid: tuple[ManagerNumbers, ...]

    @property
    def read_count(self) -> int:
        return sum(each.numbers.counted + each.numbers.waiting for each in (*self.claimed, *self.paid))

    def of(self, part: Part) -> tuple[ManagerNumbers, ...]:
        return self.claimed if part == "claimed" else self.paid


async def compute_numbers(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID | None, period: StandardPeriod
) -> StandardNumbers:
    """The numbers of everyone, or of an account manager.

    Three months at a time, one statement after the other: with many invoices, each takes about a second.
    """
    months = last_months(period.today, MONTHS)[::-1]
    claimed, paid = list[MonthRow](), list[MonthRow]()
    for start in range(0, len(months), MONTHS_AT_ONCE):
        part = months[start : start + MONTHS_AT_ONCE]
        whole = Month(part[0].first, part[-1].last)
        claimed += await store.count_claimed(db, plan_manager_id, *_claimed_values(whole, period))
        paid += await store.count_paid(db, plan_manager_id, *_paid_values(whole, period))
    return StandardNumbers(_read(claimed, account_manager_id), _read(paid, account_manager_id))


def _read(rows: Sequence[MonthRow], account_manager_id: UUID | None) -> tuple[ManagerNumbers, ...]:
    found = [
        ManagerNumbers(each.month, each.account_manager_id, Numbers(each.in_time, each.late, each.waiting, each.done))
        for each in rows
    ]
    return tuple(each for each in without_start(found) if account_manager_id in (None, each.account_manager_id))


def late_values(part: Part, month: Month, period: StandardPeriod) -> dict[str, object]:
    """The values of the filter of invoices for those of a month that are late."""
    if part == "claimed":
        start, end, zone, limits, today = _claimed_values(month, period)
        return {"claimed_late": (start, end, zone, limits.first, list(limits.days), today)}
    first, last, limits, today = _paid_values(month, period)
    return {"paid_late": (first, last, limits.first, list(limits.days), today)}


def _claimed_values(month: Month, period: StandardPeriod) -> tuple[datetime, datetime, str, Deadlines, date]:
    limits = deadlines(period.standard, "claimed", month.first, month.last)
    start, end = (datetime.combine(day, time(), period.zone) for day in (month.first, month.last + timedelta(days=1)))
    return start, end, period.zone.key, limits, period.today


def _paid_values(month: Month, period: StandardPeriod) -> tuple[date, date, Deadlines, date]:
    """The money of a result can come later, but not after today."""
    limits = deadlines(period.standard, "paid", month.first, max(month.last, period.today))
    return month.first, month.last, limits, period.today
