"""The invoices of a participant: a list, sums of the plan, spend by month, the providers with the highest sums."""

from uuid import UUID

from plankeeper.console.charts import MONEY, Bar, bar_list
from plankeeper.console.forms import validate_struct
from plankeeper.console.lists.invoices import load_names, warning_titles
from plankeeper.console.pagination import PAGE_SIZE, paginate_links, with_query
from plankeeper.console.participant_context import participant_context
from plankeeper.console.routing import PREFIX, HtmlPage, PageRequest, Pages
from plankeeper.console.spend import period_of, spend_chart, spend_sums
from plankeeper.resources.invoices import queries
from plankeeper.resources.invoices.queries import ProviderSum
from plankeeper.resources.invoices.schemas import InvoiceListQuery

pages = Pages()

MAX_PROVIDERS = 5


@pages.get("/participants/{participant_id}/invoices", role="viewer", access_log="participant")
async def list_(request: PageRequest, participant_id: UUID) -> HtmlPage:
    context = await participant_context(request, participant_id, "/invoices")
    place, participant = (request.db, request.plan_manager_id), context["participant"]
    first, last, is_plan = period_of(participant.plan_start_date, participant.plan_end_date, context["today"])
    sums = await queries.sums_by_month_for_participant(*place, participant_id, first, last)
    providers = await queries.top_providers(*place, participant_id, first, last, MAX_PROVIDERS)
    only_warnings, after = bool(request.query.text("warnings")), request.query.text("after")
    filters = {"participant_id": str(participant_id), "limit": PAGE_SIZE, "after": after or "0"}
    list_page = queries.list_page_with_warnings if only_warnings else queries.list_page
    order = {} if only_warnings else {"sort": "-invoice_date"}
    rows = await list_page(*place, validate_struct(InvoiceListQuery, filters | order))
    params = {"warnings": "1" if only_warnings else ""}
    request.record_list("invoice", [each.id for each in rows], {"participant_id": str(participant_id), **params})
    links = {"participant": str(participant_id)}
    context |= {
        "rows": [(each, warning_titles(each)) for each in rows],
        "names": await load_names(request, rows),
        "only_warnings": only_warnings,
        "sums": spend_sums(sums),
        "period": (first, last),
        "is_plan": is_plan,
        "chart": spend_chart(sums, first, last, links),
        "providers": bar_list("Providers", [provider_bar(each, links) for each in providers], unit=MONEY),
        **paginate_links(context["tab_url"], params, rows, after),
    }
    return HtmlPage("participant_invoices.html", context)


def provider_bar(provider: ProviderSum, links: dict[str, str]) -> Bar:
    url = with_query(f"{PREFIX}/invoices", {**links, "provider": str(provider.id)})
    return Bar(provider.name or "No name", provider.total, url)
