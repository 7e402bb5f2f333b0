"""Records become a file that `reading` reads back to the same records."""

import csv
import io
from typing import Any, cast

import msgspec
from msgspec import Struct

from plankeeper.http.schemas import json_text
from plankeeper.import_export.reader import only_quotes


class JsonLines:
    """One JSON object a line."""

    def head(self) -> str:
        return ""

    def line(self, record: Struct) -> str:
        return json_text(record) + "\n"


class Csv:
    """A header, then a row a record: null is an empty cell, lists of words have `;` between them."""

    def __init__(self, shape: type[Struct]) -> None:
        self._names = shape.__struct_encode_fields__
        self._buffer = io.StringIO(newline="")
        self._rows = csv.writer(self._buffer)

    def head(self) -> str:
        return self._row(list(self._names))

    def line(self, record: Struct) -> str:
        return self._row([_cell(getattr(record, name)) for name in self._names])

    def _row(self, cells: list[str]) -> str:
        self._rows.writerow(cells)
        text = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return text


def _cell(value: Any) -> str:
    if value is None or value is msgspec.UNSET:
        return ""
    if isinstance(value, str):
        return value + '""' if only_quotes(value) else value
    if isinstance(value, list) and (words := _words(cast("list[object]", value))):
        return ";".join(words)
    text = json_text(cast("object", value))
    return text[1:-1] if text.startswith('"') else text


def _words(items: list[object]) -> list[str]:
    return [each for each in items if isinstance(each, str)]
