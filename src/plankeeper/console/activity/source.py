"""Reads the events of the activity: a page of them in groups, their number, and all of them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.console.activity.undo import batch_path, can_undo_batch
from plankeeper.console.components.events import (
    VIEW_TYPES,
    EventGroup,
    FieldChange,
    field_changes,
    group_events,
    resource_name,
    truncate_change,
    without_technical,
)
from plankeeper.console.lists.dates import TimeRange
from plankeeper.console.lists.definition import MAX_COUNTED, PagePosition, SourceCount, SourcePage
from plankeeper.console.shell.routing import PageRequest
from plankeeper.core.formatting import truncate
from plankeeper.core.ids import parse_uuid, uuid7_lower_bound
from plankeeper.events import activity_store, store
from plankeeper.events.event_types import matching_event_types
from plankeeper.events.schemas import Event, EventFilter, HistoryEvent

EVENTS_PER_ROW = 3  # that a page reads
PREVIEW_CHANGES = 3  # changed fields that the list shows of an update
MAX_PREVIEW_LENGTH = 60  # characters of a value in the list
MAX_GROUP_NAMES = 20  # records that a group lists
SCAN_LIMIT = 10_000  # events that a page searches for those of a person or key
EXPORT_BATCH_SIZE = 500  # events in a chunk of the CSV file


class ShownGroup(NamedTuple):
    """A group of events in the list: the first event, its changes, and the names of the records of the others."""

    group: EventGroup
    name: str | None
    changes: list[FieldChange]
    more: int  # changed fields that the list doesn't show
    names: list[tuple[str, UUID]]

    @property
    def batch_path(self) -> str:
        """The page of all changes of the request."""
        return batch_path(self.group.first)

    @property
    def can_undo(self) -> bool:
        return can_undo_batch(self.group.first)

    @property
    def id(self) -> UUID:
        return self.group.first.id

    @property
    def shown(self) -> Sequence[Event]:
        """The events whose records the list names."""
        return self.group.events[:MAX_GROUP_NAMES]


class EventQuery(NamedTuple):
    """The values of the filters. `since` and `before` are ids: the lowest one, and that after the highest one."""

    filters: EventFilter
    resource_id: str | None
    import_id: UUID | None
    since: UUID | None
    before: UUID | None

    @property
    def is_search(self) -> bool:
        """Whether the events are those of an actor, which has no index."""
        return bool(self.filters.actor_kind or self.filters.actor_id) and not (self.import_id or self.resource_id)


class ActivitySource:
    """The rows of the activity."""

    async def read_page(self, request: PageRequest, values: Mapping[str, Any], place: PagePosition) -> SourcePage:
        """Groups of events. Where few events precede a page, the page before it is the first one."""
        query, limit = event_query(values), EVENTS_PER_ROW * place.size
        if place.is_backward and (start := parse_uuid(place.before)):
            found = await _find_newer(request, query, start, limit + 1)
            groups = group_events(found[:limit][::-1])
            if len(found) > limit or len(groups) > place.size:
                groups = groups[-place.size :]
                page = SourcePage([show_group(each, request.settings.time_zone) for each in groups])
                page.previous, page.next = str(groups[0].first.id), str(groups[-1].events[-1].id)
                return page
        start = parse_uuid(place.after)
        found, resume = await find_events(request, query, start, limit)
        groups = group_events(found)
        if len(groups) > place.size:
            groups = groups[: place.size]
            resume = groups[-1].events[-1].id
        page = SourcePage([show_group(each, request.settings.time_zone) for each in groups])
        page.previous = str(groups[0].first.id) if start and groups else ""
        page.next = str(resume or "")
        return page

    async def count(self, request: PageRequest, values: Mapping[str, Any]) -> SourceCount:
        """The number of events: for those of an actor, among the latest that a page searches."""
        query, feed = event_query(values), (request.db, request.plan_manager_id)
        days = (query.since, query.before)
        if query.is_search:
            number = await activity_store.count_by_actor(*feed, *days, query.filters, SCAN_LIMIT)
            if await activity_store.count_placed(*feed, *days, SCAN_LIMIT + 1) <= SCAN_LIMIT:
                return SourceCount(number)
            return SourceCount(number, f"{number:,} of the latest {SCAN_LIMIT:,} events")
        if query.import_id:
            of_import = (query.import_id, query.filters, query.resource_id, MAX_COUNTED + 1)
            number = await activity_store.count_of_import(*feed, *days, *of_import)
        elif query.resource_id:
            of_record = (query.filters, query.resource_id, MAX_COUNTED + 1)
            number = await activity_store.count_for_resource(*feed, *days, *of_record)
        else:
            number = await activity_store.count(*feed, *days, query.filters, MAX_COUNTED + 1)
        return SourceCount(number if number <= MAX_COUNTED else None)

    async def read_batches(self, request: PageRequest, values: Mapping[str, Any]) -> AsyncIterator[Sequence[Any]]:
        start: UUID | None = None
        while True:
            events, start = await find_events(request, event_query(values), start, EXPORT_BATCH_SIZE)
            yield events
            if start is None:
                return


def event_query(values: Mapping[str, Any]) -> EventQuery:
    """The query of the values of the list's filters."""
    types = matching_event_types([values["type"]]) if "type" in values else None
    hidden = () if "views" in values or types else sorted(VIEW_TYPES)
    days: TimeRange = values.get("days") or TimeRange(None, None)
    return EventQuery(
        EventFilter(types, hidden, values.get("actor"), values.get("person")),
        values.get("participant") or values.get("resource_id"),
        values.get("import"),
        uuid7_lower_bound(days.start) if days.start else None,
        uuid7_lower_bound(days.end) if days.end else None,
    )


