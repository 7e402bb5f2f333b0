"""Activity: the events of a plan manager, newest first, with the changes of each."""

from collections.abc import AsyncIterator
from datetime import datetime
from urllib.parse import urlencode
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.console.csv_export import csv_row
from plankeeper.console.event_changes import FieldChange, field_changes, resource_name, truncate, without_technical
from plankeeper.console.exports import csv_chunks
from plankeeper.console.pagination import with_query
from plankeeper.console.routing import PREFIX, Download, HtmlPage, PageRequest, Pages
from plankeeper.events import store
from plankeeper.events.schemas import Event, EventFilter
from plankeeper.http.parsing import parse_uuid

pages = Pages()

PAGE_SIZE = 40
PREVIEW_CHANGES = 6  # changed fields that the list shows of an update
MAX_PREVIEW_LENGTH = 60  # characters of a value in the list
SCAN_LIMIT = 10_000  # events that a filtered page searches
EXPORT_BATCH_SIZE = 500  # events in a chunk of the CSV file
ACTORS = {"": "Anyone", "user": "People", "api_key": "API keys", "system": "System"}
CSV_COLUMNS = (
    "at",
    "type",
    "actor_kind",
    "actor_id",
    "actor_name",
    "resource_kind",
    "resource_id",
    "request_id",
    "before",
    "after",
)


@pages.get("/activity", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    filters, before = parse_filters(request), parse_uuid(request.query.text("before"))
    rows, next_before = await find_events(request, filters, before, PAGE_SIZE)
    older = with_query(f"{PREFIX}/activity", {**filters, "before": str(next_before)}) if next_before else None
    export = with_query(f"{PREFIX}/activity.csv", filters)
    events = [
        (event, truncate(resource_name(event), MAX_PREVIEW_LENGTH), *preview_changes(event, request.settings.time_zone))
        for event in rows
    ]
    context = {
        "events": events,
        "scan_limit": SCAN_LIMIT,
        "older": older,
        "before": before,
        "export": export,
        "actors": ACTORS,
    }
    return HtmlPage("activity.html", {**context, **filters, "is_filtered": any(filters.values())})


@pages.get("/activity.csv", role="viewer")
async def export(request: PageRequest) -> Download:
    """The events that match the filters, newest first."""
    today, filters = datetime.now(request.settings.time_zone).date(), parse_filters(request)
    query = urlencode({name: text for name, text in filters.items() if text})
    chunks = csv_chunks(request, "events", query, CSV_COLUMNS, export_batches(request, filters))
    return Download(f"activity-{today}.csv", "text/csv; charset=utf-8", chunks)


async def export_batches(request: PageRequest, filters: dict[str, str]) -> AsyncIterator[list[bytes]]:
    """The rows of the CSV file: each batch of events is read when the one before has been sent."""
    before: UUID | None = None
    while True:
        events, before = await find_events(request, filters, before, EXPORT_BATCH_SIZE)
        yield [event_row(each) for each in events]
        if before is None:
            return


def event_row(event: Event) -> bytes:
    before, after = (bytes(each).decode() if each else "" for each in (event.previous, event.data))
    at = event.created_at.isoformat().replace("+00:00", "Z")
    actor, resource = event.actor, event.resource
    return csv_row(
        (at, event.type, actor.kind, actor.id, actor.name, resource.kind, resource.id, event.request_id, before, after)
    )


def parse_filters(request: PageRequest) -> dict[str, str]:
    """The filters of the query; an empty string means no filter."""
    max_lengths = {"type": 100, "actor": 10, "name": 255, "resource_id": 255}
    filters = {name: request.query.text(name)[:max_length] for name, max_length in max_lengths.items()}
    return filters | {"actor": filters["actor"] if filters["actor"] in ACTORS else ""}


async def find_events(
    request: PageRequest, filters: dict[str, str], before: UUID | None, limit: int
) -> tuple[list[Event], UUID | None]:
    """A page of events, and the id before which older events may follow; null if there are none."""
    event_filter = EventFilter(filters["type"] or None, filters["actor"] or None, filters["name"] or None)
    feed, next_before = (request.db, request.plan_manager_id, before), None
    if filters["resource_id"]:
        rows = await store.latest_for_resource(*feed, event_filter, filters["resource_id"], limit + 1)
    elif filters["actor"] or filters["name"]:
        rows = await store.search_latest(*feed, event_filter, SCAN_LIMIT, limit + 1)
        if len(rows) <= limit:
            next_before = await store.scan_limit_id(*feed, event_filter.type, SCAN_LIMIT)
    elif filters["type"]:
        rows = await store.search_latest(*feed, event_filter, limit + 2, limit + 1)
    else:
        rows = await store.latest(*feed, limit + 1)
    return rows[:limit], rows[limit - 1].id if len(rows) > limit else next_before


def preview_changes(event: Event, zone: ZoneInfo) -> tuple[list[FieldChange], int]:
    """The changes of an update that the list shows, and how many more there are; no changes for other events."""
    if event.previous is None or event.data is None:
        return [], 0
    changes = without_technical(field_changes(event, zone))
    preview = [
        each._replace(before=truncate(each.before, MAX_PREVIEW_LENGTH), after=truncate(each.after, MAX_PREVIEW_LENGTH))
        for each in changes[:PREVIEW_CHANGES]
    ]
    return preview, len(changes) - len(preview)
