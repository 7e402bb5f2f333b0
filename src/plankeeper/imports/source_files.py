"""Reads the files of other programs: each row with its original cells, and the values of the mapped columns."""

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from plankeeper.imports.cells import (
    NUMBER_FIELDS,
    CellError,
    clean,
    normalize,
)
from plankeeper.imports.columns import IGNORED, fold, folded_names
from plankeeper.imports.reader import (
    MAX_COLUMNS,
    Column,
    CsvRow,
    UnreadableFileError,
    cell_parser,
    is_nullable,
    parse_csv_row,
    read_cells,
    read_rows,
    require_few_columns,
)
from plankeeper.imports.schemas import Problem
from plankeeper.resources.providers.bank_columns import NUMBER_COLUMN
from plankeeper.resources.upsert import ImportRow, RowError

HIDDEN = "•••"  # stands for an account number, which isn't stored with the results of rows
_BOM = b"\xef\xbb\xbf"
_SAMPLE_ROWS = 100
_MAX_SAMPLE = 40  # characters
_DELIMITERS = (",", ";", "\t")
_JSON_TEXT = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_JSON_KEY = re.compile(rf"({_JSON_TEXT})\s*:\s*")
_JSON_VALUE = re.compile(rf"""null|""|{_JSON_TEXT}|\[[^\]]*\]?|\{{[^}}]*\}}?|"[^"]*|[^\s,}}\]]+""")
MAX_VALUE = 200  # characters of a value in a problem

# The id of a reference, from its name or id; raises CellError.
ResolveReference = Callable[[str, str], str]


class SourceRow(NamedTuple):
    """A row of a file: its original cells, and its values or its problems.

    `number` is the cell that matches rows. `readable` are the texts of the fields without an error, for warnings.
    """

    line_number: int
    cells: list[str]
    row: ImportRow[Any] | None
    problems: list[Problem]
    number: str = ""
    readable: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """An uploaded file. `columns` are empty for JSON Lines."""

    content: bytes
    columns: list[str]
    delimiter: str
    is_json: bool


def open_source(content: bytes) -> SourceFile:
    """The file with the names of its columns. Raises UnreadableFileError for one without usable columns."""
    text = content.removeprefix(_BOM)
    if text.lstrip().startswith(b"{"):
        return SourceFile(text, [], ",", is_json=True)
    head = text.lstrip(b"\r\n").splitlines()[:1]
    delimiter = max(_DELIMITERS, key=lambda each: (head[0] if head else b"").count(each.encode()))
    header = next(read_cells(io.BytesIO(text), delimiter), CsvRow(1, []))
    if isinstance(header, RowError):
        raise UnreadableFileError(f"line 1: {header.message}")
    require_few_columns(header.cells)
    columns = [printable(each).strip() for each in header.cells]
    return SourceFile(text, columns, delimiter, is_json=False)


def read_source(
    file: SourceFile,
    schema: type[Struct],
    mapping: Sequence[str] | None,
    resolve: ResolveReference,
    *,
    clears_empty: bool,
) -> Iterator[SourceRow]:
    """Yield each row after the header. Memory use is constant."""
    if file.is_json or mapping is None:
        yield from _read_json(file, schema)
        return
    rows = read_cells(io.BytesIO(file.content), file.delimiter)
    next(rows, None)
    parser = _RowParser(schema, file.columns, mapping, resolve, clears_empty=clears_empty)
    for row in rows:
        if isinstance(row, RowError):
            message = f"{row.message}; the rest of the file was not read"
            yield SourceRow(row.line_number, [], None, [Problem("", "", message)])
        elif any(cell.strip() for cell in row.cells):
            yield parser.parse(row)


def sample_cells(file: SourceFile, count: int) -> list[list[str]]:
    """The first values of each column that aren't empty, from the first rows."""
    samples: list[list[str]] = [[] for _ in file.columns]
    for row in islice(read_cells(io.BytesIO(file.content), file.delimiter), 1, _SAMPLE_ROWS):
        if isinstance(row, RowError):
            break
        for found, cell in zip(samples, row.cells, strict=False):
            text = printable(cell).strip()[:_MAX_SAMPLE]
            if text and text not in found and len(found) < count:
                found.append(text)
    return samples


