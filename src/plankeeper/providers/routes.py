"""Providers: list, create, get, update, delete."""

from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.events.recorder import record_event
from plankeeper.http.context import Read, Write, found
from plankeeper.http.pagination import page_of
from plankeeper.http.routing import READ, WRITE, Routes
from plankeeper.http.schemas import Empty, Page, applied, json_text
from plankeeper.providers import store
from plankeeper.providers.queries import count, list_page
from plankeeper.providers.schemas import ProviderSummary, Provider, ProviderUpdate, ProviderListQuery, ProviderViewQuery


async def _select_for_update(ctx: Write, provider_id: UUID) -> Provider | None:
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [provider_id])
    return rows[0] if rows else None


routes = Routes("providers", lock=_select_for_update)


@routes.get("/providers", need=READ, extension=True)
async def list_(ctx: Read, query: ProviderListQuery) -> Page[ProviderSummary] | Page[Provider]:
    """List providers."""
    rows = await list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.by_cursor else await count(ctx.db, ctx.plan_manager_id, query)
    full_page = page_of(query, rows, total)
    if query.view == "full":
        return full_page
    return Page([_summary(provider) for provider in full_page.data], full_page.pagination)


@routes.post("/providers", need=WRITE)
async def create(ctx: Write, query: ProviderViewQuery, change: ProviderUpdate) -> ProviderSummary | Provider:
    """Create a provider."""
    after = applied(change, Provider(id=uuid7(), created_at=datetime.now(UTC)))
    await store.upsert(ctx.tx, ctx.plan_manager_id, json_text([after]))
    await record_event(ctx, "provider.created", None, after)
    return _apply_view(after, query)


@routes.get("/providers/{provider_id}", need=READ)
async def get(ctx: Read, provider_id: UUID, query: ProviderViewQuery) -> ProviderSummary | Provider:
    """Get a provider."""
    return _apply_view(found(await store.get(ctx.db, ctx.plan_manager_id, provider_id)), query)


@routes.put("/providers/{provider_id}", need=WRITE, extension=True)
async def update(
    ctx: Write, provider_id: UUID, query: ProviderViewQuery, change: ProviderUpdate
) -> ProviderSummary | Provider:
    """Update a provider. Absent members stay as they are; null clears."""
    before = found(await _select_for_update(ctx, provider_id))
    after = applied(change, before)
    if after != before:
        await store.upsert(ctx.tx, ctx.plan_manager_id, json_text([after]))
        await record_event(ctx, "provider.updated", before, after)
    return _apply_view(after, query)


@routes.delete("/providers/{provider_id}", need=WRITE)
async def delete(ctx: Write, provider_id: UUID) -> Empty:
    """Delete a provider for good. Its invoices stay, and keep its id."""
    before = found(await store.delete(ctx.tx, ctx.plan_manager_id, provider_id))
    await record_event(ctx, "provider.deleted", before, None)
    return Empty()


def _apply_view(provider: Provider, query: ProviderViewQuery) -> ProviderSummary | Provider:
    return provider if query.view == "full" else _summary(provider)


def _summary(provider: Provider) -> ProviderSummary:
    return ProviderSummary(provider.id, provider.entity_name, provider.abn, provider.email)
