"""Cells as people type them, as the text that an import file has: dates, yes and no, states, amounts, numbers."""

import re
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, get_args, get_origin

from plankeeper.core.dates import DateError, parse_date
from plankeeper.core.validation import unwrap_type

_MIDNIGHT = re.compile(r"[ T](0?0:00(:00(\.0+)?)?|12:00(:00)? ?am)Z?$", re.ASCII | re.IGNORECASE)
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "y", "1", "active", "on", "x", "✓"), "true"),
    **dict.fromkeys(("false", "no", "n", "0", "inactive", "off"), "false"),
}
_STATES = {
    "australiancapitalterritory": "ACT",
    "newsouthwales": "NSW",
    "northernterritory": "NT",
    "queensland": "QLD",
    "southaustralia": "SA",
    "tasmania": "TAS",
    "victoria": "VIC",
    "westernaustralia": "WA",
}
_PRIORITIES = {"primary": "1", "yes": "1", "secondary": "2", "first": "1", "second": "2", "no": "", "none": ""}
# Fields whose value consists of digits, which people group with spaces.
NUMBER_FIELDS = frozenset({"participant_number", "abn"})
# The beginnings of cells that spreadsheets run as formulas, also in full width.
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class CellError(Exception):
    """A cell that can't be read; the message says what is right."""


def clean(cell: str) -> str:
    """A cell without surrounding spaces, and without the apostrophe that keeps a spreadsheet from running it."""
    text = cell.replace("\u00a0", " ").strip()
    return text[1:] if text.startswith("'") and text.startswith(FORMULA_PREFIXES, 1) else text


def normalize(field: str, annotation: Any, text: str) -> str:
    """A cell's text in the form of an import file. Raises CellError for a date or an amount that can't be read.

    Other texts that aren't values of the field stay as they are, for the errors of the validation.
    """
    if field in NUMBER_FIELDS:
        normalized = plain_number(text)
    elif field == "contact_priority":
        normalized = _PRIORITIES.get(text.casefold(), text)
    elif field == "state":
        normalized = _STATES.get(_fold(text), text.upper())
    elif "phone" in field:
        normalized = " ".join(text.split())
    else:
        normalized = _normalize_kind(annotation, text)
    return normalized


def _normalize_kind(annotation: Any, text: str) -> str:
    kind = unwrap_type(annotation)
    if kind is date:
        return _parse_date(text)
    if kind is bool:
        return _BOOLEANS.get(text.casefold(), text)
    if kind is Decimal:
        return _plain_amount(text)
    return _code_of(annotation, text)


def _parse_date(text: str) -> str:
    """A date in ISO 8601; spreadsheets may add midnight. Raises CellError."""
    try:
        return parse_date(_MIDNIGHT.sub("", text)).isoformat()
    except DateError as error:
        raise CellError(str(error)) from None


def plain_number(text: str) -> str:
    """A number without its spaces and hyphens; another text as it is."""
    digits = re.sub(r"[\s\-]", "", text)
    return digits if digits.isascii() and digits.isdecimal() else text


def _plain_amount(text: str) -> str:
    amount = text.replace("$", "").replace(",", "").replace(" ", "")
    if re.fullmatch(r"\([0-9.]+\)", amount):
        amount = f"-{amount[1:-1]}"
    return amount


def _code_of(annotation: Any, text: str) -> str:
    """The code that a text means, in any case and with spaces for underscores: `on hold` is `on_hold`."""
    codes = _codes(annotation)
    if not codes or text.startswith("["):  # a list may be JSON
        return text
    folded = {_fold(each): each for each in codes}
    if unwrap_type(annotation) is list:
        return ";".join(folded.get(_fold(each), each.strip()) for each in re.split("[;,]", text))
    return folded.get(_fold(text), text)


def _codes(annotation: Any) -> list[str]:
    """The texts that a field accepts; none if it accepts any text."""
    if get_origin(annotation) is Literal:
        return [each for each in get_args(annotation) if isinstance(each, str)]
    if get_origin(annotation) is Annotated:
        return _codes(annotation.__origin__)
    return [code for part in get_args(annotation) for code in _codes(part)]


def _fold(text: str) -> str:
    return "".join(each for each in text.casefold() if each.isalnum())
