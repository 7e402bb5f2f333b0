"""Providers: list, create, get, update, delete."""

from uuid import UUID

from plankeeper.http.context import ReadContext, WriteContext, or_404
from plankeeper.http.pagination import Page, build_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.http.schemas import EmptyResponse
from plankeeper.providers import service, store
from plankeeper.providers.queries import count, list_page
from plankeeper.providers.schemas import Provider, ProviderListQuery, ProviderSummary, ProviderUpdate, ProviderViewQuery

router = Router("providers", lock=service.select_for_update)


@router.get("/providers", scope=READ, extension=True)
async def list_(ctx: ReadContext, query: ProviderListQuery) -> Page[ProviderSummary] | Page[Provider]:
    """List providers. Filters are combined with AND."""
    rows = await list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.uses_cursor else await count(ctx.db, ctx.plan_manager_id, query)
    full_page = build_page(query, rows, total)
    if query.view == "full":
        return full_page
    return Page([_summary(provider) for provider in full_page.data], full_page.pagination)


@router.post("/providers", scope=WRITE, creates=True)
async def create(ctx: WriteContext, query: ProviderViewQuery, change: ProviderUpdate) -> ProviderSummary | Provider:
    """Create a provider. No member is required."""
    return _apply_view(await service.create(ctx, change), query)


@router.get(
    "/providers/{provider_id}", scope=READ, etag=True, views=(ProviderViewQuery(), ProviderViewQuery(view="full"))
)
async def get(ctx: ReadContext, provider_id: UUID, query: ProviderViewQuery) -> ProviderSummary | Provider:
    """Get a provider. Returns the basic shape, unless `view` asks for the full shape."""
    return _apply_view(or_404(await store.get(ctx.db, ctx.plan_manager_id, provider_id)), query)


@router.put("/providers/{provider_id}", scope=WRITE, extension=True)
async def update(
    ctx: WriteContext, provider_id: UUID, query: ProviderViewQuery, change: ProviderUpdate
) -> ProviderSummary | Provider:
    """Update a provider. Omitted members keep their values; null clears a value."""
    return _apply_view(await service.update(ctx, provider_id, change), query)


@router.delete("/providers/{provider_id}", scope=WRITE)
async def delete(ctx: WriteContext, provider_id: UUID) -> EmptyResponse:
    """Delete a provider permanently. Its invoices remain and keep its id."""
    await service.delete(ctx, provider_id)
    return EmptyResponse()


def _apply_view(provider: Provider, query: ProviderViewQuery) -> ProviderSummary | Provider:
    return provider if query.view == "full" else _summary(provider)


def _summary(provider: Provider) -> ProviderSummary:
    return ProviderSummary(provider.id, provider.entity_name, provider.abn, provider.email)
