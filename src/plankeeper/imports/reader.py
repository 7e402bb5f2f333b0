"""Reads and validates the rows of an import file: CSV with a header, or JSON Lines."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from plankeeper.core.errors import DomainError, ValidationError
from plankeeper.core.fields import decode_custom_type
from plankeeper.core.json import BODY, BodyParser
from plankeeper.core.validation import coercion, is_any_out_of_range, unwrap_type, validate
from plankeeper.resources.upsert import ImportRow, RowError

S = TypeVar("S", bound=Struct)

MAX_COLUMNS = 200
MAX_CELLS = 100_000  # of a line, before its cells are read
MAX_SUGGESTIONS = 100  # errors of a file that name a similar field
# One cell holds all lines of an invoice. A longer cell is treated as an unclosed quote.
csv.field_size_limit(2**24)

_BOM = b"\xef\xbb\xbf"
_SURROGATES = re.compile("[\ud800-\udfff]")
_json_decoder = msgspec.json.Decoder(float_hook=Decimal)


class CsvRow(NamedTuple):
    """A line of a CSV file: its number from 1, and its cells."""

    line_number: int
    cells: list[str]


class UnreadableFileError(Exception):
    """The whole file is unreadable; the message says why."""


def read_rows(file: Iterable[bytes], schema: type[S]) -> Iterator[ImportRow[S] | RowError]:
    """Yield each row of a file, validated against `schema`, or its errors. Memory use is constant.

    A file whose first character is `{` is JSON Lines; any other is CSV. Raises UnreadableFileError.
    """
    remaining = iter(file)
    head: list[bytes] = []
    for line in remaining:
        head.append(line if head else line.removeprefix(_BOM))
        if head[-1].strip():
            break
    lines = chain(head, remaining)
    is_json = bool(head) and head[-1].lstrip().startswith(b"{")
    yield from _read_json_lines(lines, schema) if is_json else _read_csv(lines, schema)


def _read_json_lines(lines: Iterable[bytes], schema: type[S]) -> Iterator[ImportRow[S] | RowError]:
    parser, error_count = BodyParser(schema), 0
    for line_number, text in enumerate(lines, start=1):
        line = text.strip()
        if not line:
            continue
        try:
            yield ImportRow(line_number, parser.parse(line, suggests=error_count < MAX_SUGGESTIONS))
        except ValidationError as error:
            error_count += len(error.errors)
            for each in error.errors:
                yield RowError(line_number, "" if each.field == BODY else each.field, each.message)
        except DomainError as error:
            yield RowError(line_number, "", error.detail)


class Column(NamedTuple):
    """A column: its field, whether an empty cell means null or absent, and the parser of other cells."""

    name: str
    is_nullable: bool
    parse: Callable[[str], Any]


def _read_csv(lines: Iterable[bytes], schema: type[S]) -> Iterator[ImportRow[S] | RowError]:
    rows = read_cells(lines)
    header = next(rows, CsvRow(1, []))
    if isinstance(header, RowError):
        raise UnreadableFileError(f"line 1: {header.message}")
    columns = _parse_header(header.cells, schema)
    for row in rows:
        if isinstance(row, RowError):
            yield row._replace(message=f"{row.message}; the rest of the file was not read")
        else:
            yield from parse_csv_row(row.line_number, columns, row.cells, schema)


def read_cells(lines: Iterable[bytes], delimiter: str = ",") -> Iterator[CsvRow | RowError]:
    """Yield the cells of each line of a CSV file that isn't empty; an error ends the file."""
    # Invalid UTF-8 becomes lone surrogates, so that parse_csv_row can report the line and the field.
    rows = csv.reader(_text_lines(lines, delimiter.encode()), strict=True, delimiter=delimiter)
    line_number = 1
    while True:
        try:
            cells = next(rows, None)
        except csv.Error as error:
            yield RowError(line_number, "", f"not valid CSV: {error}")
            return
        except _TooManyCellsError:
            yield RowError(line_number, "", f"has more than {MAX_CELLS:,} cells")
            return
        if cells is None:
            return
        if cells:
            yield CsvRow(line_number, cells)
        line_number = rows.line_num + 1


