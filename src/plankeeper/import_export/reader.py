"""A file becomes checked lines: CSV with a header, or JSON Lines."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import MAXYEAR, MINYEAR, datetime
from decimal import Decimal
from functools import cache, partial
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from plankeeper.http.errors import Invalid, Refusal
from plankeeper.http.parsing import BodyParser, from_text, plain_type
from plankeeper.http.schemas import checked
from plankeeper.http.validation import shaped

S = TypeVar("S", bound=Struct)

# All lines of an invoice stand in one cell. What is longer is taken for a quote that was never closed.
csv.field_size_limit(2**24)

_BOM = b"\xef\xbb\xbf"
_NOT_UTF8 = re.compile("[\ud800-\udfff]")
_json = msgspec.json.Decoder(float_hook=Decimal)


class BadLine(NamedTuple):
    """What is wrong with a line: its number from 1, the field (empty for the whole line), the reason."""

    number: int
    field: str
    reason: str


class Line(NamedTuple, Generic[S]):
    """A line that is well formed: its number from 1, and what it says."""

    number: int
    values: S


class Unreadable(Exception):
    """The file as a whole cannot be read; the message says why."""


def read(file: Iterable[bytes], shape: type[S]) -> Iterator[Line[S] | BadLine]:
    """Every line of a file, checked against `shape`, or what is wrong with it; memory does not grow with the file.

    A file whose first character is `{` is JSON Lines, any other is CSV. Raises Unreadable.
    """
    rest = iter(file)
    ahead: list[bytes] = []
    for line in rest:
        ahead.append(line if ahead else line.removeprefix(_BOM))
        if ahead[-1].strip():
            break
    lines = chain(ahead, rest)
    is_json = bool(ahead) and ahead[-1].lstrip().startswith(b"{")
    for each in _json_lines(lines, shape) if is_json else _csv_lines(lines, shape):
        late = _beyond_time(each.values) if isinstance(each, Line) else None
        yield BadLine(each.number, late, "must be a datetime of the years 2 to 9998") if late else each


def _json_lines(lines: Iterable[bytes], shape: type[S]) -> Iterator[Line[S] | BadLine]:
    parser = BodyParser(shape)
    for number, text in enumerate(lines, start=1):
        line = text.strip()
        if not line:
            continue
        try:
            yield Line(number, parser.parse(line))
        except Invalid as fault:
            yield from (BadLine(number, each.field, each.message) for each in fault.errors or [])
        except Refusal as fault:
            yield BadLine(number, "", fault.detail)


class _Column(NamedTuple):
    """A column: its field, whether an empty cell is null or says nothing, what makes a value of any other."""

    name: str
    nullable: bool
    make: Callable[[str], Any]


def _csv_lines(lines: Iterable[bytes], shape: type[S]) -> Iterator[Line[S] | BadLine]:
    # What is not UTF-8 becomes lone surrogates, which the cell's check then names with line and field.
    text = (part.decode("utf-8", "surrogateescape") for line in lines for part in line.splitlines(keepends=True))
    rows = csv.reader(text, strict=True)
    columns = _header(rows, shape)
    number = rows.line_num + 1
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield BadLine(number, "", f"not valid CSV: {error}; the rest of the file was not read")
            return
        if row is None:
            return
        if row:
            yield from _csv_line(number, columns, row, shape)
        number = rows.line_num + 1


def _header(rows: Iterator[list[str]], shape: type[Struct]) -> list[_Column]:
    """The columns of a CSV file; raises Unreadable."""
    known = {field.encode_name: field.type for field in fields(shape)}
    try:
        names: list[str] = next(filter(None, rows), list[str]())
    except csv.Error as error:
        raise Unreadable(f"line 1: not valid CSV: {error}") from None
    unknown = [repr(name.encode("utf-8", "replace").decode()) for name in names if name not in known]
    if unknown:
        raise Unreadable(f"line 1: no such field: {', '.join(unknown)}; fields are {', '.join(known)}")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise Unreadable(f"line 1: a field stands twice in the header: {', '.join(repeated)}")
    return [_Column(name, nullable(known[name]), _maker(plain_type(known[name]))) for name in names]


def _csv_line(number: int, columns: list[_Column], row: list[str], shape: type[S]) -> Iterator[Line[S] | BadLine]:
    if len(row) != len(columns):
        yield BadLine(number, "", f"has {len(row)} cells, and the header {len(columns)}")
        return
    text = "\n".join(row)
    if _NOT_UTF8.search(text):
        name = next(each.name for each, cell in zip(columns, row, strict=True) if _NOT_UTF8.search(cell))
        yield BadLine(number, name, "is not UTF-8")
        return
    values = {
        each.name: each.make(cell) if cell else None
        for each, cell in zip(columns, row, strict=True)
        if cell or each.nullable
    }
    try:
        if "\0" not in text and "\\u0000" not in text:
            yield Line(number, msgspec.convert(values, shape, dec_hook=checked))
            return
    except msgspec.ValidationError:
        pass
    parsed, faults = shaped(shape, values)
    yield from (BadLine(number, fault.field, fault.message) for fault in faults)
    if parsed is not None:
        yield Line(number, parsed)


def nullable(kind: Any) -> bool:
    """Whether an empty cell is null; in a field that cannot be null it is as if the column were not there."""
    return type(None) in getattr(kind, "__args__", ()) or (hasattr(kind, "__metadata__") and nullable(kind.__origin__))


def _maker(kind: type) -> Callable[[str], Any]:
    """What makes a value of a cell. Texts of an even number of quotes lose two, lists are parted by `;`."""
    if kind is list:
        return lambda cell: _document(cell) if cell.startswith("[") else cell.split(";")
    if issubclass(kind, Struct):
        return _document
    if issubclass(kind, str):
        return lambda cell: cell[:-2] if only_quotes(cell) else cell
    # A datetime's text is its JSON: `from_text` is for query strings, where a space may have been a plus.
    return str if kind is datetime else partial(from_text, kind)


def _document(cell: str) -> Any:
    """A cell's JSON; what is none stays a text, for the validation to refuse."""
    try:
        return _json.decode(cell)
    except (msgspec.DecodeError, RecursionError):
        return cell


def only_quotes(text: str) -> bool:
    """Whether a text is but pairs of quotes: in CSV such a text has one pair more, so that empty is not null."""
    return len(text) % 2 == 0 and not text.strip('"')


@cache
def _moments(shape: type[Struct]) -> list[str]:
    """The fields that are datetimes, or lists in which there may be some."""
    return [field.name for field in fields(shape) if plain_type(field.type) in (datetime, list)]


def _beyond_time(values: Struct) -> str | None:
    """The first datetime that, in UTC, may lie beyond all that can be kept; null where there is none."""
    for name in _moments(type(values)):
        value = getattr(values, name)
        if isinstance(value, datetime) and not MINYEAR < value.year < MAXYEAR:
            return name
        items: Any = cast("Any", value) if isinstance(value, list) else ()
        for index, item in enumerate(items):
            if isinstance(item, Struct) and (inner := _beyond_time(item)):
                return f"{name}[{index}].{inner}"
    return None
