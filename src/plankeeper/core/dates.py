"""Months, and dates and times that people type: the day always comes first, whatever the language of the browser."""

import re
from calendar import month_name, monthrange
from contextlib import suppress
from datetime import date, time, timedelta
from typing import NamedTuple

from plankeeper.core.fields import MONTH_PATTERN
from plankeeper.core.formatting import MONTHS, format_date

EXAMPLES = "22 Jun 1975 or 22/6/1975"
LEAP_YEARS = 8  # 29 Feb exists at least once in so many years

_TIME = re.compile(r"(?P<hour>[0-9]{1,2})(?:[:.](?P<minute>[0-9]{2}))?(?: ?(?P<half>am|pm))?")
_ISO = re.compile(r"(?P<year>[0-9]{4})[-/](?P<month>[0-9]{1,2})[-/](?P<day>[0-9]{1,2})")
_NUMBERS = re.compile(r"(?P<day>[0-9]{1,2})[-/.](?P<month>[0-9]{1,2})[-/.](?P<year>[0-9]{1,4})")
_DAY_FIRST = re.compile(r"(?P<day>[0-9]{1,2})(?:(?:[a-z]{2})?[ -])?(?P<month>[a-z]{3,9})\.?,?[ -]?(?P<year>[0-9]{1,4})")
_WITHOUT_YEAR = re.compile(
    r"[0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}(?:(?:[a-z]{2})?[ -])?[a-z]{3,9}\.?|[a-z]{3,9}\.? [0-9]{1,2}(?:[a-z]{2})?"
)
_MONTH_FIRST = re.compile(r"(?P<month>[a-z]{3,9})\.? (?P<day>[0-9]{1,2})(?:[a-z]{2})?,? (?P<year>[0-9]{1,4})")


class Month(NamedTuple):
    """A month by its first and its last day."""

    first: date
    last: date

    @classmethod
    def of(cls, day: date) -> "Month":
        return cls(day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1]))

    @classmethod
    def parse(cls, text: str) -> "Month":
        """The month of `2026-11`. Raises ValueError for another text, and outside the years 2000 to 2099."""
        if not re.fullmatch(MONTH_PATTERN, text):
            raise ValueError(f"{text!r} isn't a month")
        return cls.of(date.fromisoformat(f"{text}-01"))

    @property
    def text(self) -> str:
        """`2026-11`."""
        return self.first.isoformat()[:7]

    @property
    def title(self) -> str:
        """`November 2026`."""
        return f"{self.first:%B} {self.first.year}"

    @property
    def next(self) -> "Month":
        return Month.of(self.last + timedelta(days=1))

    @property
    def previous(self) -> "Month":
        return Month.of(self.first - timedelta(days=1))


def last_months(day: date, count: int) -> list[Month]:
    """The month of a day and those before it, the latest first."""
    months = [Month.of(day)]
    while len(months) < count:
        months.append(months[-1].previous)
    return months


class DateError(ValueError):
    """An invalid date. The message continues the field's label, such as `31 Feb 2026 doesn’t exist`."""


def parse_date(text: str) -> date:
    """The date of `22/6/1975`, `22 Jun 1975`, `22 June 1975`, `June 22, 1975` or `1975-06-22`; raises DateError."""
    normalized = " ".join(text.lower().split())
    patterns = (_ISO, _NUMBERS, _DAY_FIRST, _MONTH_FIRST)
    match = next((found for each in patterns if (found := each.fullmatch(normalized))), None)
    month = _parse_month(match["month"]) if match else None
    if match is None or month is None:
        raise DateError(f"must be a date, such as {EXAMPLES}")
    if len(match["year"]) != 4:
        raise DateError("must have a year of four digits, such as 1975")
    day, year = int(match["day"]), int(match["year"])
    if month > 12 >= day:
        raise DateError(f"has no month {month}: enter the day first, such as {month}/{day}/{year}")
    try:
        return date(year, month, day)
    except ValueError:
        shown = f"{day} {MONTHS[month]} {year:04}" if 1 <= month <= 12 else " ".join(text.split())
        raise DateError(f"{shown} doesn’t exist") from None


def add_year(text: str, today: date, *, is_past: bool = True) -> str:
    """A date without a year, such as `22/6` or `22 Jun`, with one: the latest not after today, or the next one.

    Any other text stays as it is.
    """
    if not _WITHOUT_YEAR.fullmatch(" ".join(text.lower().split())):
        return text
    days = list[date]()
    for year in range(today.year - LEAP_YEARS, today.year + LEAP_YEARS + 1):
        for separator in ("/", " "):
            with suppress(DateError):
                days.append(parse_date(f"{text.strip()}{separator}{year}"))
    found = [day for day in days if day <= today][-1:] if is_past else [day for day in days if day >= today][:1]
    return found[0].isoformat() if found else text


def parse_time(text: str) -> time:
    """The time of `15:04`, `3:04 pm` or `3 pm`; raises DateError."""
    match = _TIME.fullmatch(" ".join(text.lower().split()))
    if match and (match["minute"] or match["half"]):
        hour, minute = int(match["hour"]), int(match["minute"] or 0)
        if match["half"]:
            hour = hour % 12 + (12 if match["half"] == "pm" else 0) if 1 <= hour <= 12 else 24
        if hour < 24 and minute < 60:
            return time(hour, minute)
    raise DateError("must be a time, such as 15:04 or 3:04 pm")


def normalize_date(text: str) -> str:
    """The text in ISO 8601 if it is a date; otherwise the text as it is."""
    try:
        return parse_date(text).isoformat()
    except DateError:
        return text


def date_input(text: str) -> str:
    """A date as a form shows it, such as `22 Jun 1975`; another text as it is."""
    try:
        value = parse_date(text)
    except DateError:
        return text
    return format_date(value)


def _parse_month(text: str) -> int | None:
    """The number of a month by its number or its name in full, or shortened to three letters or more."""
    if text.isdecimal():
        return int(text)
    names = (name.lower() for name in month_name[1:])
    return next((number for number, name in enumerate(names, 1) if name.startswith(text)), None)
