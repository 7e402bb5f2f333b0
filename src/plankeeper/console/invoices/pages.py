"""Invoices: list, details, ignoring a warning with a reason, restoring an ignored warning."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from starlette.responses import JSONResponse, Response

from plankeeper.console.activity.timeline import latest_events
from plankeeper.console.components.money import STRIP_WIDTH, strip_position
from plankeeper.console.components.record_picker import account_choices
from plankeeper.console.invoices.evidence import Evidence, compare_invoices, file_name, find_evidence
from plankeeper.console.invoices.form import CLAIM_TYPES
from plankeeper.console.invoices.list import INVOICES, active_warnings, load_names, warning_titles
from plankeeper.console.invoices.status import describe_status
from plankeeper.console.lists.page import show_list
from plankeeper.console.lists.reading import ListPlace, list_position
from plankeeper.console.lists.selection import (
    Outcome,
    confirm_selection,
    download_list,
    download_selected,
    outcome_page,
    read_selection,
)
from plankeeper.console.shell.routing import (
    PREFIX,
    Download,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.context import or_404
from plankeeper.core.errors import DomainError, NotFound, ValidationError
from plankeeper.resources.invoice_view_sessions import service as viewing
from plankeeper.resources.invoice_view_sessions.service import ClientReport
from plankeeper.resources.invoices import check_store, service, store
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.changes import to_line_rows, to_row, to_state
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.invoices.states import InvoiceAction, act_on_invoice
from plankeeper.resources.invoices.warnings import WARNINGS, InvoiceWarning
from plankeeper.resources.providers import store as provider_store

pages = Pages()

INVOICES_URL = f"{PREFIX}/invoices"
MAX_REASON_LENGTH = 1000


@pages.get("/invoices", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    return await show_list(request, INVOICES)


@pages.get("/invoices.csv", role="viewer")
async def download(request: PageRequest) -> Download:
    return await download_list(request, INVOICES)


@pages.get("/invoices/{invoice_id}/warnings/{code}/ignore", role="manager", access_log="invoice")
async def ignore_form(request: PageRequest, invoice_id: UUID, code: str) -> HtmlPage | Redirect:
    get_warning(code)
    invoice = await get_or_404(request, invoice_id)
    place = await list_position(request, INVOICES, invoice_id)
    if code not in active_warnings(invoice):
        return warning_gone(invoice_id, place)
    evidence = await find_evidence(request, invoice, request.today)
    context = {"invoice": invoice, "warning": evidence.card(code), "max_length": MAX_REASON_LENGTH, "place": place}
    return HtmlPage("invoices/ignore.html", context)


@pages.post("/invoices/{invoice_id}/warnings/{code}/ignore", role="manager", on_error=ignore_form)
async def ignore(request: FormRequest, invoice_id: UUID, code: str) -> Redirect:
    title = get_warning(code).title
    # A browser counts a line break as one character, but sends two.
    reason = request.form.text("reason").replace("\r\n", "\n")
    if not 0 < len(reason) <= MAX_REASON_LENGTH:
        raise ValidationError(reason=f"must have 1 to {MAX_REASON_LENGTH} characters")
    is_changed = await service.ignore(request.write_context, invoice_id, code, reason)
    place = await list_position(request, INVOICES, invoice_id)
    if not is_changed:
        return warning_gone(invoice_id, place)
    invoice = or_404(await store.get(request.tx, request.plan_manager_id, invoice_id))
    if place and place.next_url and (not place.matches_filters or not active_warnings(invoice)):
        name = f"invoice {invoice.invoice_number}" if invoice.invoice_number else "an invoice without number"
        return Redirect(place.next_url, f"“{title}” of {name} ignored. This is the next invoice.")
    return Redirect(invoice_url(invoice_id, place), f"“{title}” ignored.")


@pages.post("/invoices/{invoice_id}/warnings/{code}/warn", role="manager")
async def warn_again(request: FormRequest, invoice_id: UUID, code: str) -> Redirect:
    is_changed = await service.restore(request.write_context, invoice_id, code)
    place = await list_position(request, INVOICES, invoice_id)
    if not is_changed:
        return warning_gone(invoice_id, place)
    message = f"“{WARNINGS[code].title if code in WARNINGS else code}” restored."
    return Redirect(invoice_url(invoice_id, place), message)


def invoice_url(invoice_id: UUID, place: ListPlace | None) -> str:
    """The page of an invoice, which keeps its place in the list."""
    return f"{INVOICES_URL}/{invoice_id}{place.suffix if place else ''}"


async def get_or_404(request: PageRequest, invoice_id: UUID) -> Invoice:
    return or_404(await store.get(request.db, request.plan_manager_id, invoice_id))


def warning_gone(invoice_id: UUID, place: ListPlace | None) -> Redirect:
    """The warning was ignored or restored by another person, or a check of the invoice removed it."""
    return Redirect(invoice_url(invoice_id, place), "Nothing was changed: the invoice no longer has this warning.")


def get_warning(code: str) -> InvoiceWarning:
    """The explanation of a warning; raises NotFound for an unknown code."""
    if code not in WARNINGS:
        raise NotFound
    return WARNINGS[code]


LATEST_EVENTS = 4
ACTIONS: Sequence[InvoiceAction] = ("hold", "release", "cancel", "wont_claim", "reopen")


@pages.get("/invoices/{invoice_id}", role="viewer", access_log="invoice")
async def get(request: PageRequest, invoice_id: UUID) -> HtmlPage:
    place = (request.db, request.plan_manager_id)
    invoice = or_404(await store.get(*place, invoice_id))
    state, today = invoice.state_management, request.today
    evidence = await find_evidence(request, invoice, today)
    request.record_list("invoice", [each.id for each in evidence.earlier], {})
    names = await load_names(request, [invoice, *evidence.earlier])
    reasons = await check_store.list_ignored(*place, invoice_id) if state.ignored_errors else []
    providers = await provider_store.get_many(*place, [invoice.pm_provider_id]) if invoice.pm_provider_id else []
    context: dict[str, Any] = {
        "invoice": invoice,
        "names": names,
        "provider": next(iter(providers), None),
        "evidence": evidence,
        "warnings": [evidence.card(code) for code in active_warnings(invoice)],
        "ignored": [evidence.card(code, reasons) for code in state.ignored_errors],
        "comparisons": [
            compare_invoices(invoice, each, names, request.settings.time_zone) for each in evidence.earlier
        ],
        "plan_strip": plan_strip(invoice, evidence),
        "document_name": invoice.document.file_name if invoice.document else file_name(invoice.s3_key),
        "status": describe_status(invoice, warning_titles(invoice), today, request.settings.time_zone),
        "allowed": allowed_actions(invoice),
        "accounts": await account_choices(request),
        "own_account": str(request.account.account_id),
        "claim_types": CLAIM_TYPES,
        "max_length": MAX_REASON_LENGTH,
        "events": await latest_events(request, "invoice", invoice_id, LATEST_EVENTS + 1),
        "max_events": LATEST_EVENTS,
        "place": await list_position(request, INVOICES, invoice_id),
    }
    return HtmlPage("invoices/invoice.html", context)


def allowed_actions(invoice: Invoice) -> set[InvoiceAction]:
    """The actions that the state of an invoice with its lines allows."""
    state, allowed = to_state(to_row(invoice), to_line_rows(invoice)), set[InvoiceAction]()
    for action in ACTIONS:
        with suppress(DomainError):
            act_on_invoice(state, action)
            allowed.add(action)
    return allowed


def plan_strip(invoice: Invoice, evidence: Evidence) -> dict[str, float] | None:
    """The positions of the plan and the invoice's date on the strip; null without a date or without a complete plan."""
    start, end, day = evidence.checked.plan_start_date, evidence.checked.plan_end_date, invoice.invoice_date
    if start is None or end is None or day is None or end < start:
        return None
    positions = {"start": strip_position(start, start, end), "end": strip_position(end, start, end)}
    return positions | {"day": strip_position(day, start, end), "width": STRIP_WIDTH}