def printable(text: str) -> str:
    """A text whose invalid UTF-8 is replaced, and without the character NUL, which PostgreSQL can't store."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\0", "\ufffd")


def _read_json(file: SourceFile, schema: type[Struct]) -> Iterator[SourceRow]:
    lines = file.content.split(b"\n")
    problems: list[Problem] = []
    line_number = 0
    for each in read_rows(lines, schema):
        if problems and each.line_number != line_number:
            yield SourceRow(line_number, [_json_text(lines, line_number)], None, problems)
            problems = []
        line_number = each.line_number
        if isinstance(each, ImportRow):
            yield SourceRow(line_number, [], each, [])
        else:
            problems.append(Problem(each.field, "", each.message))
    if problems:
        yield SourceRow(line_number, [_json_text(lines, line_number)], None, problems)


def _json_text(lines: Sequence[bytes], line_number: int) -> str:
    text = printable(lines[line_number - 1].strip().decode("utf-8", "surrogateescape"))
    return _without_account_numbers(text)


def _without_account_numbers(text: str) -> str:
    """The text of a row in JSON, also of an invalid one, with a mask for the value of each key for account numbers."""
    parts, end = list[str](), 0
    for key in _JSON_KEY.finditer(text):
        value = _JSON_VALUE.match(text, key.end())
        if value and key.start() >= end and is_account_number(_decode_text(key[1])) and value[0] not in ("null", '""'):
            parts += [text[end : value.start()], f'"{HIDDEN}"']
            end = value.end()
    return "".join([*parts, text[end:]])


def _decode_text(quoted: str) -> str:
    try:
        return msgspec.json.decode(quoted, type=str)
    except msgspec.DecodeError:
        return quoted


def is_account_number(column: str) -> bool:
    """Whether a column or a key has bank account numbers, by its name."""
    return fold(column) in folded_names(NUMBER_COLUMN)


class _RowParser:
    """Parses the cells of the mapped columns."""

    def __init__(
        self,
        schema: type[Struct],
        columns: Sequence[str],
        mapping: Sequence[str],
        resolve: ResolveReference,
        *,
        clears_empty: bool,
    ) -> None:
        self._schema, self._resolve = schema, resolve
        self._types = {field.encode_name: field.type for field in fields(schema)}
        self._width = len(mapping)
        self._number_position = next((at for at, field in enumerate(mapping) if field in NUMBER_FIELDS), -1)
        self._positions = [(position, field) for position, field in enumerate(mapping) if field != IGNORED]
        self._secret_positions = {
            position
            for position, (column, field) in enumerate(zip(columns, mapping, strict=False))
            if field == NUMBER_COLUMN or (field == IGNORED and is_account_number(column))
        }
        self._columns = [
            Column(name, clears_empty and is_nullable(self._types[name]), cell_parser(self._types[name]))
            for _, name in self._positions
        ]

    def parse(self, row: CsvRow) -> SourceRow:
        has_more_cells = any(row.cells[self._width :])
        original = [
            HIDDEN if self._is_secret(position, is_shifted=has_more_cells) and each.strip() else printable(each)
            for position, each in enumerate(row.cells[:MAX_COLUMNS])
        ]
        if has_more_cells:
            message = f"has {len(row.cells)} cells, but the header has {self._width}"
            return SourceRow(row.line_number, original, None, [Problem("", "", message)])
        cells, problems = self._normalized_cells(row.cells + [""] * (self._width - len(row.cells)))
        parsed: ImportRow[Any] | None = None
        for each in parse_csv_row(row.line_number, self._columns, cells, self._schema):
            if isinstance(each, ImportRow):
                parsed = each
            else:
                problems.append(self._problem(row, each.field, each.message))
        number = original[self._number_position] if self._number_position in range(len(original)) else ""
        invalid = {_field_of(each.field) for each in problems}
        readable = {
            column.name: cell
            for column, cell in zip(self._columns, cells, strict=True)
            if cell and column.name not in invalid
        }
        return SourceRow(row.line_number, original, None if problems else parsed, problems, number, readable)

    def _is_secret(self, position: int, *, is_shifted: bool) -> bool:
        """Whether a cell can have an account number. A delimiter in a cell shifts the cells after it."""
        return position in self._secret_positions or (
            is_shifted and bool(self._secret_positions) and position > min(self._secret_positions)
        )

    def _normalized_cells(self, cells: list[str]) -> tuple[list[str], list[Problem]]:
        """The cells of the mapped columns. Cells that can't be read are empty, so that the others are validated."""
        normalized: list[str] = []
        problems: list[Problem] = []
        for position, field in self._positions:
            text = clean(cells[position])
            try:
                normalized.append(self._resolve(field, normalize(field, self._types[field], text)) if text else "")
            except CellError as error:
                shown = HIDDEN if field == NUMBER_COLUMN else printable(text)[:MAX_VALUE]
                problems.append(Problem(field, shown, str(error)))
                normalized.append("")
        return normalized, problems

    def _problem(self, row: CsvRow, field: str, message: str) -> Problem:
        name = _field_of(field)
        value = next((row.cells[at] for at, each in self._positions if each == name and at < len(row.cells)), "")
        shown = HIDDEN if name == NUMBER_COLUMN else printable(value.strip())[:MAX_VALUE]
        return Problem(field, shown, message)


def _field_of(location: str) -> str:
    """The field of a path such as `line_items[0].quantity`."""
    return location.partition("[")[0].partition(".")[0]
