"""Dates, times, numbers and telephone numbers as text for readers, as is usual in Australia, and whole cents."""

import re
import unicodedata
from calendar import month_abbr
from collections.abc import Callable
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from urllib.parse import quote
from zoneinfo import ZoneInfo

from markupsafe import Markup

MONTHS = tuple(month_abbr)  # `Jan` is the second, because the first month is 1
CENT = Decimal("0.01")
_BEFORE_EMAIL_PART = re.compile(r"(?=[.@-])")
_NOT_DIALLED = re.compile(r"[^0-9]")
# Australian telephone numbers by their first digits, with the lengths of their groups.
_PHONE_GROUPS = (
    (re.compile(r"04[0-9]{8}|1[38]00[0-9]{6}"), (4, 3, 3)),
    (re.compile(r"0[2378][0-9]{8}"), (2, 4, 4)),
    (re.compile(r"13[0-9]{4}"), (2, 2, 2)),
)


def formatting_filters(zone: ZoneInfo) -> dict[str, Callable[..., str]]:
    """The filters of templates. Dates and times are those of the zone."""

    def local_datetime(value: datetime) -> str:
        return format_datetime(value, zone)

    def local_datetime_seconds(value: datetime) -> str:
        return format_datetime_seconds(value, zone)

    def distance_of_date(value: date | datetime) -> str:
        local = value.astimezone(zone).date() if isinstance(value, datetime) else value
        return relative_date(local, datetime.now(zone).date())

    def distance_of_time(value: datetime) -> str:
        return relative_time(value, datetime.now(zone))

    return {
        "datetime": local_datetime,
        "datetime_seconds": local_datetime_seconds,
        "date": format_date,
        "relative_date": distance_of_date,
        "relative_time": distance_of_time,
        "money": format_money,
        "decimal": format_decimal,
        "ndis": format_ndis_number,
        "abn_number": format_abn,
        "phone_link": phone_link,
        "email_link": email_link,
        "email_parts": email_parts,
        "initials": initials,
    }


def relative_date(value: date, today: date) -> str:
    """The distance of a date from today: `in 12 days`, `3 weeks ago`."""
    days = (value - today).days
    near = {-1: "yesterday", 0: "today", 1: "tomorrow"}.get(days)
    if near:
        return near
    length, unit = _distance(abs(days))
    text = f"{length} {unit}" if length == 1 else f"{length} {unit}s"
    return f"in {text}" if days > 0 else f"{text} ago"


