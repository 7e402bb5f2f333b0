"""Reads the file of results that the agency's portal offers for a bulk payment request.

Columns are found by their headers: case, blanks and punctuation don't count, and neither does their order. Nothing here
says what a row means: see `result_rules`.
"""

import csv
import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct

from plankeeper.core.errors import DomainError
from plankeeper.resources.invoices.action_schemas import MAX_REASON_LENGTH

MAX_BYTES = 5 * 1024**2
MAX_ROWS = 10_000  # a batch has at most 5,000
MAX_COLUMNS = 200
MAX_TEXT = 255  # characters of the agency's number that are stored

# The headers of each column, without case, blanks and punctuation. The first is the portal's.
_HEADERS: Mapping[str, Sequence[str]] = {
    "ndis_number": ("ndisnumber", "participantndisnumber"),
    "reference": ("claimreference", "claimref"),
    "status": ("paymentrequeststatus", "claimstatus", "status"),
    "amount": ("paidtotalamount", "totalpaidamount", "paidamount", "amountpaid"),
    "agency_number": ("paymentrequestnumber", "claimnumber"),
    "message": ("errormessage", "rejectionreason"),
    "quantity": ("quantity",),
    "unit_price": ("unitprice",),
}
_REQUIRED = {
    "ndis_number": "NDISNumber",
    "reference": "ClaimReference",
    "status": "Payment Request Status",
    "amount": "PaidTotalAmount",
}
_DELIMITERS = (",", ";", "\t")
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_NUMBER = re.compile(r"-?\$?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?")
_DECIMAL_COMMA = re.compile(r"-?\$?\d+,\d{1,2}")


class ResultRow(NamedTuple):
    """A row of the file; `row` counts from 1, with the header.

    `amount` is what the agency has paid, in dollars: null for an empty cell, and NaN for one that isn't an amount.
    `claimed` is quantity times unit price, or null if the file doesn't say. `problem` is why the row can't be read.
    """

    row: int
    ndis_number: str = ""
    reference: str = ""
    status: str = ""
    amount: Decimal | None = None
    agency_number: str | None = None
    message: str | None = None
    claimed: Decimal | None = None
    problem: str | None = None


class ResultsFile(Struct):
    """The rows of a file, and its SHA-256, which says whether a request is a repetition."""

    rows: list[ResultRow]
    sha256: str


def parse_results(content: bytes) -> ResultsFile:
    """Read a file. Raises DomainError `invalid_request` for one that isn't a file of results."""
    text = _decode(content)
    if not text.strip():
        raise _unreadable("The file is empty. It must be the CSV file of results from the agency's portal.")
    header, columns, rows = _find_header(text)
    delimiter = header.delimiter
    parsed = [_parse_row(number, cells, columns, header.width, delimiter) for number, cells in rows if any(cells)]
    if not parsed:
        raise _unreadable("The file has no row after the header.")
    return ResultsFile(parsed, hashlib.sha256(content).hexdigest())


def _unreadable(detail: str) -> DomainError:
    return DomainError("invalid_request", detail)


def _decode(content: bytes) -> str:
    """The text of a file. Excel writes Windows-1252 or UTF-16, and the portal UTF-8."""
    if content.startswith(b"PK\x03\x04"):
        raise _unreadable("The file is an Excel workbook. Save it as CSV, or send the file as the portal offers it.")
    encoding, mark = next(
        ((name, mark) for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)), (_guess(content), b"")
    )
    for each in (encoding, "cp1252") if encoding == "utf-8" and not mark else (encoding,):
        try:
            text = content.removeprefix(mark).decode(each)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise _unreadable("The file isn't text in UTF-8, UTF-16 or Windows-1252. Send it as the portal offers it.")


def _guess(content: bytes) -> str:
    """The encoding of a file without a byte order mark: the header has no NUL bytes but in UTF-16."""
    head = content[:200]
    if head[1::2].count(0) * 2 > len(head) // 2:
        return "utf-16-le"
    return "utf-16-be" if head[::2].count(0) * 2 > len(head) // 2 else "utf-8"


class _Header(NamedTuple):
    delimiter: str
    width: int


Columns = Mapping[str, int]
NumberedRow = tuple[int, list[str]]


