"""What an import can't change: lines with a claim, payment or adjustment that was made here, and what they lock."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec.structs import replace

from plankeeper.core.errors import DomainError
from plankeeper.resources.invoices.changes import to_amounts, to_line_rows, to_row, to_state
from plankeeper.resources.invoices.schemas import Invoice, InvoiceLineRow, InvoiceRow
from plankeeper.resources.invoices.states import (
    CORRECTED_FIELDS,
    LOCKED_FIELDS,
    InvoiceState,
    find_lock,
    require_matching_totals,
    require_unlocked,
    roll_up,
)
from plankeeper.resources.invoices.store import ClaimedLine


def find_claim_error(
    before: Invoice, row: InvoiceRow, lines: Sequence[InvoiceLineRow] | None, claimed: Mapping[UUID, ClaimedLine]
) -> tuple[str, str] | None:
    """The field of a row that an import can't change, and why not; None if it can.

    `lines` are those of the import, None if it leaves them as they are. `claimed` are the lines with a claim or an
    adjustment.
    """
    old_row, old_lines = to_row(before), to_line_rows(before)
    new_lines = old_lines if lines is None else lines
    by_id = {each.id: each for each in new_lines}
    for old in old_lines:
        new = by_id.get(old.id)
        # The order of the lines can be another one, and so can the amounts of those that aren't locked.
        if old.id in claimed and (new is None or replace(new, position=old.position, amount=old.amount) != old):
            verb = "deleted" if new is None or (new.is_deleted and not old.is_deleted) else "changed"
            return "line_items", f"line {old.position + 1} {_reason(old, claimed[old.id])}, so it can't be {verb}"
    state = _only_claimed(to_state(old_row, old_lines), claimed)
    fields = [name for name in InvoiceRow.__struct_fields__ if getattr(row, name) != getattr(old_row, name)]
    try:
        require_unlocked(state, fields)
        require_matching_totals(state, to_amounts(old_row, old_lines), to_amounts(row, new_lines))
    except DomainError as error:
        return next(iter(sorted(LOCKED_FIELDS.intersection(fields))), "total"), error.detail
    rejected = next((each for each in old_lines if each.id in claimed and _is_rejected(each)), None)
    if rejected and (corrected := sorted(CORRECTED_FIELDS.intersection(fields))):
        reason = f"line {rejected.position + 1} {_reason(rejected, claimed[rejected.id])}"
        return corrected[0], f"can't be changed, because {reason}: correct the invoice in the console or over the API"
    status = roll_up(to_state(row, new_lines))
    if row.claim_status not in (old_row.claim_status, status):
        return "claim_status", f"must be {status}, which follows from the lines with a claim"
    row.claim_status = status
    return None


def _is_rejected(line: InvoiceLineRow) -> bool:
    return line.claim_status == "rejected" and not line.is_deleted


def _reason(line: InvoiceLineRow, claimed: ClaimedLine) -> str:
    if line.open_claim_batch:
        return f"is in claim batch {line.open_claim_batch}"
    if line.open_payment_run:
        return f"is in payment run {line.open_payment_run}"
    where = f" in claim batch {claimed.batch_number}" if claimed.batch_number else ""
    reason = f"was claimed{where}" if claimed.has_claim else "has an adjustment"
    return f"is {line.claim_status.replace('_', ' ')} and {reason}"


def _only_claimed(state: InvoiceState, claimed: Mapping[UUID, ClaimedLine]) -> InvoiceState:
    """The invoice with the locks of claimed lines only: an import can change what another import has stored."""
    lines = (
        each if each.id in claimed or find_lock(each) is None else replace(each, claim_status="new")
        for each in state.lines
    )
    return replace(state, lines=tuple(lines))
