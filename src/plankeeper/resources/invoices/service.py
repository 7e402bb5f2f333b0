"""Checks invoices and stores the results."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.json import to_json
from plankeeper.core.record_matches import external_id_error
from plankeeper.events.recorder import record_event, record_events
from plankeeper.resources.invoices import check_store, store
from plankeeper.resources.invoices.check_store import CheckResult, IgnoredWarning, InvoiceToCheck
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.invoices.warnings import find_warnings, has_errors

BATCH_SIZE = 500
CONSTRAINT_ERRORS = {"invoices_external_id_key": external_id_error("invoice")}


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


async def ignore(ctx: WriteContext, invoice_id: UUID, code: str, reason: str) -> bool:
    """Ignore a warning. Returns false if the invoice doesn't have it or it is already ignored."""
    before = await _select_for_update(ctx, invoice_id)
    ignored_codes = before.state_management.ignored_errors
    if code in ignored_codes or code not in before.state_management.errors:
        return False
    warning = IgnoredWarning(code, reason, ctx.actor.name or ctx.actor.kind, datetime.now(UTC))
    await check_store.upsert_ignored(ctx.tx, ctx.plan_manager_id, invoice_id, warning)
    await _save_ignored_codes(ctx, before, [*ignored_codes, code])
    return True


async def restore(ctx: WriteContext, invoice_id: UUID, code: str) -> bool:
    """Restore a warning. Returns false if it isn't ignored."""
    before = await _select_for_update(ctx, invoice_id)
    ignored_codes = before.state_management.ignored_errors
    if code not in ignored_codes:
        return False
    await check_store.delete_ignored(ctx.tx, ctx.plan_manager_id, invoice_id, code)
    await _save_ignored_codes(ctx, before, [each for each in ignored_codes if each != code])
    return True


async def _select_for_update(ctx: WriteContext, invoice_id: UUID) -> Invoice:
    """The invoice, locked until the transaction ends; raises NotFound."""
    await store.select_for_update(ctx.tx, ctx.plan_manager_id, [invoice_id])
    return or_404(await store.get(ctx.tx, ctx.plan_manager_id, invoice_id))


async def _save_ignored_codes(ctx: WriteContext, before: Invoice, codes: list[str]) -> None:
    """Store the ignored codes and check the invoice again, because they determine its errors."""
    await check_store.update_ignored_codes(ctx.tx, ctx.plan_manager_id, before.id, codes)
    await check(ctx, [before.id])
    after = await store.get(ctx.tx, ctx.plan_manager_id, before.id)
    await record_event(ctx, "invoice.updated", before, after)
