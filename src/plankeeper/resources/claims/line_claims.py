"""Claims of single lines: results by hand, claims that were made elsewhere, rests, and confirmed imported results.

Raises NotFound for an unknown invoice or line, and DomainError `invalid_transition` and `invoice_locked`.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from msgspec import UNSET
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.errors import DomainError, ErrorResource, FieldError, NotFound, ValidationError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.json import to_json
from plankeeper.core.validation import is_amount
from plankeeper.database.client import Executor
from plankeeper.events.recorder import record_event
from plankeeper.resources.claims import adjustment_store, result_store, store
from plankeeper.resources.claims.result_rules import (
    CAUSES,
    ClaimState,
    Outcome,
    Result,
    payment_outcome,
    require_result_amount,
    state_after,
)
from plankeeper.resources.claims.result_schemas import AppliedResults, ClaimedElsewhere, LineClaimResult
from plankeeper.resources.claims.result_service import line_values, set_batch_state
from plankeeper.resources.claims.schemas import Claim, ClaimBatch, ClaimSource, NewClaim
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.changes import find_settled_status, to_line_rows, to_line_state
from plankeeper.resources.invoices.line_moves import LineMove, lock, move_lines
from plankeeper.resources.invoices.schemas import Invoice, InvoiceLineRow
from plankeeper.resources.invoices.states import next_status
from plankeeper.resources.office_settings import store as settings_store
from plankeeper.resources.payments.planning import with_returns

_CLAIMABLE = ("new", "flagged")
_CONFIRMABLE = ("payment_ready", "partially_ready")


async def record_result(ctx: WriteContext, invoice_id: UUID, line_id: UUID, answer: LineClaimResult) -> Invoice:
    """Record the agency's answer to the open claim of a pending line, or that the claim was cancelled in its portal.

    A line that was imported as pending gets a claim with the answer, and `replaces_result` makes a line pending first.
    Raises ValidationError for an amount that doesn't fit, and for a day in the future.
    """
    now, day = datetime.now(UTC), _result_day(ctx, answer)
    if answer.replaces_result is True:
        await _withdraw_result(ctx, invoice_id, line_id, now)
    claim = await result_store.get_open(ctx.tx, ctx.plan_manager_id, invoice_id, line_id)
    batch = await _lock_batch(ctx, claim)
    invoice, line = await _lock_line(ctx, invoice_id, line_id)
    next_status(to_line_state(line), "cancel_claim")  # only for pending lines
    claim = await result_store.get_open(ctx.tx, ctx.plan_manager_id, invoice_id, line_id)
    if (claim.batch_id if claim else None) != (batch.id if batch else None):
        raise _invalid(invoice_id, f"The claim of line {line.position + 1} has just changed. Look at it again.")
    claim = claim or await _insert_imported(ctx, invoice, line, now)
    result = await _to_result(ctx, claim, answer)
    values = _answer_values(ctx, claim, answer, result, day, now)
    await result_store.set_results(ctx.tx, ctx.plan_manager_id, to_json([values]))
    if result:
        move = LineMove(invoice_id, line_id, result.cause, line_values(line, result))
    else:
        move = await _cancel_move(ctx, claim, line)
    money = await adjustment_store.get_money(ctx.tx, ctx.plan_manager_id, invoice_id, line_id)
    # An import doesn't store whether the payee of a pending line has got a part.
    part = LineMove(invoice_id, line_id, None, {"has_payment": line.has_payment or money.paid_out > 0})
    moves = await with_returns(ctx, [part, move])
    [after] = await move_lines(ctx, {invoice_id: invoice}, moves, "invoice.line_changed")
    if batch:
        await _update_batch(ctx, batch, result, now)
    return after


async def find_replaceable(
    db: Executor, plan_manager_id: UUID, invoice_id: UUID, line: InvoiceLineRow
) -> ClaimState | None:
    """The claim of a line whose result can be replaced."""
    try:
        next_status(to_line_state(line), "replace_result")
    except DomainError:
        return None
    return await _get_replaceable(db, plan_manager_id, invoice_id, line)


async def _get_replaceable(
    db: Executor, plan_manager_id: UUID, invoice_id: UUID, line: InvoiceLineRow
) -> ClaimState | None:
    claim = await result_store.get_replaceable(db, plan_manager_id, invoice_id, line.id)
    rest = (line.amount or Decimal(0)) - (line.paid_amount or Decimal(0))
    # The totals of the invoice, and its other lines, can change the amount of a rejected line.
    is_other = claim is not None and line.claim_status == "rejected" and claim.amount != rest
    return None if is_other else claim


async def _withdraw_result(ctx: WriteContext, invoice_id: UUID, line_id: UUID, now: datetime) -> None:
    """Make a line pending again whose result is wrong. The claim stays in its batch, whose receipts pay for it."""
    place = (ctx.tx, ctx.plan_manager_id)
    claim = await result_store.get_replaceable(*place, invoice_id, line_id)
    batch = await _lock_batch(ctx, claim)
    invoice, line = await _lock_line(ctx, invoice_id, line_id)
    next_status(to_line_state(line), "replace_result")
    claim = await _get_replaceable(*place, invoice_id, line)
    if claim is None or claim.batch_id != (batch.id if batch else None) or invoice.is_deleted:
        what = "its money was paid out or adjusted, or it is claimed again, or has another amount"
        raise _invalid(invoice_id, f"The result of line {line.position + 1} can't be replaced: {what}.")
    claim_number = _earlier_number(line, await store.list_of_line(*place, invoice_id, line_id))
    await result_store.withdraw_result(*place, claim.id, now)
    values = {
        "claim_number": claim_number,
        "paid_amount": (line.paid_amount or Decimal(0)) - (claim.paid or Decimal(0)) or None,
        "rejection_reason": None,
        "open_claim_batch": batch.number if batch else None,
    }
    moves = [LineMove(invoice_id, line_id, "replace_result", values)]
    await move_lines(ctx, {invoice_id: invoice}, moves, "invoice.line_changed")


def _earlier_number(line: InvoiceLineRow, claims: Sequence[Claim]) -> str | None:
    """The agency's number of the line without the one of its last claim. That of an import is of no claim."""
    *earlier, last = claims
    if last.agency_number is None:
        return line.claim_number
    return next((each.agency_number for each in reversed(earlier) if each.agency_number), None)


