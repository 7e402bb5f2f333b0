"""The service standard of an office: how many business days it takes to claim an invoice, and then to pay it.

Business days are Monday to Friday. Public holidays count as business days, because they differ between states.
"""

from datetime import date, timedelta
from typing import NamedTuple

from plankeeper.resources.invoices.schemas import ClaimStatus

UNCLAIMED: tuple[ClaimStatus, ...] = ("new", "flagged", "on_hold")
MAX_DAYS = 60
_SATURDAY = 5


class ServiceStandard(NamedTuple):
    """The business days from receipt to claim, and from there to payment."""

    days_to_claim: int = 5
    days_to_pay: int = 2

    def claim_by(self, received: date) -> date:
        """The last day on which the claim of an invoice isn't late."""
        return add_business_days(received, self.days_to_claim)

    def pay_by(self, received: date) -> date:
        """The day by which an invoice is expected to be paid."""
        return add_business_days(self.claim_by(received), self.days_to_pay)

    def first_in_time(self, today: date) -> date:
        """The earliest day of receipt that isn't late: invoices from before that aren't claimed are."""
        day = today
        while self.claim_by(day - timedelta(days=1)) >= today:
            day -= timedelta(days=1)
        return day


def is_business_day(day: date) -> bool:
    return day.weekday() < _SATURDAY


def add_business_days(day: date, count: int) -> date:
    """The day that is so many business days later; with 0, the same day."""
    while count > 0:
        day += timedelta(days=1)
        count -= is_business_day(day)
    return day
