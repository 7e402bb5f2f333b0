"""Activity: the events of a plan manager, newest first, with the changes of each."""

from collections.abc import AsyncIterator
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.console.csv_export import csv_row
from plankeeper.console.dates import DateError, parse_date
from plankeeper.console.event_changes import FieldChange, field_changes, resource_name, truncate, without_technical
from plankeeper.console.event_groups import EventGroup, group_events
from plankeeper.console.event_texts import VIEW_TYPES, type_groups
from plankeeper.console.exports import csv_chunks
from plankeeper.console.formatting import format_date
from plankeeper.console.lists.chips import chip_bar, preset_links
from plankeeper.console.pagination import with_query
from plankeeper.console.record_picker import RecordPicker, pick_record
from plankeeper.console.routing import PREFIX, Download, HtmlPage, PageRequest, Pages
from plankeeper.events import history_store, store
from plankeeper.events.event_types import EVENT_TYPE_PATTERNS, matching_event_types
from plankeeper.events.schemas import Event, EventFilter, HistoryEvent
from plankeeper.http.parsing import parse_uuid, uuid7_lower_bound
from plankeeper.imports import store as import_store
from plankeeper.imports.schemas import Import

pages = Pages()

PAGE_SIZE = 40  # groups of events
MAX_PAGE_EVENTS = 120  # events that a page reads
PREVIEW_CHANGES = 6  # changed fields that the list shows of an update
MAX_PREVIEW_LENGTH = 60  # characters of a value in the list
MAX_GROUP_NAMES = 20  # records that a group lists
SCAN_LIMIT = 10_000  # events that a page searches for those of a person or key
EXPORT_BATCH_SIZE = 500  # events in a chunk of the CSV file
ACTORS = {"": "Anyone", "user": "People", "api_key": "API keys", "system": "System"}
DATE_NAMES = ("from", "to")
MAX_TEXT_LENGTH = 255  # characters of a filter
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


class ShownGroup(NamedTuple):
    """A group of events in the list: the first event, its changes, and the names of the records of the others."""

    group: EventGroup
    name: str | None
    changes: list[FieldChange]
    more: int  # changed fields that the list doesn't show
    names: list[tuple[str, UUID]]


