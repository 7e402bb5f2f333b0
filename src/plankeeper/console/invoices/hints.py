"""Hints on the page of an invoice: why the next claim batch leaves it out, and why its payee isn't paid yet."""

from collections.abc import Collection
from typing import NamedTuple

from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.resources.claims import service as claims
from plankeeper.resources.claims.schemas import NewClaimBatch
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.payments.planning import list_reasons
from plankeeper.resources.payments.rules import SENTENCES
from plankeeper.resources.payments.schemas import UnpaidReason

CLAIMABLE = ("new", "flagged")
PAID_BY_AGENCY = ("payment_ready", "partially_ready")


class UnpaidHint(NamedTuple):
    """A reason as a sentence, with a link to where it is settled."""

    sentence: str
    url: str
    link_text: str


async def unclaimed_hints(request: PageRequest, invoice: Invoice, warnings: Collection[str]) -> list[str]:
    """Why the next claim batch would leave out an invoice that nothing else keeps from being claimed.

    For people who may make claims: a sentence for each reason; none if the page names another one already.
    """
    waits = warnings or invoice.approval_status in ("pending", "rejected") or invoice.wont_claim or invoice.is_deleted
    if waits or invoice.claim_status not in CLAIMABLE or not request.has_permission("make_claims"):
        return []
    async with request.db.transaction() as tx:
        ctx = request.with_transaction(tx).write_context
        batch = await claims.create(ctx, NewClaimBatch(invoice_ids=[str(invoice.id)]), is_dry_run=True)
    return list(dict.fromkeys(each.message for each in batch.left_out or () if each.reason != "state"))


async def unpaid_hints(request: PageRequest, invoice: Invoice) -> list[UnpaidHint]:
    """Why an invoice that the agency has paid for isn't paid to its payee yet, or that the next run pays it.

    For people who may make payments.
    """
    if invoice.claim_status not in PAID_BY_AGENCY or not request.has_permission("make_payments"):
        return []
    async with request.db.transaction() as tx:
        reasons = await list_reasons(request.with_transaction(tx).write_context, invoice.id)
    if not reasons:
        return [UnpaidHint("The next payment run pays it.", f"{PREFIX}/payments/new", "Make a payment run")]
    return [UnpaidHint(SENTENCES[each], *_link(each, invoice)) for each in reasons]


def _link(reason: UnpaidReason, invoice: Invoice) -> tuple[str, str]:
    """Where the reason is settled; empty for one that is settled here, or by waiting."""
    if reason in ("in_payment_run", "batch_full"):
        return f"{PREFIX}/payments", "Payment runs"
    if reason == "bank_details_waiting":
        return f"{PREFIX}/bank-details", "Bank details that wait"
    if reason in ("no_bank_details", "bank_details_need_approval", "estate"):
        if invoice.is_reimbursement:
            return f"{PREFIX}/participants/{invoice.participant_id}", "Open the participant"
        return f"{PREFIX}/providers/{invoice.pm_provider_id}", "Open the provider"
    return "", ""
