"""A file becomes checked lines: CSV with a header, or JSON Lines."""

import csv
import io
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, BinaryIO, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from plankeeper.edge.errors import Invalid, Refusal
from plankeeper.edge.parsing import BodyParser, from_text, plain_type
from plankeeper.edge.shapes import checked
from plankeeper.edge.validation import shaped

S = TypeVar("S", bound=Struct)


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


def read(file: BinaryIO, shape: type[S]) -> Iterator[Line[S] | BadLine]:
    """Every line of a file, checked against `shape`, or what is wrong with it; memory does not grow with the file.

    A file whose first character is `{` is JSON Lines, any other is CSV. Raises Unreadable.
    """
    raw: Any = file
    buffered: Any = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
    head: bytes = buffered.peek(64)
    is_json = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    return _json_lines(buffered, shape) if is_json else _csv_lines(buffered, shape)


def _json_lines(file: BinaryIO, shape: type[S]) -> Iterator[Line[S] | BadLine]:
    parser = BodyParser(shape)
    for number, text in enumerate(file, start=1):
        line = text.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else text.strip()
        if not line:
            continue
        try:
            yield Line(number, parser.parse(line))
        except Invalid as fault:
            yield from (BadLine(number, each.field, each.message) for each in fault.errors or [])
        except Refusal as fault:
            yield BadLine(number, "", fault.detail)


def _csv_lines(file: BinaryIO, shape: type[S]) -> Iterator[Line[S] | BadLine]:
    # What is not UTF-8 becomes lone surrogates, which the cell's check then names with line and field.
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
    rows = csv.reader(text, strict=True)
    header = _header(rows, shape)
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
            yield from _csv_line(number, header, row, shape)
        number = rows.line_num + 1


def _header(rows: Iterator[list[str]], shape: type[Struct]) -> dict[str, Any]:
    """The columns of a CSV file with the types of their fields; raises Unreadable."""
    known = {field.encode_name: field.type for field in fields(shape)}
    try:
        names: list[str] = next(rows, list[str]())
    except csv.Error as error:
        raise Unreadable(f"line 1: not valid CSV: {error}") from None
    if not names:
        raise Unreadable("the file is empty; a CSV file begins with a header of field names")
    unknown = [repr(name.encode("utf-8", "replace").decode()) for name in names if name not in known]
    if unknown:
        raise Unreadable(f"line 1: no such field: {', '.join(unknown)}; fields are {', '.join(known)}")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise Unreadable(f"line 1: a field stands twice in the header: {', '.join(repeated)}")
    return {name: known[name] for name in names}


def _csv_line(number: int, header: dict[str, Any], row: list[str], shape: type[S]) -> Iterator[Line[S] | BadLine]:
    if len(row) != len(header):
        yield BadLine(number, "", f"has {len(row)} cells, and the header {len(header)}")
        return
    values: dict[str, Any] = {}
    for (name, kind), cell in zip(header.items(), row, strict=True):
        if re.search("[\ud800-\udfff]", cell):
            yield BadLine(number, name, "is not UTF-8")
            return
        if cell or nullable(kind):
            values[name] = _cell(kind, cell)
    try:
        if not any("\0" in cell for cell in row):
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


def _cell(kind: Any, cell: str) -> Any:
    """A cell as a value: empty is null, texts of an even number of quotes lose two, lists are parted by `;`."""
    if not cell:
        return None
    plain = plain_type(kind)
    is_list = issubclass(plain, list)
    if is_list and not cell.startswith("["):
        return cell.split(";")
    if is_list or issubclass(plain, Struct):
        try:
            return json.loads(cell, parse_float=Decimal)
        except (ValueError, RecursionError):
            return cell
    if issubclass(plain, str):
        return cell[:-2] if only_quotes(cell) else cell
    return from_text(plain, cell)


def only_quotes(text: str) -> bool:
    """Whether a text is nothing but pairs of quotes: such a text gets one more, so that empty is not null."""
    return len(text) % 2 == 0 and not text.strip('"')
