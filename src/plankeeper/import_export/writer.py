"""Writes records as a file that `reader` reads back as the same records."""

import csv
import io
from collections.abc import Collection
from typing import Any, cast

import msgspec
from msgspec import Struct

from plankeeper.http.json import to_json
from plankeeper.import_export.reader import is_only_quotes


class JsonLinesWriter:
    """One JSON object per line."""

    def header(self) -> str:
        return ""

    def row(self, record: Struct) -> str:
        return to_json(record) + "\n"


# The beginnings of cells that spreadsheets run as formulas.
_FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")


class CsvWriter:
    """A header, then one row per record. Null is an empty cell; lists of words are separated by `;`.

    Values are written exactly, so that they can be imported again. `formula_count` counts the texts that a
    spreadsheet would run as formulas.
    """

    def __init__(self, schema: type[Struct], exclude: Collection[str] = ()) -> None:
        self._columns = [name for name in schema.__struct_encode_fields__ if name not in exclude]
        self._buffer = io.StringIO(newline="")
        self._writer = csv.writer(self._buffer)
        self.formula_count = 0

    def header(self) -> str:
        return self._format_row(self._columns)

    def row(self, record: Struct) -> str:
        values = [getattr(record, name) for name in self._columns]
        self.formula_count += sum(isinstance(each, str) and each.startswith(_FORMULA_PREFIXES) for each in values)
        return self._format_row([_format_cell(each) for each in values])

    def _format_row(self, cells: list[str]) -> str:
        self._writer.writerow(cells)
        text = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return text


def _format_cell(value: Any) -> str:
    if value is None or value is msgspec.UNSET:
        return ""
    if isinstance(value, str):
        return value + '""' if is_only_quotes(value) else value
    if isinstance(value, list) and (strings := _strings(cast("list[object]", value))):
        return ";".join(strings)
    text = to_json(cast("object", value))
    return text[1:-1] if text.startswith('"') else text


def _strings(items: list[object]) -> list[str]:
    return [each for each in items if isinstance(each, str)]