@pages.get("/invoices/selected.csv", role="viewer")
async def download_selection(request: PageRequest) -> Download:
    return await download_selected(request, INVOICES)


@pages.get("/invoices/selected/ignore-warning", role="manager")
async def ignore_selected_form(request: PageRequest) -> HtmlPage:
    """The selected invoices with their warnings, of which one is chosen."""
    selection = await read_selection(request, INVOICES, request.form or request.query, _describe)
    counts = Counter(code for each in selection.rows for code in active_warnings(each) if code in WARNINGS)
    choices = {
        code: f"{WARNINGS[code].title} ({selection.definition.count_text(n)})" for code, n in counts.most_common()
    }
    chosen = request.form.text("code") or (next(iter(choices)) if len(choices) == 1 else "")
    context: dict[str, Any] = {
        "selection": selection,
        "rows": [(each, selection.names, warning_titles(each)) for each in selection.shown],
        "choices": choices if len(choices) == 1 else {"": "Choose", **choices},
        "has_warnings": bool(choices),
        "chosen": chosen,
        "reason": request.form.text("reason"),
        "max_length": MAX_REASON_LENGTH,
    }
    return HtmlPage("lists/selected_warning.html", context)


@pages.post("/invoices/selected/ignore-warning", role="manager", on_error=ignore_selected_form)
async def ignore_selected(request: FormRequest) -> HtmlPage:
    """Each invoice gets the reason, and an event of its own. Invoices without the warning are left out."""
    code, reason = request.form.text("code"), request.form.text("reason").replace("\r\n", "\n")
    if code not in WARNINGS:
        raise ValidationError(code="must be one of the choices")
    if not 0 < len(reason) <= MAX_REASON_LENGTH:
        raise ValidationError(reason=f"must have 1 to {MAX_REASON_LENGTH} characters")
    selection = await confirm_selection(request, INVOICES, _describe)
    await invoice_store.select_for_update(request.tx, request.plan_manager_id, [each.id for each in selection.rows])
    outcomes = [await _ignore_one(request, each, code, reason) for each in selection.rows]
    return outcome_page(request, f"“{WARNINGS[code].title}” ignored", selection, outcomes)


