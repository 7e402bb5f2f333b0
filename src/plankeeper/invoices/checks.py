"""Checks invoices and stores the results."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from plankeeper.core.context import WriteContext
from plankeeper.core.json import to_json
from plankeeper.events.recorder import record_events
from plankeeper.invoices import check_store, store
from plankeeper.invoices.check_store import CheckResult, InvoiceToCheck
from plankeeper.invoices.warnings import find_warnings, has_errors

BATCH_SIZE = 500


async def check(ctx: WriteContext, invoice_ids: Sequence[UUID]) -> list[UUID]:
    """Check invoices, and return the ids of those whose result has changed."""
    invoices = await check_store.get_many(ctx.tx, ctx.plan_manager_id, invoice_ids)
    results = [_check_invoice(ctx, each) for each in invoices]
    return await check_store.save_results(ctx.tx, ctx.plan_manager_id, to_json(results))


async def check_new(ctx: WriteContext, invoices: str, lines: str) -> list[CheckResult]:
    """The results of invoices that aren't stored yet: JSON lists of InvoiceRow and of InvoiceLineRow.

    Other invoices with their numbers must be up to date.
    """
    return [
        _check_invoice(ctx, each) for each in await check_store.get_new(ctx.tx, ctx.plan_manager_id, invoices, lines)
    ]


async def recheck(ctx: WriteContext, after: UUID) -> tuple[list[UUID], int]:
    """Check the batch of invoices that follows the id `after`, and record an event for each change.

    Returns the ids of the batch and the number of changed invoices.
    """
    ids = await check_store.lock_ids_after(ctx.tx, ctx.plan_manager_id, after, BATCH_SIZE)
    before = {each.id: each for each in await store.get_many(ctx.tx, ctx.plan_manager_id, ids)}
    changed = await check(ctx, ids)
    updated = await store.get_many(ctx.tx, ctx.plan_manager_id, changed)
    await record_events(ctx, [("invoice.updated", before[each.id], each) for each in updated])
    return ids, len(changed)


def _check_invoice(ctx: WriteContext, invoice: InvoiceToCheck) -> CheckResult:
    codes = find_warnings(invoice, datetime.now(ctx.settings.time_zone).date())
    errors = has_errors(codes, invoice.ignored_error_codes)
    return CheckResult(invoice.id, errors, codes, "possible_duplicate" in codes)
