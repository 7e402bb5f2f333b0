"""Providers: list, create, get, update, delete."""

from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.events.recorder import record_event
from plankeeper.http.context import ReadContext, WriteContext, or_404
from plankeeper.http.json import to_json
from plankeeper.http.pagination import Page, build_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.http.schemas import EmptyResponse, apply_patch
from plankeeper.providers import store
from plankeeper.providers.queries import count, list_page
from plankeeper.providers.schemas import Provider, ProviderListQuery, ProviderSummary, ProviderUpdate, ProviderViewQuery


async def _select_for_update(ctx: WriteContext, provider_id: UUID) -> Provider | None:
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [provider_id])
    return rows[0] if rows else None


router = Router("providers", lock=_select_for_update)


@router.get("/providers", scope=READ, extension=True)
async def list_(ctx: ReadContext, query: ProviderListQuery) -> Page[ProviderSummary] | Page[Provider]:
    """List providers."""
    rows = await list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.uses_cursor else await count(ctx.db, ctx.plan_manager_id, query)
    full_page = build_page(query, rows, total)
    if query.view == "full":
        return full_page
    return Page([_summary(provider) for provider in full_page.data], full_page.pagination)


@router.post("/providers", scope=WRITE)
async def create(ctx: WriteContext, query: ProviderViewQuery, change: ProviderUpdate) -> ProviderSummary | Provider:
    """Create a provider."""
    after = apply_patch(change, Provider(id=uuid7(), created_at=datetime.now(UTC)))
    await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([after]))
    await record_event(ctx, "provider.created", None, after)
    return _apply_view(after, query)


@router.get(
    "/providers/{provider_id}", scope=READ, etag=True, views=(ProviderViewQuery(), ProviderViewQuery(view="full"))
)
async def get(ctx: ReadContext, provider_id: UUID, query: ProviderViewQuery) -> ProviderSummary | Provider:
    """Get a provider."""
    return _apply_view(or_404(await store.get(ctx.db, ctx.plan_manager_id, provider_id)), query)


@router.put("/providers/{provider_id}", scope=WRITE, extension=True)
async def update(
    ctx: WriteContext, provider_id: UUID, query: ProviderViewQuery, change: ProviderUpdate
) -> ProviderSummary | Provider:
    """Update a provider. Absent members stay as they are; null clears."""
    before = or_404(await _select_for_update(ctx, provider_id))
    after = apply_patch(change, before)
    if after != before:
        await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([after]))
        await record_event(ctx, "provider.updated", before, after)
    return _apply_view(after, query)


@router.delete("/providers/{provider_id}", scope=WRITE)
async def delete(ctx: WriteContext, provider_id: UUID) -> EmptyResponse:
    """Delete a provider for good. Its invoices stay, and keep its id."""
    before = or_404(await store.delete(ctx.tx, ctx.plan_manager_id, provider_id))
    await record_event(ctx, "provider.deleted", before, None)
    return EmptyResponse()


def _apply_view(provider: Provider, query: ProviderViewQuery) -> ProviderSummary | Provider:
    return provider if query.view == "full" else _summary(provider)


def _summary(provider: Provider) -> ProviderSummary:
    return ProviderSummary(provider.id, provider.entity_name, provider.abn, provider.email)
