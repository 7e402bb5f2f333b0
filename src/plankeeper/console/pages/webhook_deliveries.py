"""The deliveries of a webhook endpoint: a list, and for each its message and attempts, and sending it again."""

from uuid import UUID

from msgspec import UNSET, json

from plankeeper.console.lists.deliveries import deliveries_of
from plankeeper.console.lists.page import show_list
from plankeeper.console.lists.query import ListPageQuery
from plankeeper.console.lists.saved_views import parse_query_text
from plankeeper.console.lists.selection import download_list
from plankeeper.console.pages.webhooks import get_or_404
from plankeeper.console.pagination import with_query
from plankeeper.console.routing import Download, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.errors import NotFound
from plankeeper.events.disclosed import find_disclosed
from plankeeper.webhooks import delivery_store, service
from plankeeper.webhooks.messages import build_body
from plankeeper.webhooks.schemas import DeliveryDetails, PayloadFormat

pages = Pages()


@pages.get("/settings/webhooks/{endpoint_id}/deliveries", role="viewer")
async def list_(request: PageRequest, endpoint_id: UUID) -> HtmlPage:
    endpoint = await get_or_404(request, endpoint_id)
    return await show_list(request, deliveries_of(endpoint_id), "webhook_deliveries.html", endpoint=endpoint)


@pages.get("/settings/webhooks/{endpoint_id}/deliveries.csv", role="viewer")
async def download(request: PageRequest, endpoint_id: UUID) -> Download:
    await get_or_404(request, endpoint_id)
    return await download_list(request, deliveries_of(endpoint_id))


@pages.get("/settings/webhooks/{endpoint_id}/deliveries/{delivery_id}", role="viewer")
async def get(request: PageRequest, endpoint_id: UUID, delivery_id: UUID) -> HtmlPage:
    endpoint = await get_or_404(request, endpoint_id)
    delivery = or_404(await delivery_store.get_details(request.db, request.plan_manager_id, endpoint_id, delivery_id))
    query = find_list_query(request, endpoint_id)
    if endpoint.payload == "full" and delivery.event is not UNSET:
        for kind, id_ in find_disclosed(delivery.event.resource).items():
            request.record_access("viewed", kind, id_)
    details = {each.attempt: each for each in delivery.attempt_details}
    context = {
        "endpoint": endpoint,
        "delivery": delivery,
        "list_query": query.text,
        "list_url": query.url(),
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
    query = find_list_query(request, endpoint_id)
    url = with_query(query.definition.record_path(delivery_id), {"list": query.text})
    return Redirect(url, "Delivery resent. Reload this page to see the result.")


def find_list_query(request: PageRequest | FormRequest, endpoint_id: UUID) -> ListPageQuery:
    """The page of the list that the delivery was opened from; the first one without filters otherwise."""
    return parse_query_text(deliveries_of(endpoint_id), request.query.raw("list"), keep_page=True)


def format_payload(plan_manager_id: UUID, delivery: DeliveryDetails, payload: PayloadFormat) -> str | None:
    """The body of the delivery's messages, indented; None if its event was deleted."""
    if delivery.event is UNSET:
        return None
    return json.format(build_body(delivery.event, plan_manager_id, payload, delivery.event_type), indent=2).decode()
