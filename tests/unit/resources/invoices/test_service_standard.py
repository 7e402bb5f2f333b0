"""Business days, and the days by which an invoice is claimed and paid."""

from datetime import date, timedelta

import pytest

from plankeeper.resources.office_settings.service_standard import ServiceStandard, add_business_days

FRIDAY, SATURDAY, SUNDAY = date(2026, 11, 20), date(2026, 11, 21), date(2026, 11, 22)


@pytest.mark.parametrize("day, count, expected", [
    (FRIDAY, 0, FRIDAY),
    (FRIDAY, 1, date(2026, 11, 23)),
    (FRIDAY, 5, date(2026, 11, 27)),
    (SATURDAY, 0, SATURDAY),
    (SATURDAY, 1, date(2026, 11, 23)),
    (SUNDAY, 5, date(2026, 11, 27)),
    (FRIDAY, 60, date(2027, 2, 12)),
])  # fmt: skip
def test_weekends_are_no_business_days(day: date, count: int, expected: date) -> None:
    assert add_business_days(day, count) == expected


def test_an_invoice_is_claimed_and_then_paid() -> None:
    standard = ServiceStandard()
    assert standard.claim_by(FRIDAY) == date(2026, 11, 27)
    assert standard.pay_by(FRIDAY) == date(2026, 12, 1)


def test_the_first_day_in_time_divides_the_late_from_the_others() -> None:
    for days in range(8):
        standard = ServiceStandard(days_to_claim=days)
        for today in (FRIDAY + timedelta(days=each) for each in range(14)):
            first = standard.first_in_time(today)
            assert standard.claim_by(first) >= today
            assert standard.claim_by(first - timedelta(days=1)) < today
