"""The settings of claims and payments as texts of a form or of a command, and what the bank's file carries of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from stdnum.au import abn

from plankeeper.core.errors import ValidationError
from plankeeper.resources.bank_details.bank_text import (
    MAX_ACCOUNT_NAME,
    MAX_ACCOUNT_NUMBER,
    MAX_DESCRIPTION,
    MAX_REMITTER,
    MAX_USER_NAME,
    BankText,
    parse_account_number,
    parse_bsb,
    to_bank_text,
)
from plankeeper.resources.office_settings.schemas import OfficeSettings

ACCOUNT_NUMBER = "bank_account_number"  # the text that isn't a field of the settings
MAX_TOLERANCE = Decimal(1)  # dollars
MAX_LATE_DAYS = 90
MAX_PAYMENTS = 9_999  # in a file
MAX_NAME = 100  # characters of a name before it is cut
# The names in the bank's file, with the lengths of their fields there.
BANK_NAMES = {
    "bank_account_name": MAX_ACCOUNT_NAME,
    "direct_entry_user_name": MAX_USER_NAME,
    "direct_entry_description": MAX_DESCRIPTION,
    "remitter": MAX_REMITTER,
}
CHOICES = {"": None, "yes": True, "no": False}  # of the unit prices, `` is undecided
GROUPINGS = ("payee", "invoice")


class _WrongError(ValueError):
    """A text isn't a value of its setting. The message says what is."""


@dataclass(frozen=True, slots=True)
class ParsedSettings:
    """Valid settings. `account_number` is null if the stored one stays."""

    values: Mapping[str, Any]
    account_number: str | None


def to_texts(settings: OfficeSettings) -> dict[str, str]:
    """The settings as a form has them, without the account number."""
    texts = {name: _text(getattr(settings, name)) for name in PARSERS}
    includes_gst = settings.prices_include_gst
    return texts | {"prices_include_gst": "" if includes_gst is None else "yes" if includes_gst else "no"}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else ""
    return "" if value is None else str(value)


def parse(texts: Mapping[str, str], *, has_account: bool) -> ParsedSettings:
    """The settings in texts; raises ValidationError. `has_account`: an account number is stored."""
    values, errors = dict[str, Any](), dict[str, str]()
    for name, parser in PARSERS.items():
        try:
            values[name] = parser(texts.get(name, "").strip())
        except _WrongError as error:
            errors[name] = str(error)
    typed = texts.get(ACCOUNT_NUMBER, "").strip()
    number = parse_account_number(typed) if typed else None
    if typed and number is None:
        errors[ACCOUNT_NUMBER] = f"must have 1 to {MAX_ACCOUNT_NUMBER} digits, and not only zeros"
    if "bank_bsb" not in errors:
        errors |= _account_errors(values["bank_bsb"], has_number=bool(typed), is_stored=has_account)
    if errors:
        raise ValidationError(**errors)
    return ParsedSettings(values, number)


def _account_errors(bsb: str | None, *, has_number: bool, is_stored: bool) -> dict[str, str]:
    if bsb is None and has_number:
        return {"bank_bsb": "is required with an account number"}
    return {} if bsb is None or has_number or is_stored else {ACCOUNT_NUMBER: "is required with a BSB"}


def bank_previews(settings: OfficeSettings) -> dict[str, BankText]:
    """What the bank's file has instead of a name, by the name of the setting. Names that it has as they are, aren't."""
    previews = {name: to_bank_text(getattr(settings, name) or "", length) for name, length in BANK_NAMES.items()}
    return {name: each for name, each in previews.items() if each.text != (getattr(settings, name) or "")}


def _optional(check: Callable[[str], str | None], message: str) -> Callable[[str], str | None]:
    """A parser that takes an empty text as null. `check` returns null for a wrong text."""

    def parse_text(text: str) -> str | None:
        value = check(text) if text else None
        if text and value is None:
            raise _WrongError(message)
        return value

    return parse_text


def _digits(max_length: int) -> Callable[[str], str | None]:
    return lambda text: text if text.isascii() and text.isdigit() and len(text) <= max_length else None


def _abn(text: str) -> str | None:
    digits = text.replace(" ", "")
    return digits if digits.isascii() and digits.isdigit() and abn.is_valid(digits) else None


def _letters(text: str) -> str | None:
    return text.upper() if len(text) == 3 and text.isascii() and text.isalpha() else None


def _user_id(text: str) -> str | None:
    return text.zfill(6) if _digits(6)(text) else None


def _name(text: str) -> str | None:
    fits = len(text) <= MAX_NAME and text.isprintable()
    if fits and to_bank_text(text).text:
        return text
    return None


def _number(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse_text(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else -1
        if not minimum <= value <= maximum:
            raise _WrongError(f"must be a whole number from {minimum} to {maximum:,}")
        return value

    return parse_text


def _tolerance(text: str) -> Decimal:
    try:
        value = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        value = Decimal(-1)
    if not value.is_finite() or not 0 <= value <= MAX_TOLERANCE or value != round(value, 2):
        raise _WrongError(f"must be an amount from $0.00 to ${MAX_TOLERANCE:.2f}")
    return round(value, 2)


def _choice(text: str) -> bool | None:
    if text not in CHOICES:
        raise _WrongError("must be yes, no or undecided")
    return CHOICES[text]


def _grouping(text: str) -> str:
    if text not in GROUPINGS:
        raise _WrongError(f"must be one of {', '.join(GROUPINGS)}")
    return text


_NAME_MESSAGE = f"must have up to {MAX_NAME} characters, some of which banks accept"
PARSERS: Mapping[str, Callable[[str], Any]] = {
    "registration_number": _optional(_digits(20), "must have only digits, at most 20"),
    "abn": _optional(_abn, "must have 11 digits with a valid check digit"),
    "prices_include_gst": _choice,
    "result_tolerance": _tolerance,
    "days_until_claim_is_late": _number(1, MAX_LATE_DAYS),
    "needs_receipts": bool,
    "bank_letters": _optional(_letters, "must be three letters, such as CBA"),
    "bank_bsb": _optional(parse_bsb, "must have six digits, such as 062-000"),
    "bank_account_name": _optional(_name, _NAME_MESSAGE),
    "direct_entry_user_id": _optional(_user_id, "must have up to six digits"),
    "direct_entry_user_name": _optional(_name, _NAME_MESSAGE),
    "direct_entry_description": _optional(_name, _NAME_MESSAGE),
    "remitter": _optional(_name, _NAME_MESSAGE),
    "has_balancing_record": bool,
    "group_payments_by": _grouping,
    "max_payments_in_file": _number(1, MAX_PAYMENTS),
    "needs_second_person": bool,
}