def _result_day(ctx: WriteContext, answer: LineClaimResult) -> date:
    day = unset_to_none(answer.date) or ctx.settings.today
    ctx.require_not_future("date", day)
    return day


async def _lock_batch(ctx: WriteContext, claim: ClaimState | None) -> ClaimBatch | None:
    if claim is None or claim.batch_id is None:
        return None
    return await store.select_for_update(ctx.tx, ctx.plan_manager_id, claim.batch_id)


async def _lock_line(ctx: WriteContext, invoice_id: UUID, line_id: UUID) -> tuple[Invoice, InvoiceLineRow]:
    invoice = or_404((await lock(ctx, [invoice_id])).get(invoice_id), ErrorResource("invoice", str(invoice_id)))
    line = next((each for each in to_line_rows(invoice) if each.id == line_id), None)
    if line is None:
        raise NotFound(ErrorResource("line_item", str(line_id)))
    return invoice, line


async def _to_result(ctx: WriteContext, claim: ClaimState, answer: LineClaimResult) -> Result | None:
    """The result that an answer is, or None for a cancelled claim."""
    amount = unset_to_none(answer.amount)
    require_result_amount(answer.outcome, amount, claim.amount)
    if answer.outcome == "cancelled":
        return None
    outcome: Outcome = "rejected"
    if answer.outcome == "paid" and amount is not None:
        tolerance = (await settings_store.get(ctx.tx, ctx.plan_manager_id)).result_tolerance
        outcome = payment_outcome(claim.amount, amount, tolerance)
    number, reason = unset_to_none(answer.reference), unset_to_none(answer.reason)
    return Result(0, claim, outcome, amount or Decimal(0), number, reason)


async def _cancel_move(ctx: WriteContext, claim: ClaimState, line: InvoiceLineRow) -> LineMove:
    """The move of a line whose claim was cancelled, as of a cancelled batch: a rest waits for the next batch again."""
    found = await store.list_batch_refs(ctx.tx, ctx.plan_manager_id, [claim.invoice_id])
    refs = {(each.invoice_id, each.line_id): each.number for each in found}
    values: dict[str, Any] = {"open_claim_batch": None}
    values["claim_batch_ref"] = refs.get((claim.invoice_id, claim.line_id))
    if claim.is_rest and line.has_payment:
        values["is_rest_waiting"] = True
    return LineMove(claim.invoice_id, claim.line_id, "cancel_claim", values)


def _answer_values(
    ctx: WriteContext, claim: ClaimState, answer: LineClaimResult, result: Result | None, day: date, now: datetime
) -> dict[str, Any]:
    """The fields of the claim. One that was cancelled has no result, so that a later one is noticed."""
    return {
        "id": claim.id,
        "state": result.outcome if result else "cancelled",
        "paid": result.paid if result else None,
        "agency_number": unset_to_none(answer.reference),
        "reason": unset_to_none(answer.reason),
        "result_date": day if result else None,
        "result_at": now if result else None,
        "result_by": ctx.actor.display_name if result else None,
        "updated_at": now,
    }


