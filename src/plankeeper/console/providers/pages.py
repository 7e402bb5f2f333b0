"""Providers: list and search, details, create, edit, delete."""

from datetime import date
from typing import Any
from uuid import UUID

from stdnum.au import abn

from plankeeper.console.activity.timeline import latest_events
from plankeeper.console.bank_details.section import bank_details_section
from plankeeper.console.components.edit_forms import describe_changes, edit_context, require_unchanged
from plankeeper.console.components.events import retention, trash_path
from plankeeper.console.components.money import period_of, spend_chart, spend_sums
from plankeeper.console.invoices.list import load_names, warning_titles
from plankeeper.console.lists.reading import list_position
from plankeeper.console.lists.registration import add_list
from plankeeper.console.notes.section import record_notes
from plankeeper.console.providers.form import (
    FORM,
    PROVIDERS_URL,
    edited_provider,
    empty_form,
    new_provider,
    plausible_change,
    provider_form,
)
from plankeeper.console.providers.list import PROVIDERS
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import (
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.context import or_404
from plankeeper.core.lists import in_order
from plankeeper.database.lists.statements import SortOrder
from plankeeper.resources.invoices import queries as invoice_queries
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.queries import StatusSum
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.providers import service, store
from plankeeper.resources.providers.schemas import Provider, ProviderUpdate
from plankeeper.resources.search.schemas import ProviderMatch
from plankeeper.resources.search.service import search
from plankeeper.resources.trash import service as trash_service
from plankeeper.resources.viewer_limits import values_of

pages = Pages()


add_list(pages, PROVIDERS, is_limited=True)


@pages.get("/providers/new", role="manager")
async def new(request: PageRequest) -> HtmlPage:
    return HtmlPage("providers/new.html", {"form": request.form or empty_form(), "fields": FORM})


@pages.post("/providers", role="manager", on_error=new)
async def create(request: FormRequest) -> Redirect:
    change = await plausible_change(request, new_provider(), is_new=True)
    created = await service.create(request.write_context, change)
    return Redirect(f"{PROVIDERS_URL}/{created.id}", f"{created.entity_name or 'Provider'} added.")


@pages.get("/providers/{provider_id}/edit", role="manager")
async def edit(request: PageRequest, provider_id: UUID) -> HtmlPage:
    provider = await get_or_404(request, provider_id)
    context = await edit_context(request, ProviderUpdate, provider_form(provider), edited_provider(provider))
    return HtmlPage("providers/edit.html", {"provider": provider, "fields": FORM, **context})


@pages.post("/providers/{provider_id}/edit", role="manager", on_error=edit)
async def update(request: FormRequest, provider_id: UUID) -> Redirect:
    before = or_404(await store.get_for_update(request.tx, request.plan_manager_id, provider_id))
    await require_unchanged(request, edited_provider(before))
    change = await plausible_change(request, before)
    await service.save(request.write_context, before, change)
    return Redirect(
        f"{PROVIDERS_URL}/{provider_id}", f"Changes saved{describe_changes(change)}.", undo=request.undo_path
    )


@pages.get("/providers/{provider_id}/delete", role="manager")
async def delete_form(request: PageRequest, provider_id: UUID) -> HtmlPage:
    return HtmlPage("providers/delete.html", {"provider": await get_or_404(request, provider_id), **retention(request)})


@pages.post("/providers/{provider_id}/delete", role="manager")
async def delete(request: FormRequest, provider_id: UUID) -> Redirect:
    provider = or_404(await store.get(request.tx, request.plan_manager_id, provider_id))
    entry = await trash_service.delete(request.write_context, "provider", provider_id)
    return Redirect(PROVIDERS_URL, f"{provider.entity_name or 'Provider'} moved to the trash.", undo=trash_path(entry))


async def get_or_404(request: PageRequest, provider_id: UUID) -> Provider:
    return or_404(await store.get(request.db, request.plan_manager_id, provider_id))


LATEST_INVOICES = 10
LATEST_EVENTS = 4
MAX_SIMILAR = 5
NAME_WORDS = 2  # of a name, by which similar names are found


@pages.get("/providers/{provider_id}", role="viewer", is_limited=True)
async def get(request: PageRequest, provider_id: UUID) -> HtmlPage:
    place = (request.db, request.plan_manager_id)
    provider = or_404(await store.get(*place, provider_id))
    first, last, _ = period_of(None, None, request.today)
    sums = await _load_sums(request, provider_id, first, last)
    rows = await _load_invoices(request, provider_id)
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
    context["bank_details"] = await bank_details_section(request, "provider", provider_id)
    context |= {"notes": await record_notes(request, "provider", provider_id), "empty_form": Form()}
    context["place"] = await list_position(request, PROVIDERS, provider_id)
    return HtmlPage("providers/provider.html", {**context, "similar": await similar_names(request, provider)})


async def _load_sums(request: PageRequest, provider_id: UUID, first: date, last: date) -> list[StatusSum]:
    """Those of all participants, which a limited viewer doesn't see."""
    if request.participants_of:
        return []
    return await invoice_queries.sums_by_month_for_provider(
        request.db, request.plan_manager_id, provider_id, first, last
    )


async def _load_invoices(request: PageRequest, provider_id: UUID) -> list[Invoice]:
    """The invoices that were received last, of the participants that the account can see."""
    place, limit = (request.db, request.plan_manager_id), request.participants_of
    if limit is None:
        return await invoice_queries.latest_for_provider(*place, provider_id, LATEST_INVOICES)
    filters, order = {"provider_id": provider_id, **values_of(limit)}, SortOrder("received_at", descending=True)
    found = await invoice_queries.LIST.page(*place, filters, LATEST_INVOICES, 0, order)
    ids = [UUID(each.id) for each in found[:LATEST_INVOICES]]
    return in_order(ids, await invoice_store.get_many_without_lines(*place, ids)) if ids else []


async def similar_names(request: PageRequest, provider: Provider) -> list[ProviderMatch]:
    """Other providers whose names contain the first words of this one's."""
    words = (provider.entity_name or "").split()[:NAME_WORDS]
    if not words:
        return []
    results = await search(request.db, request.plan_manager_id, " ".join(words), ("provider",), MAX_SIMILAR + 1)
    matches = [match for kind in results.kinds for match in kind.matches if isinstance(match, ProviderMatch)]
    return [each for each in matches if each.id != provider.id][:MAX_SIMILAR]
