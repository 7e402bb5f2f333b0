"""Providers: list, create, get, update, delete."""

from uuid import UUID

from plankeeper.core.bulk import MAX_BODY_BYTES, BulkResult
from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.fields import EmptyResponse
from plankeeper.core.lists import Page, read_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.resources.providers import service, store
from plankeeper.resources.providers.queries import count, list_page
from plankeeper.resources.providers.schemas import (
    Provider,
    ProviderBulk,
    ProviderBulkQuery,
    ProviderListQuery,
    ProviderUpdate,
)

router = Router("providers", service.CONSTRAINT_ERRORS, lock=service.select_for_update)


@router.get("/providers", scope=READ, extension=True)
async def list_(ctx: ReadContext, query: ProviderListQuery) -> Page[Provider]:
    """List providers. Filters are combined with AND."""
    return await read_page(query, list_page, count, ctx.db, ctx.plan_manager_id)


@router.post("/providers", scope=WRITE, creates=True)
async def create(ctx: WriteContext, change: ProviderUpdate) -> Provider:
    """Create a provider. No field is required."""
    return await service.create(ctx, change)


@router.post(
    "/providers/bulk", scope=WRITE, extension=True, max_body_bytes=MAX_BODY_BYTES, find_errors=service.find_errors
)
async def save_many(ctx: WriteContext, query: ProviderBulkQuery, bulk: ProviderBulk) -> BulkResult[Provider]:
    """Create and update up to 500 providers. Either all items are saved, or none."""
    return BulkResult(await service.save_many(ctx, query, bulk.items))


@router.get("/providers/{provider_id}", scope=READ, has_etag=True)
async def get(ctx: ReadContext, provider_id: UUID) -> Provider:
    """Get a provider. Inactive providers are found, too."""
    return or_404(await store.get(ctx.db, ctx.plan_manager_id, provider_id))


@router.put("/providers/{provider_id}", scope=WRITE, extension=True)
async def update(ctx: WriteContext, provider_id: UUID, change: ProviderUpdate) -> Provider:
    """Update a provider. Omitted fields keep their values; null clears a value."""
    return await service.update(ctx, provider_id, change)


@router.delete("/providers/{provider_id}", scope=WRITE)
async def delete(ctx: WriteContext, provider_id: UUID) -> EmptyResponse:
    """Delete a provider permanently. Its invoices remain and keep its id."""
    await service.delete(ctx, provider_id)
    return EmptyResponse()
