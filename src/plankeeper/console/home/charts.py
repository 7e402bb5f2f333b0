"""The charts of the home page. Each bar leads to the list of the counted records."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from plankeeper.console.components.chart_geometry import BarList, Chart, Series
from plankeeper.console.components.charts import (
    MONEY,
    Bar,
    StackedBar,
    Unit,
    bar_chart,
    bar_list,
    stacked_bar_chart,
)
from plankeeper.console.home.periods import AGES, SPEND_DAYS, HomeLinks, future_weeks, past_weeks, spend_days
from plankeeper.resources.invoices.statistics_store import OpenInvoices, PeriodStatusCount, ProviderTotal
from plankeeper.resources.participants.queries import PeriodCount

INVOICES = Unit("invoice", "invoices")
PLANS = Unit("plan", "plans")
# The parts of a bar from the bottom up, by the claim status that the list is filtered by. All other statuses are in
# progress.
IN_PROGRESS = "in_progress"
STATUS_SERIES = {
    "paid": Series("Paid", "good"),
    IN_PROGRESS: Series("In progress", "accent"),
    "on_hold": Series("On hold", "warn"),
    "rejected": Series("Rejected", "bad"),
    "cancelled": Series("Cancelled", "muted"),
}


def received_chart(counts: Sequence[PeriodStatusCount], today: date, links: HomeLinks) -> Chart:
    """The invoices received per week, by claim status."""
    weeks = past_weeks(today)
    values = [dict.fromkeys(STATUS_SERIES, 0) for _ in weeks]
    for each in counts:
        part = each.claim_status if each.claim_status in STATUS_SERIES else IN_PROGRESS
        values[each.period - 1][part] += each.count
    bars: list[StackedBar] = []
    for week, parts in zip(weeks, values, strict=True):
        days = {"received_from": week.first.isoformat(), "received_to": week.last.isoformat()}
        urls = [links.invoices(claim_status=status, **days) for status in parts]
        bars.append(StackedBar(week.label, [*parts.values()], urls, links.invoices(**days), week.name))
    return stacked_bar_chart("Invoices received per week", [*STATUS_SERIES.values()], bars, unit=INVOICES, head="Week")


def unpaid_chart(open_invoices: Sequence[OpenInvoices], today: date, links: HomeLinks) -> Chart:
    """The unpaid invoices by the time since they were received, the youngest first."""
    totals = {each.period: each.total or Decimal(0) for each in open_invoices}
    bars = [
        Bar(
            age.label,
            totals.get(period, Decimal(0)),
            links.invoices(claim_status="unpaid", **age.params(today)),
            tone="warn" if age.most is None else "accent",
        )
        for period, age in reversed([*enumerate(AGES)])
    ]
    return bar_chart("Unpaid invoices by age", bars, unit=MONEY, head="Received ago")


def plan_ends_chart(counts: Sequence[PeriodCount], today: date, links: HomeLinks) -> Chart:
    """The plans of active participants that end in each of the next weeks."""
    ends = {each.period: each.count for each in counts}
    bars = [
        Bar(
            week.label,
            ends.get(period, 0),
            links.participants(plan_end_from=week.first.isoformat(), plan_end_to=week.last.isoformat()),
            week.name,
        )
        for period, week in enumerate(future_weeks(today), 1)
    ]
    return bar_chart("Plans ending per week", bars, unit=PLANS, head="Week")


def spend_chart(providers: Sequence[ProviderTotal], today: date, links: HomeLinks) -> BarList:
    """The providers that invoiced most in the last 90 days."""
    days = spend_days(today)
    bars = [
        Bar(
            each.name or "No name",
            each.total,
            links.invoices(
                provider=str(each.provider_id),
                received_from=days.first.isoformat(),
                received_to=days.last.isoformat(),
            ),
        )
        for each in providers
    ]
    return bar_list(f"Spend by provider, last {SPEND_DAYS} days", bars, unit=MONEY)
