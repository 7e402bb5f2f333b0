"""The page of one invoice: status, lines, dates, and its warnings with their evidence."""

from typing import Any
from uuid import UUID

from plankeeper.console.invoice_comparison import compare_invoices, file_name
from plankeeper.console.invoice_evidence import Evidence, find_evidence
from plankeeper.console.lists.invoices import INVOICES, active_warnings, load_names
from plankeeper.console.lists.reading import list_position
from plankeeper.console.pages.invoices import MAX_REASON_LENGTH
from plankeeper.console.pages.timeline import latest_events
from plankeeper.console.participant_context import today_in
from plankeeper.console.routing import HtmlPage, PageRequest, Pages
from plankeeper.console.spend import STRIP_WIDTH, strip_position
from plankeeper.core.context import or_404
from plankeeper.resources.invoices import check_store, store
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.providers import store as provider_store

pages = Pages()

LATEST_EVENTS = 4


@pages.get("/invoices/{invoice_id}", role="viewer", access_log="invoice")
async def get(request: PageRequest, invoice_id: UUID) -> HtmlPage:
    place = (request.db, request.plan_manager_id)
    invoice = or_404(await store.get(*place, invoice_id))
    state, today = invoice.state_management, today_in(request)
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
        "document_name": file_name(invoice.s3_key),
        "max_length": MAX_REASON_LENGTH,
        "events": await latest_events(request, "invoice", invoice_id, LATEST_EVENTS + 1),
        "max_events": LATEST_EVENTS,
        "place": await list_position(request, INVOICES, invoice_id),
    }
    return HtmlPage("invoice.html", context)


def plan_strip(invoice: Invoice, evidence: Evidence) -> dict[str, float] | None:
    """The positions of the plan and the invoice's date on the strip; null without a date or without a complete plan."""
    start, end, day = evidence.checked.plan_start_date, evidence.checked.plan_end_date, invoice.invoice_date
    if start is None or end is None or day is None or end < start:
        return None
    positions = {"start": strip_position(start, start, end), "end": strip_position(end, start, end)}
    return positions | {"day": strip_position(day, start, end), "width": STRIP_WIDTH}
