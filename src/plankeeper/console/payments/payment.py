"""The page of a payment: its lines, its remittance advice, and its return by the bank."""

from typing import Any, NamedTuple
from uuid import UUID

from plankeeper.console.bank_details.section import payee_url
from plankeeper.console.payments.pages import PERMISSION
from plankeeper.console.payments.run import payment_url
from plankeeper.console.shell.form_reader import read_date
from plankeeper.console.shell.routing import FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import ReadContext, or_404
from plankeeper.core.errors import DomainError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.files import Download
from plankeeper.core.pdf.documents import UnprintableError
from plankeeper.core.validation import validate_struct
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.action_schemas import MAX_REASON_LENGTH
from plankeeper.resources.invoices.check_store import get_display_names
from plankeeper.resources.invoices.schemas import Invoice, LineItem
from plankeeper.resources.payments import remittance_documents, remittance_store, service, store
from plankeeper.resources.payments.remittance_mails import are_mailed
from plankeeper.resources.payments.schemas import PaidLine, Payment, PaymentReturn

pages = Pages()

MAX_LINES = 200  # on the page
MAX_REFERENCE_LENGTH = 255
_PAYMENT = "/payments/{payment_run_id}/payments/{payment_id}"


class ShownLine(NamedTuple):
    """What a payment pays of a line. The invoice and its line are null if they don't exist any more."""

    paid: PaidLine
    invoice: Invoice | None
    line: LineItem | None
    participant: str


@pages.get(_PAYMENT, role="manager", permission=PERMISSION)
async def get(request: PageRequest, payment_run_id: UUID, payment_id: UUID) -> HtmlPage:
    place = (request.db, request.plan_manager_id)
    run = or_404(await store.get_bare(*place, payment_run_id))
    payment = or_404(await store.get_payment(*place, payment_run_id, payment_id))
    payee = Payee(payment.payee.kind, payment.payee.id)
    if payee.kind == "participant":
        request.record_list("participant", [payee.id], {"page": "payments"})
    context: dict[str, Any] = {
        "run": run,
        "payment": payment,
        "url": payment_url(payment_run_id, payment_id),
        "payee_url": payee_url(payee),
        "is_mailed": await are_mailed(ReadContext(*place, request.settings), run),
        "is_printed": await remittance_store.is_without_email(*place, payment_run_id, payment_id),
        "lines": await _lines(request, payment),
        "more_lines": max(0, len(payment.lines) - MAX_LINES),
        "form": request.form,
        "max_length": MAX_REASON_LENGTH,
        "max_reference": MAX_REFERENCE_LENGTH,
    }
    return HtmlPage("payments/payment.html", context)


async def _lines(request: PageRequest, payment: Payment) -> list[ShownLine]:
    place, shown = (request.db, request.plan_manager_id), payment.lines[:MAX_LINES]
    ids = list(dict.fromkeys(each.invoice_id for each in shown))
    invoices = {each.id: each for each in await invoice_store.get_many(*place, ids)}
    request.record_list("invoice", ids, {"page": "payments"})
    participants = [each.participant_id for each in invoices.values() if each.participant_id]
    names = {each.id: each.name for each in await get_display_names(*place, participants, [])}
    lines = {(id_, line.id): line for id_, each in invoices.items() for line in unset_to_none(each.line_items) or []}
    found = list[ShownLine]()
    for each in shown:
        invoice = invoices.get(each.invoice_id)
        name = names.get(invoice.participant_id) if invoice and invoice.participant_id else None
        found.append(ShownLine(each, invoice, lines.get((each.invoice_id, each.line_id)), name or ""))
    return found


@pages.post(_PAYMENT + "/return", role="manager", permission=PERMISSION, on_error=get)
async def record_return(request: FormRequest, payment_run_id: UUID, payment_id: UUID) -> Redirect:
    """Record that the bank has sent the payment back."""
    day = read_date(request.form, "date")
    values = {
        "date": day.isoformat(),
        "reference": request.form.text("reference") or None,
        "reason": request.form.multiline_text("reason"),
    }
    payment = await service.record_return(
        request.write_context, payment_run_id, payment_id, validate_struct(PaymentReturn, values)
    )
    text = f"Return recorded. {payment.payee.name} is paid again once the bank details have been approved again."
    return Redirect(payment_url(payment_run_id, payment_id), text)


@pages.get(_PAYMENT + "/remittance-advice", role="manager", permission=PERMISSION)
async def download_advice(request: PageRequest, payment_run_id: UUID, payment_id: UUID) -> Download:
    """The remittance advice as a PDF. Raises DomainError if there is none, see `render`."""
    place = (request.db, request.plan_manager_id)
    payment = or_404(await store.get_payment(*place, payment_run_id, payment_id))
    try:
        file = or_404(await remittance_documents.get_pdf(ReadContext(*place, request.settings), payment_id))
    except UnprintableError as error:
        raise DomainError("invalid_transition", f"There is no PDF, because {error}.") from None
    ids = list(dict.fromkeys(each.invoice_id for each in payment.lines))
    request.record_list("invoice", ids, {"page": "payments"}, "exported")
    return Download.of_bytes(file.name, "application/pdf", file.content)
