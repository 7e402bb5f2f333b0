"""Writes records as a file that `reader` reads back as the same records."""

import csv
import io
from collections.abc import Callable, Collection, Sequence
from datetime import date
from operator import attrgetter
from typing import Any, cast
from uuid import UUID

import msgspec
from msgspec import Struct

from plankeeper.core.json import encode_lines, to_json
from plankeeper.import_export.cell_values import FORMULA_PREFIXES
from plankeeper.import_export.reader import is_only_quotes


class JsonLinesWriter:
    """One JSON object per line."""

    def header(self) -> bytes:
        return b""

    def lines(self, records: Sequence[Struct]) -> bytes:
        return encode_lines(records)


class CsvWriter:
    """A header, then one row per record. Null is an empty cell; lists of words are separated by `;`.

    Values are written exactly, so that they can be imported again. `formula_count` counts the texts that a
    spreadsheet would run as formulas.
    """

    def __init__(self, schema: type[Struct], exclude: Collection[str] = ()) -> None:
        self._columns = [name for name in schema.__struct_encode_fields__ if name not in exclude]
        self._values: Callable[[Struct], tuple[Any, ...]] = attrgetter(*self._columns)
        self._buffer = io.StringIO(newline="")
        self._writer = csv.writer(self._buffer)
        self.formula_count = 0

    def header(self) -> bytes:
        return self._format_rows([self._columns])

    def lines(self, records: Sequence[Struct]) -> bytes:
        return self._format_rows([[self._cell(each) for each in self._values(record)] for record in records])

    def _format_rows(self, rows: Sequence[Sequence[Any]]) -> bytes:
        self._writer.writerows(rows)
        text = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return text.encode()

    def _cell(self, value: Any) -> Any:
        """The value as text, or null, an id or a date, which csv writes as it should be."""
        if value is None:
            return None
        if isinstance(value, str):
            if value.startswith(FORMULA_PREFIXES):
                self.formula_count += 1
            return value + '""' if value[:1] in ("", '"') and is_only_quotes(value) else value
        return value if isinstance(value, UUID) or type(value) is date else _format_cell(value)


def _format_cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is msgspec.UNSET:
        return ""
    if isinstance(value, list) and (strings := _strings(cast("list[object]", value))):
        return ";".join(strings)
    text = to_json(cast("object", value))
    return text[1:-1] if text.startswith('"') else text


def _strings(items: list[object]) -> list[str]:
    return [each for each in items if isinstance(each, str)]
