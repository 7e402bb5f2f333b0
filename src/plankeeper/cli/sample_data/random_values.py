"""Seeded random values: dates, ids and emails. Nothing depends on the current time: see `dates`."""

import unicodedata
from datetime import UTC, date, datetime, time, timedelta
from random import Random
from typing import Any
from uuid import UUID

Row = dict[str, Any]
"""One object of an import file: JSON values, and `Decimal` for amounts."""

LAST_DAY = date(2026, 10, 30)
"""The last day of the generated data: no record was created later."""

OFFICE_HOURS = 7  # from midnight in UTC on: from ten or eleven o'clock on, on Australia's east coast

LAST_MOMENT = datetime.combine(LAST_DAY, time(OFFICE_HOURS), UTC)
"""The moment as of which the data is generated, after everything has happened."""

_ASCII = str.maketrans({"đ": "d", "Đ": "D", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O"})


def resource_rng(plan_manager_id: UUID, seed: int, resource: str) -> Random:
    """A random generator per resource, so that a change to one resource doesn't change the others."""
    return Random(f"{seed}/{plan_manager_id}/{resource}")


def chance(rng: Random, percent: float) -> bool:
    return rng.random() * 100 < percent


def random_date(rng: Random, first: date, last: date) -> date:
    return first + timedelta(days=rng.randint(0, (last - first).days))


def days_ago(days: int) -> date:
    return LAST_DAY - timedelta(days=days)


def random_datetime(rng: Random, day: date) -> datetime:
    """A random time in office hours on Australia's east coast, when the date in UTC is the same."""
    return datetime.combine(day, time(), UTC) + timedelta(seconds=rng.randrange(OFFICE_HOURS * 3600))


def format_datetime(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_datetime(text: str) -> datetime:
    return datetime.fromisoformat(text)


def uuid7(rng: Random, when: datetime) -> str:
    """A version 7 UUID of the milliseconds of `when` and random bits (RFC 9562, 5.7)."""
    milliseconds = (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    number = milliseconds << 80 | 0x7 << 76 | rng.getrandbits(12) << 64 | 0b10 << 62 | rng.getrandbits(62)
    return str(UUID(int=number))


def decompose(text: str) -> str:
    """The text with the accents of its letters after them."""
    return unicodedata.normalize("NFKD", text.translate(_ASCII))


def email_local_part(*words: str) -> str:
    """The words as the local part of an email address: lower-case ASCII letters, joined by dots."""
    letters = ("".join(c for c in decompose(word).lower() if c.isascii() and c.isalnum()) for word in words)
    return ".".join(letters)


def unique_email(used_emails: set[str], name: str, domain: str) -> str:
    """An address that is not in `used_emails`, with a number if necessary. Adds it to `used_emails`."""
    email, number = f"{name}@{domain}", 2
    while email in used_emails:
        email, number = f"{name}{number}@{domain}", number + 1
    used_emails.add(email)
    return email
