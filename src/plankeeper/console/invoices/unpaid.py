"""Why an invoice that the agency has paid for isn't paid to its payee yet."""

from typing import NamedTuple

from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.payments.planning import list_reasons
from plankeeper.resources.payments.rules import SENTENCES
from plankeeper.resources.payments.schemas import UnpaidReason

READY = ("payment_ready", "partially_ready")


class UnpaidHint(NamedTuple):
    """A reason as a sentence, with a link to where it is settled."""

    sentence: str
    url: str
    link_text: str


async def unpaid_hints(request: PageRequest, invoice: Invoice) -> list[UnpaidHint]:
    """For people who may make payments: the reasons, or that the next run pays the invoice."""
    if invoice.claim_status not in READY or not request.has_permission("make_payments"):
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
