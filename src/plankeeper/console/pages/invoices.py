"""Invoices: list, look at, ignore a warning with a reason, warn of it again."""

from collections.abc import Iterable
from typing import NamedTuple, get_args
from urllib.parse import urlencode
from uuid import UUID

from plankeeper.console.forms import struct_of
from plankeeper.console.routing import PREFIX, Act, Look, Page, Pages, Redirect
from plankeeper.console.templating import said
from plankeeper.http.errors import Invalid, NotFound
from plankeeper.invoices import doubtful, ignored_warnings, ignored_warnings_store, queries, routes
from plankeeper.invoices.ignored_warnings_store import Ignored
from plankeeper.invoices.schemas import ApprovalStatus, ClaimStatus, Invoice, InvoiceListQuery
from plankeeper.invoices.warnings import WARNINGS, InvoiceWarning

pages = Pages()

INVOICES = f"{PREFIX}/invoices"
PAGE = 50
LONGEST_REASON = 1000
FILTERS = ("invoice_number", "claim_status", "approval_status", "participant_id", "provider_id")
CLAIM_STATUSES = {"": "All"} | {each: said(each) for each in get_args(ClaimStatus)}
APPROVAL_STATUSES = {"": "All"} | {each: said(each) for each in get_args(ApprovalStatus)}
# A code that a file brought in need not be in the catalogue.
UNKNOWN = InvoiceWarning("invoice", "Unknown warning", "The error catalogue has no such code.")


class Explained(NamedTuple):
    """A warning of an invoice with its explanation; `why` is null unless somebody chose to ignore it here."""

    code: str
    title: str
    description: str
    why: Ignored | None


@pages.get("/invoices", need="viewer")
async def list_(look: Look) -> Page:
    filters = {name: text for name in FILTERS if (text := look.query.text(name))}
    warned, after = bool(look.query.text("warnings")), look.query.text("after")
    rows = list[Invoice]()
    try:
        query = struct_of(InvoiceListQuery, {**filters, "limit": PAGE, "after": after or "0"})
        rows = await (doubtful if warned else queries).page(look.db, look.plan_manager_id, query)
    except Invalid as invalid:
        look.faults = {each.field: each.message for each in invalid.errors or ()}
    kept = filters | ({"warnings": "1"} if warned else {})
    values = {
        "rows": [(each, left(each)) for each in rows[:PAGE]], "names": await named(look, rows[:PAGE]),
        "filters": {name: filters.get(name, "") for name in FILTERS}, "warned": warned, "is_filtered": bool(kept),
        "next": link(kept | {"after": str(rows[PAGE - 1].id)}) if len(rows) > PAGE else None,
        "first": link(kept) if after else None,
        "claim_statuses": CLAIM_STATUSES, "approval_statuses": APPROVAL_STATUSES,
    }  # fmt: skip
    return Page("invoices.html", values, 422 if look.faults else 200)


@pages.get("/invoices/{invoice_id}", need="viewer")
async def get(look: Look, invoice_id: UUID) -> Page:
    invoice = await routes.get(look.read, invoice_id)
    state = invoice.state_management
    reasons = (
        await ignored_warnings_store.of_invoice(look.db, look.plan_manager_id, invoice_id)
        if state.ignored_errors
        else []
    )
    values = {
        "invoice": invoice,
        "names": await named(look, [invoice]),
        "warnings": [explained(code) for code in left(invoice)],
        "ignored": [explained(code, reasons) for code in state.ignored_errors],
    }
    return Page("invoice.html", values)


@pages.get("/invoices/{invoice_id}/warnings/{code}/ignore", need="manager")
async def ignore_form(look: Look, invoice_id: UUID, code: str) -> Page | Redirect:
    known(code)
    invoice = await routes.get(look.read, invoice_id)
    if code not in left(invoice):
        return gone(invoice_id)
    return Page("invoice_ignore.html", {"invoice": invoice, "warning": explained(code), "longest": LONGEST_REASON})


@pages.post("/invoices/{invoice_id}/warnings/{code}/ignore", need="manager", again=ignore_form)
async def ignore(act: Act, invoice_id: UUID, code: str) -> Redirect:
    title = known(code).title
    # A browser counts a new line as one character, and sends two.
    reason = act.form.text("reason").replace("\r\n", "\n")
    if not 0 < len(reason) <= LONGEST_REASON:
        raise Invalid(reason=f"must have 1 to {LONGEST_REASON} characters")
    if not await ignored_warnings.ignore(act.write, invoice_id, code, reason):
        return gone(invoice_id)
    return Redirect(f"{INVOICES}/{invoice_id}", f"“{title}” is ignored on this invoice.")


@pages.post("/invoices/{invoice_id}/warnings/{code}/warn", need="manager")
async def warn_again(act: Act, invoice_id: UUID, code: str) -> Redirect:
    if not await ignored_warnings.warn_again(act.write, invoice_id, code):
        return gone(invoice_id)
    return Redirect(f"{INVOICES}/{invoice_id}", f"“{explained(code).title}” counts again on this invoice.")


def gone(invoice_id: UUID) -> Redirect:
    """Somebody else was quicker, or the invoice was checked meanwhile."""
    return Redirect(f"{INVOICES}/{invoice_id}", "Nothing was changed: the warning was not there any more.")


def left(invoice: Invoice) -> list[str]:
    """The codes of the warnings that count."""
    state = invoice.state_management
    return [code for code in state.errors if code not in state.ignored_errors]


def known(code: str) -> InvoiceWarning:
    """The explanation of a warning that there is; raises NotFound."""
    if code not in WARNINGS:
        raise NotFound
    return WARNINGS[code]


def explained(code: str, reasons: Iterable[Ignored] = ()) -> Explained:
    warning = WARNINGS.get(code, UNKNOWN)
    why = next((each for each in reasons if each.error_code == code), None)
    return Explained(code, warning.title, warning.description, why)


async def named(look: Look, invoices: Iterable[Invoice]) -> dict[UUID, str | None]:
    """The names of the participants and providers of invoices, as far as they are on record."""
    participants = {each.participant_id for each in invoices if each.participant_id}
    providers = {each.pm_provider_id for each in invoices if each.pm_provider_id}
    if not participants and not providers:
        return {}
    found = await ignored_warnings_store.names(look.db, look.plan_manager_id, list(participants), list(providers))
    return {each.id: each.name for each in found}


def link(filters: dict[str, str]) -> str:
    return f"{INVOICES}?{urlencode(filters)}" if filters else INVOICES
