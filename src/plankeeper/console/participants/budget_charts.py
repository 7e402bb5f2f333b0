"""The charts of a plan: for each component, what is released and what is used from the first to the last day."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from uuid import UUID

from plankeeper.console.components.chart_geometry import Cell, Row
from plankeeper.console.components.charts import MONEY
from plankeeper.console.components.line_charts import LineChart, Period, Series, line_chart
from plankeeper.core.formatting import format_date, format_money
from plankeeper.resources.plans import rules
from plankeeper.resources.plans.rules import BudgetCourse, BudgetDay
from plankeeper.resources.plans.schemas import LineSum, Plan, PlanComponent

MAX_DAYS = 3660  # of a plan with charts: a mistaken date, such as one in 9999, would have a point for each month
HEADS = ("Day", "Released", "Used", "Projected")


def percent(part: Decimal, whole: Decimal) -> float:
    """The width of a bar: from 0 to 100."""
    return round(float(100 * min(max(part, rules.ZERO), whole) / whole), 2) if whole > 0 else 0.0


def budget_charts(plan: Plan, lines: Mapping[UUID, Sequence[LineSum]], today: date) -> list[LineChart]:
    """The charts of a plan from the lines of each component; none for one in force on no day, or too long."""
    if not (plan.start_date and plan.end_date and rules.is_in_order(plan)):
        return []
    if (plan.end_date - plan.start_date).days >= MAX_DAYS:
        return []
    period = Period(plan.start_date, plan.end_date)
    return [
        _chart(each, period, rules.budget_course(plan, each, lines[each.id], today), today) for each in plan.components
    ]


def _chart(component: PlanComponent, period: Period, course: BudgetCourse, today: date) -> LineChart:
    used = [(each.day, each.used) for each in course.days if each.used is not None]
    start = [(period.first - timedelta(days=1), course.spent_before)] if period.first > date.min else []
    series = [Series("Released", "muted", course.releases, is_stepped=True)]
    if used:
        series.append(Series("Paid, pending and waiting", "accent", [*start, *used]))
    if course.projection:
        series.append(Series("At this rate", "warn", [used[-1], course.projection], is_dashed=True))
    return line_chart(
        f"c{component.id.hex[-8:]}",
        component.name,
        period,
        series,
        unit=MONEY,
        today=today,
        summary=_summarize(component, course, period),
        heads=HEADS,
        rows=[(each.day, _row(each)) for each in course.days],
    )


def _row(day: BudgetDay) -> Row:
    amounts = (day.released, day.used, day.projected)
    texts = [format_money(each) if each is not None else "" for each in amounts]
    return Row(format_date(day.day), [Cell(each, None) for each in texts])


def _summarize(component: PlanComponent, course: BudgetCourse, period: Period) -> str:
    """`Therapy: $200.00 of $900.00 used by 3 Nov 2026; at this rate $450.00 by 30 Jun 2027`."""
    past = [each for each in course.days if each.used is not None]
    if not past:
        return f"{component.name}: {format_money(component.amount)} from {format_date(period.first)}"
    last = past[-1]
    used = (
        f"{format_money(last.used or rules.ZERO)} of {format_money(component.amount)} used by {format_date(last.day)}"
    )
    if course.projection is None:
        return f"{component.name}: {used}"
    day, amount = course.projection
    return f"{component.name}: {used}; at this rate {format_money(amount)} by {format_date(day)}"