def _distance(days: int) -> tuple[int, str]:
    if days < 14:
        return days, "day"
    if days < 61:
        return days // 7, "week"
    return (days * 12 // 365, "month") if days < 730 else (days // 365, "year")


def relative_time(value: datetime, now: datetime) -> str:
    """The distance of a time from now, up to a week: `5 minutes ago`, `in 2 hours`, `3 days ago`. Others as a date."""
    local = value.astimezone(now.tzinfo)
    seconds = round((local - now).total_seconds())
    if abs(seconds) < 60:
        return "just now" if seconds <= 0 else "in a moment"
    if abs(seconds) < 86400:
        length, unit = (abs(seconds) // 60, "minute") if abs(seconds) < 3600 else (abs(seconds) // 3600, "hour")
        text = f"{length} {unit}" if length == 1 else f"{length} {unit}s"
        return f"in {text}" if seconds > 0 else f"{text} ago"
    is_near = abs((local.date() - now.date()).days) <= 7
    return relative_date(local.date(), now.date()) if is_near else format_date(local)


def _group(text: str, *lengths: int) -> str:
    starts = [sum(lengths[:index]) for index in range(len(lengths))]
    return " ".join(text[start : start + length] for start, length in zip(starts, lengths, strict=True))


def format_ndis_number(value: str) -> str:
    """`430 205 409`. Any other text than 9 digits stays as it is."""
    return _group(value, 3, 3, 3) if re.fullmatch(r"[0-9]{9}", value) else value


def format_abn(value: str) -> str:
    """`26 502 811 788`. Any other text than 11 digits stays as it is."""
    return _group(value, 2, 3, 3, 3) if re.fullmatch(r"[0-9]{11}", value) else value


def format_phone(value: str) -> str:
    """`0491 571 266`, `02 5550 1234`. Other numbers stay as they are."""
    digits = value.replace(" ", "")
    lengths = next((lengths for pattern, lengths in _PHONE_GROUPS if pattern.fullmatch(digits)), None)
    return _group(digits, *lengths) if lengths else value


def initials(name: str) -> str:
    """The first letters of the first and the last word: `RH` for `Robin Hale`."""
    words = name.split()
    return "".join(word[0] for word in (words[0], words[-1])[: len(words)]).upper() if words else "?"


def phone_link(value: str) -> Markup:
    """A link that calls the number; a text without at least six digits stays a text."""
    digits = _NOT_DIALLED.sub("", value)
    if len(digits) < 6:
        return Markup.escape(value)
    number = f"+{digits}" if value.lstrip().startswith("+") else digits
    return Markup('<a class="whole" href="tel:{}">{}</a>').format(number, format_phone(value))


def email_link(value: str) -> Markup:
    """A link that opens a new email to the address."""
    return Markup('<a href="mailto:{}">{}</a>').format(quote(value), email_parts(value))


def email_parts(value: str) -> Markup:
    """An address whose lines break between its parts, not in a word."""
    return Markup("<wbr>").join(_BEFORE_EMAIL_PART.split(value))


def format_datetime(value: datetime, zone: ZoneInfo) -> str:
    """`21 Nov 2026, 3:04 pm`."""
    local = value.astimezone(zone)
    return f"{format_date(local)}, {local.hour % 12 or 12}:{local:%M} {'am' if local.hour < 12 else 'pm'}"


def format_datetime_seconds(value: datetime, zone: ZoneInfo) -> str:
    """`21 Nov 2026, 3:04:05 pm`."""
    minutes, am_pm = format_datetime(value, zone).rsplit(" ", 1)
    return f"{minutes}:{value:%S} {am_pm}"


def format_date(value: date) -> str:
    """`21 Nov 2026`."""
    return f"{value.day} {MONTHS[value.month]} {value.year}"


def format_money(value: Decimal | float) -> str:
    """`$1,234.50`; a price in fractions of a cent keeps all its decimals."""
    decimals = max(2, _decimal_places(value)) if isinstance(value, Decimal) else 2
    return f"{'-' if value < 0 else ''}${abs(value):,.{decimals}f}"


def to_cents(value: Decimal) -> Decimal:
    """An amount to the cent, half a cent up."""
    # `quantize` raises an error for numbers with more digits than the context's precision.
    return (value * 100).to_integral_value(ROUND_HALF_UP) / 100


def format_decimal(value: Decimal) -> str:
    """`1,234.5`."""
    return f"{value:,.{_decimal_places(value)}f}"


def _decimal_places(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def truncate(text: str, max_length: int) -> str:
    """The text, or its beginning and `…`."""
    return text if len(text) <= max_length else f"{text[:max_length]}…"


def single_line(text: str, max_length: int) -> str:
    """Untrusted text as one line: without control characters, line separators and surrogates, and cut to a length."""
    return "".join(
        character
        for character in text[: 4 * max_length]  # the rest isn't even read
        if unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
    )[:max_length]


def fold_name(text: str) -> str:
    """The text without accents and capitals, for comparisons."""
    decomposed = unicodedata.normalize("NFD", " ".join(text.split()))
    return "".join(each for each in decomposed if not unicodedata.combining(each)).casefold()


def digits_of(text: str) -> str:
    """The digits of a number that is written with spaces or hyphens."""
    return re.sub(r"[^0-9]", "", text)


def comparable_number(text: str, digit_count: int) -> str:
    """The digits of a text with this many, else the text without spaces: the value of `database/number_keys.py`."""
    digits = digits_of(text)
    return digits if len(digits) == digit_count else text.replace(" ", "")


def plain_number(text: str) -> str:
    """A number without its spaces and hyphens; another text as it is."""
    digits = re.sub(r"[\s\-]", "", text)
    return digits if digits.isascii() and digits.isdecimal() else text
