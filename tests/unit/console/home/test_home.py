"""The periods, charts and links of the home page, without a database."""

from datetime import UTC, date, datetime
from decimal import Decimal
from urllib.parse import parse_qs, urlsplit
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from plankeeper.access.accounts.schemas import LinkedAccountManager
from plankeeper.console.home.attention import invoice_tiles, participant_tiles, warning_tiles
from plankeeper.console.home.charts import plan_ends_chart, received_chart, spend_chart, unpaid_chart
from plankeeper.console.home.pages import select_scope
from plankeeper.console.home.periods import AGES, Days, HomeLinks, future_weeks, limits, past_weeks, statistics_periods
from plankeeper.resources.invoices.statistics_store import (
    InvoiceSummary,
    OpenInvoices,
    PeriodStatusCount,
    ProviderTotal,
    WarningSummary,
)
from plankeeper.resources.participants.queries import PeriodCount, PlanEndSummary

WEDNESDAY = date(2026, 11, 18)
SYDNEY = ZoneInfo("Australia/Sydney")
MANAGER = UUID("01900000-0000-7000-8000-000000000001")
EVERYONE, MINE = HomeLinks(None), HomeLinks(MANAGER)
NONE = InvoiceSummary(0, None, None)
OLD, NEW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)


def params(url: str | None) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url or "").query).items()}


def test_weeks_begin_on_monday_and_include_today() -> None:
    past, future = past_weeks(WEDNESDAY), future_weeks(WEDNESDAY)
    assert (len(past), past[0], past[-1]) == (
        12,
        Days(date(2026, 8, 31), date(2026, 9, 6)),
        Days(date(2026, 11, 16), date(2026, 11, 22)),
    )
    assert (len(future), future[0], future[1], future[-1].last) == (
        13,
        Days(WEDNESDAY, date(2026, 11, 22)),
        Days(date(2026, 11, 23), date(2026, 11, 29)),
        date(2027, 2, 14),
    )
    assert limits(future)[:2] == [WEDNESDAY, date(2026, 11, 23)]
    assert limits(future)[-1] == date(2027, 2, 15)


def test_days_begin_at_midnight_in_the_time_zone_also_when_the_clocks_change() -> None:
    weeks = statistics_periods(WEDNESDAY, SYDNEY).weeks  # summer time begins on 4 October
    assert [each.astimezone(UTC).hour for each in weeks] == [14] * 5 + [13] * 8


def test_ages_leave_no_day_out() -> None:
    assert [each.label for each in AGES] == ["30+ days", "15–30 days", "8–14 days", "0–7 days"]
    assert [each.params(WEDNESDAY) for each in AGES] == [
        {"received_to": "2026-10-18"},
        {"received_from": "2026-10-19", "received_to": "2026-11-03"},
        {"received_from": "2026-11-04", "received_to": "2026-11-10"},
        {"received_from": "2026-11-11"},
    ]
    assert [each.date() for each in statistics_periods(WEDNESDAY, SYDNEY).ages] == [
        date(2026, 10, 19),
        date(2026, 11, 4),
        date(2026, 11, 11),
    ]


@pytest.mark.parametrize(
    "chosen, has_manager, scope",
    [("", True, "me"), ("", False, "all"), ("all", True, "all"), ("me", False, "me"), ("x", True, "me")],
)
def test_the_scope_is_the_choice_or_else_ones_own_work(chosen: str, has_manager: bool, scope: str) -> None:
    manager = LinkedAccountManager(MANAGER, MANAGER, "Kim", False) if has_manager else None
    assert select_scope(chosen, manager) == scope


def test_sums_of_periods_become_tiles() -> None:
    periods = [
        OpenInvoices(0, 5, Decimal(100), InvoiceSummary(2, Decimal(30), OLD), NONE),
        OpenInvoices(3, 4, None, InvoiceSummary(1, Decimal("0.50"), NEW), InvoiceSummary(1, None, NEW)),
    ]
    on_hold, awaiting = invoice_tiles(periods, EVERYONE)
    assert (on_hold.count, on_hold.total, on_hold.oldest) == (3, Decimal("30.50"), OLD)
    assert (awaiting.count, awaiting.total, awaiting.oldest) == (1, 0, NEW)
    assert params(on_hold.url) == {"claim_status": "on_hold", "deleted": "no"}
    assert params(awaiting.url) == {"claim_status": "unpaid", "approval_status": "pending", "deleted": "no"}