async def _update_batch(ctx: WriteContext, batch: ClaimBatch, result: Result | None, now: datetime) -> None:
    """The state of a batch after one of its claims has ended, with an event if it is another one."""
    assert batch.id is not None  # noqa: S101 - only that of a dry run has none
    counts = await result_store.count_states(ctx.tx, ctx.plan_manager_id, batch.id)
    state = state_after(batch.state, [each.state for each in counts])
    if state != batch.state:
        outcomes = {name: int(result is not None and result.outcome == name) for name in CAUSES}
        applied = AppliedResults(**outcomes, held=0, unmatched=0)
        await set_batch_state(ctx, batch, state, now, applied)


async def claim_elsewhere(ctx: WriteContext, invoice_id: UUID, claimed: ClaimedElsewhere) -> Invoice:
    """Record that lines were claimed outside of Plankeeper: they are pending until their results are recorded.

    Raises ValidationError for an unknown line, and for one without an amount above zero.
    """
    now = datetime.now(UTC)
    invoice = or_404((await lock(ctx, [invoice_id])).get(invoice_id))
    if invoice.is_deleted:
        raise _invalid(invoice_id, "The invoice is deleted, so it can't be marked as claimed elsewhere.")
    lines = _lines_to_claim(invoice, claimed)
    values = {"claim_batch_ref": claimed.reference}
    moves = [LineMove(invoice_id, each.id, "claim_elsewhere", values) for each in lines]
    for each in lines:
        next_status(to_line_state(each), "claim_elsewhere")
    _require_unsettled(invoice)
    claims = _new_claims(ctx, invoice, lines, "elsewhere", claimed.reference, now)
    [after] = await move_lines(ctx, {invoice_id: invoice}, moves, "invoice.claimed_elsewhere")
    await store.insert_claims(ctx.tx, ctx.plan_manager_id, to_json(claims))
    return after


def list_claimable_elsewhere(invoice: Invoice) -> dict[UUID, Decimal]:
    """The lines that `claim_elsewhere` accepts, by their ids, with the amounts to claim in dollars."""
    if invoice.is_deleted or _settled_elsewhere(invoice):
        return {}
    found = dict[UUID, Decimal]()
    for each in to_line_rows(invoice):
        with suppress(DomainError):
            next_status(to_line_state(each), "claim_elsewhere")
            found[each.id] = _amount_to_claim(each)
    return found


def _amount_to_claim(line: InvoiceLineRow) -> Decimal:
    """The amount of a line that the agency hasn't paid. Raises ValidationError if it isn't above zero."""
    amount = (line.amount or Decimal(0)) - (line.paid_amount or Decimal(0))
    if amount <= 0:
        raise ValidationError(line_ids=f"line {line.position + 1} has no amount above zero to claim")
    return amount


def _settled_elsewhere(invoice: Invoice) -> str | None:
    """The state with which the invoice was imported, if a pending line would take it back."""
    status = find_settled_status(invoice)
    return None if status == "pending" else status


def _require_unsettled(invoice: Invoice) -> None:
    if status := _settled_elsewhere(invoice):
        detail = f"The invoice was imported as {_words(status)}, so it can't be marked as claimed elsewhere."
        raise _invalid(invoice.id, detail)


def _lines_to_claim(invoice: Invoice, claimed: ClaimedElsewhere) -> list[InvoiceLineRow]:
    lines = {each.id: each for each in to_line_rows(invoice)}
    if claimed.line_ids is UNSET:
        found = [each for each in lines.values() if each.claim_status in _CLAIMABLE and not each.is_deleted]
        if not found:
            raise _invalid(invoice.id, f"The invoice is {_words(invoice.claim_status)}: no line is new or flagged.")
        return found
    ids = [UUID(each) for each in claimed.line_ids]
    message = "must be the id of a line of this invoice"
    errors = [
        FieldError(f"line_ids[{index}]", message, "not_found") for index, each in enumerate(ids) if each not in lines
    ]
    if errors:
        raise ValidationError(*errors)
    return [lines[each] for each in dict.fromkeys(ids)]


def _new_claims(
    ctx: WriteContext,
    invoice: Invoice,
    lines: Iterable[InvoiceLineRow],
    source: ClaimSource,
    reference: str,
    now: datetime,
) -> list[NewClaim]:
    """Claims without a file. Raises ValidationError for a line without an amount above zero."""
    return [
        NewClaim(
            id=uuid7(),
            invoice_id=invoice.id,
            line_id=each.id,
            source=source,
            reference=reference,
            amount=_amount_to_claim(each),
            state="submitted",
            created_at=now,
            created_by=ctx.actor.display_name,
        )
        for each in lines
    ]


async def _insert_imported(ctx: WriteContext, invoice: Invoice, line: InvoiceLineRow, now: datetime) -> ClaimState:
    """The claim of a line that was imported as pending."""
    [claim] = _new_claims(ctx, invoice, [line], "imported", _imported_reference(invoice, line), now)
    await store.insert_claims(ctx.tx, ctx.plan_manager_id, to_json([claim]))
    return or_404(await result_store.get_open(ctx.tx, ctx.plan_manager_id, invoice.id, line.id))


