"""A plan's progress, ages, and positions of dates on the strip of a plan."""

from datetime import date, timedelta

import pytest

from plankeeper.console.components.money import (
    PlanProgress,
    age_on,
    describe_exit,
    plan_progress,
    strip_position,
)

START, END = date(2026, 7, 1), date(2027, 6, 30)


@pytest.mark.parametrize(
    "start,end,today,expected",
    [
        (START, END, START - timedelta(days=3), PlanProgress("not_started", 0, 3)),
        (START, END, START, PlanProgress("running", 0, 364)),
        (START, END, date(2026, 12, 31), PlanProgress("running", 50, 181)),
        (START, END, END, PlanProgress("running", 100, 0)),
        (START, END, END + timedelta(days=1), PlanProgress("ended", 100, 1)),
        (START, START, START, PlanProgress("running", 0, 0)),
        (START, None, START, PlanProgress("running", None, None)),
        (None, END, START, PlanProgress("running", None, 364)),
        (None, END, END + timedelta(days=30), PlanProgress("ended", 100, 30)),
        (None, None, START, PlanProgress("undated", None, None)),
        (END, START, END + timedelta(days=1), PlanProgress("ended", 100, 365)),
    ],
)
def test_the_progress_of_a_plan(start: date | None, end: date | None, today: date, expected: PlanProgress) -> None:
    assert plan_progress(start, end, today) == expected


@pytest.mark.parametrize(
    "exit_date,text",
    [
        (START, "Left 1 Jul 2026"),
        (START + timedelta(days=1), "Leaves 2 Jul 2026"),
        (None, "Left, no exit date"),
    ],
)
def test_an_exit_is_described_by_its_date(exit_date: date | None, text: str) -> None:
    assert describe_exit(exit_date, START) == text


@pytest.mark.parametrize(
    "today,age",
    [(date(2026, 6, 21), 50), (date(2026, 6, 22), 51), (date(1975, 6, 22), 0), (date(1975, 6, 21), None)],
)
def test_an_age_changes_on_the_birthday(today: date, age: int | None) -> None:
    assert age_on(date(1975, 6, 22), today) == age


def test_a_date_in_the_plan_lies_between_its_ends_and_others_outside() -> None:
    days = [date(1990, 1, 1), START - timedelta(days=30), START, date(2026, 12, 30), END, END + timedelta(days=30)]
    assert [strip_position(day, START, END) for day in days] == [1.0, 9.23, 15.0, 50.0, 85.0, 90.77]
    assert strip_position(date(2090, 1, 1), START, END) == 99.0
    assert strip_position(START, START, START) == 15.0
