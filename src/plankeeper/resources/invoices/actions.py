"""Actions on invoices and their lines: hold, release, cancel, reopen, exclude from claims, split.

Raises NotFound for an unknown invoice or line, and DomainError `invalid_transition` and `invoice_locked`.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from uuid import UUID

from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.errors import ErrorResource, FieldError, ValidationError
from plankeeper.core.formatting import CENT
from plankeeper.core.validation import MAX_DECIMAL_PLACES, amount_error, is_amount
from plankeeper.resources.invoices import store
from plankeeper.resources.invoices.action_schemas import LineSplit
from plankeeper.resources.invoices.changes import (
    Draft,
    to_line_rows,
    to_row,
    to_state,
    to_stored_state,
    update_approval,
    with_amounts,
)
from plankeeper.resources.invoices.schemas import Invoice, InvoiceLineRow, InvoiceRow
from plankeeper.resources.invoices.service import save_draft
from plankeeper.resources.invoices.states import (
    Cause,
    InvoiceAction,
    InvoiceState,
    act_on_invoice,
    current_status,
    move_line,
)


async def hold(ctx: WriteContext, invoice_id: UUID, reason: str) -> Invoice:
    """Put an invoice on hold: claim batches and payment runs leave it out."""
    before, row = await _act(ctx, invoice_id, "hold")
    row.held_at, row.held_by, row.hold_reason = datetime.now(UTC), ctx.actor.display_name, reason
    return await _save(ctx, "invoice.held", before, row)


async def release(ctx: WriteContext, invoice_id: UUID) -> Invoice:
    """End the hold of an invoice. Lines that were imported as on hold are new. A state that was imported stays."""
    before, state = await _read(ctx, invoice_id)
    state = act_on_invoice(state, "release")
    row = _with_state(to_row(before), state)
    row.held_at = row.held_by = row.hold_reason = None
    return await _save(ctx, "invoice.released", before, row, _with_statuses(to_line_rows(before), state))


async def cancel(ctx: WriteContext, invoice_id: UUID, reason: str) -> Invoice:
    """Cancel an invoice with all lines that aren't cancelled yet."""
    before, state = await _read(ctx, invoice_id)
    state = act_on_invoice(state, "cancel")
    row = _with_state(to_row(before), state)
    row.cancelled_at, row.closing_reason = datetime.now(UTC), reason
    return await _save(ctx, "invoice.cancelled", before, row, _with_statuses(to_line_rows(before), state))


async def reopen(ctx: WriteContext, invoice_id: UUID) -> Invoice:
    """Reopen a cancelled invoice with its lines, or one that is excluded from claims."""
    before, state = await _read(ctx, invoice_id)
    state = act_on_invoice(state, "reopen")
    row = _with_state(to_row(before), state)
    row.closing_reason = None
    if not state.is_cancelled:
        row.cancelled_at = None
    return await _save(ctx, "invoice.reopened", before, row, _with_statuses(to_line_rows(before), state))


async def wont_claim(ctx: WriteContext, invoice_id: UUID, reason: str) -> Invoice:
    """Exclude an invoice from claims. Its state stays."""
    before, row = await _act(ctx, invoice_id, "wont_claim")
    row.closing_reason = reason
    return await _save(ctx, "invoice.wont_claim", before, row)


async def cancel_line(ctx: WriteContext, invoice_id: UUID, line_id: UUID, reason: str) -> Invoice:
    return await _move_line(ctx, invoice_id, line_id, "cancel", reason)


async def reopen_line(ctx: WriteContext, invoice_id: UUID, line_id: UUID) -> Invoice:
    return await _move_line(ctx, invoice_id, line_id, "reopen", None)


async def retry_line(ctx: WriteContext, invoice_id: UUID, line_id: UUID) -> Invoice:
    """Put a rejected line up for the next claim batch as it is."""
    return await _move_line(ctx, invoice_id, line_id, "retry", None)


