"""Takings: the office takes its own fees that the agency has paid, with one reference and one total.

Money moves once: a claim is in at most one taking, and a taking isn't undone. What was taken by mistake is recorded as
a refund of the line. Invoices are locked in order of id, then the counter of numbers.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from msgspec import UnsetType
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext
from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.core.json import to_json
from plankeeper.resources.fees import store
from plankeeper.resources.fees.schemas import MAX_TAKEN_LINES, FeeTaking, NewFeeTaking, TakenLine
from plankeeper.resources.invoices.line_moves import LineMove, lock, move_lines
from plankeeper.resources.office_settings.number_store import next_number
from plankeeper.resources.office_settings.restores import require_confirmed
from plankeeper.resources.office_settings.schemas import OfficeSettings
from plankeeper.resources.office_settings.store import get as get_settings
from plankeeper.resources.payments import store as payment_store
from plankeeper.resources.payments.planning import find_invoices, find_uncovered
from plankeeper.resources.payments.rules import READY, amounts_due, is_own_fee, left_out, reason_not_taken
from plankeeper.resources.payments.schemas import PayableLine, UnpaidLine

LINE_EVENT = "invoice.line_changed"
_NOTHING = "has no fee that can be taken: the agency has paid none that is still due"


class TakingPlan(NamedTuple):
    """The lines of a taking with their amounts, and the lines of fees that aren't taken."""

    lines: Sequence[PayableLine]
    taken: Sequence[TakenLine]
    left_out: Sequence[UnpaidLine]

    @property
    def total(self) -> Decimal:
        return sum((each.amount for each in self.taken), Decimal(0))


async def take(ctx: WriteContext, new: NewFeeTaking, *, is_dry_run: bool = False) -> FeeTaking:
    """Take fees, or say what would be taken. Raises ValidationError, also if nothing can be taken."""
    invoice_ids = await find_invoices(ctx, new.invoice_ids, new.all)
    taken_on = ctx.settings.today if isinstance(new.taken_on, UnsetType) else new.taken_on
    ctx.require_not_future("taken_on", taken_on)
    if is_dry_run:
        return _build(ctx, await plan_taking(ctx, invoice_ids), taken_on, None)
    await require_confirmed(ctx.tx, ctx.plan_manager_id)
    plan = await plan_taking(ctx, invoice_ids)
    locked = await lock(ctx, {each.invoice_id for each in plan.lines})
    chosen = {(each.invoice_id, each.line_id) for each in plan.lines}
    again = await _plan(ctx, await payment_store.list_of_invoices(ctx.tx, ctx.plan_manager_id, [*locked]), chosen)
    plan = again._replace(left_out=[*plan.left_out, *again.left_out])
    if not plan.taken:
        name = "all" if invoice_ids is None else "invoice_ids"
        raise ValidationError(FieldError(name, _NOTHING))
    number = await next_number(ctx.tx, ctx.plan_manager_id, "fee_taking")
    taking = _build(ctx, plan, taken_on, number)
    await _save(ctx, taking, plan)
    values = {"payment_ref": number, "has_payment": True}
    moves = [LineMove(each.invoice_id, each.line_id, "take_fee", values) for each in plan.lines]
    await move_lines(ctx, locked, moves, LINE_EVENT)
    return taking


async def plan_taking(ctx: WriteContext, invoice_ids: Collection[UUID] | None) -> TakingPlan:
    """What can be taken of some invoices, or of all."""
    if invoice_ids is None:
        lines = await payment_store.list_ready(ctx.tx, ctx.plan_manager_id, READY)
    else:
        lines = await payment_store.list_of_invoices(ctx.tx, ctx.plan_manager_id, [*invoice_ids])
    return await _plan(ctx, lines, None)


async def _plan(
    ctx: WriteContext, lines: Sequence[PayableLine], chosen: Collection[tuple[UUID, UUID]] | None
) -> TakingPlan:
    """`chosen` are the lines that count, with the ids of their invoices first, or null for all."""
    settings: OfficeSettings = await get_settings(ctx.tx, ctx.plan_manager_id)
    lines = [
        each
        for each in lines
        if is_own_fee(each, settings.abn) and (chosen is None or (each.invoice_id, each.line_id) in chosen)
    ]
    uncovered = await find_uncovered(ctx, lines) if settings.needs_receipts else frozenset[UUID]()
    ready, unpaid = list[PayableLine](), list[UnpaidLine]()
    for each in lines:
        reason = reason_not_taken(each, uncovered)
        if reason:
            unpaid.append(left_out(each, reason))
        else:
            ready.append(each)
    unpaid += [left_out(each, "batch_full") for each in ready[MAX_TAKEN_LINES:]]
    ready = ready[:MAX_TAKEN_LINES]
    now = datetime.now(UTC)
    taken = [
        TakenLine(
            id=uuid7(),
            invoice_id=each.invoice_id,
            line_id=each.line_id,
            claim_id=claim_id,
            amount=amount,
            updated_at=now,
        )
        for each in ready
        for claim_id, amount in amounts_due(each)
    ]
    return TakingPlan(ready, taken, unpaid)


def _build(ctx: WriteContext, plan: TakingPlan, taken_on: date, number: str | None) -> FeeTaking:
    now = datetime.now(UTC)
    return FeeTaking(
        id=uuid7() if number else None,
        number=number,
        taken_on=taken_on,
        total=plan.total,
        lines=len(plan.lines),
        left_out=[*plan.left_out],
        created_at=now,
        created_by=ctx.actor.display_name,
        updated_at=now,
    )


async def _save(ctx: WriteContext, taking: FeeTaking, plan: TakingPlan) -> None:
    if taking.id is None:
        raise AssertionError("a taking that is stored has an id")
    await store.insert_taking(ctx.tx, ctx.plan_manager_id, taking.id, to_json(taking), to_json(plan.taken))