async def find_events(
    request: PageRequest, query: EventQuery, start: UUID | None, limit: int
) -> tuple[list[HistoryEvent], UUID | None]:
    """A page of events after a start, and the id after which older events may follow; null if there are none."""
    rows, resume = await _find_older(request, query, start or query.before, limit)
    if query.since is None:
        return rows, resume
    found = [each for each in rows if each.id >= query.since]
    is_last = len(found) < len(rows) or (resume is not None and resume < query.since)
    return found, None if is_last else resume


async def _find_older(
    request: PageRequest, query: EventQuery, before: UUID | None, limit: int
) -> tuple[list[HistoryEvent], UUID | None]:
    filters, feed, resume = query.filters, (request.db, request.plan_manager_id), None
    if query.import_id:
        of_import = (query.import_id, before, filters, query.resource_id, limit + 1)
        rows = await activity_store.list_of_import(*feed, *of_import)
    elif query.resource_id:
        rows = await store.latest_for_resource(*feed, before, filters, query.resource_id, limit + 1)
    elif query.is_search:
        rows = await store.search_latest(*feed, before, filters, SCAN_LIMIT, limit + 1)
        if len(rows) <= limit:
            resume = await store.scan_limit_id(*feed, before, filters.types, SCAN_LIMIT)
    else:
        rows = await store.latest(*feed, before, filters, limit + 1)
    return rows[:limit], rows[limit - 1].id if len(rows) > limit else resume


async def _find_newer(request: PageRequest, query: EventQuery, after: UUID, limit: int) -> list[HistoryEvent]:
    """The events before a page, the nearest first."""
    filters, feed = query.filters, (request.db, request.plan_manager_id, after)
    if query.import_id:
        of_import = (request.db, request.plan_manager_id, query.import_id, after)
        rows = await activity_store.earliest_of_import(*of_import, filters, query.resource_id, limit)
    elif query.resource_id:
        rows = await activity_store.earliest_for_resource(*feed, filters, query.resource_id, limit)
    elif query.is_search:
        rows = await activity_store.search_earliest(*feed, filters, SCAN_LIMIT, limit)
    else:
        rows = await activity_store.earliest(*feed, filters, limit)
    return [each for each in rows if query.before is None or each.id < query.before]


def show_group(group: EventGroup, zone: ZoneInfo) -> ShownGroup:
    changes, more = preview_changes(group.first, zone) if len(group.events) == 1 else ([], 0)
    name = truncate(resource_name(group.first), MAX_PREVIEW_LENGTH) if len(group.events) == 1 else None
    names = [(truncate(resource_name(each), MAX_PREVIEW_LENGTH) or "No name", each.id) for each in group.events]
    return ShownGroup(group, name, changes, more, names[:MAX_GROUP_NAMES] if len(names) > 1 else [])


def preview_changes(event: Event, zone: ZoneInfo) -> tuple[list[FieldChange], int]:
    """The changes of an update that the list shows, and how many more there are; no changes for other events."""
    if event.previous is None or event.data is None:
        return [], 0
    changes = without_technical(field_changes(event, zone))
    preview = [truncate_change(each, MAX_PREVIEW_LENGTH) for each in changes[:PREVIEW_CHANGES]]
    return preview, len(changes) - len(preview)
