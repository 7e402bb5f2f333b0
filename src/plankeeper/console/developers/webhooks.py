"""Settings, webhooks: endpoints, test messages, deliveries, replays."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from msgspec import UNSET, Struct, json

from plankeeper.console.components.chart_geometry import Chart, Series
from plankeeper.console.components.charts import (
    StackedBar,
    Unit,
    stacked_bar_chart,
)
from plankeeper.console.components.events import ALL, event_type_groups, simplify_patterns
from plankeeper.console.components.pagination import with_query
from plankeeper.console.developers.deliveries import deliveries_of, deliveries_path
from plankeeper.console.lists.filters import time_param
from plankeeper.console.lists.page import show_list
from plankeeper.console.lists.query import ListPageQuery
from plankeeper.console.lists.saved_views import parse_query_text
from plankeeper.console.lists.selection import download_list
from plankeeper.console.shell.form_reader import FormReader
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.context import or_404
from plankeeper.core.dates import DateError, parse_time
from plankeeper.core.errors import FieldError, NotFound, ValidationError
from plankeeper.core.files import Download
from plankeeper.core.formatting import format_datetime
from plankeeper.core.validation import validate_struct
from plankeeper.events.schemas import find_disclosed
from plankeeper.webhooks import (
    attempts,
    delivery_store,
    endpoint_store,
    service,
)
from plankeeper.webhooks.delivery_store import DeliveryFilter
from plankeeper.webhooks.messages import build_body
from plankeeper.webhooks.schemas import (
    TEST_TYPE,
    AttemptHour,
    DeliveryDetails,
    PayloadFormat,
    ReplayRequest,
    WebhookEndpoint,
    WebhookEndpointCreate,
    WebhookEndpointListQuery,
    WebhookEndpointUpdate,
)

HOURS = 24
STRIP_HEIGHT = 28
ATTEMPTS = Unit("attempt", "attempts")
SERIES = (Series("Succeeded", "accent"), Series("Failed", "bad"))


@dataclass(frozen=True, slots=True)
class HealthStrip:
    """Bars of 24 hours, 4 units each, as two paths: the page of all endpoints stays small."""

    summary: str
    succeeded: str
    failed: str


def first_hour(now: datetime) -> datetime:
    """The beginning of the first bar."""
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)


def attempts_by_hour(hours: Sequence[AttemptHour], now: datetime, zone: ZoneInfo, path: str) -> Chart:
    """The attempts of one endpoint in the last HOURS hours. Each bar leads to the list at `path`, of its hour."""
    bars = _bars(hours, now, zone, path)
    return stacked_bar_chart(f"Attempts by hour, last {HOURS} hours", SERIES, bars, unit=ATTEMPTS, head="Hour")


def attempt_strips(hours: Sequence[AttemptHour], now: datetime) -> dict[UUID, HealthStrip]:
    """The same for each endpoint that had attempts, as small bars for a list."""
    by_endpoint: defaultdict[UUID, list[AttemptHour]] = defaultdict(list)
    for each in hours:
        by_endpoint[each.webhook_endpoint_id].append(each)
    return {endpoint_id: _strip(of_endpoint, first_hour(now)) for endpoint_id, of_endpoint in by_endpoint.items()}


def _strip(hours: Sequence[AttemptHour], first: datetime) -> HealthStrip:
    highest = max(each.succeeded + each.failed for each in hours)
    succeeded, failed = "", ""
    for each in hours:
        x, top = 4 * ((each.hour - first) // timedelta(hours=1)), STRIP_HEIGHT
        # A failure is visible, however many attempts succeeded.
        red = max(round(STRIP_HEIGHT * each.failed / highest), 2) if each.failed else 0
        green = max(round(STRIP_HEIGHT * each.succeeded / highest), 1) if each.succeeded else 0
        green = min(green, STRIP_HEIGHT - red)
        succeeded += f"M{x} {top}v-{green}h3v{green}z" if green else ""
        failed += f"M{x} {top - green}v-{red}h3v{red}z" if red else ""
    return HealthStrip(_summary(hours), succeeded, failed)


def _summary(hours: Sequence[AttemptHour]) -> str:
    succeeded, failed = sum(each.succeeded for each in hours), sum(each.failed for each in hours)
    return f"Last {HOURS} hours: {ATTEMPTS.format(succeeded + failed)}, {failed:,} failed"


def _bars(hours: Sequence[AttemptHour], now: datetime, zone: ZoneInfo, path: str) -> list[StackedBar]:
    values = {each.hour: (each.succeeded, each.failed) for each in hours}
    first = first_hour(now)
    starts = [first + timedelta(hours=index) for index in range(HOURS)]
    return [
        StackedBar(
            format_datetime(start, zone).partition(", ")[2],
            values.get(start, (0, 0)),
            (None, None),
            with_query(path, {"time": time_param(start, timedelta(hours=1))}) if start in values else None,
            format_datetime(start, zone),
        )
        for start in starts
    ]


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
    hours = await attempts.list_since(request.db, request.plan_manager_id, None, first_hour(now))
    context = {
        "endpoints": endpoints,
        "failing": {each.id: each for each in failing},
        "strips": attempt_strips(hours, now),
    }
    return HtmlPage("developers/webhooks.html", context)


@pages.get("/settings/webhooks/new", role="manager")
async def new(_request: PageRequest) -> HtmlPage:
    return HtmlPage("developers/webhook_new.html", {"groups": event_type_groups()})


@pages.post("/settings/webhooks", role="manager", on_error=new)
async def create(request: FormRequest) -> HtmlPage:
    created = await service.create(request.write_context, parse_form(request, WebhookEndpointCreate))
    return HtmlPage("developers/webhook_created.html", {"endpoint": created, "is_new": True})


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
        errors = [*error.errors, *errors]
    raise ValidationError(*errors)


@pages.get("/settings/webhooks/{endpoint_id}", role="viewer")
async def get(request: PageRequest, endpoint_id: UUID) -> HtmlPage:
    endpoint = await get_or_404(request, endpoint_id)
    latest = (endpoint_id, DeliveryFilter(), LATEST_DELIVERIES)
    failing = await endpoint_store.list_failing(request.db, request.plan_manager_id)
    now, zone = datetime.now(UTC), request.settings.time_zone
    hours = await attempts.list_since(request.db, request.plan_manager_id, endpoint_id, first_hour(now))
    context = {
        "endpoint": endpoint,
        "failing": next((each for each in failing if each.id == endpoint_id), None),
        "chart": attempts_by_hour(hours, now, zone, deliveries_path(endpoint_id)),
        "deliveries": await delivery_store.list_newest(request.db, request.plan_manager_id, *latest),
        "zone": zone.key,
        "test_types": [(each.name, {type_: type_ for type_ in each.types}) for each in event_type_groups()],
        "test_type": TEST_TYPE,
    }
    return HtmlPage("developers/webhook.html", context)


@pages.get("/settings/webhooks/{endpoint_id}/edit", role="manager")
async def edit(request: PageRequest, endpoint_id: UUID) -> HtmlPage:
    endpoint = await get_or_404(request, endpoint_id)
    return HtmlPage("developers/webhook_edit.html", {"endpoint": endpoint, "groups": event_type_groups()})


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
    moment = time()
    with FormReader(request.form) as fields:
        day = fields.read_date("since")
        try:
            moment = parse_time(request.form.text("since_time"))
        except DateError as error:
            fields.reject("since_time", str(error))
        if not fields.errors and day.year < MIN_YEAR:
            fields.reject("since", f"must be in {MIN_YEAR} or later")
        since = datetime.combine(max(day, date(MIN_YEAR, 1, 1)), moment, request.settings.time_zone)
        if not fields.errors and since > datetime.now(UTC):
            fields.reject("since", "must not be in the future")
    return since


@pages.get("/settings/webhooks/{endpoint_id}/rotate-secret", role="manager")
async def rotate_form(request: PageRequest, endpoint_id: UUID) -> HtmlPage:
    return HtmlPage("developers/webhook_rotate.html", {"endpoint": await get_or_404(request, endpoint_id)})


@pages.post("/settings/webhooks/{endpoint_id}/rotate-secret", role="manager")
async def rotate_secret(request: FormRequest, endpoint_id: UUID) -> HtmlPage:
    return HtmlPage(
        "developers/webhook_created.html",
        {"endpoint": await service.rotate_secret(request.write_context, endpoint_id), "is_new": False},
    )


@pages.get("/settings/webhooks/{endpoint_id}/delete", role="manager")
async def delete_form(request: PageRequest, endpoint_id: UUID) -> HtmlPage:
    return HtmlPage("developers/webhook_delete.html", {"endpoint": await get_or_404(request, endpoint_id)})


@pages.post("/settings/webhooks/{endpoint_id}/delete", role="manager")
async def delete(request: FormRequest, endpoint_id: UUID) -> Redirect:
    await service.delete(request.write_context, endpoint_id)
    return Redirect(WEBHOOKS_URL, "Endpoint and its deliveries deleted.")


async def get_or_404(request: PageRequest, endpoint_id: UUID) -> WebhookEndpoint:
    return or_404(await endpoint_store.get(request.db, request.plan_manager_id, endpoint_id))


@pages.get("/settings/webhooks/{endpoint_id}/deliveries", role="viewer")
async def list_deliveries(request: PageRequest, endpoint_id: UUID) -> HtmlPage:
    endpoint = await get_or_404(request, endpoint_id)
    return await show_list(request, deliveries_of(endpoint_id), "developers/webhook_deliveries.html", endpoint=endpoint)


@pages.get("/settings/webhooks/{endpoint_id}/deliveries.csv", role="viewer")
async def download(request: PageRequest, endpoint_id: UUID) -> Download:
    await get_or_404(request, endpoint_id)
    return await download_list(request, deliveries_of(endpoint_id))


@pages.get("/settings/webhooks/{endpoint_id}/deliveries.xlsx", role="viewer")
async def download_xlsx(request: PageRequest, endpoint_id: UUID) -> Download:
    await get_or_404(request, endpoint_id)
    return await download_list(request, deliveries_of(endpoint_id), file_format="xlsx")


@pages.get("/settings/webhooks/{endpoint_id}/deliveries/{delivery_id}", role="viewer")
async def get_delivery(request: PageRequest, endpoint_id: UUID, delivery_id: UUID) -> HtmlPage:
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
    return HtmlPage("developers/webhook_delivery_page.html", context)


@pages.post("/settings/webhooks/{endpoint_id}/deliveries/{delivery_id}/retry", role="manager", on_error=get_delivery)
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
