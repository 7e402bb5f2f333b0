"""The remittance advice of a payment: what a payee was paid for, as a mail with a PDF."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from plankeeper.core.context import ReadContext
from plankeeper.core.formatting import single_line
from plankeeper.core.pdf.documents import render
from plankeeper.mail.messages import Attachment, Text

MAX_INVOICES = 50  # in the text of a mail; the PDF has all


class RemittanceLine(Struct, frozen=True):
    """A line of an invoice. Amounts and dates are as people read them.

    `remark` says what is waiting, short or rejected, and why.
    """

    service: str
    dates: str
    claimed: str
    paid: str
    remark: str | None


class RemittanceInvoice(Struct, frozen=True):
    """An invoice with what was paid for it."""

    number: str
    participant: str
    paid: str
    lines: Sequence[RemittanceLine]


class RemittanceAdvice(Struct, frozen=True, kw_only=True):
    """What a payee was paid for. `reference` is that of the payment on the payee's bank statement."""

    office: str
    office_abn: str | None
    payee: str
    reference: str
    paid_on: str
    total: str
    account_ending: str
    invoices: Sequence[RemittanceInvoice]


def remittance_text(advice: RemittanceAdvice, pdf: bytes | None) -> Text:
    """The mail, with the PDF if there is one."""
    shown = advice.invoices[:MAX_INVOICES]
    more = len(advice.invoices) - len(shown)
    parts = [_invoice_text(each) for each in shown]
    attached = "The attached document says the same. " if pdf else ""
    if more:
        parts.append(f"and {more} more invoices{', which the attached document lists' if pdf else ''}")
    body = f"""\
{advice.office} has paid {advice.total} to {advice.payee} on {advice.paid_on}, to the account that ends in
{advice.account_ending}. The reference on your bank statement is {advice.reference}.

{chr(10).join(parts)}

{attached}If you have a question, ask {advice.office}, and name the reference.

{advice.office}
"""
    name = f"remittance-advice-{advice.reference}.pdf"
    subject = f"Remittance advice {advice.reference}: {advice.total} from {advice.office}"
    return Text(subject, body, attachments=[Attachment(name, "application/pdf", pdf)] if pdf else ())


def _invoice_text(invoice: RemittanceInvoice) -> str:
    lines = [f"Invoice {single_line(invoice.number, 50)}, {invoice.participant}: {invoice.paid}"]
    for each in invoice.lines:
        remark = f" {each.remark}" if each.remark else ""
        lines.append(f"- {each.service}, {each.dates}: claimed {each.claimed}, paid {each.paid}.{remark}")
    return "\n".join(lines)


async def remittance_pdf(ctx: ReadContext, advice: RemittanceAdvice, at: datetime) -> bytes:
    """The document. Raises UnprintableError, and DomainError 503 as `render`."""
    return await render(ctx.plan_manager_id, "remittance_advice", advice, at, ctx.settings.fonts_folder)