def _imported_reference(invoice: Invoice, line: InvoiceLineRow) -> str:
    return line.claim_number or line.claim_batch_ref or invoice.invoice_number or str(line.id)


async def claim_rest(ctx: WriteContext, invoice_id: UUID, line_id: UUID) -> Invoice:
    """Put the unpaid rest of a partially paid line up for the next claim batch. The line stays as it is until then."""
    invoice, line = await _lock_line(ctx, invoice_id, line_id)
    next_status(to_line_state(line), "claim_rest")
    if line.amount is None or line.amount <= (line.paid_amount or 0):
        raise _invalid(invoice_id, f"Line {line.position + 1} has no unpaid rest, so it can't be claimed.")
    moves = [LineMove(invoice_id, line_id, "claim_rest")]
    [after] = await move_lines(ctx, {invoice_id: invoice}, moves, "invoice.line_changed")
    return after


async def confirm_result(ctx: WriteContext, invoice_id: UUID, line_id: UUID) -> Invoice:
    """Confirm the amount of a line that was imported as ready for payment: only then can it be paid.

    The caller has made sure that the confirming person has `make_payments`. Raises DomainError `invalid_transition`
    also if that person has imported the invoice: a second one must confirm it.
    """
    invoice, line = await _lock_line(ctx, invoice_id, line_id)
    name = f"Line {line.position + 1}"
    if line.claim_status not in _CONFIRMABLE or line.is_deleted or not line.paid_amount:
        detail = f"{name} is {_words(line.claim_status)}: only a line that is ready for payment can be confirmed."
        raise _invalid(invoice_id, detail)
    claimed = await invoice_store.list_claimed_lines(ctx.tx, ctx.plan_manager_id, [invoice_id])
    if any(each.line_id == line_id and each.has_claim for each in claimed):
        raise _invalid(invoice_id, f"{name} has a claim, so its result is known.")
    account = ctx.actor.account_id
    importers = await result_store.list_importers(ctx.tx, ctx.plan_manager_id, str(invoice_id))
    if account is not None and str(account) in importers:
        raise _invalid(invoice_id, f"{name} was imported by you, so another person must confirm its amount.")
    money = await adjustment_store.get_money(ctx.tx, ctx.plan_manager_id, invoice_id, line_id)
    paid = money.paid + money.reversed  # `paid_amount` is less what was reversed since
    if not is_amount(paid, 2):
        raise _invalid(invoice_id, f"{name} has a paid amount with a part of a cent, {paid}: import it again.")
    if line.amount is not None and paid > line.amount:
        detail = f"{name} costs {line.amount:.2f}, and the agency can't have paid {paid:.2f} for it: import it again."
        raise _invalid(invoice_id, detail)
    await _insert_confirmed(ctx, invoice, line, line.amount or paid, paid)
    after = (await move_lines(ctx, {invoice_id: invoice}, [LineMove(invoice_id, line_id, None)], None))[0]
    await record_event(ctx, "invoice.line_changed", None, after)
    return after


async def confirm_reversed(ctx: WriteContext, invoice: Invoice, line: InvoiceLineRow, paid: Decimal) -> None:
    """Confirm what the agency has paid for a line that was imported as ready for payment, and now takes back.

    Nothing of it was paid out. Without a claim that has it, a later claim of the line would be paid out less it.
    """
    claimed = await invoice_store.list_claimed_lines(ctx.tx, ctx.plan_manager_id, [invoice.id])
    has_claim = any(each.line_id == line.id and each.has_claim for each in claimed)
    if line.claim_status in _CONFIRMABLE and not has_claim:
        await _insert_confirmed(ctx, invoice, line, max(line.amount or paid, paid), paid)


async def _insert_confirmed(
    ctx: WriteContext, invoice: Invoice, line: InvoiceLineRow, amount: Decimal, paid: Decimal
) -> None:
    now, by = datetime.now(UTC), ctx.actor.display_name
    claim = NewClaim(
        id=uuid7(),
        invoice_id=invoice.id,
        line_id=line.id,
        source="imported",
        reference=_imported_reference(invoice, line),
        amount=amount,
        state="paid" if line.claim_status == "payment_ready" or paid == amount else "partially_paid",
        paid=paid,
        agency_number=line.claim_number,
        result_date=ctx.settings.today,
        result_at=now,
        result_by=by,
        created_at=now,
        created_by=by,
    )
    await store.insert_claims(ctx.tx, ctx.plan_manager_id, to_json([claim]))


def _words(status: str) -> str:
    return status.replace("_", " ")


def _invalid(invoice_id: UUID, detail: str) -> DomainError:
    return DomainError("invalid_transition", detail, resource=ErrorResource("invoice", str(invoice_id)))
