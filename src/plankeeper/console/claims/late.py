"""The claims that have waited too long for a result."""

from plankeeper.console.claims.line_groups import describe_line, line_url, load_names
from plankeeper.console.claims.list import CLAIMS_URL
from plankeeper.console.shell.routing import HtmlPage, PageRequest, Pages
from plankeeper.resources.claims import service, store
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.office_settings import store as office_settings

pages = Pages()

MAX_SHOWN = 100


@pages.get("/claims/late", role="manager", permission="make_claims")
async def list_(request: PageRequest) -> HtmlPage:
    """The oldest ones, and the number of all."""
    place = (request.db, request.plan_manager_id)
    settings = await office_settings.get(*place)
    before = service.late_before(settings, request.today, request.settings.time_zone)
    found = await store.list_late(*place, before, MAX_SHOWN)
    ids = list(dict.fromkeys(each.invoice_id for each in found))
    request.record_list("invoice", ids, {})
    invoices = {each.id: each for each in await invoice_store.get_many(*place, ids)}
    names = await load_names(request, invoices.values())
    rows = [
        (each, describe_line(invoices[each.invoice_id], each.line_id, names), line_url(each.invoice_id, each.line_id))
        for each in found
        if each.invoice_id in invoices
    ]
    context = {
        "rows": rows,
        "summary": await store.summarize_late(*place, before),
        "days": settings.days_until_claim_is_late,
        "claims_url": CLAIMS_URL,
    }
    return HtmlPage("claims/late.html", context)
