"""The direct entry file (ABA) of a payment run: records of 120 characters, whose texts are ready for the bank.

The caller has transliterated and cut the texts: a text that doesn't fit is an error here, never cut.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from plankeeper.resources.bank_details.bank_text import (
    BANK_CHARACTERS,
    MAX_ACCOUNT_NAME,
    MAX_ACCOUNT_NUMBER,
    MAX_DESCRIPTION,
    MAX_REMITTER,
    MAX_USER_NAME,
    format_bsb,
)

MAX_REFERENCE = 18  # characters of a lodgement reference
MAX_CENTS = 10**10 - 1
MAX_AMOUNT = Decimal(MAX_CENTS) / 100  # dollars, of a payment and of a file
NO_USER_ID = "000000"  # of an office whose bank gives none

_RECORD_LENGTH, _MAX_RECORDS = 120, 999_999
_CREDIT, _DEBIT = "50", "13"
_NEWLINE = "\r\n"


class AbaFileError(ValueError):
    """A value that the file can't have. The message names it, but has no number of an account."""


class AbaHeader(NamedTuple):
    """The office's account and its data for direct entry. `bsb` has six digits."""

    bank_letters: str
    bsb: str
    account_number: str
    account_name: str
    user_id: str
    user_name: str
    description: str
    remitter: str
    has_balancing_record: bool


class AbaCredit(NamedTuple):
    """A payment to an account: `amount` in dollars."""

    bsb: str
    account_number: str
    account_name: str
    reference: str
    amount: Decimal


def build_aba_file(header: AbaHeader, process_date: date, payments: Sequence[AbaCredit]) -> bytes:
    """The file of payments in their order. Raises AbaFileError."""
    total = sum(_cents(each.amount) for each in payments)
    if total > MAX_CENTS:
        raise AbaFileError(f"The payments add up to more than {MAX_AMOUNT:,.2f}, which the file can't have.")
    records = [_payment_record(header, each, _CREDIT) for each in payments]
    if header.has_balancing_record:
        records.append(_payment_record(header, _balancing_debit(header, total), _DEBIT))
    if not payments or len(records) > _MAX_RECORDS:
        raise AbaFileError(f"The file must have 1 to {_MAX_RECORDS:,} payments.")
    lines = [_header_record(header, process_date), *records, _total_record(header, total, len(records))]
    return "".join(each + _NEWLINE for each in lines).encode("ascii")


def _balancing_debit(header: AbaHeader, total: int) -> AbaCredit:
    own = (header.bsb, header.account_number, header.account_name)
    return AbaCredit(*own, header.description, Decimal(total) / 100)


def _header_record(header: AbaHeader, process_date: date) -> str:
    return _record(
        "0",
        " " * 17,
        "01",
        _text(header.bank_letters, 3, "The bank's letters"),
        " " * 7,
        _text(header.user_name, MAX_USER_NAME, "The office's name in bank files"),
        _number(header.user_id, 6, "The direct entry user id"),
        _text(header.description, MAX_DESCRIPTION, "The description of bank files"),
        process_date.strftime("%d%m%y"),
        " " * 40,
    )


def _payment_record(header: AbaHeader, payment: AbaCredit, code: str) -> str:
    return _record(
        "1",
        _bsb(payment.bsb),
        _account_number(payment.account_number),
        " ",
        code,
        f"{_cents(payment.amount):010}",
        _text(payment.account_name, MAX_ACCOUNT_NAME, "The name of an account"),
        _text(payment.reference, MAX_REFERENCE, "A lodgement reference"),
        _bsb(header.bsb),
        _account_number(header.account_number),
        _text(header.remitter, MAX_REMITTER, "The remitter"),
        "0" * 8,  # withheld tax
    )


def _total_record(header: AbaHeader, total: int, records: int) -> str:
    debits = total if header.has_balancing_record else 0
    amounts = (f"{each:010}" for each in (total - debits, total, debits))
    return _record("7", "999-999", " " * 12, *amounts, " " * 24, f"{records:06}", " " * 40)


def _record(*fields: str) -> str:
    record = "".join(fields)
    if len(record) != _RECORD_LENGTH:
        raise AbaFileError(f"A record has {len(record)} characters instead of {_RECORD_LENGTH}.")
    return record


def _cents(amount: Decimal) -> int:
    cents = amount * 100
    if cents <= 0 or cents != cents.to_integral_value():
        raise AbaFileError(f"A payment must be above 0.00, in whole cents: {amount}.")
    if cents > MAX_CENTS:
        raise AbaFileError(f"A payment must be at most {MAX_AMOUNT:,.2f}: {amount}.")
    return int(cents)


def _text(text: str, length: int, name: str) -> str:
    if not text.strip() or len(text) > length or not _is_accepted(text):
        raise AbaFileError(f"{name} must have 1 to {length} characters that banks accept: {text!r}.")
    return text.ljust(length)


def _is_accepted(text: Iterable[str]) -> bool:
    return all(each in BANK_CHARACTERS for each in text)


def _number(text: str, length: int, name: str) -> str:
    if not text.isascii() or not text.isdigit() or len(text) > length:
        raise AbaFileError(f"{name} must have 1 to {length} digits: {text!r}.")
    return text.zfill(length)


def _bsb(bsb: str) -> str:
    if not bsb.isascii() or not bsb.isdigit() or len(bsb) != 6:
        raise AbaFileError("A BSB must have six digits.")
    return format_bsb(bsb)


def _account_number(number: str) -> str:
    if not number.isascii() or not number.isalnum() or len(number) > MAX_ACCOUNT_NUMBER:
        raise AbaFileError(f"An account number must have 1 to {MAX_ACCOUNT_NUMBER} digits.")
    return number.rjust(MAX_ACCOUNT_NUMBER)
