"""Webhook deliveries: list the deliveries of an endpoint, get or retry a delivery."""

from uuid import UUID

from msgspec import UNSET

from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.errors import FieldError, NotFound, ValidationError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.lists import Page, build_page, cut_page
from plankeeper.events.event_types import EVENT_TYPES, unknown_type_message
from plankeeper.http.routing import READ, READ_AND_WRITE, Router
from plankeeper.webhooks import delivery_store, endpoint_store, service
from plankeeper.webhooks.delivery_store import DeliveryFilter, id_bounds
from plankeeper.webhooks.schemas import DeliveryListQuery, WebhookDelivery

router = Router("webhook_deliveries")


@router.get("/webhook-endpoints/{webhook_endpoint_id}/deliveries", scope=READ, extension=True)
async def list_(ctx: ReadContext, webhook_endpoint_id: UUID, query: DeliveryListQuery) -> Page[WebhookDelivery]:
    """List the deliveries of a webhook endpoint. Each contains all its attempts. Supports cursors only."""
    if isinstance(query.event_type, str) and query.event_type not in EVENT_TYPES:
        message = unknown_type_message(query.event_type)
        allowed = sorted(EVENT_TYPES)
        raise ValidationError(FieldError("event_type", message, "not_allowed", location="query", allowed=[*allowed]))
    filters = _delivery_filter(query)
    read = delivery_store.list_newest if query.is_reversed else delivery_store.list_oldest
    rows = await read(ctx.db, ctx.plan_manager_id, webhook_endpoint_id, filters, query.limit + 1)
    if not rows and await endpoint_store.get(ctx.db, ctx.plan_manager_id, webhook_endpoint_id) is None:
        raise NotFound
    return build_page(query, cut_page(rows, query.limit), None)


def _delivery_filter(query: DeliveryListQuery) -> DeliveryFilter:
    """The filter of a page: with the deliveries after its cursor, or before it if the newest one comes first."""
    times = (unset_to_none(query.created_since), unset_to_none(query.created_until))
    after, before = id_bounds(*times)
    if query.after not in (UNSET, "0"):
        cursor = UUID(query.start)
        if query.is_reversed:
            before = min(cursor, before or cursor)
        else:
            after = max(cursor, after or cursor)
    event_id = unset_to_none(query.event_id)
    return DeliveryFilter(
        after,
        before,
        unset_to_none(query.status),
        unset_to_none(query.event_type),
        *times,
        event_id=UUID(event_id) if event_id else None,
    )


@router.get("/webhook-deliveries/{webhook_delivery_id}", scope=READ, extension=True, has_etag=True)
async def get(ctx: ReadContext, webhook_delivery_id: UUID) -> WebhookDelivery:
    """Get a webhook delivery. It contains all its attempts."""
    return or_404(await delivery_store.get(ctx.db, ctx.plan_manager_id, webhook_delivery_id))


@router.post(
    "/webhook-deliveries/{webhook_delivery_id}/retry",
    scope=READ_AND_WRITE,
    extension=True,
    errors=("webhook_endpoint_inactive",),
)
async def retry(ctx: WriteContext, webhook_delivery_id: UUID) -> WebhookDelivery:
    """Retry a delivery. Attempts it once more immediately, whatever its status."""
    return await service.retry_delivery(ctx, webhook_delivery_id)
