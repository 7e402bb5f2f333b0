"""Invoices: list, ignoring a warning with a reason, restoring an ignored warning, sessions of viewing."""

from collections import Counter
from typing import Any
from uuid import UUID

from starlette.responses import JSONResponse, Response

from plankeeper.console.invoices.evidence import find_evidence
from plankeeper.console.invoices.list import INVOICES, active_warnings, warning_titles
from plankeeper.console.lists.reading import ListPlace, list_position
from plankeeper.console.lists.registration import add_list
from plankeeper.console.lists.selection import (
    Outcome,
    confirm_selection,
    outcome_page,
    read_selection,
)
from plankeeper.console.shell.forms import Form, parse_number
from plankeeper.console.shell.routing import (
    PREFIX,
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
from plankeeper.resources.invoices import service, store
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.action_schemas import MAX_REASON_LENGTH
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.invoices.warnings import WARNINGS, InvoiceWarning

pages = Pages()

INVOICES_URL = f"{PREFIX}/invoices"


def read_reason(form: Form) -> str:
    """The reason of a form. Raises ValidationError for one that is missing or too long."""
    reason = form.multiline_text("reason")
    if not 0 < len(reason) <= MAX_REASON_LENGTH:
        raise ValidationError(reason=f"must have 1 to {MAX_REASON_LENGTH} characters")
    return reason


add_list(pages, INVOICES, is_limited=True)


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
    reason = read_reason(request.form)
    is_changed = await service.ignore(
        request.write_context, invoice_id, code, reason, overrides_blocks=request.has_permission("override_blocks")
    )
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
    code = request.form.text("code")
    if code not in WARNINGS:
        raise ValidationError(code="must be one of the choices")
    reason = read_reason(request.form)
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
            is_ignored = await service.ignore(
                request.write_context,
                invoice.id,
                code,
                reason,
                overrides_blocks=request.has_permission("override_blocks"),
            )
    except ValidationError:  # the reason, which is that of all
        raise
    except DomainError as error:
        return Outcome(name, url, error.detail, is_changed=False)
    if not is_ignored:
        return Outcome(name, url, "doesn’t have this warning, or it is ignored already", is_changed=False)
    return Outcome(name, url, "ignored", is_changed=True, restore_path=f"{url}/warnings/{code}/warn")


MAX_REPORTED = 10**12 - 1  # of a duration in milliseconds, or of a count


@pages.post("/invoices/{invoice_id}/view-session", role="viewer", is_limited=True)
async def start(request: FormRequest, invoice_id: UUID) -> Response:
    session = await viewing.start(request.write_context, invoice_id)
    return JSONResponse({"id": str(session.id)})


@pages.post("/view-sessions/{session_id}/heartbeat", role="viewer", is_limited=True, extends_session=False)
async def heartbeat(request: FormRequest, session_id: UUID) -> Response:
    return heartbeat_response(await viewing.heartbeat(request.write_context, session_id, parse_client_report(request)))


@pages.post("/view-sessions/{session_id}/end", role="viewer", is_limited=True, extends_session=False)
async def end(request: FormRequest, session_id: UUID) -> Response:
    return heartbeat_response(
        await viewing.heartbeat(request.write_context, session_id, parse_client_report(request), is_last=True)
    )


def heartbeat_response(is_open: bool) -> Response:
    """No content, or 409 if the session has ended: the page then starts another session."""
    return Response(status_code=204 if is_open else 409)


def parse_client_report(request: PageRequest) -> ClientReport:
    """The durations and counts of a heartbeat; raises ValidationError."""
    names = ClientReport.__struct_fields__
    numbers = {name: parse_number(request.form.text(name), MAX_REPORTED) for name in names}
    if errors := {name: "must be a whole number" for name, number in numbers.items() if number is None}:
        raise ValidationError(**errors)
    return ClientReport(**{name: number or 0 for name, number in numbers.items()})
