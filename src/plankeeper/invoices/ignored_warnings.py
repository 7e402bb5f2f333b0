"""Ignoring and restoring warnings of invoices."""

from datetime import UTC, datetime
from uuid import UUID

from plankeeper.core.context import WriteContext, or_404
from plankeeper.events.recorder import record_event
from plankeeper.invoices import ignored_warnings_store, store
from plankeeper.invoices.checks import check
from plankeeper.invoices.ignored_warnings_store import IgnoredWarning
from plankeeper.invoices.schemas import Invoice


async def ignore(ctx: WriteContext, invoice_id: UUID, code: str, reason: str) -> bool:
    """Ignore a warning. Returns false if the invoice doesn't have it or it is already ignored."""
    before = await _select_for_update(ctx, invoice_id)
    ignored_codes = before.state_management.ignored_errors
    if code in ignored_codes or code not in before.state_management.errors:
        return False
    warning = IgnoredWarning(code, reason, ctx.actor.name or ctx.actor.kind, datetime.now(UTC))
    await ignored_warnings_store.upsert(ctx.tx, ctx.plan_manager_id, invoice_id, warning)
    await _save_ignored_codes(ctx, before, [*ignored_codes, code])
    return True


async def restore(ctx: WriteContext, invoice_id: UUID, code: str) -> bool:
    """Restore a warning. Returns false if it isn't ignored."""
    before = await _select_for_update(ctx, invoice_id)
    ignored_codes = before.state_management.ignored_errors
    if code not in ignored_codes:
        return False
    await ignored_warnings_store.delete(ctx.tx, ctx.plan_manager_id, invoice_id, code)
    await _save_ignored_codes(ctx, before, [each for each in ignored_codes if each != code])
    return True


async def _select_for_update(ctx: WriteContext, invoice_id: UUID) -> Invoice:
    """The invoice, locked until the transaction ends; raises NotFound."""
    await store.select_for_update(ctx.tx, ctx.plan_manager_id, [invoice_id])
    return or_404(await store.get(ctx.tx, ctx.plan_manager_id, invoice_id))


async def _save_ignored_codes(ctx: WriteContext, before: Invoice, codes: list[str]) -> None:
    """Store the ignored codes and check the invoice again, because they determine its errors."""
    await ignored_warnings_store.update_ignored_codes(ctx.tx, ctx.plan_manager_id, before.id, codes)
    await check(ctx, [before.id])
    after = await store.get(ctx.tx, ctx.plan_manager_id, before.id)
    await record_event(ctx, "invoice.updated", before, after)