class _TooManyCellsError(Exception):
    """A line has more cells than any table: reading them would take long."""


def _text_lines(lines: Iterable[bytes], delimiter: bytes) -> Iterator[str]:
    for line in lines:
        for part in line.splitlines(keepends=True):
            if part.count(delimiter) > MAX_CELLS:
                raise _TooManyCellsError
            yield part.decode("utf-8", "surrogateescape")


def require_few_columns(names: Sequence[str]) -> None:
    """Raises UnreadableFileError for a header with too many columns, before their names are read."""
    if len(names) > MAX_COLUMNS:
        raise UnreadableFileError(f"line 1: has {len(names):,} columns; up to {MAX_COLUMNS} are possible")


def _parse_header(names: Sequence[str], schema: type[Struct]) -> list[Column]:
    """The columns of a CSV file. Raises UnreadableFileError."""
    require_few_columns(names)
    field_types = {field.encode_name: field.type for field in fields(schema)}
    unknown = [repr(name.encode("utf-8", "replace").decode()) for name in names if name not in field_types]
    if unknown:
        raise UnreadableFileError(
            f"line 1: unknown columns: {', '.join(unknown)}; the columns are {', '.join(field_types)}"
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise UnreadableFileError(f"line 1: repeated columns: {', '.join(repeated)}; each column must appear once")
    return [Column(name, is_nullable(field_types[name]), cell_parser(field_types[name])) for name in names]


def parse_csv_row(
    line_number: int, columns: Sequence[Column], cells: list[str], schema: type[S]
) -> Iterator[ImportRow[S] | RowError]:
    """The row with these cells, or its errors."""
    if len(cells) != len(columns):
        yield RowError(line_number, "", f"has {len(cells)} cells, but the header has {len(columns)}")
        return
    text = "\n".join(cells)
    if not text.isascii() and _SURROGATES.search(text):
        name = next(column.name for column, cell in zip(columns, cells, strict=True) if _SURROGATES.search(cell))
        yield RowError(line_number, name, "is not UTF-8")
        return
    values = {
        column.name: column.parse(cell) if cell else None
        for column, cell in zip(columns, cells, strict=True)
        if cell or column.is_nullable
    }
    try:
        if "\0" not in text and "\\u0000" not in text:
            converted = msgspec.convert(values, schema, dec_hook=decode_custom_type)
            if not is_any_out_of_range((converted,)):
                yield ImportRow(line_number, converted)
                return
    except msgspec.ValidationError:
        pass
    parsed, errors = validate(schema, values)
    yield from (RowError(line_number, error.field, error.message) for error in errors)
    if parsed is not None:
        yield ImportRow(line_number, parsed)


def is_nullable(annotation: Any) -> bool:
    """Whether an empty cell means null. In other fields, an empty cell means that the value is absent."""
    return type(None) in getattr(annotation, "__args__", ()) or (
        hasattr(annotation, "__metadata__") and is_nullable(annotation.__origin__)
    )


def cell_parser(annotation: Any) -> Callable[[str], Any]:
    """The parser of a cell. Texts of an even number of quotes lose two of them; lists are separated by `;`."""
    type_ = unwrap_type(annotation)
    if type_ is list:
        return lambda cell: _parse_json_cell(cell) if cell.startswith("[") else cell.split(";")
    if issubclass(type_, Struct):
        return _parse_json_cell
    if issubclass(type_, str):
        return _parse_text_cell
    # A datetime is parsed as in JSON: the coercion is for query strings, where a space may have been a plus.
    return str if type_ is datetime else coercion(type_)


def _parse_text_cell(cell: str) -> str:
    return cell[:-2] if cell[-1:] == '"' and is_only_quotes(cell) else cell


def _parse_json_cell(cell: str) -> Any:
    """Decode a cell's JSON. Invalid JSON is returned as text, which the validation then rejects."""
    try:
        return _json_decoder.decode(cell)
    except (msgspec.DecodeError, RecursionError, InvalidOperation):
        return cell


def is_only_quotes(text: str) -> bool:
    """Whether a text consists of pairs of quotes. CSV adds one pair to such a text, to distinguish empty from null."""
    return len(text) % 2 == 0 and not text.strip('"')
