"""Reads the agency's support catalogue, as CSV or XLSX, and writes it as CSV.

Columns are found by their headers. There are two layouts: with a price for each state, and with a national price.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from plankeeper.imports.reader import UnreadableFileError
from plankeeper.resources.support_items.rules import PRICE_LIMITED
from plankeeper.resources.support_items.schemas import MAX_NUMBER_LENGTH, PRICE_NAMES, PriceLimits, SupportItem
from plankeeper.resources.upsert import RowError

SHEET = "Current Support Items"
OPEN_END = "99991231"
MAX_BYTES = 50 * 1024**2
MAX_TEXT = 500  # characters of a name
MAX_PRICE = Decimal(10) ** 10
HEADER_ROWS = 20  # the first rows, one of which is the header
REPORT_ROWS = 100  # rows between two reports of progress

_NUMBER, _START = "Support Item Number", "Start date"
STATE_COLUMNS = ("ACT", "NSW", "NT", "QLD", "SA", "TAS", "VIC", "WA")
NATIONAL_COLUMN = "National"

# A cell of CSV is text; one of XLSX is a text, a number, a date or a boolean.
Cell = Any
OnProgress = Callable[[int], None]


class _CellError(Exception):
    """An unreadable cell; the message describes valid values."""


class CatalogueFile(NamedTuple):
    """The items of a file, or its errors, each with its row and the header of its column."""

    items: list[SupportItem]
    errors: list[RowError]


class _Row(NamedTuple):
    number: int  # from 1
    cells: Sequence[Cell]


def _text(cell: Cell) -> str:
    """A cell as text. A spreadsheet holds numbers in binary, with 15 significant digits."""
    if isinstance(cell, bool):
        return "Y" if cell else "N"
    return f"{cell:.15g}" if isinstance(cell, float) else str(cell).replace("\u00a0", " ").strip()


def _required_text(cell: Cell) -> str:
    return _optional_text(cell) or _fail("is required")


def _optional_text(cell: Cell) -> str | None:
    text = " ".join(_text(cell).split())
    if len(text) > MAX_TEXT:
        _fail(f"must have at most {MAX_TEXT} characters")
    if not text.isprintable():
        _fail("must not contain control characters")
    return text or None


def _fail(message: str) -> Any:
    raise _CellError(message)


def _item_number(cell: Cell) -> str:
    text = _required_text(cell)
    return text if len(text) <= MAX_NUMBER_LENGTH else _fail(f"must have at most {MAX_NUMBER_LENGTH} characters")


def _group_number(cell: Cell) -> str | None:
    """A spreadsheet drops zeros at the beginning of numbers."""
    text = _optional_text(cell)
    return text.zfill(4) if text and text.isdecimal() else text


def _category(cell: Cell) -> int:
    text = _text(cell)
    if not re.fullmatch("[0-9]{1,2}", text) or int(text) == 0:
        _fail("must be a number from 1 to 99")
    return int(text)


def _optional_category(cell: Cell) -> int | None:
    return _category(cell) if _text(cell) else None


def _yes_or_no(cell: Cell) -> bool:
    text = _text(cell).casefold()
    return text in ("y", "yes") if text in ("", "y", "yes", "n", "no") else _fail("must be Y, N or empty")


def _date(cell: Cell) -> date:
    if isinstance(cell, date):  # also a datetime
        return date(cell.year, cell.month, cell.day)
    text = _text(cell)
    try:
        if re.fullmatch("[0-9]{8}", text):
            return date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        pass
    return _fail("must be a date such as 20260701")


def _end_date(cell: Cell) -> date | None:
    if not _text(cell):
        return None
    day = _date(cell)
    return None if f"{day:%Y%m%d}" == OPEN_END else day


def _price(cell: Cell) -> Decimal | None:
    text = _text(cell)
    if not text:
        return None
    if not re.fullmatch(r"\$?\s*([0-9]{1,3}(,[0-9]{3})+|[0-9]+)(\.[0-9]{1,2})?", text):
        _fail("must be a price such as $1,321.77, with at most two decimal places")
    price = Decimal(re.sub(r"[$,\s]", "", text))
    return price if price < MAX_PRICE else _fail(f"must be below ${MAX_PRICE:,}")


class _Column(NamedTuple):
    """A column: its header, its field or the name of its price, and the parser of its cells."""

    header: str
    field: str
    parse: Callable[[Cell], Any]


_PRICES = {name: field for field, name in PRICE_NAMES.items()}
COLUMNS = (
    _Column(_NUMBER, "support_item_number", _item_number),
    _Column("Support Item Name", "name", _required_text),
    _Column("Registration Group Number", "registration_group_number", _group_number),
    _Column("Registration Group Name", "registration_group_name", _optional_text),
    _Column("Support Category Number", "category", _category),
    _Column("Support Category Number (PACE)", "pace_category", _optional_category),
    _Column("Support Category Name", "category_name", _optional_text),
    _Column("Support Category Name (PACE)", "pace_category_name", _optional_text),
    _Column("Unit", "unit", _optional_text),
    _Column("Quote", "is_quote_required", _yes_or_no),
    _Column(_START, "start_date", _date),
    _Column("End Date", "end_date", _end_date),
    *(_Column(each, _PRICES[each], _price) for each in (*STATE_COLUMNS, NATIONAL_COLUMN, "Remote", "Very Remote")),
    _Column("Non-Face-to-Face Support Provision", "allows_non_face_to_face", _yes_or_no),
    _Column("Provider Travel", "allows_provider_travel", _yes_or_no),
    _Column("Short Notice Cancellations.", "allows_short_notice_cancellations", _yes_or_no),
    _Column("NDIA Requested Reports", "allows_ndia_requested_reports", _yes_or_no),
    _Column("Irregular SIL Supports", "allows_irregular_sil", _yes_or_no),
    _Column("Type", "type", _optional_text),
)


def _fold(header: Cell) -> str:
    """A header without case, blanks and punctuation."""
    return "".join(each for each in _text(header).casefold() if each.isalnum())


_BY_HEADER = {_fold(each.header): each for each in COLUMNS}


def read_catalogue(content: bytes, on_progress: OnProgress = lambda _rows: None) -> CatalogueFile:
    """Read a file. `on_progress` is called with the number of rows that are read.

    Raises UnreadableFileError for a file that isn't a table with the header of a catalogue.
    """
    if len(content) > MAX_BYTES:
        raise UnreadableFileError(f"is larger than {MAX_BYTES // 1024**2} MB")
    rows = _read_sheet(content) if content.startswith(b"PK\x03\x04") else _read_csv(content)
    found = iter(rows)
    header = _find_header(found)
    columns, errors = _match_columns(header)
    if errors:
        return CatalogueFile([], errors)
    items, numbers = list[SupportItem](), dict[tuple[str, date], int]()
    for row in found:
        if row.number % REPORT_ROWS == 0:
            on_progress(row.number)
        if not any(map(_text, row.cells)):
            continue
        item, row_errors = _read_item(row, columns)
        errors += row_errors
        if item:
            earlier = numbers.setdefault((item.support_item_number, item.start_date), row.number)
            if earlier != row.number:
                message = f"row {earlier} has the same item with the same start date"
                errors.append(RowError(row.number, _NUMBER, message))
            items.append(item)
    return CatalogueFile([] if errors else items, errors)


def _read_csv(content: bytes) -> Iterator[_Row]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableFileError("is neither XLSX nor CSV in UTF-8") from None
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for number, cells in enumerate(rows, 1):
            yield _Row(number, cells)
    except csv.Error as error:
        raise UnreadableFileError(f"line {rows.line_num} isn't valid CSV: {error}") from None


def _read_sheet(content: bytes) -> list[_Row]:
    """The rows of the sheet with the items, or of the first one."""
    # Only this command needs the library.
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
        names = {_fold(each): each for each in reversed(workbook.sheet_names)}
        name = names.get(_fold(SHEET), next(iter(workbook.sheet_names), None))
        if name is None:
            raise UnreadableFileError("has no sheet")
        rows = workbook.get_sheet_by_name(name).to_python(skip_empty_area=False)
    except CalamineError as error:
        raise UnreadableFileError(f"isn't a valid XLSX file: {error}") from None
    return [_Row(number, cells) for number, cells in enumerate(rows, 1)]


def _find_header(rows: Iterator[_Row]) -> _Row:
    for row in rows:
        if any(_fold(each) == _fold(_NUMBER) for each in row.cells):
            return row
        if row.number >= HEADER_ROWS:
            break
    raise UnreadableFileError(f"has no column {_NUMBER} in its first {HEADER_ROWS} rows")


def _match_columns(header: _Row) -> tuple[Sequence[_Column | None], list[RowError]]:
    """The columns of a header. A column without a header, which must be empty, is null."""
    columns, errors = list[_Column | None](), list[RowError]()
    for cell in header.cells:
        column = _BY_HEADER.get(_fold(cell))
        if column is None and _text(cell):
            errors.append(RowError(header.number, _text(cell), "isn't a column of the support catalogue"))
        elif column and column in columns:
            errors.append(RowError(header.number, column.header, "stands in the header twice"))
        columns.append(column)
    headers = {each.header for each in columns if each}
    prices = () if NATIONAL_COLUMN in headers else STATE_COLUMNS
    required = [
        each.header for each in COLUMNS if each.header in prices or each.header not in (*STATE_COLUMNS, NATIONAL_COLUMN)
    ]
    errors += [RowError(header.number, each, "is missing") for each in required if each not in headers]
    return columns, errors


def _read_item(row: _Row, columns: Sequence[_Column | None]) -> tuple[SupportItem | None, list[RowError]]:
    values, prices, errors = dict[str, Any](), dict[str, Decimal](), list[RowError]()
    for position, cell in enumerate(row.cells):
        column = columns[position] if position < len(columns) else None
        if column is None:
            if _text(cell):
                errors.append(RowError(row.number, f"column {position + 1}", "has a value, but no header"))
            continue
        try:
            value = column.parse(cell)
        except _CellError as error:
            errors.append(RowError(row.number, column.header, str(error)))
            continue
        if column.field not in PRICE_NAMES:
            values[column.field] = value
        elif value is not None:
            prices[column.field] = value
    missing = [each for each in columns[len(row.cells) :] if each]
    errors += [RowError(row.number, each.header, "is missing: the row is too short") for each in missing]
    start, end = values.get("start_date"), values.get("end_date")
    if start and end and end < start:
        errors.append(RowError(row.number, "End Date", "is before the start date"))
    if errors:
        return None, errors
    has_price_limit = values["type"] is not None and _fold(values["type"]) == _fold(PRICE_LIMITED)
    limits = PriceLimits(**prices) if prices else None
    return SupportItem(**values, has_price_limit=has_price_limit, price_limits=limits), []


def write_catalogue(items: Iterable[SupportItem]) -> str:
    """The items as CSV with a price for each state, and with a column of national prices if one has such a price."""
    written = [_values_of(each) for each in items]
    has_national = any(_PRICES[NATIONAL_COLUMN] in each for each in written)
    columns = [each for each in COLUMNS if has_national or each.header != NATIONAL_COLUMN]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(each.header for each in columns)
    writer.writerows([_format(each.get(column.field)) for column in columns] for each in written)
    return out.getvalue()


def _values_of(item: SupportItem) -> Mapping[str, Any]:
    values = {each: getattr(item, each) for each in item.__struct_fields__}
    prices = {each: getattr(item.price_limits, each) for each in PRICE_NAMES} if item.price_limits else {}
    end = item.end_date or date(9999, 12, 31)
    return values | {"end_date": end} | {name: each for name, each in prices.items() if isinstance(each, Decimal)}


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "Y" if value else "N"
    if isinstance(value, date):
        return f"{value.year:04}{value:%m%d}"
    if isinstance(value, Decimal):
        return f"${value:,.2f}"
    return "" if value is None else str(value)
