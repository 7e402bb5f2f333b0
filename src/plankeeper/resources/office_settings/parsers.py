"""The settings of a plan manager as texts of a form or of a command, and what the bank's file carries of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from stdnum.au import abn

from plankeeper.core.errors import ValidationError
from plankeeper.core.fields import is_email
from plankeeper.core.ids import parse_uuid
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
from plankeeper.resources.office_settings.service_standard import MAX_DAYS

ACCOUNT_NUMBER = "bank_account_number"  # the text that isn't a field of the settings
MAX_TOLERANCE = Decimal(1)  # dollars
MAX_LATE_DAYS = 90
MAX_PAYMENTS = 9_999  # in a file
MAX_NAME = 100  # characters of a name before it is cut
MAX_APPROVAL_DAYS = 90
MAX_STATEMENT_DAY = 28  # each month has it
MAX_STATEMENT_PHONE = 50
MAX_STATEMENT_DISPUTE = 500
MAX_FEE_ITEM = 50
# The names in the bank's file, with the lengths of their fields there.
BANK_NAMES = {
    "bank_account_name": MAX_ACCOUNT_NAME,
    "direct_entry_user_name": MAX_USER_NAME,
    "direct_entry_description": MAX_DESCRIPTION,
    "remitter": MAX_REMITTER,
}
YES_NO = {"yes": True, "no": False}
GROUPINGS = ("payee", "invoice")

Parser = Callable[[str], Any]
Parsers = Mapping[str, Parser]  # by the name of the setting


class _WrongError(ValueError):
    """A text isn't a value of its setting. The message says what is."""


@dataclass(frozen=True, slots=True)
class ParsedSettings:
    """Valid settings. `account_number` is null if the stored one stays."""

    values: Mapping[str, Any]
    account_number: str | None


def to_texts(settings: OfficeSettings, parsers: Parsers) -> dict[str, str]:
    """The settings that the parsers read, as a form has them."""
    return {name: _text(name, getattr(settings, name)) for name in parsers}


def _text(name: str, value: object) -> str:
    if name == "prices_include_gst":
        return next((text for text, each in YES_NO.items() if each is value), "")
    if isinstance(value, bool):
        return "true" if value else ""
    return "" if value is None else str(value)


def parse_values(parsers: Parsers, texts: Mapping[str, str]) -> dict[str, Any]:
    """The settings in texts; raises ValidationError."""
    values, errors = _parse(parsers, texts)
    if errors:
        raise ValidationError(**errors)
    return values


