"""Dates, numbers and telephone numbers as people read them."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from plankeeper.core.formatting import (
    email_link,
    format_abn,
    format_ndis_number,
    formatting_filters,
    initials,
    phone_link,
    relative_date,
    relative_time,
)

SYDNEY = ZoneInfo("Australia/Sydney")
TODAY = date(2026, 11, 23)
NOW = datetime(2026, 11, 23, 9, 0, tzinfo=SYDNEY)


@pytest.mark.parametrize(
    "days, text",
    [
        (0, "today"),
        (1, "tomorrow"),
        (-1, "yesterday"),
        (2, "in 2 days"),
        (13, "in 13 days"),
        (14, "in 2 weeks"),
        (-21, "3 weeks ago"),
        (60, "in 8 weeks"),
        (61, "in 2 months"),
        (-365, "12 months ago"),
        (729, "in 23 months"),
        (730, "in 2 years"),
        (-4000, "10 years ago"),
    ],
)
def test_a_date_is_shown_as_its_distance(days: int, text: str) -> None:
    assert relative_date(TODAY + timedelta(days=days), TODAY) == text


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0, "just now"),
        (-59, "just now"),
        (30, "in a moment"),
        (-60, "1 minute ago"),
        (-3599, "59 minutes ago"),
        (7200, "in 2 hours"),
        (-86399, "23 hours ago"),
        (-86400, "yesterday"),
        (-3 * 86400, "3 days ago"),
        (-8 * 86400, "15 Nov 2026"),
        (40 * 86400, "2 Jan 2027"),
    ],
)
def test_a_time_is_shown_as_its_distance_up_to_a_week(seconds: int, text: str) -> None:
    assert relative_time((NOW + timedelta(seconds=seconds)).astimezone(UTC), NOW) == text


def test_days_are_those_of_the_time_zone() -> None:
    """In Sydney, it is already the 24th when it is 14:00 of the 23rd in UTC."""
    now = datetime(2026, 11, 25, 12, 0, tzinfo=SYDNEY)
    assert relative_time(datetime(2026, 11, 23, 14, 0, tzinfo=UTC), now) == "yesterday"


@pytest.mark.parametrize(
    "value, text",
    [("430205409", "430 205 409"), ("43020540", "43020540"), ("43020540x", "43020540x"), ("٤٣٠٢٠٥٤٠٩", "٤٣٠٢٠٥٤٠٩")],
)
def test_ndis_numbers_are_in_groups_of_three(value: str, text: str) -> None:
    assert format_ndis_number(value) == text


@pytest.mark.parametrize(
    "value, text", [("26502811788", "26 502 811 788"), ("26 502 811 788", "26 502 811 788"), ("123", "123")]
)
def test_abns_are_grouped(value: str, text: str) -> None:
    assert format_abn(value) == text


@pytest.mark.parametrize(
    "value, number, text",
    [
        ("0491571266", "0491571266", "0491 571 266"),
        ("0491 571 266", "0491571266", "0491 571 266"),
        ("0255501234", "0255501234", "02 5550 1234"),
        ("1300975707", "1300975707", "1300 975 707"),
        ("131450", "131450", "13 14 50"),
        ("+61 491 571 266", "+61491571266", "+61 491 571 266"),
        ("(02) 5550 1234", "0255501234", "(02) 5550 1234"),
    ],
)
def test_a_telephone_number_is_a_link_that_calls_it(value: str, number: str, text: str) -> None:
    assert phone_link(value) == f'<a class="whole" href="tel:{number}">{text}</a>'


def test_a_text_that_is_no_number_is_only_a_text() -> None:
    assert phone_link("<b>call me") == "&lt;b&gt;call me"
    assert (
        phone_link('0491 571 266"><b>') == '<a class="whole" href="tel:0491571266">0491 571 266&#34;&gt;&lt;b&gt;</a>'
    )


def test_filters_use_the_clock_of_the_zone() -> None:
    filters = formatting_filters(SYDNEY)
    assert filters["relative_date"](datetime.now(SYDNEY).date() + timedelta(days=5)) == "in 5 days"
    assert filters["relative_date"]((datetime.now(SYDNEY) + timedelta(days=5)).astimezone(UTC)) == "in 5 days"
    assert filters["relative_time"](datetime.now(UTC) - timedelta(minutes=5, seconds=30)) == "5 minutes ago"


@pytest.mark.parametrize("name, text", [("Robin Hale", "RH"), ("Ann van der Berg", "AB"), ("Cher", "C"), ("", "?")])
def test_initials_are_of_the_first_and_the_last_word(name: str, text: str) -> None:
    assert initials(name) == text


def test_emails_break_between_their_parts() -> None:
    assert email_link("ann-b.c@d.example") == (
        '<a href="mailto:ann-b.c%40d.example">ann<wbr>-b<wbr>.c<wbr>@d<wbr>.example</a>'
    )
    assert email_link('<b>"@d') == '<a href="mailto:%3Cb%3E%22%40d">&lt;b&gt;&#34;<wbr>@d</a>'
