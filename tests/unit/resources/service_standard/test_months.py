"""Months, deadlines and shares of the service standard."""

from datetime import date, timedelta
from decimal import Decimal
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from plankeeper.core.dates import last_months
from plankeeper.resources.office_settings.service_standard import MAX_DAYS, ServiceStandard
from plankeeper.resources.service_standard.months import (
    ManagerNumbers,
    Numbers,
    deadlines,
    sum_months,
    without_start,
)

DAYS = st.dates(date(2000, 1, 1), date(2100, 1, 1))
COUNTS = st.integers(0, MAX_DAYS)


@given(DAYS, COUNTS, st.integers(0, 40))
def test_deadlines_have_the_business_days_between_without_weekends(first: date, count: int, length: int) -> None:
    last = first + timedelta(days=length)
    limits = deadlines(ServiceStandard(count, 0), "claimed", first, last)
    assert len(limits.days) == length + 1
    for day in (first, last):
        due = limits.of(day)
        between = [day + timedelta(days=each) for each in range(1, (due - day).days + 1)]
        assert sum(each.weekday() < 5 for each in between) == count
        assert due == day if count == 0 else due.weekday() < 5
    assert list(limits.days) == sorted(limits.days)


def test_deadlines_pass_weekends_and_count_holidays() -> None:
    standard = ServiceStandard(5, 2)
    friday, christmas_eve = date(2026, 11, 27), date(2026, 12, 24)
    assert deadlines(standard, "claimed", friday, friday).of(friday) == date(2026, 12, 4)
    assert deadlines(standard, "paid", friday, friday).of(friday) == date(2026, 12, 1)
    # Friday the 25th counts as a business day, because holidays differ between states.
    assert deadlines(standard, "paid", christmas_eve, christmas_eve).of(christmas_eve) == date(2026, 12, 28)


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 100))
def test_a_share_is_100_only_if_nothing_is_late(in_time: int, late: int, waiting: int) -> None:
    percent = Numbers(in_time, late, waiting).percent
    if in_time + late == 0:
        assert percent is None
    else:
        assert percent is not None
        assert 0 <= percent <= 100
        assert (percent == 100) == (late == 0)
        assert abs(percent - Decimal(100 * in_time) / (in_time + late)) < Decimal("0.1")


def test_months_before_the_first_claim_dont_count() -> None:
    manager, months = UUID(int=1), last_months(date(2026, 11, 27), 3)[::-1]
    rows = [
        ManagerNumbers(months[0].first, manager, Numbers(late=3)),
        ManagerNumbers(months[1].first, None, Numbers(late=1)),
        ManagerNumbers(months[1].first, manager, Numbers(2, 1, 0, 3)),
        ManagerNumbers(months[2].first, manager, Numbers(late=4, waiting=2)),
    ]
    assert without_start(rows) == tuple(rows[1:])
    assert sum_months(months, rows[1:]) == {
        months[0].first: Numbers(),
        months[1].first: Numbers(2, 2, 0, 3),
        months[2].first: Numbers(0, 4, 2, 0),
    }
    assert without_start(rows[:1]) == ()
