"""Two invoices side by side, with their differences."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.console.labels import humanize
from plankeeper.core.fields import unset_to_none
from plankeeper.core.formatting import (
    format_date,
    format_datetime,
    format_decimal,
    format_money,
)
from plankeeper.core.ids import parse_uuid
from plankeeper.resources.invoices.schemas import Amount, Invoice, LineItem

NOTHING = "—"
CONTENT_COUNT = 5  # values before the lines
HANDLING = {"Claim status", "Approval status", "Received", "Document"}


class ComparedValue(NamedTuple):
    """A row of the comparison: the texts for both invoices. Only the content of an invoice can differ.

    The status, the time of receipt and the document of an invoice don't indicate a duplicate.
    """

    label: str
    this: str
    other: str
    is_content: bool

    @property
    def differs(self) -> bool:
        return self.is_content and self.this != self.other


class Comparison(NamedTuple):
    """An invoice beside an earlier one."""

    other: Invoice
    values: list[ComparedValue]

    @property
    def difference_count(self) -> int:
        return sum(each.differs for each in self.values)


def compare_invoices(this: Invoice, other: Invoice, names: Mapping[UUID, str | None], zone: ZoneInfo) -> Comparison:
    """The comparison of an invoice with an earlier one of the same provider and number."""
    columns = [_values(each, names, zone) for each in (this, other)]
    values = [ComparedValue(label, columns[0][label], columns[1][label], label not in HANDLING) for label in columns[0]]
    lines = zip_longest(
        *(
            [_line_text(line) for line in unset_to_none(each.line_items) or [] if not line.is_deleted]
            for each in (this, other)
        )
    )
    values[CONTENT_COUNT:CONTENT_COUNT] = [
        ComparedValue(f"Line {number}", texts[0] or NOTHING, texts[1] or NOTHING, is_content=True)
        for number, texts in enumerate(lines, start=1)
    ]
    return Comparison(other, values)


def _values(invoice: Invoice, names: Mapping[UUID, str | None], zone: ZoneInfo) -> dict[str, str]:
    participant = invoice.participant_id
    return {
        "Invoice date": format_date(invoice.invoice_date) if invoice.invoice_date else NOTHING,
        "Participant": (names.get(participant) or "No name") if participant else NOTHING,
        "Subtotal": _money(invoice.subtotal),
        "Tax": _money(invoice.tax),
        "Total": _money(invoice.total),
        "Claim status": humanize(invoice.claim_status),
        "Approval status": humanize(invoice.approval_status),
        "Received": format_datetime(invoice.created_at, zone),
        "Document": file_name(invoice.s3_key) or NOTHING,
    }


def _line_text(line: LineItem) -> str:
    """`Lawn mowing · 01_011_0107_1_1 · 2 × $50.00 · $100.00`."""
    price = ""
    if line.quantity is not None and line.unit_price is not None:
        price = f"{format_decimal(line.quantity)} × {format_money(line.unit_price)}"
    parts = (line.description, line.service_item_number, price, _money(line.total_price))
    return " · ".join(each for each in parts if each)


def _money(value: Amount) -> str:
    return NOTHING if value is None else format_money(value)


def file_name(key: str | None) -> str | None:
    """The name of a document's file, the last part of its key, or its kind if the name is an ID; null without one."""
    name = (key or "").rstrip("/").rpartition("/")[2] or key or None
    stem, _, suffix = (name or "").partition(".")
    return f"{suffix.upper()} file".lstrip() if parse_uuid(stem) else name