def _find_header(text: str) -> tuple[_Header, Columns, Iterator[NumberedRow]]:
    """The columns of the file by their names, and the rows after the header."""
    best: tuple[Sequence[str], str] = ([], "")
    for delimiter in _DELIMITERS:
        rows = _read(text, delimiter)
        number, cells = next(rows, (1, [""]))
        if number == 1 and cells[0].lower().startswith("sep="):  # what Excel understands
            number, cells = next(rows, (2, [""]))
        columns = _find_columns(cells)
        missing = [title for name, title in _REQUIRED.items() if name not in columns]
        if not missing:
            return _Header(delimiter, len(cells)), columns, rows
        if not best[1] or len(missing) < len(best[0]):
            best = (missing, delimiter)
    names = ", ".join(best[0])
    raise _unreadable(
        f"The header lacks these columns: {names}. A file of results has a column for the NDIS number, the claim"
        " reference, the status and the paid amount."
    )


def _read(text: str, delimiter: str) -> Iterator[NumberedRow]:
    """The rows of a file with their numbers, from 1. Raises DomainError for too many of them, or a stray quote.

    A row with too many cells is an error before they are read.
    """
    number = delimiters = 0

    def read_lines() -> Iterator[str]:
        nonlocal delimiters
        for line in io.StringIO(text, newline=""):
            delimiters += line.count(delimiter)
            if delimiters >= MAX_COLUMNS:
                raise _unreadable(f"Row {number + 1} of the file has more than {MAX_COLUMNS} cells.")
            yield line

    try:
        for number, cells in enumerate(csv.reader(read_lines(), delimiter=delimiter, strict=True), 1):
            delimiters = 0
            if number > MAX_ROWS:
                raise _unreadable(f"The file has more than {MAX_ROWS:,} rows. Send the results of one claim batch.")
            yield number, [each.strip() for each in cells] or [""]
    except csv.Error as error:
        raise _unreadable(f"Row {number + 1} of the file isn't CSV: {error}.") from None


def _find_columns(cells: Sequence[str]) -> Columns:
    """The index of each column. A name that two columns have is an error if the column is required."""
    names = ["".join(filter(str.isalnum, each)).casefold() for each in cells]
    columns = dict[str, int]()
    for column, headers in _HEADERS.items():
        header = next((each for each in headers if each in names), None)
        if header is None:
            continue
        if names.count(header) > 1 and column in _REQUIRED:
            raise _unreadable(f"The header has the column {cells[names.index(header)]!r} twice.")
        columns[column] = names.index(header)
    return columns


def _parse_row(number: int, cells: Sequence[str], columns: Columns, width: int, delimiter: str) -> ResultRow:
    if any(cells[width:]):
        return ResultRow(number, problem="The row has more cells than the header.")
    values = {name: cells[index] if index < len(cells) else "" for name, index in columns.items()}
    return ResultRow(
        number,
        "".join(values["ndis_number"].split()),
        values["reference"],
        values["status"],
        parse_amount(values["amount"], delimiter),
        values.get("agency_number", "")[:MAX_TEXT] or None,
        values.get("message", "")[:MAX_REASON_LENGTH] or None,
        _claimed(values, delimiter),
    )


def _claimed(values: Mapping[str, str], delimiter: str) -> Decimal | None:
    quantity, price = (parse_amount(values.get(name, ""), delimiter) for name in ("quantity", "unit_price"))
    if quantity is None or price is None or quantity.is_nan() or price.is_nan():
        return None
    return quantity * price


def parse_amount(text: str, delimiter: str = ",") -> Decimal | None:
    """A number as portals and spreadsheets write it: `1,234.50`, `$12`, `12,50` with semicolons; NaN for others."""
    compact = "".join(text.split())
    if not compact:
        return None
    if len(compact) >= 20:
        return Decimal("NaN")
    if delimiter == ";" and _DECIMAL_COMMA.fullmatch(compact):
        return Decimal(compact.replace("$", "").replace(",", "."))
    if _NUMBER.fullmatch(compact) and any(each.isdigit() for each in compact):
        return Decimal(compact.replace("$", "").replace(",", ""))
    return Decimal("NaN")
