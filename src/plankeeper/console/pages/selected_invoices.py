"""Several invoices at once: ignore a warning with a reason, download them."""

from collections import Counter
from typing import Any

from plankeeper.console.lists.invoices import INVOICES, active_warnings, warning_titles
from plankeeper.console.lists.selection import (
    Outcome,
    confirm_selection,
    download_selected,
    outcome_page,
    read_selection,
)
from plankeeper.console.pages.invoices import INVOICES_URL, MAX_REASON_LENGTH
from plankeeper.console.routing import Download, FormRequest, HtmlPage, PageRequest, Pages
from plankeeper.core.errors import DomainError, ValidationError
from plankeeper.resources.invoices import service
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.invoices.warnings import WARNINGS

pages = Pages()


@pages.get("/invoices/selected.csv", role="viewer")
async def download(request: PageRequest) -> Download:
    return await download_selected(request, INVOICES)


@pages.get("/invoices/selected/ignore-warning", role="manager")
async def ignore_form(request: PageRequest) -> HtmlPage:
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
    return HtmlPage("selected_warning.html", context)


@pages.post("/invoices/selected/ignore-warning", role="manager", on_error=ignore_form)
async def ignore(request: FormRequest) -> HtmlPage:
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
