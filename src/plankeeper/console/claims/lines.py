"""The claims and the money of a line: results by hand, claim the rest, confirm an imported amount, adjustments."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from plankeeper.console.claims.claim_rows import STATES
from plankeeper.console.claims.line_groups import describe_line, line_url, load_names
from plankeeper.console.claims.list import CLAIMS_URL
from plankeeper.console.claims.results import MAX_TEXT
from plankeeper.console.shell.form_reader import FormReader
from plankeeper.console.shell.forms import Form, parse_amount
from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.errors import DomainError
from plankeeper.core.formatting import format_money
from plankeeper.core.ids import parse_uuid
from plankeeper.resources.claims import adjustment_store, adjustments, line_claims, store
from plankeeper.resources.claims.adjustment_rules import LineMoney
from plankeeper.resources.claims.adjustment_schemas import AdjustmentKind, AdjustmentListQuery, NewAdjustment
from plankeeper.resources.claims.result_schemas import ClaimedElsewhere, LineClaimResult, ResultOutcome
from plankeeper.resources.claims.schemas import Claim
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.action_schemas import MAX_REASON_LENGTH
from plankeeper.resources.invoices.approval_mails import describe_days, describe_service
from plankeeper.resources.invoices.changes import find_settled_status, to_line_rows
from plankeeper.resources.invoices.line_moves import lock
from plankeeper.resources.invoices.schemas import Invoice, InvoiceLineRow

pages = Pages()

MAX_ADJUSTMENTS = 100  # of an invoice
OUTCOMES: Mapping[ResultOutcome, str] = {
    "paid": "Paid, in full or in part",
    "rejected": "Rejected",
    "cancelled": "Cancelled in the agency’s portal",
}
KINDS: Mapping[AdjustmentKind, str] = {
    "agency_reversal": "Taken back by the agency",
    "provider_refund": "Returned by the payee",
    "repaid_to_agency": "Returned to the agency",
}
REFUND_KINDS: Mapping[AdjustmentKind, str] = {
    "provider_refund": "The payee has returned money to us",
    "repaid_to_agency": "We have returned money to the agency",
}
RECORDED = (
    "Somebody has just recorded money for this line. It now has: {sums}. Record yours only if it is another amount."
)
REPLACED = "Another result was recorded in the meantime: look at it, and replace it only if it is wrong."
# Where a line stands, and what comes next.
_STATUSES: Mapping[str, str] = {
    "new": "Not claimed yet. Next: make a claim batch, once nothing keeps the line out.",
    "flagged": "Left out of the last claim batch. Next: settle what keeps it out.",
    "pending": "Claimed, and not decided yet. Next: record the results of its batch, or the result of this line alone.",
    "payment_ready": "The agency has paid it. Next: pay it in a payment run.",
    "partially_ready": (
        "The agency has paid a part of it. Next: pay that part in a payment run. Afterwards, you can claim the rest."
    ),
    "partially_paid": "What the agency has paid is paid out. Next: claim the rest, if the agency owes it.",
    "rejected": "The agency has rejected it. Next: correct the line, or claim it again as it is.",
    "paid": "Paid out. Nothing is left to do.",
    "cancelled": "Cancelled. Nothing is left to do.",
}
_OUTCOMES: Mapping[str, ResultOutcome] = {"paid": "paid", "rejected": "rejected", "cancelled": "cancelled"}
_REFUND_KINDS: Mapping[str, AdjustmentKind] = {
    "provider_refund": "provider_refund",
    "repaid_to_agency": "repaid_to_agency",
}


async def _line_context(request: PageRequest, invoice_id: UUID, line_id: UUID) -> dict[str, Any]:
    """The line with its invoice. Raises NotFound."""
    invoice = or_404(await invoice_store.get(request.executor, request.plan_manager_id, invoice_id))
    line = _find_line(invoice, line_id)
    shown = describe_line(invoice, line_id, await load_names(request, [invoice]))
    return {
        "invoice": invoice,
        "line": line,
        "shown": shown._replace(amount=line.amount),
        "page_url": line_url(invoice_id, line_id),
        "lines_url": line_url(invoice_id, line_id).removesuffix("/claim"),
        "form": request.form,
        "max_text": MAX_TEXT,
        "max_reason": MAX_REASON_LENGTH,
    }


def _find_line(invoice: Invoice, line_id: UUID) -> InvoiceLineRow:
    """Raises NotFound."""
    return or_404(next((each for each in to_line_rows(invoice) if each.id == line_id), None))


@pages.get("/invoices/{invoice_id}/lines/{line_id}/claim", role="manager", access_log="invoice")
async def get(request: PageRequest, invoice_id: UUID, line_id: UUID) -> HtmlPage:
    context = await _line_context(request, invoice_id, line_id)
    place = (request.executor, request.plan_manager_id, invoice_id)
    claims = await store.list_of_line(*place, line_id)
    batches = await store.get_many(*place[:2], [each.batch_id for each in claims if each.batch_id])
    found = await adjustment_store.list_page(*place, AdjustmentListQuery(limit=MAX_ADJUSTMENTS))
    context |= {
        "claims": claims,
        "claim_states": STATES,
        "batches": {each.id: each for each in batches},
        "claims_url": CLAIMS_URL,
        "adjustments": [each for each in found if each.line_id == line_id],
        "kinds": KINDS,
        "money": await adjustment_store.get_money(*place, line_id),
        "status": _describe_status(context["invoice"], context["line"]),
        "is_replaceable": await line_claims.find_replaceable(*place, context["line"]) is not None,
        "is_confirmable": not claims and context["line"].claim_status in ("payment_ready", "partially_ready"),
    }
    return HtmlPage("claims/line.html", context)


def _describe_status(invoice: Invoice, line: InvoiceLineRow) -> str:
    settled = find_settled_status(invoice)
    if settled and line.claim_status in ("new", "flagged"):
        return f"Its invoice was imported as {settled.replace('_', ' ')}, so the line isn’t claimed."
    if line.open_claim_batch and line.claim_status != "pending":
        return f"In the draft {line.open_claim_batch}. Next: upload its file, and mark it as submitted."
    if line.is_rest_waiting:
        return "The rest of this line goes into the next claim batch."
    return _STATUSES.get(line.claim_status, "")


@pages.get("/invoices/{invoice_id}/lines/{line_id}/claim-result", role="manager", permission="make_claims")
async def result_form(request: PageRequest, invoice_id: UUID, line_id: UUID) -> HtmlPage:
    request.record_access("viewed", "invoice", invoice_id)
    context = await _line_context(request, invoice_id, line_id)
    replaced = await _load_replaced(request, invoice_id, context["line"])
    day = replaced.result_date if replaced and replaced.result_date else request.today
    number = (replaced.agency_number if replaced else None) or ""
    context |= {
        "form": request.form or Form([("date", day.isoformat()), ("reference", number)]),
        "outcomes": {"": "Choose", **OUTCOMES},
        "replaced": replaced,
        "claim_states": STATES,
        "seen": _seen_result(replaced) if replaced else "",
    }
    return HtmlPage("claims/line_result.html", context)


async def _load_replaced(request: PageRequest, invoice_id: UUID, line: InvoiceLineRow) -> Claim | None:
    """The claim of a line whose result can be replaced."""
    place = (request.executor, request.plan_manager_id, invoice_id)
    found = await line_claims.find_replaceable(*place, line)
    claims = await store.list_of_line(*place, line.id) if found else []
    return next((each for each in claims if found and each.id == found.id), None)


def _seen_result(claim: Claim) -> str:
    """What a person has seen before replacing the result of a claim."""
    return f"{claim.id} {claim.state} {claim.paid or 0:.2f}"


@pages.post(
    "/invoices/{invoice_id}/lines/{line_id}/claim-result",
    role="manager",
    permission="make_claims",
    on_error=result_form,
)
async def record_result(request: FormRequest, invoice_id: UUID, line_id: UUID) -> Redirect:
    answer = _read_result(request.form)
    if request.form.text("seen"):
        answer = replace(answer, replaces_result=True)
        await _require_seen_result(request, invoice_id, line_id)
    await line_claims.record_result(request.write_context, invoice_id, line_id, answer)
    return Redirect(line_url(invoice_id, line_id), f"Recorded: {OUTCOMES[answer.outcome].lower()}.")


async def _require_seen_result(request: FormRequest, invoice_id: UUID, line_id: UUID) -> None:
    """Lock the batch and the invoice. Raises DomainError if the result isn't the one that the person has seen."""
    place = (request.tx, request.plan_manager_id)
    invoice = or_404(await invoice_store.get(*place, invoice_id))
    found = await _load_replaced(request, invoice_id, _find_line(invoice, line_id))
    if found and found.batch_id:
        await store.select_for_update(*place, found.batch_id)  # batches are locked before their invoices
    invoice = or_404((await lock(request.write_context, [invoice_id])).get(invoice_id))
    replaced = await _load_replaced(request, invoice_id, _find_line(invoice, line_id))
    is_other = replaced is not None and (found is None or found.id != replaced.id)
    if is_other or (replaced and request.form.text("seen") != _seen_result(replaced)):
        raise DomainError("invalid_transition", REPLACED)


