"""The form of bank details: what a bank's file can carry."""

from plankeeper.core.encryption.bank_accounts import BankAccount
from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.resources.bank_details.bank_text import (
    MAX_ACCOUNT_NAME,
    MAX_ACCOUNT_NUMBER,
    parse_account_number,
    parse_bsb,
    to_bank_text,
)


def parse_account(bsb: str, account_number: str, account_name: str, prefix: str = "") -> BankAccount:
    """The account in texts of a request, whose name is transliterated.

    Raises ValidationError with all errors. The names of the fields begin with `prefix`.
    """
    digits, number = parse_bsb(bsb), parse_account_number(account_number)
    name = to_bank_text(account_name)
    errors = [] if digits else [FieldError(f"{prefix}bsb", "must have six digits, such as 062-000", "invalid_format")]
    errors += [] if number else [_number_error(f"{prefix}account_number", account_number)]
    errors += _name_errors(f"{prefix}account_name", name.text, name.lost)
    if errors or digits is None or number is None:
        raise ValidationError(*errors)
    return BankAccount(digits, number, name.text)


def _number_error(field: str, text: str) -> FieldError:
    if len(text.replace(" ", "").replace("-", "")) > MAX_ACCOUNT_NUMBER:
        return FieldError(field, f"must have at most {MAX_ACCOUNT_NUMBER} digits", "too_long")
    return FieldError(field, f"must have 1 to {MAX_ACCOUNT_NUMBER} digits, and not only zeros", "invalid_format")


def _name_errors(field: str, text: str, lost: str) -> list[FieldError]:
    if lost:
        message = f"has characters that banks don't accept: {' '.join(lost[:20])}"
        return [FieldError(field, message, "invalid_format")]
    if not text:
        return [FieldError(field, "must not be blank", "too_short")]
    if len(text) > MAX_ACCOUNT_NAME:
        return [FieldError(field, f"must have at most {MAX_ACCOUNT_NAME} characters, and has {len(text)}", "too_long")]
    return []
