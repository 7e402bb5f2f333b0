"""Webhook deliveries: list those of an endpoint, attempt one again."""

from dataclasses import replace
from uuid import UUID

from plankeeper.events.recorder import record_event
from plankeeper.http.context import ReadContext, WriteContext, or_404
from plankeeper.http.errors import NotFound
from plankeeper.http.pagination import Page, build_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.webhooks import delivery_store, endpoint_store
from plankeeper.webhooks.endpoint_routes import require_active
from plankeeper.webhooks.schemas import DeliveryListQuery, WebhookDelivery

router = Router("webhook_deliveries")


@router.get("/webhook-endpoints/{webhook_endpoint_id}/deliveries", scope=READ, extension=True)
async def list_(ctx: ReadContext, webhook_endpoint_id: UUID, query: DeliveryListQuery) -> Page[WebhookDelivery]:
    """List the deliveries of a webhook endpoint, with their attempts."""
    rows = await delivery_store.list_page(ctx.db, ctx.plan_manager_id, webhook_endpoint_id, query)
    if not rows and await endpoint_store.get(ctx.db, ctx.plan_manager_id, webhook_endpoint_id) is None:
        raise NotFound
    total = (
        None
        if query.uses_cursor
        else await delivery_store.count(ctx.db, ctx.plan_manager_id, webhook_endpoint_id, query)
    )
    return build_page(query, rows, total)


@router.post("/webhook-deliveries/{webhook_delivery_id}/retry", scope=WRITE, extension=True, conflicts=True)
async def retry(ctx: WriteContext, webhook_delivery_id: UUID) -> WebhookDelivery:
    """Attempt a delivery once more, now, whatever came of it before."""
    endpoint_id = or_404(await delivery_store.get_endpoint_id(ctx.tx, ctx.plan_manager_id, webhook_delivery_id))
    require_active(or_404(await endpoint_store.select_for_update(ctx.tx, ctx.plan_manager_id, endpoint_id)))
    delivery = or_404(await delivery_store.retry(ctx.tx, ctx.plan_manager_id, webhook_delivery_id))
    await record_event(replace(ctx, notify=False), "webhook_delivery.retried", None, delivery)
    return delivery
