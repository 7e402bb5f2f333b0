"""XLSX files, written row by row to the disk, so that memory doesn't grow with their number."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

from xlsxwriter import Workbook
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
Cell = str | int | Decimal | date | datetime | None
MAX_SHEET_ROWS = 1_000_000  # with the heading, below the format's limit; more rows continue on another sheet
MAX_CELL_LENGTH = 32_767  # UTF-16 code units, the format's limit
CHUNK_SIZE = 64 * 1024
_WIDTHS: Mapping[type, int] = {
    str: 24,
    datetime: 17,
    date: 12,
    Decimal: 14,
}  # in characters, by the type of a column's first value
# Characters that XML can't express.
_INVALID_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


class XlsxFile:
    """A file with a heading in the first row of each sheet. Call its methods in a thread: they write to the disk.

    Numbers, dates and times are stored as such, and texts never as formulas, links or numbers. A text that is too long
    for a cell is cut.
    """

    def __init__(self, headings: Sequence[str], sheet_name: str) -> None:
        self._folder = TemporaryDirectory(prefix="plankeeper-xlsx-")
        self._path = Path(self._folder.name) / "file.xlsx"
        self._book = Workbook(str(self._path), {"constant_memory": True, "tmpdir": self._folder.name})
        self._headings, self._sheet_name = headings, sheet_name
        self._bold = self._add_format("bold", value=True)
        self._time_format = self._add_format("num_format", "yyyy-mm-dd hh:mm")
        self._date_format = self._add_format("num_format", "yyyy-mm-dd")
        self._money_format = self._add_format("num_format", "#,##0.00")
        self._sheet: Worksheet | None = None
        self._next_row = 0
        self._sheet_count = 0

    def append(self, rows: Iterable[Sequence[Cell]]) -> None:
        """Write rows. Memory has one of them at a time."""
        for row in rows:
            if self._sheet is None or self._next_row >= MAX_SHEET_ROWS:
                self._sheet = self._add_sheet(row)
            for column, value in enumerate(row):
                self._write(self._sheet, column, value)
            self._next_row += 1

    def finish(self) -> Path:
        """Complete the file, which exists until `close`."""
        if self._sheet is None:
            self._add_sheet([None] * len(self._headings))
        self._book.close()
        return self._path

    def close(self) -> None:
        """Delete the file. A sheet that wasn't completed still has an open file of its rows."""
        for sheet in self._book.worksheets():
            if rows := getattr(sheet, "row_data_fh", None):
                rows.close()
        self._folder.cleanup()

    def _add_format(self, name: str, value: str | bool) -> Format:
        return self._book.add_format({name: value})  # pyright: ignore[reportUnknownMemberType] - the library has no types for it

    def _add_sheet(self, first_row: Sequence[Cell]) -> Worksheet:
        self._sheet_count += 1
        number = f" {self._sheet_count}" if self._sheet_count > 1 else ""
        sheet: Worksheet = self._book.add_worksheet(f"{self._sheet_name}{number}")  # pyright: ignore[reportUnknownMemberType]
        sheet.freeze_panes(1, 0)
        for column, (heading, value) in enumerate(zip(self._headings, first_row, strict=True)):
            width = max(_WIDTHS.get(type(value), 10), len(heading) + 2)
            sheet.set_column(column, column, width)
        for column, heading in enumerate(self._headings):
            sheet.write_string(0, column, clean_text(heading), self._bold)
        self._next_row = 1
        return sheet

    def _write(self, sheet: Worksheet, column: int, value: Cell) -> None:
        match value:
            case None | "":
                return
            case str():
                sheet.write_string(self._next_row, column, clean_text(value))
            case datetime():
                self._write_date(sheet, column, value, self._time_format)
            case date():
                self._write_date(sheet, column, value, self._date_format)
            case Decimal():
                sheet.write_number(self._next_row, column, float(value), self._money_format)
            case _:
                sheet.write_number(self._next_row, column, value)

    def _write_date(self, sheet: Worksheet, column: int, value: date, format_: Format) -> None:
        """Dates before 1900 are texts: the format has no others."""
        if value.year < 1900:
            sheet.write_string(self._next_row, column, value.isoformat())
        else:
            moment = value if isinstance(value, datetime) else datetime.combine(value, time())
            sheet.write_datetime(self._next_row, column, moment, format_)


def clean_text(text: str) -> str:
    """A text that a cell can hold, with line feeds as line breaks. Control characters become `\ufffd`."""
    cleaned = _INVALID_CHARACTERS.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    if len(cleaned) * 2 <= MAX_CELL_LENGTH:
        return cleaned
    units = cleaned.encode("utf-16-le")[: 2 * MAX_CELL_LENGTH]
    return units.decode("utf-16-le", "ignore")


async def xlsx_chunks(
    headings: Sequence[str], sheet_name: str, batches: AsyncIterator[Sequence[Sequence[Cell]]]
) -> AsyncIterator[bytes]:
    """A file in chunks. While it is written, the chunks are empty: the response then notices a closed connection."""
    file = await asyncio.to_thread(XlsxFile, headings, sheet_name)
    try:
        async for rows in batches:
            await asyncio.to_thread(file.append, rows)
            yield b""
        path = await asyncio.to_thread(file.finish)
        with path.open("rb") as content:
            while chunk := await asyncio.to_thread(content.read, CHUNK_SIZE):
                yield chunk
    finally:
        await asyncio.shield(asyncio.to_thread(file.close))