def _read_result(form: Form) -> LineClaimResult:
    with FormReader(form) as fields:
        result = LineClaimResult(
            outcome=fields.read_choice("outcome", _OUTCOMES),
            amount=fields.read_optional_amount("amount"),
            reason=fields.read_text("reason", MAX_REASON_LENGTH) or None,
            date=fields.read_date("date"),
            reference=fields.read_text("reference", MAX_TEXT) or None,
        )
        if form.text("outcome") == "paid" and not form.text("amount"):
            fields.reject("amount", "Enter how much the agency has paid")
    return result


@pages.post("/invoices/{invoice_id}/lines/{line_id}/claim-rest", role="manager", permission="make_claims", on_error=get)
async def claim_rest(request: FormRequest, invoice_id: UUID, line_id: UUID) -> Redirect:
    await line_claims.claim_rest(request.write_context, invoice_id, line_id)
    return Redirect(line_url(invoice_id, line_id), "The rest goes into the next claim batch.")


@pages.post(
    "/invoices/{invoice_id}/lines/{line_id}/confirm-result", role="manager", permission="make_payments", on_error=get
)
async def confirm_result(request: FormRequest, invoice_id: UUID, line_id: UUID) -> Redirect:
    """Confirm the amount of an imported line. The person who imported it can't."""
    await line_claims.confirm_result(request.write_context, invoice_id, line_id)
    return Redirect(line_url(invoice_id, line_id), "Amount confirmed. The line can be paid.")


