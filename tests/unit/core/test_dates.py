"""Months, dates as people type them, and the errors of invalid dates."""

from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plankeeper.core.dates import (
    DateError,
    Month,
    add_year,
    date_input,
    last_months,
    normalize_date,
    parse_date,
)


@pytest.mark.parametrize(
    "text",
    [
        "22/6/1975",
        "22/06/1975",
        "22-6-1975",
        "22.6.1975",
        "1975-06-22",
        "1975/6/22",
        "22 Jun 1975",
        "22 june 1975",
        " 22  JUN  1975 ",
        "22-Jun-1975",
        "22jun1975",
        "22june1975",
        "22nd June 1975",
        "22 June, 1975",
        "June 22, 1975",
        "Jun. 22nd 1975",
    ],
)  # fmt: skip - a list of texts
def test_a_date_is_read_with_the_day_first(text: str) -> None:
    assert (parse_date(text), normalize_date(text), date_input(text)) == (
        date(1975, 6, 22),
        "1975-06-22",
        "22 Jun 1975",
    )


def test_the_day_comes_first_even_where_both_numbers_could_be_months() -> None:
    assert parse_date("3/4/2026") == date(2026, 4, 3)


@pytest.mark.parametrize(
    "text, message",
    [
        ("31/2/2026", "31 Feb 2026 doesn’t exist"),
        ("2026-02-31", "31 Feb 2026 doesn’t exist"),
        ("29 Feb 2025", "29 Feb 2025 doesn’t exist"),
        ("0/6/2026", "0 Jun 2026 doesn’t exist"),
        ("14/0/2026", "14/0/2026 doesn’t exist"),
        ("14/13/2026", "14/13/2026 doesn’t exist"),
        ("1/1/0000", "1 Jan 0000 doesn’t exist"),
        ("6/22/1975", "has no month 22: enter the day first, such as 22/6/1975"),
        ("22/6/75", "must have a year of four digits, such as 1975"),
        ("22 Jun 75", "must have a year of four digits, such as 1975"),
        ("22/6/975", "must have a year of four digits, such as 1975"),
        ("22 Ju 1975", "must be a date, such as 22 Jun 1975 or 22/6/1975"),
        ("22 Juno 1975", "must be a date, such as 22 Jun 1975 or 22/6/1975"),
        ("June 1975", "must be a date, such as 22 Jun 1975 or 22/6/1975"),
        ("22061975", "must be a date, such as 22 Jun 1975 or 22/6/1975"),
        ("yesterday", "must be a date, such as 22 Jun 1975 or 22/6/1975"),
        ("２２/6/1975", "must be a date, such as 22 Jun 1975 or 22/6/1975"),
        ("", "must be a date, such as 22 Jun 1975 or 22/6/1975"),
    ],
)
def test_an_impossible_or_ambiguous_date_names_the_reason(text: str, message: str) -> None:
    with pytest.raises(DateError) as error:
        parse_date(text)
    assert (str(error.value), normalize_date(text), date_input(text)) == (message, text, text)


@pytest.mark.parametrize(
    "text, past, future",
    [
        ("24/11", "2026-11-24", "2026-11-24"),
        ("25 nov", "2025-11-25", "2026-11-25"),
        ("Nov 23", "2026-11-23", "2027-11-23"),
        ("3rd March", "2026-03-03", "2027-03-03"),
        ("29/2", "2024-02-29", "2028-02-29"),
        ("31/2", "31/2", "31/2"),
        ("24/11/2020", "24/11/2020", "24/11/2020"),
        ("soon", "soon", "soon"),
        ("11", "11", "11"),
        ("", "", ""),
    ],
)
def test_a_date_without_a_year_gets_the_nearest_one(text: str, past: str, future: str) -> None:
    today = date(2026, 11, 24)
    assert (add_year(text, today), add_year(text, today, is_past=False)) == (past, future)


@given(st.dates(date(2002, 7, 1), date(2099, 12, 31)), st.integers(1, 30))
def test_months_follow_each_other_up_to_that_of_a_day(day: date, count: int) -> None:
    months = last_months(day, count)
    assert len(months) == count
    assert months[0].first <= day <= months[0].last
    assert all(one.first - timedelta(days=1) == other.last for one, other in pairwise(months))
    assert all(one.previous == other and other.next == one for one, other in pairwise(months))
    assert [Month.parse(each.text) for each in months] == months


def test_only_months_are_parsed() -> None:
    february = Month.parse("2026-02")
    assert february == Month(date(2026, 2, 1), date(2026, 2, 28)) == Month.of(date(2026, 2, 9))
    assert february.title == "February 2026"
    for text in ("", "2026", "2026-2", "2026-13", "2026-02-01", "20261-1", "9999-12-01", "9999-12", "0000-10", "x"):
        with pytest.raises(ValueError, match="isn't a month"):
            Month.parse(text)
