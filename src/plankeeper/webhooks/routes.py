"""Webhook endpoints: list, create, get, update, delete, rotate the secret, test, replay."""

from uuid import UUID

from msgspec import UnsetType

from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.fields import EmptyResponse
from plankeeper.core.lists import Page, read_page
from plankeeper.http.routing import READ, READ_AND_WRITE, Router
from plankeeper.webhooks import endpoint_store, service
from plankeeper.webhooks.schemas import (
    TEST_TYPE,
    ReplayRequest,
    ReplayResponse,
    WebhookEndpoint,
    WebhookEndpointCreate,
    WebhookEndpointListQuery,
    WebhookEndpointUpdate,
    WebhookEndpointWithSecret,
    WebhookTestRequest,
    WebhookTestResponse,
)

router = Router("webhook_endpoints", lock=service.select_for_update)


@router.get("/webhook-endpoints", scope=READ, extension=True)
async def list_(ctx: ReadContext, query: WebhookEndpointListQuery) -> Page[WebhookEndpoint]:
    """List webhook endpoints. Their secrets are omitted."""
    return await read_page(
        query, endpoint_store.list_page, endpoint_store.LIST.count_matching, ctx.db, ctx.plan_manager_id
    )


@router.post(
    "/webhook-endpoints",
    scope=READ_AND_WRITE,
    extension=True,
    status=201,
    errors=("too_many_webhook_endpoints",),
    creates=True,
    has_secret=True,
)
async def create(ctx: WriteContext, new: WebhookEndpointCreate) -> WebhookEndpointWithSecret:
    """Create a webhook endpoint. It receives events from now on. Only this response contains its secret."""
    return await service.create(ctx, new)


@router.get("/webhook-endpoints/{webhook_endpoint_id}", scope=READ, extension=True, has_etag=True)
async def get(ctx: ReadContext, webhook_endpoint_id: UUID) -> WebhookEndpoint:
    """Get a webhook endpoint. Its secret is omitted."""
    return or_404(await endpoint_store.get(ctx.db, ctx.plan_manager_id, webhook_endpoint_id))


@router.put("/webhook-endpoints/{webhook_endpoint_id}", scope=READ_AND_WRITE, extension=True)
async def update(ctx: WriteContext, webhook_endpoint_id: UUID, change: WebhookEndpointUpdate) -> WebhookEndpoint:
    """Update a webhook endpoint. Omitted fields keep their values. A paused endpoint receives no new deliveries."""
    return await service.update(ctx, webhook_endpoint_id, change)


@router.delete("/webhook-endpoints/{webhook_endpoint_id}", scope=READ_AND_WRITE, extension=True)
async def delete(ctx: WriteContext, webhook_endpoint_id: UUID) -> EmptyResponse:
    """Delete a webhook endpoint. This is permanent, and includes its deliveries."""
    await service.delete(ctx, webhook_endpoint_id)
    return EmptyResponse()


@router.post(
    "/webhook-endpoints/{webhook_endpoint_id}/rotate-secret", scope=READ_AND_WRITE, extension=True, has_secret=True
)
async def rotate_secret(ctx: WriteContext, webhook_endpoint_id: UUID) -> WebhookEndpointWithSecret:
    """Replace the secret. Messages carry signatures with both secrets for 24 hours, so that receivers can switch."""
    return await service.rotate_secret(ctx, webhook_endpoint_id)


@router.post(
    "/webhook-endpoints/{webhook_endpoint_id}/test",
    scope=READ_AND_WRITE,
    extension=True,
    errors=("webhook_endpoint_inactive",),
    optional_body=True,
)
async def test(ctx: WriteContext, webhook_endpoint_id: UUID, request: WebhookTestRequest) -> WebhookTestResponse:
    """Test a webhook endpoint. It receives the example of an event type, whatever event types it has.

    Without a body, it receives a `webhook_endpoint.tested` event. The `sequence` of a test is null.
    """
    type_ = TEST_TYPE if isinstance(request.type, UnsetType) else request.type
    return await service.send_test(ctx, webhook_endpoint_id, type_)


@router.post(
    "/webhook-endpoints/{webhook_endpoint_id}/replay",
    scope=READ_AND_WRITE,
    extension=True,
    errors=("webhook_endpoint_inactive",),
)
async def replay(ctx: WriteContext, webhook_endpoint_id: UUID, request: ReplayRequest) -> ReplayResponse:
    """Send events again. The endpoint receives every event since a time that matches its event types, in order."""
    return await service.replay(ctx, webhook_endpoint_id, request)