async def split_line(ctx: WriteContext, invoice_id: UUID, line_id: UUID, split: LineSplit) -> Invoice:
    """Split a line at a date into two, whose quantities and totals add up. Raises ValidationError `inconsistent`."""
    before, state = await _read(ctx, invoice_id)
    state = move_line(state, line_id, "split")
    lines = _with_statuses(to_line_rows(before), state)
    index = next(index for index, each in enumerate(lines) if each.id == line_id)
    lines[index], second = _split(lines[index], split, len(lines))
    row = _with_state(to_row(before), to_state(to_row(before), [*lines, second]))
    update_approval(row, {"line_items"})
    return await _save(ctx, "invoice.line_changed", before, row, [*lines, second])


def _split(line: InvoiceLineRow, split: LineSplit, position: int) -> tuple[InvoiceLineRow, InvoiceLineRow]:
    first, last = line.service_date_from, line.service_date_to
    if first is None or last is None or not first < split.date <= last:
        message = "must be after the first day of the line's service, and not after its last day"
        raise ValidationError(FieldError("date", message, "inconsistent"))
    quantities = split.quantities
    for index, each in enumerate(quantities):
        if not is_amount(each, MAX_DECIMAL_PLACES):
            raise ValidationError(amount_error(each, MAX_DECIMAL_PLACES, f"quantities[{index}]"))
    if line.quantity is None or sum(quantities, Decimal(0)) != line.quantity or min(quantities) <= 0:
        message = f"must be two numbers above zero that add up to the line's quantity, {line.quantity}"
        raise ValidationError(FieldError("quantities", message, "inconsistent"))
    total = line.total_price
    part = None if total is None else (total * quantities[0] / line.quantity).quantize(CENT, ROUND_HALF_UP)
    rest = None if total is None or part is None else total - part
    return (
        replace(line, service_date_to=_day_before(split.date), quantity=quantities[0], total_price=part),
        replace(
            line,
            id=uuid7(),
            position=position,
            service_date_from=split.date,
            quantity=quantities[1],
            total_price=rest,
            created_at=datetime.now(UTC),
        ),
    )


def _day_before(day: date) -> date:
    return date.fromordinal(day.toordinal() - 1)


async def _read(ctx: WriteContext, invoice_id: UUID) -> tuple[Invoice, InvoiceState]:
    found = await store.get_for_update(ctx.tx, ctx.plan_manager_id, invoice_id)
    before = or_404(found, ErrorResource("invoice", str(invoice_id)))
    return before, to_stored_state(before)


async def _act(ctx: WriteContext, invoice_id: UUID, action: InvoiceAction) -> tuple[Invoice, InvoiceRow]:
    """An invoice, and its row after an action that leaves its lines as they are."""
    before, state = await _read(ctx, invoice_id)
    return before, _with_state(to_row(before), act_on_invoice(state, action))


async def _move_line(ctx: WriteContext, invoice_id: UUID, line_id: UUID, cause: Cause, reason: str | None) -> Invoice:
    before, state = await _read(ctx, invoice_id)
    state = move_line(state, line_id, cause)
    row = _with_state(to_row(before), state)
    if not state.is_cancelled:
        row.cancelled_at = None
    lines = _with_statuses(to_line_rows(before), state)
    lines = [replace(each, closing_reason=reason) if each.id == line_id else each for each in lines]
    return await _save(ctx, "invoice.line_changed", before, row, lines)


def _with_state(row: InvoiceRow, state: InvoiceState) -> InvoiceRow:
    return replace(row, claim_status=current_status(state), wont_claim=state.wont_claim)


def _with_statuses(lines: Sequence[InvoiceLineRow], state: InvoiceState) -> list[InvoiceLineRow]:
    return [replace(line, claim_status=each.claim_status) for line, each in zip(lines, state.lines, strict=True)]


async def _save(
    ctx: WriteContext, event_type: str, before: Invoice, row: InvoiceRow, lines: Sequence[InvoiceLineRow] | None = None
) -> Invoice:
    old_lines = to_line_rows(before)
    new_lines = with_amounts(row, old_lines if lines is None else lines)
    changed = [each for index, each in enumerate(new_lines) if index >= len(old_lines) or each != old_lines[index]]
    return await save_draft(ctx, Draft(before, row, new_lines, changed, event_type=event_type))