def _parse(parsers: Parsers, texts: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of the valid texts, and the messages about the others."""
    values, errors = dict[str, Any](), dict[str, str]()
    for name, parser in parsers.items():
        try:
            values[name] = parser(texts.get(name, "").strip())
        except _WrongError as error:
            errors[name] = str(error)
    return values, errors


def parse_claims_and_payments(texts: Mapping[str, str], *, has_account: bool) -> ParsedSettings:
    """The settings of claims and payments; raises ValidationError. `has_account`: an account number is stored."""
    values, errors = _parse({**CLAIMS_AND_PAYMENTS, ACCOUNT_NUMBER: _ACCOUNT_NUMBER}, texts)
    if "bank_bsb" not in errors:
        has_number = bool(texts.get(ACCOUNT_NUMBER, "").strip())
        errors |= _account_errors(values["bank_bsb"], has_number=has_number, is_stored=has_account)
    if errors:
        raise ValidationError(**errors)
    number = values.pop(ACCOUNT_NUMBER)
    return ParsedSettings(values, number)


def _account_errors(bsb: str | None, *, has_number: bool, is_stored: bool) -> dict[str, str]:
    if bsb is None and has_number:
        return {"bank_bsb": "is required with an account number"}
    return {} if bsb is None or has_number or is_stored else {ACCOUNT_NUMBER: "is required with a BSB"}


def bank_previews(settings: OfficeSettings) -> dict[str, BankText]:
    """What the bank's file has instead of a name, by the name of the setting. Names that it has as they are, aren't."""
    previews = {name: to_bank_text(getattr(settings, name) or "", length) for name, length in BANK_NAMES.items()}
    return {name: each for name, each in previews.items() if each.text != (getattr(settings, name) or "")}


def _required(check: Callable[[str], Any], message: str) -> Parser:
    """A parser. `check` returns null for a wrong text."""

    def parse_text(text: str) -> Any:
        value = check(text)
        if value is None:
            raise _WrongError(message)
        return value

    return parse_text


def _optional(check: Callable[[str], Any], message: str) -> Parser:
    """The same, but an empty text is null."""
    parse_text = _required(check, message)
    return lambda text: parse_text(text) if text else None


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
    return text if fits and to_bank_text(text).text else None


def _item_number(text: str) -> str | None:
    return text if len(text) <= MAX_FEE_ITEM and text == "".join(text.split()) else None


def _tolerance(text: str) -> Decimal | None:
    try:
        value = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        return None
    is_valid = value.is_finite() and 0 <= value <= MAX_TOLERANCE and value == round(value, 2)
    return round(value, 2) if is_valid else None


def _between(minimum: int, maximum: int) -> Callable[[str], int | None]:
    def check(text: str) -> int | None:
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else -1
        return value if minimum <= value <= maximum else None

    return check


def _number(minimum: int, maximum: int) -> Parser:
    return _required(_between(minimum, maximum), f"must be a whole number from {minimum} to {maximum:,}")


def _optional_number(maximum: int) -> Parser:
    return _optional(_between(1, maximum), f"must be a number from 1 to {maximum}, or empty")


def _up_to(max_length: int) -> Parser:
    """A text, with the line breaks of a form."""

    def check(text: str) -> str | None:
        plain = text.replace("\r\n", "\n")
        return plain if len(plain) <= max_length else None

    return _optional(check, f"must have at most {max_length:,} characters")


_BANK_NAME = _optional(_name, f"must have up to {MAX_NAME} characters, some of which banks accept")
_ACCOUNT_NUMBER = _optional(parse_account_number, f"must have 1 to {MAX_ACCOUNT_NUMBER} digits, and not only zeros")
APPROVAL: Parsers = {
    "approval_reminder_days": _optional_number(MAX_APPROVAL_DAYS),
    "approval_automatic_days": _optional_number(MAX_APPROVAL_DAYS),
}
SERVICE_STANDARD: Parsers = {"days_to_claim": _number(0, MAX_DAYS), "days_to_pay": _number(0, MAX_DAYS)}
STATEMENTS: Parsers = {
    "statement_day": _optional_number(MAX_STATEMENT_DAY),
    "statement_email": _optional(lambda text: text if is_email(text) else None, "must be an email address, or empty"),
    "statement_phone": _up_to(MAX_STATEMENT_PHONE),
    "statement_dispute": _up_to(MAX_STATEMENT_DISPUTE),
}
FEES: Parsers = {
    "fee_item_number": _optional(_item_number, "must be a support item number, such as 14_034_0127_8_3"),
    "fee_provider_id": _optional(parse_uuid, "must be a provider with your ABN"),
}
CLAIMS_AND_PAYMENTS: Parsers = {
    "registration_number": _optional(_digits(20), "must have only digits, at most 20"),
    "abn": _optional(_abn, "must have 11 digits with a valid check digit"),
    "prices_include_gst": _optional(YES_NO.get, "must be yes, no or undecided"),
    "result_tolerance": _required(_tolerance, f"must be an amount from $0.00 to ${MAX_TOLERANCE:.2f}"),
    "days_until_claim_is_late": _number(1, MAX_LATE_DAYS),
    "needs_receipts": bool,
    "bank_letters": _optional(_letters, "must be three letters, such as CBA"),
    "bank_bsb": _optional(parse_bsb, "must have six digits, such as 062-000"),
    "bank_account_name": _BANK_NAME,
    "direct_entry_user_id": _optional(_user_id, "must have up to six digits"),
    "direct_entry_user_name": _BANK_NAME,
    "direct_entry_description": _BANK_NAME,
    "remitter": _BANK_NAME,
    "has_balancing_record": bool,
    "group_payments_by": _required(
        lambda text: text if text in GROUPINGS else None, f"must be one of {', '.join(GROUPINGS)}"
    ),
    "max_payments_in_file": _number(1, MAX_PAYMENTS),
    "needs_second_person": bool,
}
