"""Providers: list, create, get, update, delete."""

from typing import cast
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.http.bulk import MAX_BODY_BYTES, BulkResult
from plankeeper.http.context import ReadContext, WriteContext, only_or_404, or_404
from plankeeper.http.pagination import VIEWS, Page, PageRows, ViewQuery, build_page, in_order
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.http.schemas import EmptyResponse
from plankeeper.providers import service, store
from plankeeper.providers.queries import count, list_page
from plankeeper.providers.schemas import (
    Provider,
    ProviderBulk,
    ProviderDetails,
    ProviderListQuery,
    ProviderSummary,
    ProviderUpdate,
)

router = Router("providers", lock=service.select_for_update)


@router.get("/providers", scope=READ, extension=True)
async def list_(ctx: ReadContext, query: ProviderListQuery) -> Page[ProviderSummary] | Page[ProviderDetails]:
    """List providers. Filters are combined with AND."""
    rows = await list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.uses_cursor else await count(ctx.db, ctx.plan_manager_id, query)
    if query.view == "full":
        return build_page(query, cast("PageRows[ProviderDetails]", rows), total)
    summaries = PageRows(map(_summary, rows), has_more=rows.has_more, next_cursor=rows.next_cursor)
    return build_page(query, summaries, total)


@router.post("/providers", scope=WRITE, creates=True)
async def create(ctx: WriteContext, query: ViewQuery, change: ProviderUpdate) -> ProviderSummary | ProviderDetails:
    """Create a provider. No member is required."""
    created = await service.create(ctx, change)
    return await _view(ctx.tx, ctx.plan_manager_id, created, query)


@router.post("/providers/bulk", scope=WRITE, extension=True, max_body_bytes=MAX_BODY_BYTES)
async def save_many(
    ctx: WriteContext, query: ViewQuery, bulk: ProviderBulk
) -> BulkResult[ProviderSummary] | BulkResult[ProviderDetails]:
    """Create and update up to 500 providers. Either all items are saved, or none."""
    saved = await service.save_many(ctx, bulk.items)
    if query.view != "full":
        return BulkResult([_summary(each) for each in saved])
    ids = [each.id for each in saved]
    return BulkResult(in_order(ids, await store.get_many_details(ctx.tx, ctx.plan_manager_id, ids)))


@router.get("/providers/{provider_id}", scope=READ, etag=True, views=VIEWS)
async def get(ctx: ReadContext, provider_id: UUID, query: ViewQuery) -> ProviderSummary | ProviderDetails:
    """Get a provider. Returns the basic shape, unless `view` asks for the full shape."""
    if query.view == "full":
        return or_404(await ctx.db.load(store.get_many_details, ctx.plan_manager_id, provider_id))
    return _summary(or_404(await store.get(ctx.db, ctx.plan_manager_id, provider_id)))


@router.put("/providers/{provider_id}", scope=WRITE, extension=True)
async def update(
    ctx: WriteContext, provider_id: UUID, query: ViewQuery, change: ProviderUpdate
) -> ProviderSummary | ProviderDetails:
    """Update a provider. Omitted members keep their values; null clears a value."""
    updated = await service.update(ctx, provider_id, change)
    return await _view(ctx.tx, ctx.plan_manager_id, updated, query)


@router.delete("/providers/{provider_id}", scope=WRITE)
async def delete(ctx: WriteContext, provider_id: UUID) -> EmptyResponse:
    """Delete a provider permanently. Its invoices remain and keep its id."""
    await service.delete(ctx, provider_id)
    return EmptyResponse()


async def _view(
    db: Executor, plan_manager_id: UUID, provider: Provider, query: ViewQuery
) -> ProviderSummary | ProviderDetails:
    """A provider that was written, in the shape that the request asks for."""
    if query.view == "full":
        return only_or_404(await store.get_many_details(db, plan_manager_id, [provider.id]))
    return _summary(provider)


def _summary(provider: Provider) -> ProviderSummary:
    return ProviderSummary(provider.id, provider.entity_name, provider.abn, provider.email)
