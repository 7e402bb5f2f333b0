"""A delivery of a webhook: what was sent, each attempt with its response, and sending it again."""

from uuid import UUID

from msgspec import json

from plankeeper.console.pages.webhooks import WEBHOOKS_URL, get_or_404
from plankeeper.console.routing import FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.http.context import or_404
from plankeeper.http.errors import NotFound
from plankeeper.webhooks import delivery_store, service
from plankeeper.webhooks.payload import build_body
from plankeeper.webhooks.schemas import DeliveryDetails, PayloadFormat

pages = Pages()


@pages.get("/settings/webhooks/{endpoint_id}/deliveries/{delivery_id}", role="viewer")
async def get(request: PageRequest, endpoint_id: UUID, delivery_id: UUID) -> HtmlPage:
    endpoint = await get_or_404(request, endpoint_id)
    delivery = or_404(await delivery_store.get_details(request.db, request.plan_manager_id, endpoint_id, delivery_id))
    details = {each.attempt: each for each in delivery.attempt_details}
    context = {
        "endpoint": endpoint,
        "delivery": delivery,
        # The latest attempt first.
        "attempts": [*reversed([(each, details.get(number)) for number, each in enumerate(delivery.attempts, 1)])],
        "payload": format_payload(request.plan_manager_id, delivery, endpoint.payload),
    }
    return HtmlPage("webhook_delivery_page.html", context)


@pages.post("/settings/webhooks/{endpoint_id}/deliveries/{delivery_id}/retry", role="manager", on_error=get)
async def retry(request: FormRequest, endpoint_id: UUID, delivery_id: UUID) -> Redirect:
    if await delivery_store.get_endpoint_id(request.tx, request.plan_manager_id, delivery_id) != endpoint_id:
        raise NotFound
    await service.retry_delivery(request.write_context, delivery_id)
    url = f"{WEBHOOKS_URL}/{endpoint_id}/deliveries/{delivery_id}"
    return Redirect(url, "Delivery resent. Reload this page to see the result.")


def format_payload(plan_manager_id: UUID, delivery: DeliveryDetails, payload: PayloadFormat) -> str | None:
    """The body of the delivery's messages, indented; None if its event isn't kept any more."""
    if delivery.event_created_at is None or delivery.resource_kind is None or delivery.resource_id is None:
        return None
    body = build_body(
        delivery.event_type,
        delivery.event_created_at,
        plan_manager_id,
        delivery.resource_kind,
        delivery.resource_id,
        payload,
        delivery.data,
    )
    return json.format(body, indent=2).decode()
