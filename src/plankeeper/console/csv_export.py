"""Rows of a CSV file that spreadsheets open as it is meant, and that are text to them, never a formula."""

import csv
import io
from collections.abc import Iterable

# Without it Excel takes the bytes of a CSV file for Windows' own characters, not for UTF-8.
UTF8_BOM = b"\xef\xbb\xbf"
_FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")


def csv_row(cells: Iterable[str | None]) -> bytes:
    """One row. What a spreadsheet would compute has an apostrophe before it; null is an empty cell."""
    text = io.StringIO(newline="")
    csv.writer(text).writerow([_escape_formula(cell or "") for cell in cells])
    return text.getvalue().encode()


def _escape_formula(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA_PREFIXES) else cell
