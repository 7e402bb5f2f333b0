"""What staff do about the approval of an invoice: ask, send links again, revoke them, and record a decision."""

from datetime import UTC, datetime
from math import ceil
from uuid import UUID

from plankeeper.console.invoices.invoice_page import get
from plankeeper.console.invoices.list import INVOICES
from plankeeper.console.invoices.pages import invoice_url, read_reason
from plankeeper.console.lists.reading import list_position
from plankeeper.console.shell.routing import FormRequest, Pages, Redirect
from plankeeper.core.errors import ValidationError
from plankeeper.core.ids import parse_uuid
from plankeeper.resources.invoices import approval

pages = Pages()


@pages.post("/invoices/{invoice_id}/request-approval", role="manager", on_error=get)
async def request_approval(request: FormRequest, invoice_id: UUID) -> Redirect:
    await approval.request_approval(request.write_context, invoice_id)
    return await _back(request, invoice_id, "The invoice now requires approval.")


@pages.post("/invoices/{invoice_id}/approval/send", role="manager", on_error=get)
async def send(request: FormRequest, invoice_id: UUID) -> Redirect:
    asked = await approval.send_again(request.write_context, invoice_id)
    return await _back(request, invoice_id, _describe(asked))


def _describe(asked: approval.Asked) -> str:
    if not asked.people:
        return "Nobody who may approve has an email."
    links, verb = ("A new link", "is") if asked.people == 1 else (f"{asked.people} new links", "are")
    minutes = ceil((asked.at - datetime.now(UTC)).total_seconds() / 60)
    if minutes <= 0:
        return f"{links} {verb} being mailed."
    when = f"{minutes} minute{'s' if minutes > 1 else ''}"
    return f"{links} {verb} mailed in {when}, because there were several mails about this invoice today."


@pages.post("/invoices/{invoice_id}/approval/revoke", role="manager", on_error=get)
async def revoke(request: FormRequest, invoice_id: UUID) -> Redirect:
    await approval.revoke(request.write_context, invoice_id)
    return await _back(request, invoice_id, "The links no longer work.")


@pages.post("/invoices/{invoice_id}/approval/record", role="manager", on_error=get)
async def record(request: FormRequest, invoice_id: UUID) -> Redirect:
    await record_decision(request, invoice_id)
    return await _back(request, invoice_id, "Decision recorded.")


async def record_decision(request: FormRequest, invoice_id: UUID) -> approval.Decision:
    """The form has the decision, the person (empty for the participant), and how the answer came.

    Raises ValidationError and DomainError `invalid_transition`.
    """
    form = request.form
    decision: approval.Decision | None = next((each for each in DECISIONS if form.text("decision") == each), None)
    if decision is None:
        raise ValidationError(decision="must be approve or reject")
    reason = read_reason(form)
    person = form.text("decided_by")
    member_id = parse_uuid(person)
    if person and member_id is None:
        raise ValidationError(decided_by="must be one of the choices")
    await approval.decide(request.write_context, invoice_id, decision, member_id, reason)
    return decision


DECISIONS: tuple[approval.Decision, ...] = ("approve", "reject")


async def _back(request: FormRequest, invoice_id: UUID, message: str) -> Redirect:
    return Redirect(invoice_url(invoice_id, await list_position(request, INVOICES, invoice_id)), message)
