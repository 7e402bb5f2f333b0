"""The list of the deliveries of a webhook endpoint."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from plankeeper.console.lists.dates import LOG_PRESETS, TimeRange
from plankeeper.console.lists.definition import (
    MAX_COUNTED,
    BuiltInView,
    Column,
    ListDefinition,
    Names,
    PagePosition,
    SourceCount,
    SourcePage,
    cut_source_page,
)
from plankeeper.console.lists.filters import ChoiceFilter, day_filter, time_filter
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.core.ids import parse_uuid
from plankeeper.events.event_types import EVENT_TYPES
from plankeeper.webhooks import delivery_store
from plankeeper.webhooks.delivery_store import DeliveryFilter, id_bounds
from plankeeper.webhooks.schemas import WebhookDelivery

FILE_BATCH_SIZE = 500  # deliveries in a chunk of a file
MIN_TIME = datetime(2000, 1, 1, tzinfo=UTC)  # no delivery is older; the database driver doesn't take every older time
TYPES = {each: each for each in sorted(EVENT_TYPES)}
STATUSES = {
    "pending": "Pending or failing",
    "succeeded": "Succeeded",
    "failed": "Failed",
    "cancelled": "Cancelled",
}


@dataclass(frozen=True, slots=True)
class DeliverySource:
    """The deliveries of an endpoint."""

    endpoint_id: UUID

    async def read_page(self, request: PageRequest, values: Mapping[str, Any], place: PagePosition) -> SourcePage:
        start = parse_uuid(place.start)
        place = place if start else PagePosition(place.size)
        filters = delivery_filter(values)
        if start and place.is_backward:
            filters = filters._replace(after=max(start, filters.after or start))
        elif start:
            filters = filters._replace(before=min(start, filters.before or start))
        read = delivery_store.list_oldest if place.is_backward else delivery_store.list_newest
        found = await read(request.db, request.plan_manager_id, self.endpoint_id, filters, place.size + 1)
        return cut_source_page(place, found, lambda row: str(row.id), lambda row: str(row.id))

    async def count(self, request: PageRequest, values: Mapping[str, Any]) -> SourceCount:
        """The number of deliveries. For an hour, also that of its attempts, which its bar in the chart counts."""
        selected = (self.endpoint_id, delivery_filter(values), MAX_COUNTED + 1)
        found = await delivery_store.count_matching(request.db, request.plan_manager_id, *selected)
        if found.deliveries > MAX_COUNTED:
            return SourceCount(None)
        if "time" not in values:
            return SourceCount(found.deliveries)
        attempts = f"{found.attempts:,} {'attempt' if found.attempts == 1 else 'attempts'}"
        return SourceCount(found.deliveries, f"{DELIVERIES.count_text(found.deliveries)} with {attempts} at that time")

    async def read_batches(self, request: PageRequest, values: Mapping[str, Any]) -> AsyncIterator[Sequence[Any]]:
        filters = delivery_filter(values)
        while True:
            selected = (self.endpoint_id, filters, FILE_BATCH_SIZE)
            rows = await delivery_store.list_newest(request.db, request.plan_manager_id, *selected)
            yield rows
            if len(rows) < FILE_BATCH_SIZE:
                return
            filters = filters._replace(before=rows[-1].id)


def delivery_filter(values: Mapping[str, Any]) -> DeliveryFilter:
    """The filter of the values of the list's filters."""
    days: TimeRange = values.get("days") or TimeRange(None, None)
    attempted: TimeRange = values.get("time") or TimeRange(None, None)
    end = min((each for each in (days.end, attempted.end) if each), default=None)
    return DeliveryFilter(
        *id_bounds(days.start, end),
        values.get("statuses"),
        values.get("event_type"),
        max(days.start, MIN_TIME) if days.start else None,
        max(days.end, MIN_TIME) if days.end else None,
        *attempted,
    )


def _status(row: WebhookDelivery, _names: Names) -> str:
    return "failing" if row.status == "pending" and row.attempts else row.status


def _attempts(row: WebhookDelivery, _names: Names) -> str:
    return str(len(row.attempts))


def _result(row: WebhookDelivery, _names: Names) -> str | None:
    """The status of the latest response, or the reason why there was none."""
    if not row.attempts:
        return None
    latest = row.attempts[-1]
    return str(latest.status_code) if latest.status_code else latest.error


COLUMNS = (
    Column("event_type", "Event", "record"),
    Column("status", "Status", "delivery_status", _status),
    Column("attempts", "Attempts", "text", _attempts),
    Column("result", "Latest response", "text", _result),
    Column("next_attempt_at", "Next attempt", "datetime"),
    Column("created", "Created", "datetime", path="created_at"),
)
FILE_COLUMNS = (Column("event_id", "Event ID", "text"), Column("id", "Delivery ID", "text"))
FILTERS = (
    ChoiceFilter("status", "Status", STATUSES, lambda choice: {"statuses": [choice]}),
    ChoiceFilter("event_type", "Event", TYPES, lambda choice: {"event_type": choice}),
    day_filter("Created", LOG_PRESETS),
    time_filter("Attempted"),
)
DELIVERIES = ListDefinition(
    kind="deliveries",
    title="Deliveries",
    one="delivery",
    many="deliveries",
    rows=DeliverySource(UUID(int=0)),  # of no endpoint: see `deliveries_of`
    columns=COLUMNS,
    filters=FILTERS,
    sort="-id",
    empty="No events have been sent to this endpoint yet.",
    views=(BuiltInView("Failed", {"status": "failed"}), BuiltInView("Pending or failing", {"status": "pending"})),
    section="webhooks",
    file_columns=FILE_COLUMNS,
)


def deliveries_path(endpoint_id: UUID) -> str:
    return f"{PREFIX}/settings/webhooks/{endpoint_id}/deliveries"


def deliveries_of(endpoint_id: UUID) -> ListDefinition:
    """The list of an endpoint's deliveries."""
    path = deliveries_path(endpoint_id)
    return replace(DELIVERIES, rows=DeliverySource(endpoint_id), page_path=path, owner_id=endpoint_id)
