"""The days and the bars of sums by month."""

from datetime import date
from decimal import Decimal

import pytest

from plankeeper.console.components.money import period_of, spend_chart
from plankeeper.resources.invoices.queries import StatusSum


@pytest.mark.parametrize(
    "today, first",
    [
        (date(2026, 11, 24), date(2025, 11, 25)),
        (date(2026, 12, 31), date(2026, 1, 1)),
        (date(2026, 2, 28), date(2025, 3, 1)),
        (date(2028, 2, 28), date(2027, 3, 1)),
        (date(2028, 2, 29), date(2027, 3, 1)),
        (date(2029, 2, 28), date(2028, 3, 1)),
    ],
)
def test_without_a_plan_the_period_is_twelve_months(today: date, first: date) -> None:
    assert period_of(None, None, today) == (first, today, False)
    assert period_of(date(2026, 7, 1), date(2026, 6, 1), today) == (first, today, False)
    assert period_of(date(2026, 6, 1), date(2026, 7, 1), today) == (date(2026, 6, 1), date(2026, 7, 1), True)


def test_bars_lead_to_the_invoices_of_the_period_only() -> None:
    months = spend_chart([], date(2026, 1, 10), date(2026, 3, 4), {"provider": "x"}).columns
    assert [each.url for each in months] == [
        "/console/invoices?provider=x&from=2026-01-10&to=2026-01-31",
        "/console/invoices?provider=x&from=2026-02-01&to=2026-02-28",
        "/console/invoices?provider=x&from=2026-03-01&to=2026-03-04",
    ]


@pytest.mark.parametrize(
    "first, last, days",
    [
        (date(2026, 7, 1), date.max, ["from=9997-01-01&to=9997-01-31", "from=9999-12-01&to=9999-12-31"]),
        (date(9999, 12, 5), date.max, ["from=9999-12-05&to=9999-12-31"] * 2),
        (date.min, date(1, 2, 2), ["from=0001-01-01&to=0001-01-31", "from=0001-02-01&to=0001-02-02"]),
        (date.min, date(2026, 7, 31), ["from=2023-08-01&to=2023-08-31", "from=2026-07-01&to=2026-07-31"]),
    ],
)
def test_the_last_36_months_of_a_long_period_have_bars(first: date, last: date, days: list[str]) -> None:
    months = spend_chart([], first, last, {}).columns
    assert [each.url for each in (months[0], months[-1])] == [f"/console/invoices?{each}" for each in days]


def test_claim_statuses_of_one_series_are_added_up() -> None:
    january = date(2026, 1, 1)
    sums = [StatusSum(january, "on_hold", 1, Decimal("10.50")), StatusSum(january, "flagged", 2, Decimal("5.25"))]
    [month] = spend_chart(sums, january, date(2026, 1, 31), {}).columns
    assert [each.tooltip for each in month.segments] == ["Jan 2026, On hold: $15.75"]
