"""The entries of a timeline: events in words, by day."""

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from plankeeper.console.activity.undo import undo_url
from plankeeper.console.components.events import (
    FieldChange,
    describe_event,
    field_changes,
    resource_url,
    truncate_change,
    without_technical,
)
from plankeeper.console.shell.routing import PageRequest
from plankeeper.core.formatting import format_date
from plankeeper.events import activity_store
from plankeeper.events.schemas import HistoryEvent

MAX_SHOWN_CHANGES = 6  # changed fields that an entry shows; the page of the event has all
MAX_VALUE_LENGTH = 120  # characters of a value


class TimelineEntry(NamedTuple):
    """An event in words. `more` is the number of changed fields that the entry doesn't show."""

    event: HistoryEvent
    text: str
    changes: list[FieldChange]
    more: int
    url: str | None
    undo: str | None


def timeline_entry(request: PageRequest, event: HistoryEvent) -> TimelineEntry:
    zone = request.settings.time_zone
    is_update = event.type.endswith(".updated")
    changes = [each for each in without_technical(field_changes(event, zone)) if is_update]
    shown = [truncate_change(each, MAX_VALUE_LENGTH) for each in changes[:MAX_SHOWN_CHANGES]]
    undo = undo_url(event) if request.has_role("manager") else None
    url = resource_url(event) if event.resource.kind != "participant" else None
    return TimelineEntry(event, describe_event(event, zone), shown, len(changes) - len(shown), url, undo)


async def latest_events(
    request: PageRequest, kind: str, resource_id: UUID, limit: int
) -> list[tuple[HistoryEvent, str]]:
    """The latest events of one record, each with its text."""
    values = (request.db, request.plan_manager_id, [str(resource_id)], None, kind, limit)
    return with_texts(request, await activity_store.list_of_resources(*values))


def with_texts(request: PageRequest, events: Sequence[HistoryEvent]) -> list[tuple[HistoryEvent, str]]:
    """The events, each with its text."""
    return [(each, describe_event(each, request.settings.time_zone)) for each in events]


def group_by_day(request: PageRequest, entries: Sequence[TimelineEntry]) -> list[tuple[str, list[TimelineEntry]]]:
    """The entries by the day in the plan manager's time zone, under a heading for each day."""
    zone, today = request.settings.time_zone, request.today
    days = groupby(entries, key=lambda each: each.event.created_at.astimezone(zone).date())
    return [(day_heading(day, today), list(group)) for day, group in days]


def day_heading(day: date, today: date) -> str:
    """`Today`, `Yesterday`, or `Monday, 22 Jun 2026`."""
    near = {today: "Today", today - timedelta(days=1): "Yesterday"}.get(day)
    return near or f"{day:%A}, {format_date(day)}"
