"""The queue of invoices to check again in the background, in SQL.

A write of a participant, a plan, a provider, an alert or another invoice of the participant queues its invoices in its
transaction, and a change of the support catalogue or of a setting that the checks use queues all open invoices.
`invoices.rechecks` checks them.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal
from uuid import UUID

from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext
from plankeeper.core.json import to_json
from plankeeper.database.client import Transaction
from plankeeper.database.combined_writes import Write
from plankeeper.events.order_store import list_plan_managers

CheckedKind = Literal["participant", "provider"]

# The fields that the checks of invoices use, beside whether the record exists. Those of plans are all used.
CHECKED_FIELDS: Mapping[CheckedKind, Collection[str]] = {
    "participant": {
        "status",
        "date_ceased",
        "state",
        "plan_start_date",
        "plan_end_date",
        "managed_from",
        "managed_until",
        "deceased_on",
        "remoteness",
        "is_pace_plan",
    },
    "provider": {"abn", "active"},
}


class QueuedRecheck(Struct):
    """A participant or a provider whose invoices to check; neither stands for all invoices."""

    id: UUID
    participant_id: UUID | None = None
    provider_id: UUID | None = None


INSERT = Write(
    "queued_rechecks as materialized (select * from json_populate_recordset(null::recheck_queue, $2))",
    """
    insert into recheck_queue (plan_manager_id, id, participant_id, provider_id)
    select $1, id, participant_id, provider_id from queued_rechecks
    """,
    parameters=2,
)


async def enqueue(ctx: WriteContext, kind: CheckedKind, ids: Collection[UUID]) -> None:
    """Queue the invoices of participants or providers."""
    rows = [QueuedRecheck(uuid7(), **{f"{kind}_id": each}) for each in ids]
    if rows:
        await ctx.tx.queue_write(INSERT, ctx.plan_manager_id, to_json(rows))


async def enqueue_changed(ctx: WriteContext, kind: CheckedKind, pairs: Iterable[tuple[Any, Any]]) -> None:
    """Queue the invoices of written records, each before and after, of which a checked field has changed.

    New records, which were null before, are left out, because no stored invoice refers to them.
    """
    names = CHECKED_FIELDS[kind]
    changed: list[UUID] = [
        after.id
        for before, after in pairs
        if before is not None and any(getattr(before, name) != getattr(after, name) for name in names)
    ]
    await enqueue(ctx, kind, changed)


async def enqueue_everywhere(tx: Transaction) -> None:
    """Queue all open invoices of all plan managers: the support catalogue has changed."""
    for each in await list_plan_managers(tx):
        await enqueue_all(tx, each)


async def enqueue_all(tx: Transaction, plan_manager_id: UUID) -> None:
    """Queue all open invoices of a plan manager."""
    await tx.queue_write(INSERT, plan_manager_id, to_json([QueuedRecheck(uuid7())]))
