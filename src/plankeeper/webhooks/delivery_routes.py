"""Webhook deliveries: list the deliveries of an endpoint, retry a delivery."""

from uuid import UUID

from plankeeper.events.event_types import EVENT_TYPES, unknown_type_message
from plankeeper.http.context import ReadContext, WriteContext
from plankeeper.http.errors import FieldError, NotFound, ValidationError
from plankeeper.http.pagination import Page, build_page, cut_page
from plankeeper.http.routing import READ, READ_AND_WRITE, Router
from plankeeper.webhooks import delivery_store, endpoint_store, service
from plankeeper.webhooks.schemas import DeliveryListQuery, WebhookDelivery

router = Router("webhook_deliveries")


@router.get("/webhook-endpoints/{webhook_endpoint_id}/deliveries", scope=READ, extension=True)
async def list_(ctx: ReadContext, webhook_endpoint_id: UUID, query: DeliveryListQuery) -> Page[WebhookDelivery]:
    """List the deliveries of a webhook endpoint. Each contains all its attempts."""
    if isinstance(query.event_type, str) and query.event_type not in EVENT_TYPES:
        message = unknown_type_message(query.event_type)
        allowed = sorted(EVENT_TYPES)
        raise ValidationError(FieldError("event_type", message, "not_allowed", location="query", allowed=[*allowed]))
    rows = await delivery_store.list_page(ctx.db, ctx.plan_manager_id, webhook_endpoint_id, query)
    if not rows and await endpoint_store.get(ctx.db, ctx.plan_manager_id, webhook_endpoint_id) is None:
        raise NotFound
    total = (
        None
        if query.uses_cursor
        else await delivery_store.count(ctx.db, ctx.plan_manager_id, webhook_endpoint_id, query)
    )
    return build_page(query, cut_page(rows, query.limit), total)


@router.post(
    "/webhook-deliveries/{webhook_delivery_id}/retry",
    scope=READ_AND_WRITE,
    extension=True,
    errors=("webhook_endpoint_inactive",),
)
async def retry(ctx: WriteContext, webhook_delivery_id: UUID) -> WebhookDelivery:
    """Retry a delivery. Attempts it once more immediately, whatever its status."""
    return await service.retry_delivery(ctx, webhook_delivery_id)
