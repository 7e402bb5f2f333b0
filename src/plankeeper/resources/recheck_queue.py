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
# The fields that claims use. A line can have been left out of a claim because of the earlier value.
CLAIM_FIELDS: Mapping[CheckedKind, Collection[str]] = {"participant": {"participant_number"}, "provider": {"abn"}}


class QueuedRecheck(Struct):
    """A participant or a provider whose invoices to check; neither stands for all invoices.

    `resolves_flags`: their flagged lines that can be claimed now are new again, because claims use the changed value.
    """

    id: UUID
    participant_id: UUID | None = None
    provider_id: UUID | None = None
    resolves_flags: bool = False


INSERT = Write(
    "queued_rechecks as materialized (select * from json_populate_recordset(null::recheck_queue, $2))",
    """
    insert into recheck_queue (plan_manager_id, id, participant_id, provider_id, resolves_flags)
    select $1, id, participant_id, provider_id, resolves_flags from queued_rechecks
    """,
    parameters=2,
)


async def enqueue(
    ctx: WriteContext, kind: CheckedKind, ids: Collection[UUID], resolving: Collection[UUID] = ()
) -> None:
    """Queue the invoices of participants or providers. `resolving` are those with another value that claims use."""
    rows = [QueuedRecheck(uuid7(), **{f"{kind}_id": each}, resolves_flags=each in resolving) for each in ids]
    if rows:
        await ctx.tx.queue_write(INSERT, ctx.plan_manager_id, to_json(rows))


async def enqueue_changed(ctx: WriteContext, kind: CheckedKind, pairs: Iterable[tuple[Any, Any]]) -> None:
    """Queue the invoices of written records, each before and after, of which a field that they use has changed.

    New records, which were null before, are left out, because no stored invoice refers to them.
    """
    existing = [(before, after) for before, after in pairs if before is not None]
    resolving = _find_changed(existing, CLAIM_FIELDS[kind])
    changed = _find_changed(existing, {*CHECKED_FIELDS[kind], *CLAIM_FIELDS[kind]})
    await enqueue(ctx, kind, changed, {*resolving})


def _find_changed(pairs: Iterable[tuple[Any, Any]], names: Collection[str]) -> list[UUID]:
    """The ids of records, each before and after, of which one of these fields has changed."""
    return [after.id for before, after in pairs if any(getattr(before, name) != getattr(after, name) for name in names)]


LIST_FLAGGED = """
    select distinct participant_id
    from invoices
    where plan_manager_id = $1
        and waiting_line_status in ('flagged', 'rejected') -- rejected lines come first, and others can be flagged
        and not is_deleted and participant_id is not null
"""


async def enqueue_flagged(ctx: WriteContext) -> None:
    """Queue the invoices of participants with flagged lines: a setting that claims use has changed."""
    found = await ctx.tx.rows(UUID, LIST_FLAGGED, ctx.plan_manager_id)
    await enqueue(ctx, "participant", found, {*found})


async def enqueue_everywhere(tx: Transaction) -> None:
    """Queue all open invoices of all plan managers: the support catalogue has changed."""
    for each in await list_plan_managers(tx):
        await enqueue_all(tx, each)


async def enqueue_all(tx: Transaction, plan_manager_id: UUID) -> None:
    """Queue all open invoices of a plan manager."""
    await tx.queue_write(INSERT, plan_manager_id, to_json([QueuedRecheck(uuid7())]))