@pages.get("/invoices/{invoice_id}/lines/{line_id}/reversal", role="manager", permission="make_claims")
async def reversal_form(request: PageRequest, invoice_id: UUID, line_id: UUID) -> HtmlPage:
    return await _adjustment_form(request, invoice_id, line_id, {})


@pages.post(
    "/invoices/{invoice_id}/lines/{line_id}/reversal",
    role="manager",
    permission="make_claims",
    on_error=reversal_form,
)
async def record_reversal(request: FormRequest, invoice_id: UUID, line_id: UUID) -> Redirect:
    """Record that the agency has taken back what it has paid for the line, or a part of it."""
    return await _record_adjustment(request, invoice_id, line_id, "agency_reversal")


@pages.get("/invoices/{invoice_id}/lines/{line_id}/refund", role="manager", permission="make_payments")
async def refund_form(request: PageRequest, invoice_id: UUID, line_id: UUID) -> HtmlPage:
    return await _adjustment_form(request, invoice_id, line_id, REFUND_KINDS)


@pages.post(
    "/invoices/{invoice_id}/lines/{line_id}/refund", role="manager", permission="make_payments", on_error=refund_form
)
async def record_refund(request: FormRequest, invoice_id: UUID, line_id: UUID) -> Redirect:
    """Record that the payee has returned money to the office, or the office to the agency."""
    with FormReader(request.form) as fields:
        kind = fields.read_choice("kind", _REFUND_KINDS)
    return await _record_adjustment(request, invoice_id, line_id, kind)


async def _adjustment_form(
    request: PageRequest, invoice_id: UUID, line_id: UUID, kinds: Mapping[AdjustmentKind, str]
) -> HtmlPage:
    request.record_access("viewed", "invoice", invoice_id)
    context = await _line_context(request, invoice_id, line_id)
    money = await adjustment_store.get_money(request.executor, request.plan_manager_id, invoice_id, line_id)
    start = [("date", request.today.isoformat()), ("kind", request.query.text("kind"))]
    if amount := parse_amount(request.query.text("amount")):
        start.append(("amount", f"{amount:.2f}"))
    context |= {"form": request.form or Form(start), "kinds": kinds, "money": money, "seen": seen_text(money)}
    return HtmlPage("claims/adjustment.html", context)


