"""Why the next claim batch would leave out an invoice that nothing else keeps from being claimed."""

from collections.abc import Collection

from plankeeper.console.shell.routing import PageRequest
from plankeeper.resources.claims import service
from plankeeper.resources.claims.schemas import NewClaimBatch
from plankeeper.resources.invoices.schemas import Invoice

_READY = ("new", "flagged")


async def unclaimed_hints(request: PageRequest, invoice: Invoice, warnings: Collection[str]) -> list[str]:
    """For people who may make claims: a sentence for each reason; none if the page names another one already."""
    waits = warnings or invoice.approval_status in ("pending", "rejected") or invoice.wont_claim or invoice.is_deleted
    if waits or invoice.claim_status not in _READY or not request.has_permission("make_claims"):
        return []
    async with request.db.transaction() as tx:
        ctx = request.with_transaction(tx).write_context
        batch = await service.create(ctx, NewClaimBatch(invoice_ids=[str(invoice.id)]), is_dry_run=True)
    return list(dict.fromkeys(each.message for each in batch.left_out or () if each.reason != "state"))
