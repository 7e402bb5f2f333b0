"""Settings, webhooks: endpoints, test messages, deliveries, replays."""

from datetime import UTC, date, datetime, time
from typing import Any, TypeVar
from uuid import UUID

from msgspec import Struct

from plankeeper.console.event_type_choices import ALL, event_type_groups, simplify_patterns
from plankeeper.console.forms import validate_struct
from plankeeper.console.lists.deliveries import deliveries_path
from plankeeper.console.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.console.webhook_charts import attempt_strips, attempts_by_hour, first_hour
from plankeeper.core.context import or_404
from plankeeper.core.dates import DateError, parse_date, parse_time
from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.webhooks import attempt_count_store, delivery_store, endpoint_store, service
from plankeeper.webhooks.delivery_store import DeliveryFilter
from plankeeper.webhooks.schemas import (
    TEST_TYPE,
    ReplayRequest,
    WebhookEndpoint,
    WebhookEndpointCreate,
    WebhookEndpointListQuery,
    WebhookEndpointUpdate,
)

T = TypeVar("T", bound=Struct)

pages = Pages()

WEBHOOKS_URL = f"{PREFIX}/settings/webhooks"
LATEST_DELIVERIES = 10  # on the page of an endpoint
MIN_YEAR = 2000  # no event is older


@pages.get("/settings/webhooks", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    endpoints = await endpoint_store.list_page(
        request.db, request.plan_manager_id, WebhookEndpointListQuery(limit=1000)
    )
    failing = await endpoint_store.list_failing(request.db, request.plan_manager_id)
    now = datetime.now(UTC)
    hours = await attempt_count_store.list_since(request.db, request.plan_manager_id, None, first_hour(now))
    context = {
        "endpoints": endpoints,
        "failing": {each.id: each for each in failing},
        "strips": attempt_strips(hours, now),
    }
    return HtmlPage("webhooks.html", context)


@pages.get("/settings/webhooks/new", role="manager")
async def new(_request: PageRequest) -> HtmlPage:
    return HtmlPage("webhook_new.html", {"groups": event_type_groups()})


@pages.post("/settings/webhooks", role="manager", on_error=new)
async def create(request: FormRequest) -> HtmlPage:
    created = await service.create(request.write_context, parse_form(request, WebhookEndpointCreate))
    return HtmlPage("webhook_created.html", {"endpoint": created, "is_new": True})


def parse_form(request: FormRequest, struct_type: type[T]) -> T:
    """The endpoint of a form. Raises ValidationError with all errors; without any event, with one in plain words."""
    event_types = simplify_patterns(request.form.getlist("event_types"))
    values: dict[str, Any] = {
        "url": request.form.text("url"),
        "payload": request.form.text("payload") or "thin",
        "description": request.form.text("description") or None,
    }
    if event_types:
        return validate_struct(struct_type, values | {"event_types": event_types})
    errors = [FieldError("event_types", "must have at least one type, or all events")]
    try:
        validate_struct(struct_type, values | {"event_types": [ALL]})
    except ValidationError as error:
        errors = [*(error.errors or ()), *errors]
    raise ValidationError(*errors)


@pages.get("/settings/webhooks/{endpoint_id}", role="viewer")
async def get(request: PageRequest, endpoint_id: UUID) -> HtmlPage:
    endpoint = await get_or_404(request, endpoint_id)
    latest = (endpoint_id, DeliveryFilter(), LATEST_DELIVERIES)
    failing = await endpoint_store.list_failing(request.db, request.plan_manager_id)
    now, zone = datetime.now(UTC), request.settings.time_zone
    hours = await attempt_count_store.list_since(request.db, request.plan_manager_id, endpoint_id, first_hour(now))
    context = {
        "endpoint": endpoint,
        "failing": next((each for each in failing if each.id == endpoint_id), None),
        "chart": attempts_by_hour(hours, now, zone, deliveries_path(endpoint_id)),
        "deliveries": await delivery_store.list_newest(request.db, request.plan_manager_id, *latest),
        "zone": zone.key,
        "test_types": [(each.name, {type_: type_ for type_ in each.types}) for each in event_type_groups()],
        "test_type": TEST_TYPE,
    }
    return HtmlPage("webhook.html", context)


@pages.get("/settings/webhooks/{endpoint_id}/edit", role="manager")
async def edit(request: PageRequest, endpoint_id: UUID) -> HtmlPage:
    endpoint = await get_or_404(request, endpoint_id)
    return HtmlPage("webhook_edit.html", {"endpoint": endpoint, "groups": event_type_groups()})


@pages.post("/settings/webhooks/{endpoint_id}/edit", role="manager", on_error=edit)
async def update(request: FormRequest, endpoint_id: UUID) -> Redirect:
    change = parse_form(request, WebhookEndpointUpdate)
    await service.update(request.write_context, endpoint_id, change)
    return Redirect(f"{WEBHOOKS_URL}/{endpoint_id}", "Endpoint saved.")


@pages.post("/settings/webhooks/{endpoint_id}/test", role="manager", on_error=get)
async def test(request: FormRequest, endpoint_id: UUID) -> Redirect:
    await service.send_test(request.write_context, endpoint_id, request.form.text("type") or TEST_TYPE)
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
    since = _parse_since(request)
    result = await service.replay(request.write_context, endpoint_id, ReplayRequest(since=since))
    messages = {0: "No events", 1: "1 event"}.get(result.events, f"{result.events:,} events")
    return Redirect(f"{WEBHOOKS_URL}/{endpoint_id}", f"{messages} resent.")


def _parse_since(request: FormRequest) -> datetime:
    """The date and the time of the form, in the time zone of the console. Raises ValidationError."""
    errors = list[FieldError]()
    day, moment = date.min, time()
    try:
        day = parse_date(request.form.text("since"))
    except DateError as error:
        errors.append(FieldError("since", str(error)))
    try:
        moment = parse_time(request.form.text("since_time"))
    except DateError as error:
        errors.append(FieldError("since_time", str(error)))
    if not errors and day.year < MIN_YEAR:
        errors.append(FieldError("since", f"must be in {MIN_YEAR} or later"))
    since = datetime.combine(max(day, date(MIN_YEAR, 1, 1)), moment, request.settings.time_zone)
    if not errors and since > datetime.now(UTC):
        errors.append(FieldError("since", "must not be in the future"))
    if errors:
        raise ValidationError(*errors)
    return since


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
