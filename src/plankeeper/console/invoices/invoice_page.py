"""The page of an invoice, and the actions on it and on its lines. Each is an event, which its timeline can undo."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import date
from typing import Any
from uuid import UUID

from plankeeper.console.activity.timeline import latest_events
from plankeeper.console.components.money import STRIP_WIDTH, strip_position
from plankeeper.console.components.record_picker import account_choices
from plankeeper.console.components.support_items import list_names
from plankeeper.console.invoices.actions import ACTIONS, LINE_ACTIONS, read_text
from plankeeper.console.invoices.approval_card import approval_card
from plankeeper.console.invoices.documents import is_hidden
from plankeeper.console.invoices.evidence import Evidence, compare_invoices, file_name, find_evidence
from plankeeper.console.invoices.form import CLAIM_TYPES
from plankeeper.console.invoices.hints import unclaimed_hints, unpaid_hints
from plankeeper.console.invoices.list import INVOICES, load_names, warning_titles
from plankeeper.console.invoices.pages import invoice_url
from plankeeper.console.invoices.status import describe_standard, describe_status
from plankeeper.console.lists.reading import list_position
from plankeeper.console.notes.section import record_notes, review_notes
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.errors import DomainError
from plankeeper.core.fields import unset_to_none
from plankeeper.resources.claims.line_claims import list_claimable_elsewhere
from plankeeper.resources.invoices import check_store, store
from plankeeper.resources.invoices.action_schemas import MAX_REASON_LENGTH
from plankeeper.resources.invoices.changes import to_stored_state
from plankeeper.resources.invoices.schemas import Invoice, LineItem
from plankeeper.resources.invoices.states import Cause, InvoiceAction, act_on_invoice, move_line
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.plans.rules import is_in_order, plan_on
from plankeeper.resources.plans.schemas import PlanRow
from plankeeper.resources.providers import store as provider_store

pages = Pages()

LATEST_EVENTS = 4
INVOICE_ACTIONS: Sequence[InvoiceAction] = ("hold", "release", "cancel", "wont_claim", "reopen", "request_approval")
LINE_CAUSES: Sequence[Cause] = ("cancel", "reopen", "retry", "split")


@pages.get("/invoices/{invoice_id}", role="viewer", is_limited=True, access_log="invoice")
async def get(request: PageRequest, invoice_id: UUID) -> HtmlPage:
    place = (request.db, request.plan_manager_id)
    invoice = or_404(await store.get(*place, invoice_id))
    state, today, zone = invoice.state_management, request.today, request.settings.time_zone
    evidence = await find_evidence(request, invoice, today)
    plan = nearest_plan(invoice, evidence)
    related = [*evidence.earlier, *evidence.same_document, *evidence.same_line]
    request.record_list("invoice", [each.id for each in related], {})
    names = await load_names(request, [invoice, *related])
    reasons = await check_store.list_ignored(*place, invoice_id) if state.ignored_errors else []
    providers = await provider_store.get_many(*place, [invoice.pm_provider_id]) if invoice.pm_provider_id else []
    approval = await approval_card(request, invoice)
    context: dict[str, Any] = {
        "standard": await _describe_standard(request, invoice),
        "invoice": invoice,
        "names": names,
        "provider": next(iter(providers), None),
        "evidence": evidence,
        "warnings": [evidence.card(code) for code in evidence.codes(invoice)],
        "ignored": [evidence.card(code, reasons) for code in state.ignored_errors],
        "comparisons": [compare_invoices(invoice, each, names, zone) for each in evidence.earlier],
        "plan": plan,
        "plan_strip": plan_strip(invoice.invoice_date, plan),
        **await _document_of(request, invoice),
        "status": describe_status(invoice, warning_titles(invoice), today, zone, approval.decided_by),
        **_allowed_of(invoice),
        "accounts": await account_choices(request),
        "own_account": str(request.account.account_id),
        "claim_types": CLAIM_TYPES,
        "item_names": await list_names(request, unset_to_none(invoice.line_items) or [], invoice.invoice_date),
        "max_length": MAX_REASON_LENGTH,
        "events": await latest_events(request, "invoice", invoice_id, LATEST_EVENTS + 1),
        "max_events": LATEST_EVENTS,
        "approval": approval,
        **await _hints_of(request, invoice),
        **await _notes_of(request, invoice),
        "place": await list_position(request, INVOICES, invoice_id),
    }
    return HtmlPage("invoices/invoice.html", context)


async def _describe_standard(request: PageRequest, invoice: Invoice) -> str:
    """When the invoice is expected to be paid, or how late it is, by the office's service standard."""
    settings = await office_settings.get(request.db, request.plan_manager_id)
    return describe_standard(invoice, settings.service_standard, request.today, request.settings.time_zone)


async def _document_of(request: PageRequest, invoice: Invoice) -> dict[str, Any]:
    """The name of the document, and whether this person can't open it."""
    return {
        "document_is_hidden": invoice.document is not None and await is_hidden(request, invoice.id),
        "document_name": invoice.document.file_name if invoice.document else file_name(invoice.s3_key),
    }


def _allowed_of(invoice: Invoice) -> dict[str, Any]:
    """What the state of an invoice with its lines allows."""
    return {
        "allowed": allowed_actions(invoice),
        "allowed_line_actions": allowed_line_actions(invoice),
        "is_claimable_elsewhere": bool(list_claimable_elsewhere(invoice)),
    }


