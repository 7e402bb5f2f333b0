"""XLSX files, read by another library: types, and texts that a spreadsheet could run."""

import io
import tempfile
import zipfile
from collections.abc import AsyncIterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import openpyxl
import pytest

from plankeeper.core import xlsx
from plankeeper.core.xlsx import Cell, xlsx_chunks

# Texts, and what the cells contain.
TEXTS = {
    "=cmd|' /C calc'!A0": None,
    "+61 2 5550 0000": None,
    "-1": None,
    "@SUM(A1)": None,
    "{=1+1}": None,
    "\t=1": None,
    "https://example.com": None,
    "00123": None,
    "1.50": None,
    " spaces ": None,
    "<b>&amp;\"'": None,
    "Zoë 漢字 عربى ไทย 😀": None,
    "two\r\nlines\rthree": "two\nlines\nthree",
    "bell\x07 and null\x00": "bell\ufffd and null\ufffd",
    "\ufffe\uffff": "\ufffd\ufffd",
    "x" * 40_000: "x" * 32_767,
    "😀" * 20_000: "😀" * 16_383,  # two units each
}


async def write(headings: Sequence[str], *batches: Sequence[Sequence[Cell]]) -> bytes:
    async def read() -> AsyncIterator[Sequence[Sequence[Cell]]]:
        for each in batches:
            yield each

    return b"".join([chunk async for chunk in xlsx_chunks(headings, "Sheet", read())])


async def test_texts_stay_texts() -> None:
    file = await write(["Text", "Other"], [[each, "x"] for each in TEXTS])
    rows = [*openpyxl.load_workbook(io.BytesIO(file))["Sheet"].iter_rows(min_row=2)]
    assert [row[0].value for row in rows] == [text if cell is None else cell for text, cell in TEXTS.items()]
    assert {row[0].data_type for row in rows} == {"s"}
    assert not [row for row in rows if row[0].hyperlink]


async def test_text_that_looks_escaped_is_escaped() -> None:
    file = await write(["Text"], [["_x0041_"]])
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        assert b"_x005F_x0041_" in archive.read("xl/worksheets/sheet1.xml")


async def test_numbers_dates_and_times_have_types() -> None:
    row: list[Cell] = [5, Decimal("-1234567.89"), date(2026, 10, 31), datetime(2026, 10, 31, 17, 42), None, ""]  # noqa: DTZ001
    file = await write(["A"] * 6, [row, [0, Decimal(0), date(1899, 12, 31), None, None, "z"]])
    rows = [*openpyxl.load_workbook(io.BytesIO(file))["Sheet"].iter_rows(min_row=2)]
    assert [each.value for each in rows[0]] == [
        5, -1234567.89, datetime(2026, 10, 31), datetime(2026, 10, 31, 17, 42), None, None,  # noqa: DTZ001
    ]  # fmt: skip
    assert [each.number_format for each in rows[0][1:4]] == ["#,##0.00", "yyyy-mm-dd", "yyyy-mm-dd hh:mm"]
    assert [each.value for each in rows[1]] == [0, 0, "1899-12-31", None, None, "z"]


async def test_a_file_without_rows_has_its_heading() -> None:
    sheet = openpyxl.load_workbook(io.BytesIO(await write(["=A", "B"])))["Sheet"]
    assert [[each.value for each in row] for row in sheet.iter_rows()] == [["=A", "B"]]


async def test_rows_beyond_a_sheet_continue_on_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx, "MAX_SHEET_ROWS", 3)
    book = openpyxl.load_workbook(io.BytesIO(await write(["N"], [[1], [2], [3]], [[4], [5]])))
    sheets = {each.title: [row[0] for row in each.iter_rows(values_only=True)] for each in book.worksheets}
    assert sheets == {"Sheet": ["N", 1, 2], "Sheet 2": ["N", 3, 4], "Sheet 3": ["N", 5]}


async def test_nothing_stays_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def fail() -> AsyncIterator[Sequence[Sequence[Cell]]]:
        yield [["a"]]
        raise OSError

    await write(["A"], [["a"]])
    with pytest.raises(OSError):  # noqa: PT011 - it has no message
        _ = [chunk async for chunk in xlsx_chunks(["A"], "Sheet", fail())]
    assert not [*tmp_path.iterdir()]
