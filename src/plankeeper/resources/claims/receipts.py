"""Receipts: money from the agency that has arrived for the claims of a batch."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from msgspec.structs import asdict
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.errors import DomainError, ErrorResource, ValidationError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.json import to_json
from plankeeper.events.recorder import record_event
from plankeeper.resources.claims import result_store, store
from plankeeper.resources.claims.amounts import find_amount_error
from plankeeper.resources.claims.result_schemas import ClaimBatchEvent, NewReceipt, Receipt


async def record(ctx: WriteContext, batch_id: UUID, new: NewReceipt) -> Receipt:
    """Record a receipt, or a correction with a negative amount.

    Raises NotFound, ValidationError, and `invalid_transition` for a draft, and for a cancelled batch unless it is a
    correction.
    """
    batch = or_404(await store.select_for_update(ctx.tx, ctx.plan_manager_id, batch_id))
    if batch.state == "draft" or (batch.state == "cancelled" and new.amount > 0):
        what = (
            "a draft, so it has no receipts" if batch.state == "draft" else "cancelled, so it has no further receipts"
        )
        detail = f"Claim batch {batch.number} is {what}."
        raise DomainError("invalid_transition", detail, resource=ErrorResource("claim_batch", str(batch_id)))
    ctx.require_not_future("date", new.date)
    await _require_amount(ctx, batch_id, new.amount)
    now = datetime.now(UTC)
    receipt = Receipt(
        id=uuid7(),
        batch_id=batch_id,
        date=new.date,
        amount=new.amount,
        reference=unset_to_none(new.reference),
        created_at=now,
        created_by=ctx.actor.display_name,
        updated_at=now,
    )
    await result_store.insert_receipt(ctx.tx, ctx.plan_manager_id, to_json(receipt))
    values: dict[str, Any] = asdict(batch)
    await record_event(ctx, "claim_batch.receipt_recorded", None, ClaimBatchEvent(**values, receipt=receipt))
    return receipt


async def _require_amount(ctx: WriteContext, batch_id: UUID, amount: Decimal) -> None:
    if error := find_amount_error(abs(amount)):
        raise ValidationError(error)
    received = await result_store.sum_receipts(ctx.tx, ctx.plan_manager_id, batch_id)
    if received.amount + amount < 0:
        raise ValidationError(amount=f"must not correct more than has been received, {received.amount:.2f}")
