"""Invoices: list, details, ignoring a warning with a reason, restoring an ignored warning."""

from collections.abc import Iterable
from uuid import UUID

from plankeeper.console.forms import validate_struct
from plankeeper.console.invoice_evidence import find_evidence
from plankeeper.console.labels import humanize
from plankeeper.console.pagination import PAGE_SIZE, paginate_links
from plankeeper.console.participant_context import today_in
from plankeeper.console.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.http.context import or_404
from plankeeper.http.errors import NotFound, ValidationError
from plankeeper.http.pagination import PageRows
from plankeeper.http.validation import allowed_values
from plankeeper.invoices import ignored_warnings, ignored_warnings_store, queries, store
from plankeeper.invoices.schemas import ApprovalStatus, ClaimStatus, Invoice, InvoiceListQuery, InvoiceWithLines
from plankeeper.invoices.warnings import WARNINGS, InvoiceWarning

pages = Pages()

INVOICES_URL = f"{PREFIX}/invoices"
MAX_REASON_LENGTH = 1000
FILTERS = ("invoice_number", "claim_status", "approval_status", "participant_id", "provider_id")
CLAIM_STATUSES = {"": "Any"} | {each: humanize(each) for each in allowed_values(ClaimStatus)}
APPROVAL_STATUSES = {"": "Any"} | {each: humanize(each) for each in allowed_values(ApprovalStatus)}


@pages.get("/invoices", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    filters = {name: text for name in FILTERS if (text := request.query.text(name))}
    only_warnings, after = bool(request.query.text("warnings")), request.query.text("after")
    rows = PageRows[Invoice]([], has_more=False, next_cursor=None)
    try:
        query = validate_struct(InvoiceListQuery, {**filters, "limit": PAGE_SIZE, "after": after or "0"})
        list_page = queries.list_page_with_warnings if only_warnings else queries.list_page
        rows = await list_page(request.db, request.plan_manager_id, query)
    except ValidationError as error:
        request.errors = {each.field: each.message for each in error.errors or ()}
    params = filters | ({"warnings": "1"} if only_warnings else {})
    request.record_list("invoice", [each.id for each in rows], params)
    context = {
        "rows": [(each, active_warnings(each)) for each in rows],
        "names": await record_names(request, rows),
        "filters": {name: filters.get(name, "") for name in FILTERS},
        "only_warnings": only_warnings,
        "is_filtered": bool(params),
        "claim_statuses": CLAIM_STATUSES,
        "approval_statuses": APPROVAL_STATUSES,
        **paginate_links(INVOICES_URL, params, rows, after),
    }
    return HtmlPage("invoices.html", context, 422 if request.errors else 200)


@pages.get("/invoices/{invoice_id}/warnings/{code}/ignore", role="manager", discloses="invoice")
async def ignore_form(request: PageRequest, invoice_id: UUID, code: str) -> HtmlPage | Redirect:
    get_warning(code)
    invoice = await get_or_404(request, invoice_id)
    if code not in active_warnings(invoice):
        return warning_gone(invoice_id)
    evidence = await find_evidence(request, invoice, today_in(request))
    return HtmlPage(
        "invoice_ignore.html", {"invoice": invoice, "warning": evidence.card(code), "max_length": MAX_REASON_LENGTH}
    )


@pages.post("/invoices/{invoice_id}/warnings/{code}/ignore", role="manager", on_error=ignore_form)
async def ignore(request: FormRequest, invoice_id: UUID, code: str) -> Redirect:
    title = get_warning(code).title
    # A browser counts a line break as one character, but sends two.
    reason = request.form.text("reason").replace("\r\n", "\n")
    if not 0 < len(reason) <= MAX_REASON_LENGTH:
        raise ValidationError(reason=f"must have 1 to {MAX_REASON_LENGTH} characters")
    if not await ignored_warnings.ignore(request.write_context, invoice_id, code, reason):
        return warning_gone(invoice_id)
    return Redirect(f"{INVOICES_URL}/{invoice_id}", f"“{title}” ignored.")


@pages.post("/invoices/{invoice_id}/warnings/{code}/warn", role="manager")
async def warn_again(request: FormRequest, invoice_id: UUID, code: str) -> Redirect:
    if not await ignored_warnings.restore(request.write_context, invoice_id, code):
        return warning_gone(invoice_id)
    return Redirect(f"{INVOICES_URL}/{invoice_id}", f"“{WARNINGS[code].title if code in WARNINGS else code}” restored.")


async def get_or_404(request: PageRequest, invoice_id: UUID) -> InvoiceWithLines:
    return or_404(await store.get(request.db, request.plan_manager_id, invoice_id))


def warning_gone(invoice_id: UUID) -> Redirect:
    """The warning was ignored or restored by another user, or a check of the invoice removed it."""
    return Redirect(
        f"{INVOICES_URL}/{invoice_id}", "Nothing was changed: the invoice doesn’t have this warning any more."
    )


def active_warnings(invoice: Invoice) -> list[str]:
    """The codes of the warnings that are not ignored."""
    state = invoice.state_management
    return [code for code in state.errors if code not in state.ignored_errors]


def warning_titles(invoice: Invoice) -> list[str]:
    """The titles of the warnings that are not ignored."""
    return [WARNINGS[code].title if code in WARNINGS else code for code in active_warnings(invoice)]


def get_warning(code: str) -> InvoiceWarning:
    """The explanation of a warning; raises NotFound for an unknown code."""
    if code not in WARNINGS:
        raise NotFound
    return WARNINGS[code]


async def record_names(request: PageRequest, invoices: Iterable[Invoice]) -> dict[UUID, str | None]:
    """The names of the invoices' participants and providers by id, where they exist."""
    participants = {each.participant_id for each in invoices if each.participant_id}
    providers = {each.pm_provider_id for each in invoices if each.pm_provider_id}
    if not participants and not providers:
        return {}
    rows = await ignored_warnings_store.get_display_names(
        request.db, request.plan_manager_id, list(participants), list(providers)
    )
    return {each.id: each.name for each in rows}
