"""CSV rows for spreadsheets: UTF-8 is recognised, and no cell is run as a formula."""

import csv
import io
from collections.abc import Iterable

from plankeeper.imports.cells import FORMULA_PREFIXES

# Without it, Excel reads a CSV file as Windows-1252 instead of UTF-8.
UTF8_BOM = b"\xef\xbb\xbf"


def csv_row(cells: Iterable[str | None]) -> bytes:
    """One row. A cell that looks like a formula begins with an apostrophe; null is an empty cell."""
    text = io.StringIO(newline="")
    csv.writer(text).writerow([_escape_formula(cell or "") for cell in cells])
    return text.getvalue().encode()


def _escape_formula(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA_PREFIXES) else cell
