"""Invoices: list, details, ignoring a warning with a reason, restoring an ignored warning."""

from uuid import UUID

from plankeeper.console.invoice_evidence import find_evidence
from plankeeper.console.lists.invoices import INVOICES, active_warnings
from plankeeper.console.lists.page import show_list
from plankeeper.console.lists.reading import ListPlace, list_position
from plankeeper.console.lists.selection import download_list
from plankeeper.console.participant_context import today_in
from plankeeper.console.routing import PREFIX, Download, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.errors import NotFound, ValidationError
from plankeeper.resources.invoices import service, store
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.invoices.warnings import WARNINGS, InvoiceWarning

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
    evidence = await find_evidence(request, invoice, today_in(request))
    context = {"invoice": invoice, "warning": evidence.card(code), "max_length": MAX_REASON_LENGTH, "place": place}
    return HtmlPage("invoice_ignore.html", context)


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
    if place and place.next_url and (not place.is_member or not active_warnings(invoice)):
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
