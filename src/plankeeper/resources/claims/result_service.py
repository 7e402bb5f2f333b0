"""Applies the agency's answers to claims: the results file of a batch, and results of single claims by hand.

Locks are taken in one order: the batch, then the invoices in order of id. So a result and the cancellation of its batch
or claim never both succeed.
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from msgspec.structs import asdict, replace

from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.errors import DomainError, ErrorResource
from plankeeper.core.files import Upload
from plankeeper.core.json import to_json
from plankeeper.events.recorder import record_event
from plankeeper.resources.claims import result_store, store
from plankeeper.resources.claims.result_rules import (
    CAUSES,
    FileResults,
    Result,
    Unmatched,
    late_message,
    read_results,
    state_after,
)
from plankeeper.resources.claims.result_schemas import AppliedResults, ClaimBatchEvent, ClaimResults, UnmatchedRow
from plankeeper.resources.claims.results_file import ResultsFile, parse_results
from plankeeper.resources.claims.schemas import BatchState, ClaimBatch
from plankeeper.resources.claims.service import MOVED_AT_ONCE
from plankeeper.resources.invoices.changes import to_line_rows, to_row, to_state
from plankeeper.resources.invoices.line_moves import InvoiceMove, LineMove, lock, move_lines, save_moves
from plankeeper.resources.invoices.schemas import Invoice, InvoiceLineRow
from plankeeper.resources.invoices.states import act_on_invoice, roll_up
from plankeeper.resources.office_settings import store as settings_store
from plankeeper.resources.payments.planning import with_returns

CSV_TYPES = ("", "text/csv", "application/csv", "application/octet-stream")  # of a body without a type, too


async def receive(ctx: ReadContext, claim_batch_id: UUID, upload: Upload, **_: object) -> ResultsFile:
    """Read the file of a request. Raises NotFound for an unknown batch, and DomainError 400, 413 and 415."""
    or_404(await store.get_state(ctx.db, ctx.plan_manager_id, claim_batch_id))
    if upload.media_type not in CSV_TYPES:
        raise DomainError("unsupported_media_type", "The body must be CSV: send it with Content-Type: text/csv.")
    return await asyncio.to_thread(parse_results, b"".join([each async for each in upload.chunks]))


async def apply_results(ctx: WriteContext, batch_id: UUID, file: ResultsFile, *, dry_run: bool) -> ClaimResults:
    """Apply a results file to the claims of a batch. Raises NotFound, and `invalid_transition` for a draft.

    Results that were applied before change nothing, and a file of which nothing is new records no event.
    """
    batch = or_404(await store.select_for_update(ctx.tx, ctx.plan_manager_id, batch_id))
    if batch.state == "draft":
        detail = f"Claim batch {batch.number} is a draft, so it has no results. Submit it first."
        raise DomainError("invalid_transition", detail, resource=ErrorResource("claim_batch", str(batch_id)))
    results, locked = await _read(ctx, batch_id, file)
    unmatched = list(results.unmatched)
    lines = {(line.invoice_id, line.id): line for each in locked.values() for line in to_line_rows(each)}
    new = list[Result]()
    for each in results.new:
        if lines[each.claim.invoice_id, each.claim.line_id].claim_status == "pending":
            new.append(each)
        else:
            unmatched.append(Unmatched(each.row, f"The line of the claim {each.claim.reference} isn't pending."))
    holds = {each.claim.invoice_id: each for each in results.late if _can_hold(locked, each)}
    unmatched += [Unmatched(each.row, _describe_late(each, locked, holds)) for each in results.late]
    results = results._replace(new=new, unmatched=sorted(unmatched))
    state = await _state_with(ctx, batch, results)
    if not dry_run and (new or any(not each.claim.has_late_result for each in results.late)):
        await _save(ctx, batch, state, _Changes(results, locked, lines, holds))
    return ClaimResults(
        state,
        results.count("paid"),
        results.count("partially_paid"),
        results.count("rejected"),
        [UnmatchedRow(*each) for each in results.unmatched],
    )


async def list_results(ctx: WriteContext, batch_id: UUID, file: ResultsFile) -> FileResults:
    """What each row of a file says about the claims of a batch. Nothing is stored."""
    results, _ = await _read(ctx, batch_id, file)
    return results


async def _read(ctx: WriteContext, batch_id: UUID, file: ResultsFile) -> tuple[FileResults, dict[UUID, Invoice]]:
    """What a file says, and the locked invoices of its claims."""
    references = sorted({each.reference for each in file.rows if each.reference})
    claims = await result_store.list_by_references(ctx.tx, ctx.plan_manager_id, references)
    locked = await lock(ctx, {each.invoice_id for each in claims if each.batch_id == batch_id})
    # Again: before the lock, a payment of a line could have been reversed.
    claims = await result_store.list_by_references(ctx.tx, ctx.plan_manager_id, references)
    tolerance = (await settings_store.get(ctx.tx, ctx.plan_manager_id)).result_tolerance
    return read_results(file.rows, batch_id, claims, tolerance), locked


def _can_hold(locked: Mapping[UUID, Invoice], result: Result) -> bool:
    """Whether the late result of a cancelled claim puts its invoice on hold: once, also if it is released later."""
    invoice = locked[result.claim.invoice_id]
    is_open = invoice.claim_status not in ("paid", "cancelled") and not invoice.is_deleted
    return invoice.held_at is None and is_open and not result.claim.has_late_result


def _describe_late(result: Result, locked: Mapping[UUID, Invoice], holds: Mapping[UUID, Result]) -> str:
    invoice = locked[result.claim.invoice_id]
    if invoice.id in holds or invoice.held_at is not None:
        return f"{late_message(result)} Its invoice is on hold."
    if result.claim.has_late_result:
        return f"{late_message(result)} This was recorded before."
    return f"{late_message(result)} Its invoice is {invoice.claim_status}, so it can't be put on hold."


async def _state_with(ctx: WriteContext, batch: ClaimBatch, results: FileResults) -> BatchState:
    """The state of the batch with the results."""
    if batch.state == "cancelled" or not results.new:
        return batch.state
    states = await result_store.count_states(ctx.tx, ctx.plan_manager_id, batch.id or UUID(int=0))
    counts = {each.state: each.count for each in states}
    counts["submitted"] = counts.get("submitted", 0) - len(results.new)
    left = [state for state, count in counts.items() if count > 0]
    return state_after(batch.state, [*left, *(each.outcome for each in results.new)])


class _Changes(NamedTuple):
    """What a file changes: its results, with the locked invoices, their lines, and the invoices to hold."""

    results: FileResults
    locked: dict[UUID, Invoice]
    lines: Mapping[tuple[UUID, UUID], InvoiceLineRow]
    holds: Mapping[UUID, Result]


async def _save(ctx: WriteContext, batch: ClaimBatch, state: BatchState, changes: _Changes) -> None:
    now, today = datetime.now(UTC), ctx.settings.today
    results, locked, lines, holds = changes
    held = await _hold(ctx, locked, holds, now)
    moves = [
        LineMove(*place, each.cause, line_values(lines[place], each))
        for each in results.new
        for place in ((each.claim.invoice_id, each.claim.line_id),)
    ]
    moves = await with_returns(ctx, moves)
    for start in range(0, len(moves), MOVED_AT_ONCE):
        locked |= held
        some = moves[start : start + MOVED_AT_ONCE]
        moved = await move_lines(ctx, locked, some, "invoice.line_changed")
        held = {each.id: each for each in moved}
    noted = [each for each in results.late if not each.claim.has_late_result]
    written = [_claim_values(ctx, each, today, now) for each in results.new]
    written += [_claim_values(ctx, each, today, now, is_late=True) for each in noted]
    await result_store.set_results(ctx.tx, ctx.plan_manager_id, to_json(written))
    counts = {outcome: sum(each.outcome == outcome for each in results.new) for outcome in CAUSES}
    applied = AppliedResults(**counts, held=len(holds), unmatched=len(results.unmatched))
    await set_batch_state(ctx, batch, state, now, applied)


async def set_batch_state(
    ctx: WriteContext, batch: ClaimBatch, state: BatchState, now: datetime, applied: AppliedResults
) -> None:
    """Store the state of a locked batch, with the event `claim_batch.results_applied`."""
    assert batch.id is not None  # noqa: S101 - only that of a dry run has none
    updated_at = await result_store.set_batch_state(ctx.tx, ctx.plan_manager_id, batch.id, state, now)
    values: dict[str, Any] = asdict(batch)
    before = ClaimBatchEvent(**values)
    after = replace(before, state=state, updated_at=updated_at, results=applied)
    await record_event(ctx, "claim_batch.results_applied", before, after)


async def _hold(
    ctx: WriteContext, locked: Mapping[UUID, Invoice], holds: Mapping[UUID, Result], now: datetime
) -> dict[UUID, Invoice]:
    """Put invoices on hold whose cancelled claims have a result."""
    moved = list[InvoiceMove]()
    for id_ in sorted(holds):
        before, row = locked[id_], to_row(locked[id_])
        state = act_on_invoice(to_state(row, to_line_rows(before)), "hold")
        row.held_at, row.held_by, row.hold_reason = now, ctx.actor.display_name, late_message(holds[id_])
        row.claim_status = roll_up(state)
        moved.append(InvoiceMove(before, row, []))
    return {each.id: each for each in await save_moves(ctx, moved, "invoice.held")}


def line_values(line: InvoiceLineRow, result: Result) -> dict[str, Any]:
    """The fields of a line that a result of its open claim changes."""
    return {
        "paid_amount": (line.paid_amount or Decimal(0)) + result.paid,
        "claim_number": result.agency_number or line.claim_number,
        "rejection_reason": result.message if result.outcome == "rejected" else None,
        "open_claim_batch": None,
    }


def _claim_values(
    ctx: WriteContext, result: Result, day: date, now: datetime, *, is_late: bool = False
) -> dict[str, Any]:
    """The fields of a claim with its result. A late one of a cancelled claim changes neither state nor amount."""
    return {
        "id": result.claim.id,
        "state": "cancelled" if is_late else result.outcome,
        "paid": None if is_late else result.paid,
        "agency_number": result.agency_number,
        "reason": None if is_late else result.message,
        "result_date": None if is_late else day,
        "result_at": now,
        "result_by": ctx.actor.display_name,
        "updated_at": now,
    }
