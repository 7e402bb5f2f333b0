"""Adjustments: reversals by the agency, refunds of payees, repayments to the agency, and what is to be recovered."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from msgspec.structs import asdict
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.errors import DomainError, FieldError, ValidationError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.json import to_json
from plankeeper.core.lists import PageRows
from plankeeper.database.client import Executor
from plankeeper.events.recorder import record_event
from plankeeper.resources.claims import adjustment_store
from plankeeper.resources.claims.adjustment_rules import ZERO, find_error, paid_out_part, reversal_cause
from plankeeper.resources.claims.adjustment_schemas import (
    AdjustedInvoice,
    Adjustment,
    NewAdjustment,
    Recovery,
    RecoveryListQuery,
)
from plankeeper.resources.claims.adjustment_store import ReversedLine
from plankeeper.resources.claims.line_claims import confirm_reversed
from plankeeper.resources.invoices.changes import to_line_rows, to_line_state
from plankeeper.resources.invoices.line_moves import LineMove, lock, move_lines
from plankeeper.resources.invoices.schemas import Invoice, InvoiceLineRow
from plankeeper.resources.invoices.states import next_status


def require_scope(ctx: WriteContext, new: NewAdjustment) -> None:
    """Raise DomainError `insufficient_scope` if the API key can't record adjustments of this kind."""
    needed = "claims" if new.kind == "agency_reversal" else "payments"
    if needed not in ctx.scopes:
        detail = f"An adjustment of the kind {new.kind} requires the scope `{needed}`, which the API key does not have."
        raise DomainError("insufficient_scope", detail)


async def record(ctx: WriteContext, invoice_id: UUID, new: NewAdjustment) -> Adjustment:
    """Record an adjustment. A reversal lowers the line's `paid_amount`; the other kinds leave the line as it is.

    Raises NotFound, ValidationError, `invoice_locked` for a line in a draft run, and `invalid_transition`.
    """
    invoice = or_404((await lock(ctx, [invoice_id])).get(invoice_id))
    line = _find_line(invoice, new)
    ctx.require_not_future("date", new.date)
    money = await adjustment_store.get_money(ctx.tx, ctx.plan_manager_id, invoice_id, line.id)
    cause = reversal_cause(money, new.amount)
    if new.kind == "agency_reversal":
        next_status(to_line_state(line), cause)  # a lock or the state comes before the amount
    if error := find_error(new.kind, new.amount, money):
        raise ValidationError(error)
    adjustment = _build(ctx, invoice_id, line.id, new)
    after = invoice
    if new.kind == "agency_reversal":
        values: dict[str, Any] = {"paid_amount": money.paid - new.amount}
        if new.amount == money.paid:
            values["rejection_reason"] = adjustment.reason or "The agency has reversed its payment."
            await confirm_reversed(ctx, invoice, line, money.paid + money.reversed)
        [after] = await move_lines(ctx, {invoice_id: invoice}, [LineMove(invoice_id, line.id, cause, values)], None)
    part = paid_out_part(money, new.amount) if new.kind == "agency_reversal" else ZERO
    await adjustment_store.insert(ctx.tx, ctx.plan_manager_id, to_json(adjustment), part)
    adjusted: dict[str, Any] = asdict(after)
    event = AdjustedInvoice(**adjusted, adjustment=adjustment)
    await record_event(ctx, "invoice.adjusted", None if after is invoice else invoice, event)
    return adjustment


def _find_line(invoice: Invoice, new: NewAdjustment) -> InvoiceLineRow:
    line_id = UUID(new.line_id)
    line = next((each for each in to_line_rows(invoice) if each.id == line_id), None)
    if line is None:
        raise ValidationError(FieldError("line_id", "must be the id of a line of this invoice", "not_found"))
    return line


def _build(ctx: WriteContext, invoice_id: UUID, line_id: UUID, new: NewAdjustment) -> Adjustment:
    now = datetime.now(UTC)
    return Adjustment(
        id=uuid7(),
        invoice_id=invoice_id,
        line_id=line_id,
        kind=new.kind,
        amount=new.amount,
        date=new.date,
        reference=unset_to_none(new.reference),
        reason=unset_to_none(new.reason),
        created_at=now,
        created_by=ctx.actor.display_name,
        updated_at=now,
    )


async def list_recoveries(db: Executor, plan_manager_id: UUID, query: RecoveryListQuery) -> PageRows[Recovery]:
    """A page of what is to be recovered: from whom, how much, since when."""
    rows = await adjustment_store.list_unsettled(db, plan_manager_id, query)
    return PageRows([_to_recovery(each) for each in rows], has_more=rows.has_more, next_cursor=rows.next_cursor)


def _to_recovery(line: ReversedLine) -> Recovery:
    return Recovery(
        id=line.id,
        invoice_id=line.invoice_id,
        line_id=line.line_id,
        invoice_number=line.invoice_number,
        payee=line.payee,
        payee_id=line.payee_id,
        payee_name=line.payee_name,
        since=line.since,
        reversed=line.money.reversed,
        refunded=line.money.refunded,
        repaid=line.money.repaid,
        to_recover=line.money.to_recover,
        to_repay=line.money.to_repay,
    )