async def _hints_of(request: PageRequest, invoice: Invoice) -> dict[str, Any]:
    """Why the invoice isn't claimed or paid."""
    unclaimed = await unclaimed_hints(request, invoice, warning_titles(invoice))
    return {"unclaimed": unclaimed, "unpaid": await unpaid_hints(request, invoice)}


async def _notes_of(request: PageRequest, invoice: Invoice) -> dict[str, Any]:
    """The notes of an invoice, and those of its participant and provider to read first."""
    review = await review_notes(request, invoice.id, invoice.participant_id, invoice.pm_provider_id)
    return {
        "notes": await record_notes(request, "invoice", invoice.id),
        "review_notes": [each for each in review if each.resource.kind != "invoice"],
        "empty_form": Form(),
    }


async def get_after_error(request: PageRequest, invoice_id: UUID, line_id: UUID) -> HtmlPage:  # noqa: ARG001 - of the path
    """The page of the invoice with the error of an action on a line."""
    request.record_access("viewed", "invoice", invoice_id)
    return await get(request, invoice_id)


def allowed_actions(invoice: Invoice) -> set[InvoiceAction]:
    """The actions that the state of an invoice with its lines allows."""
    state, allowed = to_stored_state(invoice), set[InvoiceAction]()
    for action in INVOICE_ACTIONS:
        with suppress(DomainError):
            act_on_invoice(state, action)
            allowed.add(action)
    return allowed


def allowed_line_actions(invoice: Invoice) -> dict[UUID, set[Cause]]:
    """The same for each line, by its id."""
    state, allowed = to_stored_state(invoice), defaultdict[UUID, set[Cause]](set)
    for line in state.active_lines:
        for cause in LINE_CAUSES:
            with suppress(DomainError):
                move_line(state, line.id, cause)
                allowed[line.id].add(cause)
    for line in unset_to_none(invoice.line_items) or []:
        if not can_be_split(line):
            allowed[line.id].discard("split")
    return allowed


def can_be_split(line: LineItem) -> bool:
    """Whether a line has a quantity, and a service of several days."""
    first, last = line.service_date_from, line.service_date_to
    return line.quantity is not None and line.quantity > 0 and first is not None and last is not None and first < last


def nearest_plan(invoice: Invoice, evidence: Evidence) -> PlanRow | None:
    """The plan in force on the invoice's date, else the one that begins or ends next to it."""
    day = invoice.invoice_date
    plans = [each for each in evidence.checked.plans if each.start_date or each.end_date]
    if day is None:
        return plans[-1] if plans else None
    return plan_on(plans, day) or min(plans, key=lambda each: _distance(each, day), default=None)


def _distance(plan: PlanRow, day: date) -> int:
    """The number of days between a day and the nearer end of a plan."""
    return min(abs((each - day).days) for each in (plan.start_date, plan.end_date) if each)


def plan_strip(day: date | None, plan: PlanRow | None) -> dict[str, float] | None:
    """The positions of a plan and a day on the strip; null without a day or without a complete plan."""
    if day is None or plan is None or plan.start_date is None or plan.end_date is None or not is_in_order(plan):
        return None
    start, end = plan.start_date, plan.end_date
    positions = {"start": strip_position(start, start, end), "end": strip_position(end, start, end)}
    return positions | {"day": strip_position(day, start, end), "width": STRIP_WIDTH}


def act(name: str) -> Callable[[FormRequest, UUID], Awaitable[Redirect]]:
    """The handler of an action on one invoice. If it no longer matches its list, the next one of the list follows."""
    action = ACTIONS[name]

    async def handle(request: FormRequest, invoice_id: UUID) -> Redirect:
        await action.run(request.write_context, invoice_id, read_text(request, action.field))
        invoice = or_404(await store.get(request.tx, request.plan_manager_id, invoice_id))
        place = await list_position(request, INVOICES, invoice_id)
        subject = f"Invoice {invoice.invoice_number}" if invoice.invoice_number else "The invoice without number"
        if place and place.next_url and not place.matches_filters:
            message = f"{subject} {action.done}. This is the next invoice."
            return Redirect(place.next_url, message, undo=request.undo_path)
        return Redirect(invoice_url(invoice_id, place), f"{subject} {action.done}.", undo=request.undo_path)

    return handle


def act_on_line(name: str) -> Callable[[FormRequest, UUID, UUID], Awaitable[Redirect]]:
    """The handler of an action on a line."""
    action = LINE_ACTIONS[name]

    async def handle(request: FormRequest, invoice_id: UUID, line_id: UUID) -> Redirect:
        await action.run(request, invoice_id, line_id)
        place = await list_position(request, INVOICES, invoice_id)
        undo = request.undo_path if action.can_be_undone else None
        return Redirect(invoice_url(invoice_id, place), f"Line {action.done}.", undo=undo)

    return handle


for _name in ACTIONS:
    pages.post(f"/invoices/{{invoice_id}}/{_name}", role="manager", on_error=get)(act(_name))
for _name in LINE_ACTIONS:
    _path = f"/invoices/{{invoice_id}}/lines/{{line_id}}/{_name}"
    pages.post(_path, role="manager", on_error=get_after_error)(act_on_line(_name))
