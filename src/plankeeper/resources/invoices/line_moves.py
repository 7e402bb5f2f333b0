"""Moves of many lines of many invoices in one transaction, for claims and payments.

The invoice's row is the lock of its lines: `lock` takes the rows in order of id, after the lock of a claim batch or a
payment run. What can be claimed or paid is decided from what it returns, never from an earlier read.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from msgspec.structs import replace

from plankeeper.core.context import WriteContext
from plankeeper.core.errors import ErrorResource, NotFound
from plankeeper.core.json import to_json
from plankeeper.events.recorder import record_events
from plankeeper.resources import recheck_queue
from plankeeper.resources.invoices import store
from plankeeper.resources.invoices.changes import (
    to_line_rows,
    to_line_state,
    to_row,
    to_state,
    to_stored,
    with_amounts,
)
from plankeeper.resources.invoices.schemas import Invoice, InvoiceLineRow, InvoiceRow
from plankeeper.resources.invoices.states import Cause, move, roll_up
from plankeeper.resources.plans.store import list_participants_with_budgets


class LineMove(NamedTuple):
    """A cause that acts on a line, and the fields of InvoiceLineRow that change with it.

    Without a cause only the fields change. The cause sees the line as it is before.
    """

    invoice_id: UUID
    line_id: UUID
    cause: Cause | None
    values: Mapping[str, Any] = {}


class InvoiceMove(NamedTuple):
    """An invoice as it is before and after the moves of its lines, and the changed lines."""

    before: Invoice
    row: InvoiceRow
    lines: Sequence[InvoiceLineRow]


async def lock(ctx: WriteContext, invoice_ids: Collection[UUID]) -> dict[UUID, Invoice]:
    """Lock invoices until the transaction ends, and return them with their lines, by id; unknown ids are ignored."""
    ids = sorted(invoice_ids)
    await store.select_for_update(ctx.tx, ctx.plan_manager_id, ids)
    return {each.id: each for each in await store.get_many(ctx.tx, ctx.plan_manager_id, ids)}


async def move_lines(
    ctx: WriteContext, locked: Mapping[UUID, Invoice], moves: Sequence[LineMove], event_type: str | None
) -> list[Invoice]:
    """Move lines of invoices that `lock` has returned, and return the changed invoices in order of id.

    Records an event of the type for each invoice; without a type, the caller records its own. Raises NotFound for an
    unknown line, and DomainError `invalid_transition` and `invoice_locked`: the caller's transaction changes nothing.
    """
    by_invoice = defaultdict[UUID, list[LineMove]](list)
    for each in moves:
        by_invoice[each.invoice_id].append(each)
    moved = [_move(locked[id_], by_invoice[id_]) for id_ in sorted(by_invoice)]
    return await save_moves(ctx, moved, event_type)


async def save_moves(ctx: WriteContext, moved: Sequence[InvoiceMove], event_type: str | None) -> list[Invoice]:
    """Write invoices and their changed lines, with an event for each if there is a type."""
    if not moved:
        return []
    rows = [each.row for each in moved]
    await store.update_many(ctx.tx, ctx.plan_manager_id, to_json([_to_stored(each) for each in moved]))
    await store.upsert_lines(ctx.tx, ctx.plan_manager_id, [line for each in moved for line in each.lines])
    await store.write_counts(ctx.tx, ctx.plan_manager_id, [to_row(each.before) for each in moved], rows)
    await store.touch(ctx.tx, ctx.plan_manager_id, [each.row.id for each in moved])
    after = await store.get_many(ctx.tx, ctx.plan_manager_id, [each.row.id for each in moved])
    before = {each.before.id: each.before for each in moved}
    if event_type:
        await record_events(ctx, [(event_type, before[each.id], each) for each in after])
    spenders = sorted({each.participant_id for each in rows if each.participant_id})
    found = await list_participants_with_budgets(ctx.tx, ctx.plan_manager_id, spenders)
    await recheck_queue.enqueue(ctx, "participant", [UUID(each) for each in found])
    return after


def _to_stored(moved: InvoiceMove) -> dict[str, Any]:
    changed = {each.id: each for each in moved.lines}
    return to_stored(moved.row, [changed.get(each.id, each) for each in to_line_rows(moved.before)])


def _move(before: Invoice, moves: Sequence[LineMove]) -> InvoiceMove:
    old = to_line_rows(before)
    lines = {each.id: each for each in old}
    row = to_row(before)
    for each in moves:
        line = lines.get(each.line_id)
        if line is None:
            raise NotFound(ErrorResource("line_item", str(each.line_id)))
        if each.cause is not None:
            state = move(to_line_state(line), each.cause)
            line = replace(line, claim_status=state.claim_status, is_rest_waiting=state.is_rest_waiting)
        lines[line.id] = replace(line, **each.values)
    after = with_amounts(row, list(lines.values()))  # one that isn't locked any more can change those of others
    row.claim_status = roll_up(to_state(row, after))
    return InvoiceMove(before, row, [new for was, new in zip(old, after, strict=True) if new != was])
