"""Ignoring a warning of an invoice, and warning of it again."""

from datetime import UTC, datetime
from uuid import UUID

from plankeeper.events.recorder import record
from plankeeper.http.context import Write, found
from plankeeper.invoices import ignored_warnings_store, store
from plankeeper.invoices.checks import check
from plankeeper.invoices.ignored_warnings_store import Ignored
from plankeeper.invoices.schemas import InvoiceWithLines


async def ignore(call: Write, invoice_id: UUID, code: str, reason: str) -> bool:
    """Let a warning count no more: false where the invoice has it no more, or it is ignored already."""
    before = await _locked(call, invoice_id)
    known = before.state_management.ignored_errors
    if code in known or code not in before.state_management.errors:
        return False
    why = Ignored(code, reason, call.actor.name or call.actor.kind, datetime.now(UTC))
    await ignored_warnings_store.put(call.tx, call.plan_manager_id, invoice_id, why)
    await _keep(call, before, [*known, code])
    return True


async def warn_again(call: Write, invoice_id: UUID, code: str) -> bool:
    """Let a warning count again: false where it is not ignored."""
    before = await _locked(call, invoice_id)
    known = before.state_management.ignored_errors
    if code not in known:
        return False
    await ignored_warnings_store.remove(call.tx, call.plan_manager_id, invoice_id, code)
    await _keep(call, before, [each for each in known if each != code])
    return True


async def _locked(call: Write, invoice_id: UUID) -> InvoiceWithLines:
    """The invoice, locked until the transaction ends; raises NotFound."""
    await store.records_for_update(call.tx, call.plan_manager_id, [invoice_id])
    return found(next(iter(await store.fetch(call.tx, call.plan_manager_id, [invoice_id])), None))


async def _keep(call: Write, before: InvoiceWithLines, codes: list[str]) -> None:
    """An invoice is checked when it is saved: what counts as an error follows from what is found now."""
    await ignored_warnings_store.keep_codes(call.tx, call.plan_manager_id, before.id, codes)
    await check(call, [before.id])
    [after] = await store.fetch(call.tx, call.plan_manager_id, [before.id])
    await record(call, "invoice.updated", before, after)
