"""The page of one provider: sums of 12 months, latest invoices, and other providers that may be the same."""

from typing import Any
from uuid import UUID

from stdnum.au import abn

from plankeeper.console.lists.invoices import load_names, warning_titles
from plankeeper.console.lists.providers import PROVIDERS
from plankeeper.console.lists.reading import list_position
from plankeeper.console.pages.timeline import latest_events
from plankeeper.console.participant_context import today_in
from plankeeper.console.routing import HtmlPage, PageRequest, Pages
from plankeeper.console.spend import period_of, spend_chart, spend_sums
from plankeeper.core.context import or_404
from plankeeper.resources.invoices import queries
from plankeeper.resources.providers import store
from plankeeper.resources.providers.schemas import Provider
from plankeeper.resources.search.schemas import ProviderMatch
from plankeeper.resources.search.service import search

pages = Pages()

LATEST_INVOICES = 10
LATEST_EVENTS = 4
MAX_SIMILAR = 5
NAME_WORDS = 2  # of a name, by which similar names are found


@pages.get("/providers/{provider_id}", role="viewer")
async def get(request: PageRequest, provider_id: UUID) -> HtmlPage:
    place = (request.db, request.plan_manager_id)
    provider = or_404(await store.get(*place, provider_id))
    first, last, _ = period_of(None, None, today_in(request))
    sums = await queries.sums_by_month_for_provider(*place, provider_id, first, last)
    rows = await queries.latest_for_provider(*place, provider_id, LATEST_INVOICES)
    request.record_list("invoice", [each.id for each in rows], {"provider_id": str(provider_id)})
    context: dict[str, Any] = {
        "provider": provider,
        "is_abn": abn.is_valid(provider.abn or ""),
        "sums": spend_sums(sums),
        "period": (first, last),
        "chart": spend_chart(sums, first, last, {"provider": str(provider_id)}),
        "rows": [(each, warning_titles(each)) for each in rows],
        "names": await load_names(request, rows),
        "events": await latest_events(request, "provider", provider_id, LATEST_EVENTS + 1),
        "max_events": LATEST_EVENTS,
        "same_abn": await store.list_same_abn(*place, provider, MAX_SIMILAR) if provider.abn else [],
    }
    context["place"] = await list_position(request, PROVIDERS, provider_id)
    return HtmlPage("provider.html", {**context, "similar": await similar_names(request, provider)})


async def similar_names(request: PageRequest, provider: Provider) -> list[ProviderMatch]:
    """Other providers whose names contain the first words of this one's."""
    words = (provider.entity_name or "").split()[:NAME_WORDS]
    if not words:
        return []
    results = await search(request.db, request.plan_manager_id, " ".join(words), ("provider",), MAX_SIMILAR + 1)
    matches = [match for kind in results.kinds for match in kind.matches if isinstance(match, ProviderMatch)]
    return [each for each in matches if each.id != provider.id][:MAX_SIMILAR]