@pages.get("/activity", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    person = await pick_record(request, "person", "person")
    participant = await pick_record(request, "participant", "participant")
    filters, before = parse_filters(request, person, participant), parse_uuid(request.query.text("before"))
    errors = find_date_errors(filters)
    rows, next_before = await find_events(request, filters, before, MAX_PAGE_EVENTS)
    groups = group_events(rows)
    if len(groups) > PAGE_SIZE:
        groups, next_before = groups[:PAGE_SIZE], groups[PAGE_SIZE - 1].events[-1].id
    before_import = await find_start_of_import(request, groups[-1]) if next_before and groups else None
    link = {name: text for name, text in filters.items() if text}
    url = f"{PREFIX}/activity"

    context: dict[str, Any] = {
        "groups": [show_group(each, request.settings.time_zone) for each in groups],
        "scan_limit": SCAN_LIMIT,
        "older": with_query(url, {**link, "before": str(next_before)}) if next_before else None,
        "before_import": with_query(url, {**link, "before": str(before_import)}) if before_import else None,
        "before": before,
        "export": with_query(f"{url}.csv", filters),
        "actors": ACTORS,
        "types": type_groups(),
        "filters": filters,
        "is_filtered": any(filters.values()) or person.is_unclear or participant.is_unclear,
        "person": person,
        "participant": participant,
        "person_url": partial(filtered_url, link, "person"),
        "participant_url": partial(filtered_url, link, "participant"),
        "views_url": with_query(url, {**link, "views": "" if filters["views"] else "1"}),
        "date_errors": errors,
        "bar": chip_bar(url, link, filter_texts(filters, person, participant)),
        "presets": preset_links(url, link, datetime.now(request.settings.time_zone).date()),
        "import_record": await find_import(request, filters),
    }
    return HtmlPage("activity.html", context)


async def find_import(request: PageRequest, filters: dict[str, str]) -> Import | None:
    """The import of the filter; null without one, and for an import on the command line, which has no page."""
    if not filters["import"]:
        return None
    return await import_store.get(request.db, request.plan_manager_id, UUID(filters["import"]))


async def find_start_of_import(request: PageRequest, group: EventGroup) -> UUID | None:
    """The first event of the import that the group belongs to; null if the group has it, or isn't of an import."""
    last = group.events[-1]
    if last.import_id is None:
        return None
    values = (request.db, request.plan_manager_id, last.import_id, last.request_id)
    first = await history_store.get_first_of_import(*values)
    return None if first == last.id else first


def filter_texts(filters: dict[str, str], person: RecordPicker, participant: RecordPicker) -> dict[str, str]:
    """The filters that are set, in words."""
    labels = {value: label for group in type_groups().values() for value, label in group.items()}
    days = {name: format_date(parse_date(filters[name])) for name in DATE_NAMES if is_day(filters[name])}
    texts = {
        "type": f"Type: {labels.get(filters['type'], filters['type'])}",
        "participant": f"Participant: {participant.text}",
        "person": f"Person or key: {person.text}",
        "actor": f"Made by: {ACTORS[filters['actor']]}",
        "from": f"From {days.get('from')}",
        "to": f"Until {days.get('to')}",
        "resource_id": "One record",
        "import": "One import",
        "views": "With views of invoices",
    }
    return {name: text for name, text in texts.items() if filters[name] and (name not in DATE_NAMES or name in days)}


def is_day(text: str) -> bool:
    """Whether a text is a date."""
    try:
        parse_date(text)
    except DateError:
        return False
    return True


def filtered_url(filters: dict[str, str], name: str, value: str) -> str:
    """The list with one more filter."""
    return with_query(f"{PREFIX}/activity", {**filters, name: value})


@pages.get("/activity.csv", role="viewer")
async def export(request: PageRequest) -> Download:
    """The events that match the filters, newest first."""
    today = datetime.now(request.settings.time_zone).date()
    person = await pick_record(request, "person", "person")
    filters = parse_filters(request, person, await pick_record(request, "participant", "participant"))
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


def parse_filters(request: PageRequest, person: RecordPicker, participant: RecordPicker) -> dict[str, str]:
    """The filters of the query; an empty string means no filter. Dates stay as they were typed."""
    names = ("type", "actor", "resource_id", "views", *DATE_NAMES)
    filters = {name: request.query.text(name)[:MAX_TEXT_LENGTH] for name in names}
    filters["type"] = filters["type"] if filters["type"] in EVENT_TYPE_PATTERNS else ""
    filters["actor"] = filters["actor"] if filters["actor"] in ACTORS else ""
    filters["views"] = "1" if filters["views"] else ""
    ids = {"person": person.id, "participant": participant.id, "import": parse_uuid(request.query.text("import"))}
    return filters | {name: str(id_ or "") for name, id_ in ids.items()}


def find_date_errors(filters: dict[str, str]) -> dict[str, str]:
    """What is wrong with the dates, which then don't count."""
    errors = dict[str, str]()
    for name in DATE_NAMES:
        try:
            parse_date(filters[name] or "1 Jan 2026")
        except DateError as error:
            errors[name] = str(error)
    return errors


def _day_start(filters: dict[str, str], name: str, zone: ZoneInfo, *, add_days: int = 0) -> datetime | None:
    try:
        day: date = parse_date(filters[name]) + timedelta(days=add_days)
        return datetime.combine(day, time(), zone)
    except (DateError, OverflowError):
        return None


async def find_events(
    request: PageRequest, filters: dict[str, str], before: UUID | None, limit: int
) -> tuple[list[HistoryEvent], UUID | None]:
    """A page of events, and the id before which older events may follow; null if there are none.

    The days are those of the plan manager's time zone.
    """
    zone = request.settings.time_zone
    start, end = _day_start(filters, "from", zone), _day_start(filters, "to", zone, add_days=1)
    first = before or (uuid7_lower_bound(end) if end else None)
    rows, next_before = await _find_events_until(request, filters, first, limit)
    if start is None:
        return rows, next_before
    found = [each for each in rows if each.created_at >= start]
    oldest = uuid7_lower_bound(start)
    is_last = len(found) < len(rows) or (next_before is not None and next_before < oldest)
    return found, None if is_last else next_before


async def _find_events_until(
    request: PageRequest, filters: dict[str, str], before: UUID | None, limit: int
) -> tuple[list[HistoryEvent], UUID | None]:
    types = matching_event_types([filters["type"]]) if filters["type"] else None
    hidden = () if filters["views"] or types else sorted(VIEW_TYPES)
    event_filter = EventFilter(types, hidden, filters["actor"] or None, filters["person"] or None)
    feed, next_before = (request.db, request.plan_manager_id, before), None
    resource_id = filters["participant"] or filters["resource_id"]
    if filters["import"]:
        of_import = (request.db, request.plan_manager_id, UUID(filters["import"]), before, event_filter)
        rows = await history_store.list_of_import(*of_import, resource_id or None, limit + 1)
    elif resource_id:
        rows = await store.latest_for_resource(*feed, event_filter, resource_id, limit + 1)
    elif filters["actor"] or filters["person"]:
        rows = await store.search_latest(*feed, event_filter, SCAN_LIMIT, limit + 1)
        if len(rows) <= limit:
            next_before = await store.scan_limit_id(*feed, types, SCAN_LIMIT)
    else:
        rows = await store.latest(*feed, event_filter, limit + 1)
    return rows[:limit], rows[limit - 1].id if len(rows) > limit else next_before


def show_group(group: EventGroup, zone: ZoneInfo) -> ShownGroup:
    changes, more = preview_changes(group.first, zone) if len(group.events) == 1 else ([], 0)
    name = truncate(resource_name(group.first), MAX_PREVIEW_LENGTH) if len(group.events) == 1 else None
    names = [(truncate(resource_name(each), MAX_PREVIEW_LENGTH) or "No name", each.id) for each in group.events[1:]]
    first = (truncate(resource_name(group.first), MAX_PREVIEW_LENGTH) or "No name", group.first.id)
    return ShownGroup(group, name, changes, more, [first, *names][:MAX_GROUP_NAMES] if len(group.events) > 1 else [])


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
