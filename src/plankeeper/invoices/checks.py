"""Checks invoices against the rules, and keeps what was found."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from plankeeper.events.recorder import record_events
from plankeeper.http.context import WriteContext
from plankeeper.http.json import to_json
from plankeeper.invoices import check_store, store
from plankeeper.invoices.check_store import CheckInvoiceRow, CheckResult
from plankeeper.invoices.warnings import CheckInput, CheckLine, find_warnings, has_errors

BATCH_SIZE = 500


async def check(ctx: WriteContext, invoice_ids: Sequence[UUID]) -> list[UUID]:
    """Check invoices; answers those of which something new was found."""
    results = [
        _check_invoice(ctx, each) for each in await check_store.get_many(ctx.tx, ctx.plan_manager_id, invoice_ids)
    ]
    return await check_store.save_results(ctx.tx, ctx.plan_manager_id, to_json(results))


async def recheck(ctx: WriteContext, after: UUID) -> tuple[list[UUID], int]:
    """Check the next batch of all invoices behind `after`, with an event for each change: the ids, the changes."""
    ids = await check_store.lock_ids_after(ctx.tx, ctx.plan_manager_id, after, BATCH_SIZE)
    before = {each.id: each for each in await store.get_many(ctx.tx, ctx.plan_manager_id, ids)}
    changed = await check(ctx, ids)
    updated = await store.get_many(ctx.tx, ctx.plan_manager_id, changed)
    await record_events(ctx, [("invoice.updated", before[each.id], each) for each in updated])
    return ids, len(changed)


def _check_invoice(ctx: WriteContext, invoice: CheckInvoiceRow) -> CheckResult:
    lines = [
        CheckLine(line.quantity, line.unit_price, line.total_price, line.service_item_number, line.is_deleted)
        for line in invoice.lines
    ]
    check_input = CheckInput(
        invoice.invoice_number,
        invoice.invoice_date,
        invoice.total,
        invoice.tax,
        invoice.subtotal,
        invoice.participant_status,
        invoice.plan_start_date,
        invoice.plan_end_date,
        invoice.provider_exists,
        invoice.has_earlier_duplicate,
        lines,
    )
    codes = find_warnings(check_input, datetime.now(ctx.settings.time_zone).date())
    errors = has_errors(codes, invoice.ignored_error_codes)
    return CheckResult(invoice.id, errors, codes, "possible_duplicate" in codes)
