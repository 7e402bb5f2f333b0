"""Dates relative to a participant's plan: the plan's progress, and the position of an invoice's date."""

from datetime import date
from typing import Literal, NamedTuple

from plankeeper.core.formatting import format_date

PlanState = Literal["not_started", "running", "ended", "undated"]

# The strip of an invoice's date: the plan is in its middle, with a margin at each side for dates outside the plan.
STRIP_MARGIN = 15
STRIP_WIDTH = 100


class PlanProgress(NamedTuple):
    """The progress of a plan: `percent` of its days have passed. `days` counts to its start, its end, or since it.

    A plan with only one of its dates, or with its end before its start, has no percentage.
    """

    state: PlanState
    percent: int | None
    days: int | None


def plan_progress(start: date | None, end: date | None, today: date) -> PlanProgress:
    """The progress on a day. The first and the last day belong to the plan: on the last day, 0 days are left."""
    if start and today < start:
        return PlanProgress("not_started", 0, (start - today).days)
    if end and today > end:
        return PlanProgress("ended", 100, (today - end).days)
    if not end:
        return PlanProgress("running" if start else "undated", None, None)
    percent = round(100 * (today - start).days / ((end - start).days + 1)) if start else None
    return PlanProgress("running", percent, (end - today).days)


def describe_exit(exit_date: date | None, today: date) -> str:
    """The exit date of an inactive participant, such as `Left 5 Jan 2026`."""
    if exit_date is None:
        return "Left, no exit date"
    return f"{'Left' if exit_date <= today else 'Leaves'} {format_date(exit_date)}"


def age_on(birth: date, today: date) -> int | None:
    """The age in whole years; null for a date of birth in the future."""
    years = today.year - birth.year - ((today.month, today.day) < (birth.month, birth.day))
    return years if years >= 0 else None


def strip_position(day: date, start: date, end: date) -> float:
    """The position of a day on the strip of a plan, from 0 to STRIP_WIDTH. Days far from the plan are at the edge."""
    plan_width = STRIP_WIDTH - 2 * STRIP_MARGIN
    position = STRIP_MARGIN + plan_width * (day - start).days / max(1, (end - start).days)
    return round(min(max(position, 1.0), STRIP_WIDTH - 1.0), 2)
