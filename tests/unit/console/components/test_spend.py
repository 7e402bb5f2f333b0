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


def test_claim_statuses_of_one_series_are_added_up() -> None:
    january = date(2026, 1, 1)
    sums = [StatusSum(january, "on_hold", 1, Decimal("10.50")), StatusSum(january, "flagged", 2, Decimal("5.25"))]
    [month] = spend_chart(sums, january, date(2026, 1, 31), {}).columns
    assert [each.tooltip for each in month.segments] == ["Jan 2026, On hold: $15.75"]