def seen_text(money: LineMoney) -> str:
    """What a person has seen before recording an adjustment: the sums of those of the line."""
    return " ".join(f"{amount:.2f}" for amount in _adjusted(money).values())


def _adjusted(money: LineMoney) -> Mapping[AdjustmentKind, Decimal]:
    return {
        "agency_reversal": money.reversed,
        "provider_refund": money.refunded,
        "repaid_to_agency": money.repaid,
    }


async def _record_adjustment(request: FormRequest, invoice_id: UUID, line_id: UUID, kind: AdjustmentKind) -> Redirect:
    with FormReader(request.form) as fields:
        new = NewAdjustment(
            line_id=str(line_id),
            kind=kind,
            amount=fields.read_amount("amount"),
            date=fields.read_date("date"),
            reference=fields.read_text("reference", MAX_TEXT) or None,
            reason=fields.read_text("reason", MAX_REASON_LENGTH) or None,
        )
    await _require_seen(request, invoice_id, line_id)
    await adjustments.record(request.write_context, invoice_id, new)
    return Redirect(line_url(invoice_id, line_id), f"Recorded: {KINDS[kind].lower()}.")


async def _require_seen(request: FormRequest, invoice_id: UUID, line_id: UUID) -> None:
    """Lock the invoice. Raises DomainError if other money was recorded since the page was opened, as by a double click.

    Raises NotFound for an unknown line.
    """
    invoice = or_404((await lock(request.write_context, [invoice_id])).get(invoice_id))
    line = _find_line(invoice, line_id)
    money = await adjustment_store.get_money(request.tx, request.plan_manager_id, invoice_id, line.id)
    if request.form.text("seen") != seen_text(money):
        sums = [f"{format_money(sum_)} {KINDS[kind].lower()}" for kind, sum_ in _adjusted(money).items() if sum_]
        raise DomainError("invalid_transition", RECORDED.format(sums=", ".join(sums)))


@pages.get("/invoices/{invoice_id}/claimed-elsewhere", role="manager", permission="make_claims", access_log="invoice")
async def elsewhere_form(request: PageRequest, invoice_id: UUID) -> HtmlPage:
    invoice = or_404(await invoice_store.get(request.executor, request.plan_manager_id, invoice_id))
    lines = _describe_claimable(invoice)
    context = {
        "invoice": invoice,
        "page_url": f"{PREFIX}/invoices/{invoice_id}",
        "lines": lines,
        "chosen": request.form.getlist("line_ids") if request.form else [*lines],
        "form": request.form,
        "max_text": MAX_TEXT,
    }
    return HtmlPage("claims/elsewhere.html", context)


def _describe_claimable(invoice: Invoice) -> dict[str, str]:
    """The lines that can be recorded as claimed elsewhere, by their ids."""
    amounts = line_claims.list_claimable_elsewhere(invoice)
    return {
        str(each.id): _describe_claimable_line(each, amounts[each.id])
        for each in to_line_rows(invoice)
        if each.id in amounts
    }


def _describe_claimable_line(line: InvoiceLineRow, amount: Decimal) -> str:
    """`Line 2: Physiotherapy, 3 Nov 2026, $120.00`."""
    days = describe_days(line.service_date_from, line.service_date_to)
    return f"Line {line.position + 1}: {describe_service(line)}, {days}, {format_money(amount)}"


@pages.post(
    "/invoices/{invoice_id}/claimed-elsewhere", role="manager", permission="make_claims", on_error=elsewhere_form
)
async def claim_elsewhere(request: FormRequest, invoice_id: UUID) -> Redirect:
    """Record that the chosen lines were claimed outside of Plankeeper."""
    ids = [str(each) for each in dict.fromkeys(map(parse_uuid, request.form.getlist("line_ids"))) if each]
    with FormReader(request.form) as fields:
        reference = fields.read_required_text("reference", MAX_TEXT)
        if not ids:
            fields.reject("line_ids", "Choose at least one line")
    await line_claims.claim_elsewhere(
        request.write_context, invoice_id, ClaimedElsewhere(reference=reference, line_ids=ids)
    )
    lines = "1 line is pending" if len(ids) == 1 else f"{len(ids):,} lines are pending"
    return Redirect(f"{PREFIX}/invoices/{invoice_id}", f"Recorded as claimed elsewhere: {lines}.")
