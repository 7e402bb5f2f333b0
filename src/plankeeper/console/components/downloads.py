"""Files for spreadsheets, CSV and XLSX: UTF-8 is recognised, and no cell is run as a formula."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Literal

from plankeeper.access.access_log.store import record_export
from plankeeper.console.shell.routing import PageRequest
from plankeeper.core import xlsx
from plankeeper.imports.cells import FORMULA_PREFIXES

FileFormat = Literal["csv", "xlsx"]

# Without it, Excel reads a CSV file as Windows-1252 instead of UTF-8.
UTF8_BOM = b"\xef\xbb\xbf"


def csv_row(cells: Iterable[str | None]) -> bytes:
    """One row. A cell that looks like a formula begins with an apostrophe; null is an empty cell."""
    text = io.StringIO(newline="")
    csv.writer(text).writerow([_escape_formula(cell or "") for cell in cells])
    return text.getvalue().encode()


def _escape_formula(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA_PREFIXES) else cell


async def csv_chunks(
    request: PageRequest, what: str, filter_: str, columns: Sequence[str], batches: AsyncIterator[list[bytes]]
) -> AsyncIterator[bytes]:
    """A CSV file in chunks, and the event `export.created` with the number of rows that were sent."""
    count = 0
    try:
        yield UTF8_BOM + csv_row(columns)
        async for rows in batches:
            count += len(rows)
            yield b"".join(rows)  # an empty chunk, too: the response then notices a closed connection
    finally:
        await asyncio.shield(_record(request, what, filter_, count))


async def xlsx_chunks(
    request: PageRequest,
    what: str,
    filter_: str,
    columns: Sequence[str],
    batches: AsyncIterator[Sequence[Sequence[xlsx.Cell]]],
) -> AsyncIterator[bytes]:
    """The same as an XLSX file, whose sheet has the name `what`."""
    count = 0

    async def counted() -> AsyncIterator[Sequence[Sequence[xlsx.Cell]]]:
        nonlocal count
        async for rows in batches:
            count += len(rows)
            yield rows

    try:
        async for chunk in xlsx.xlsx_chunks(columns, what, counted()):
            yield chunk
    finally:
        await asyncio.shield(_record(request, what, filter_, count))


async def _record(request: PageRequest, what: str, filter_: str, count: int) -> None:
    async with request.db.transaction() as tx:
        await record_export(request.with_transaction(tx).write_context, what, filter_, count)
