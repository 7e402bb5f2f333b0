"""When flagged lines are new again: what kept their invoice out of claims has ended.

That is a hold, an approval that is pending or rejected, an exclusion from claims, or an open warning that blocks
claims. A flagged invoice whose last open warning of any level ends is new again, too: nothing is left to look at.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from plankeeper.resources.invoices.changes import to_state
from plankeeper.resources.invoices.schemas import Invoice, InvoiceLineRow, InvoiceRow
from plankeeper.resources.invoices.states import resolve_lines, roll_up
from plankeeper.resources.invoices.warnings import Level, level_of


def open_codes(invoice: Invoice) -> set[str]:
    """The warnings that are neither ignored nor only information."""
    return {*invoice.state_management.errors} - {*invoice.state_management.ignored_errors}


def has_ended(
    before: InvoiceRow,
    open_before: set[str],
    after: InvoiceRow,
    open_after: set[str],
    levels: Mapping[str, Level],
    *,
    levels_changed: bool = False,
) -> bool:
    """Whether the last thing that kept an invoice out of claims has ended between two of its versions.

    `levels` are the present ones. If `levels_changed`, each warning that was open can have blocked claims before.
    """
    if _keeps_out(after) or _blocks(open_after, levels):
        return False
    was_blocked = bool(open_before) if levels_changed else _blocks(open_before, levels)
    return _keeps_out(before) or was_blocked or (bool(open_before) and not open_after)


def is_flagged(row: InvoiceRow, lines: Sequence[InvoiceLineRow]) -> bool:
    """Whether a line is flagged, or the invoice was imported so."""
    return row.claim_status == "flagged" or any(each.claim_status == "flagged" for each in lines if not each.is_deleted)


def resolve(row: InvoiceRow, lines: Sequence[InvoiceLineRow]) -> tuple[InvoiceRow, list[InvoiceLineRow]]:
    """A flagged invoice and its lines after what kept it out has ended."""
    state = resolve_lines(to_state(row, lines))
    resolved = [
        line if line.claim_status == each.claim_status else replace(line, claim_status=each.claim_status)
        for line, each in zip(lines, state.lines, strict=True)
    ]
    return replace(row, claim_status=roll_up(state)), resolved


def _keeps_out(row: InvoiceRow) -> bool:
    return row.held_at is not None or row.wont_claim or row.approval_status in ("pending", "rejected")


def _blocks(codes: set[str], levels: Mapping[str, Level]) -> bool:
    return any(level_of(code, levels) == "block" for code in codes)