def _describe(invoice: Invoice) -> str:
    """The warnings, which the page counts."""
    return ",".join(active_warnings(invoice))


async def _ignore_one(request: FormRequest, invoice: Invoice, code: str, reason: str) -> Outcome:
    name, url = invoice.invoice_number or "No number", f"{INVOICES_URL}/{invoice.id}"
    try:
        async with request.tx.savepoint():
            is_ignored = await service.ignore(request.write_context, invoice.id, code, reason)
    except DomainError as error:
        return Outcome(name, url, error.detail, is_changed=False)
    if not is_ignored:
        return Outcome(name, url, "doesn’t have this warning, or it is ignored already", is_changed=False)
    return Outcome(name, url, "ignored", is_changed=True, restore_path=f"{url}/warnings/{code}/warn")


MAX_DIGITS = 12  # of a duration in milliseconds, or of a count


@pages.post("/invoices/{invoice_id}/view-session", role="viewer")
async def start(request: FormRequest, invoice_id: UUID) -> Response:
    session = await viewing.start(request.write_context, invoice_id)
    return JSONResponse({"id": str(session.id)})


@pages.post("/view-sessions/{session_id}/heartbeat", role="viewer", extends_session=False)
async def heartbeat(request: FormRequest, session_id: UUID) -> Response:
    return heartbeat_response(await viewing.heartbeat(request.write_context, session_id, parse_client_report(request)))


@pages.post("/view-sessions/{session_id}/end", role="viewer", extends_session=False)
async def end(request: FormRequest, session_id: UUID) -> Response:
    return heartbeat_response(
        await viewing.heartbeat(request.write_context, session_id, parse_client_report(request), is_last=True)
    )


def heartbeat_response(is_open: bool) -> Response:
    """No content, or 409 if the session has ended: the page then starts another session."""
    return Response(status_code=204 if is_open else 409)


def parse_client_report(request: PageRequest) -> ClientReport:
    """The durations and counts of a heartbeat; raises ValidationError."""
    texts = {name: request.form.text(name) for name in ClientReport.__struct_fields__}
    errors = {name: "must be a whole number" for name, text in texts.items() if not is_whole_number(text)}
    if errors:
        raise ValidationError(**errors)
    return ClientReport(**{name: int(text) for name, text in texts.items()})


def is_whole_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