def test_nobody_is_without_a_manager_among_ones_own_participants() -> None:
    summary = PlanEndSummary(1, 2, 3)
    assert [(each.count, params(each.url)) for each in participant_tiles(summary, EVERYONE)] == [
        (1, {"status": "Active", "plan_end": "30d", "sort": "plan_end_date"}),
        (2, {"status": "Active", "plan_end": "ended", "sort": "plan_end_date"}),
        (3, {"status": "Active", "account_manager": "none"}),
    ]
    assert [params(each.url) for each in participant_tiles(summary, MINE)] == [
        {"status": "Active", "plan_end": "30d", "sort": "plan_end_date", "account_manager": str(MANAGER)},
        {"status": "Active", "plan_end": "ended", "sort": "plan_end_date", "account_manager": str(MANAGER)},
    ]


def test_warnings_have_their_titles_also_unknown_ones() -> None:
    found = [WarningSummary("possible_duplicate", 2, None, OLD), WarningSummary("new_rule", 1, Decimal(5), NEW)]
    assert [(each.label, each.total, params(each.url)["warning"]) for each in warning_tiles(found, MINE)] == [
        ("Possible duplicate", 0, "possible_duplicate"),
        ("New rule", 5, "new_rule"),
    ]


def test_every_status_belongs_to_a_part_of_a_bar() -> None:
    counts = [
        PeriodStatusCount(12, "new", 1),
        PeriodStatusCount(12, "partially_paid", 2),
        PeriodStatusCount(12, "paid", 4),
    ]
    chart = received_chart(counts, WEDNESDAY, EVERYONE)
    assert [each.name for _, each in chart.series] == ["Paid", "In progress"]
    paid, in_progress = chart.columns[-1].segments
    assert (paid.tooltip, in_progress.tooltip) == (
        "16 Nov to 22 Nov 2026, Paid: 4 invoices",
        "16 Nov to 22 Nov 2026, In progress: 3 invoices",
    )
    week = {"received_from": "2026-11-16", "received_to": "2026-11-22", "deleted": "no"}
    assert params(in_progress.url) == week | {"claim_status": "in_progress"}
    assert params(chart.columns[-1].url) == week


def test_unpaid_invoices_are_in_order_of_their_age() -> None:
    chart = unpaid_chart([OpenInvoices(0, 1, Decimal(7), NONE, NONE)], WEDNESDAY, MINE)
    assert [(each.label, each.value_label) for each in chart.columns] == [
        ("0–7 days", ""),
        ("8–14 days", ""),
        ("15–30 days", ""),
        ("30+ days", "$7"),
    ]
    assert params(chart.columns[-1].url) == {
        "claim_status": "unpaid",
        "received_to": "2026-10-18",
        "deleted": "no",
        "account_manager": str(MANAGER),
    }


def test_ends_of_plans_and_spend_lead_to_their_lists() -> None:
    ends = plan_ends_chart([PeriodCount(2, 3)], WEDNESDAY, EVERYONE)
    assert [each.tooltip for each in ends.columns[:2]] == [
        "18 Nov to 22 Nov 2026: 0 plans",
        "23 Nov to 29 Nov 2026: 3 plans",
    ]
    assert params(ends.columns[1].url) == {
        "status": "Active",
        "plan_end_from": "2026-11-23",
        "plan_end_to": "2026-11-29",
    }
    (bar,) = spend_chart([ProviderTotal(MANAGER, None, Decimal(9))], WEDNESDAY, EVERYONE).bars
    assert (bar.name, bar.text, params(bar.url)) == (
        "No name",
        "$9.00",
        {"provider": str(MANAGER), "received_from": "2026-08-21", "received_to": "2026-11-18", "deleted": "no"},
    )
