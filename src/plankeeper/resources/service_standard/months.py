"""What is in time by the service standard, and the numbers of months.

An invoice belongs to the month in which it was received. It is claimed on the day on which the last of its lines was
first claimed. It is in time if that day is at most the standard's business days after the receipt, and late if it isn't
claimed although these days are over. While they aren't over, it is waiting, which isn't part of the share. An invoice
whose lines were imported as claimed doesn't count, because nothing says when they were.

Money of an invoice belongs to the month of the agency's results. It has come on the day of the result or, if the first
receipt of the batch is later, on that of the receipt. It is in time if it was marked as paid at most the standard's
business days later.
"""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import ROUND_DOWN, Decimal
from typing import Literal, NamedTuple
from uuid import UUID

from plankeeper.core.dates import Month
from plankeeper.resources.office_settings.service_standard import ServiceStandard, add_business_days

MONTHS = 13  # the current one, and the twelve before
Part = Literal["claimed", "paid"]


class Deadlines(NamedTuple):
    """The last day in time for each day from `first` on."""

    first: date
    days: tuple[date, ...]

    def of(self, day: date) -> date:
        return self.days[(day - self.first).days]


class Numbers(NamedTuple):
    """The invoices of a month by how they stand, and how many of them are done: claimed, or paid."""

    in_time: int = 0
    late: int = 0
    waiting: int = 0
    done: int = 0

    @property
    def counted(self) -> int:
        return self.in_time + self.late

    @property
    def percent(self) -> Decimal | None:
        """The share in time with one decimal, never rounded up to 100; null if nothing counts."""
        if not self.counted:
            return None
        return (Decimal(100 * self.in_time) / self.counted).quantize(Decimal("0.1"), ROUND_DOWN)

    def add(self, other: "Numbers") -> "Numbers":
        return Numbers(*(mine + its for mine, its in zip(self, other, strict=True)))


class ManagerNumbers(NamedTuple):
    """The numbers of a month of the participants of an account manager; null for those without one."""

    month: date
    account_manager_id: UUID | None
    numbers: Numbers


def deadlines(standard: ServiceStandard, part: Part, first: date, last: date) -> Deadlines:
    """The last days to claim what was received, or to pay the money that came, on each day of a period."""
    count = standard.days_to_claim if part == "claimed" else standard.days_to_pay
    days = range((last - first).days + 1)
    return Deadlines(first, tuple(add_business_days(first + timedelta(days=each), count) for each in days))


def without_start(rows: Sequence[ManagerNumbers]) -> tuple[ManagerNumbers, ...]:
    """The numbers from the first month on in which something is done.

    Before, an office worked with another system: all that is known of these months is what was left undone.
    """
    first = min((each.month for each in rows if each.numbers.done), default=None)
    return tuple(each for each in rows if first and each.month >= first)


def sum_months(months: Sequence[Month], rows: Iterable[ManagerNumbers]) -> dict[date, Numbers]:
    """The numbers of all account managers together, by the first day of each month."""
    sums = {each.first: Numbers() for each in months}
    for each in rows:
        if each.month in sums:
            sums[each.month] = sums[each.month].add(each.numbers)
    return sums
