"""Settings, webhooks: endpoints, test messages, deliveries, replays."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from plankeeper.console.forms import validate_struct
from plankeeper.console.routing import PREFIX, FormRequest, HtmlPage, PageRequest, PageResult, Pages, Redirect
from plankeeper.http.context import or_404
from plankeeper.http.errors import NotFound, ValidationError
from plankeeper.http.parsing import parse_uuid
from plankeeper.webhooks import delivery_store, endpoint_store, service
from plankeeper.webhooks.schemas import (
    ReplayRequest,
    WebhookEndpoint,
    WebhookEndpointCreate,
    WebhookEndpointListQuery,
    WebhookEndpointUpdate,
)

pages = Pages()

WEBHOOKS_URL = f"{PREFIX}/settings/webhooks"
PAGE_SIZE = 50
STATUSES = ("pending", "succeeded", "failed", "cancelled")


@pages.get("/settings/webhooks", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    endpoints = await endpoint_store.list_page(
        request.db, request.plan_manager_id, WebhookEndpointListQuery(limit=1000)
    )
    return HtmlPage("webhooks.html", {"endpoints": endpoints})


@pages.get("/settings/webhooks/new", role="manager")
async def new(_request: PageRequest) -> HtmlPage:
    return HtmlPage("webhook_new.html")


@pages.post("/settings/webhooks", role="manager", on_error=new)
async def create(request: FormRequest) -> HtmlPage:
    values: dict[str, Any] = {"url": request.form.text("url"), "payload": request.form.text("payload") or "thin"}
    values["description"] = request.form.text("description") or None
    values["event_types"] = request.form.text("event_types").replace(",", " ").split() or ["*"]
    created = await service.create(request.write_context, validate_struct(WebhookEndpointCreate, values))
    return HtmlPage("webhook_created.html", {"endpoint": created, "is_new": True})


@pages.get("/settings/webhooks/{endpoint_id}", role="viewer")
async def get(request: PageRequest, endpoint_id: UUID) -> HtmlPage:
    endpoint = await get_or_404(request, endpoint_id)
    status, before = request.query.text("status"), request.query.text("before")
    rows = await delivery_store.latest(
        request.db,
        request.plan_manager_id,
        endpoint_id,
        parse_uuid(before),
        status if status in STATUSES else None,
        PAGE_SIZE + 1,
    )
    older = rows[PAGE_SIZE - 1].id if len(rows) > PAGE_SIZE else None
    context = {"deliveries": rows[:PAGE_SIZE], "older": older, "status": status, "statuses": STATUSES, "before": before}
    return HtmlPage("webhook.html", {"endpoint": endpoint, **context})


@pages.post("/settings/webhooks/{endpoint_id}/test", role="manager", on_error=get)
async def test(request: FormRequest, endpoint_id: UUID) -> Redirect:
    await service.send_test(request.write_context, endpoint_id)
    return Redirect(f"{WEBHOOKS_URL}/{endpoint_id}", "Test event sent. Reload this page to see the result.")


@pages.post("/settings/webhooks/{endpoint_id}/pause", role="manager")
async def pause(request: FormRequest, endpoint_id: UUID) -> Redirect:
    await service.update(request.write_context, endpoint_id, WebhookEndpointUpdate(active=False))
    return Redirect(f"{WEBHOOKS_URL}/{endpoint_id}", "Endpoint paused. No events are sent until you resume it.")


@pages.post("/settings/webhooks/{endpoint_id}/resume", role="manager")
async def resume(request: FormRequest, endpoint_id: UUID) -> Redirect:
    await service.update(request.write_context, endpoint_id, WebhookEndpointUpdate(active=True))
    return Redirect(
        f"{WEBHOOKS_URL}/{endpoint_id}",
        "Endpoint resumed. To send the missed events, resend all events since it was paused.",
    )


@pages.post("/settings/webhooks/{endpoint_id}/replay", role="manager", on_error=get)
async def replay(request: FormRequest, endpoint_id: UUID) -> Redirect:
    try:
        parsed = datetime.fromisoformat(request.form.text("since"))
    except ValueError:
        raise ValidationError(since="must be a date and time, such as 2026-11-21T15:04") from None
    if parsed.year < 2:
        raise ValidationError(since="must be in year 2 or later")
    since = parsed.replace(tzinfo=parsed.tzinfo or request.settings.time_zone)
    if since > datetime.now(UTC):
        raise ValidationError(since="must not be in the future")
    result = await service.replay(request.write_context, endpoint_id, ReplayRequest(since=since))
    messages = {0: "No events", 1: "1 event"}.get(result.events, f"{result.events:,} events")
    return Redirect(f"{WEBHOOKS_URL}/{endpoint_id}", f"{messages} resent.")


@pages.get("/settings/webhooks/{endpoint_id}/rotate-secret", role="manager")
async def rotate_form(request: PageRequest, endpoint_id: UUID) -> HtmlPage:
    return HtmlPage("webhook_rotate.html", {"endpoint": await get_or_404(request, endpoint_id)})


@pages.post("/settings/webhooks/{endpoint_id}/rotate-secret", role="manager")
async def rotate_secret(request: FormRequest, endpoint_id: UUID) -> HtmlPage:
    return HtmlPage(
        "webhook_created.html",
        {"endpoint": await service.rotate_secret(request.write_context, endpoint_id), "is_new": False},
    )


@pages.get("/settings/webhooks/{endpoint_id}/delete", role="manager")
async def delete_form(request: PageRequest, endpoint_id: UUID) -> HtmlPage:
    return HtmlPage("webhook_delete.html", {"endpoint": await get_or_404(request, endpoint_id)})


@pages.post("/settings/webhooks/{endpoint_id}/delete", role="manager")
async def delete(request: FormRequest, endpoint_id: UUID) -> Redirect:
    await service.delete(request.write_context, endpoint_id)
    return Redirect(WEBHOOKS_URL, "Endpoint and its deliveries deleted.")


async def get_or_404(request: PageRequest, endpoint_id: UUID) -> WebhookEndpoint:
    return or_404(await endpoint_store.get(request.db, request.plan_manager_id, endpoint_id))


async def _get_after_retry(request: PageRequest, endpoint_id: UUID, delivery_id: UUID) -> PageResult:  # noqa: ARG001 - the path has it
    return await get(request, endpoint_id)


@pages.post(
    "/settings/webhooks/{endpoint_id}/deliveries/{delivery_id}/retry", role="manager", on_error=_get_after_retry
)
async def retry(request: FormRequest, endpoint_id: UUID, delivery_id: UUID) -> Redirect:
    if await delivery_store.get_endpoint_id(request.tx, request.plan_manager_id, delivery_id) != endpoint_id:
        raise NotFound
    await service.retry_delivery(request.write_context, delivery_id)
    return Redirect(f"{WEBHOOKS_URL}/{endpoint_id}", "Delivery resent.")
