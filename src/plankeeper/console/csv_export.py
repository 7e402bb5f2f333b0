"""Rows of a CSV file that spreadsheets open as it is meant, and that are text to them, never a formula."""

import csv
import io
from collections.abc import Iterable

# Without it Excel takes the bytes of a CSV file for Windows' own characters, not for UTF-8.
MARK = b"\xef\xbb\xbf"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def row(cells: Iterable[str | None]) -> bytes:
    """One row. What a spreadsheet would compute has an apostrophe before it; null is an empty cell."""
    text = io.StringIO(newline="")
    csv.writer(text).writerow([_plain(cell or "") for cell in cells])
    return text.getvalue().encode()


def _plain(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
