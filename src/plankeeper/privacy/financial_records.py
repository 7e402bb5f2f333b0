"""The claims and payments of an erased participant, which an office has to keep for some years.

An erasure keeps the claims, payments, adjustments, documents and approvals of invoices that were claimed, and the
statements that were sent about them. A periodic
task de-identifies them when the last of them is old enough.
"""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.database.errors import is_unavailable
from plankeeper.events.recorder import record_event
from plankeeper.privacy import financial_store, store
from plankeeper.privacy.schemas import KeptRecords, ParticipantReference
from plankeeper.resources.participants.store import lock_person
from plankeeper.resources.statements import store as statement_store

log = logging.getLogger("plankeeper")

BATCH_SIZE = 10  # participants per second


class Invoices(NamedTuple):
    """The claimed invoices of a participant whose records are kept, and those that are old enough."""

    kept: Sequence[UUID]
    expired: Sequence[UUID]
    until: datetime | None  # of the kept ones; null: without an end


async def list_invoices(ctx: WriteContext, participant_id: UUID, now: datetime) -> Invoices:
    """The claimed invoices of a participant, by the retention in the settings."""
    claimed = await financial_store.list_claimed(ctx.tx, ctx.plan_manager_id, participant_id)
    days = ctx.settings.financial_retention
    if days is None:
        return Invoices([each.id for each in claimed], [], None)
    ends = {each.id: each.changed_at + timedelta(days=days) for each in claimed}
    kept = [id_ for id_, end in ends.items() if end > now]
    return Invoices(kept, [id_ for id_ in ends if id_ not in kept], max((ends[each] for each in kept), default=None))


async def erase_expired(ctx: WriteContext, participant_id: UUID, invoices: Invoices) -> tuple[int, KeptRecords | None]:
    """De-identify the claims and payments that needn't be kept, and remember until when the others are.

    Returns the number of changed rows, and what is kept. The caller has locked the invoices.
    """
    count = await financial_store.erase_claims(ctx.tx, ctx.plan_manager_id, invoices.expired)
    if invoices.kept:
        await financial_store.set_kept(ctx.tx, ctx.plan_manager_id, participant_id, invoices.until)
        return count, KeptRecords(invoices.until, len(invoices.kept))
    await financial_store.delete_kept(ctx.tx, ctx.plan_manager_id, participant_id)
    return count + await financial_store.erase_payments(ctx.tx, ctx.plan_manager_id, participant_id), None


async def erase_due(db: Database, settings: Settings) -> None:
    """De-identify the records of erased participants that needn't be kept any longer."""
    now = datetime.now(UTC)
    for each in await financial_store.list_due(db, now, BATCH_SIZE):
        try:
            async with db.transaction() as tx:
                await _erase(WriteContext(tx, each.plan_manager_id, settings, SYSTEM), each.participant_id, now)
        except Exception as error:  # so that those of others are erased
            if is_unavailable(error):
                raise
            log.exception("claims and payments can't be de-identified", extra={"participant_id": each.participant_id})


async def _erase(ctx: WriteContext, participant_id: UUID, now: datetime) -> None:
    await lock_person(ctx.tx, ctx.plan_manager_id, participant_id)
    if await store.get_hold(ctx.tx, ctx.plan_manager_id, participant_id):
        return
    await store.lock_invoices(ctx.tx, ctx.plan_manager_id, participant_id)
    invoices = await list_invoices(ctx, participant_id, now)
    await store.delete_approval_links(ctx.tx, ctx.plan_manager_id, participant_id, invoices.kept)
    await store.delete_documents(ctx.tx, ctx.plan_manager_id, participant_id, invoices.kept, now)
    await statement_store.delete_many(ctx.tx, ctx.plan_manager_id, participant_id, invoices.kept, now)
    await erase_expired(ctx, participant_id, invoices)
    await record_event(ctx, "participant.erased", None, ParticipantReference(participant_id))
