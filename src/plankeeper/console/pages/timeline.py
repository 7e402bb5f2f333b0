"""The timeline of a participant: its events and those of its team and its invoices, the latest first, by day."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from plankeeper.console.event_changes import FieldChange, field_changes, resource_url, truncate, without_technical
from plankeeper.console.event_texts import describe_event
from plankeeper.console.event_undo import undo_url
from plankeeper.console.pagination import with_query
from plankeeper.console.participant_context import participant_context, today_in
from plankeeper.console.routing import HtmlPage, PageRequest, Pages
from plankeeper.core.formatting import format_date
from plankeeper.core.ids import parse_uuid
from plankeeper.events import activity_store
from plankeeper.events.schemas import HistoryEvent
from plankeeper.resources.invoice_view_sessions import store as view_session_store

pages = Pages()

PAGE_SIZE = 30
MAX_SHOWN_CHANGES = 6  # changed fields that an entry shows; the page of the event has all
MAX_VALUE_LENGTH = 120  # characters of a value
MAX_VIEW_SESSIONS = 1000  # the latest sessions whose events are read
KINDS: Mapping[str, tuple[str, Sequence[str]]] = {
    "": ("All changes", ("participant", "team_member", "invoice", "export")),
    "details": ("Details", ("participant",)),
    "team": ("Team", ("team_member",)),
    "invoices": ("Invoices", ("invoice",)),
    "exports": ("Exports", ("export",)),
}
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class TimelineEntry(NamedTuple):
    """An event in words. `more` is the number of changed fields that the entry doesn't show."""

    event: HistoryEvent
    text: str
    changes: list[FieldChange]
    more: int
    url: str | None
    undo: str | None


@pages.get("/participants/{participant_id}/timeline", role="viewer", access_log="participant")
async def get(request: PageRequest, participant_id: UUID) -> HtmlPage:
    context = await participant_context(request, participant_id, "/timeline")
    kind, before = request.query.text("kind"), parse_uuid(request.query.text("before"))
    kind = kind if kind in KINDS else ""
    shows_views = bool(request.query.text("views")) and kind in ("", "invoices")
    values = (request.db, request.plan_manager_id)
    events = await activity_store.list_of_participant(*values, participant_id, before, KINDS[kind][1], PAGE_SIZE + 1)
    if shows_views:
        sessions = await view_session_store.list_of_participant(*values, participant_id, MAX_VIEW_SESSIONS)
        ids = [str(each) for each in sessions]
        views = await activity_store.list_of_resources(*values, ids, before, "invoice_view_session", PAGE_SIZE + 1)
        events = sorted([*events, *views], key=lambda each: each.id, reverse=True)
    shown = events[:PAGE_SIZE]
    params = {"kind": kind, "views": "1" if shows_views else ""}
    tab_url = context["tab_url"]
    older = with_query(tab_url, {**params, "before": str(shown[-1].id)}) if len(events) > PAGE_SIZE else None
    context |= {
        "days": group_by_day(request, [timeline_entry(request, each) for each in shown]),
        "kinds": {each: label for each, (label, _) in KINDS.items()},
        "kind": kind,
        "shows_views": shows_views,
        "has_views": kind in ("", "invoices"),
        "views_url": with_query(tab_url, {"kind": kind, "views": "" if shows_views else "1"}),
        "kind_urls": {each: with_query(tab_url, {"kind": each, "views": params["views"]}) for each in KINDS},
        "older": older,
        "before": before,
    }
    return HtmlPage("participant_timeline.html", context)


def timeline_entry(request: PageRequest, event: HistoryEvent) -> TimelineEntry:
    zone = request.settings.time_zone
    is_update = event.type.endswith(".updated")
    changes = [each for each in without_technical(field_changes(event, zone)) if is_update]
    shown = [
        FieldChange(
            each.name, each.label, truncate(each.before, MAX_VALUE_LENGTH), truncate(each.after, MAX_VALUE_LENGTH)
        )
        for each in changes[:MAX_SHOWN_CHANGES]
    ]
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
    zone, today = request.settings.time_zone, today_in(request)
    days = groupby(entries, key=lambda each: each.event.created_at.astimezone(zone).date())
    return [(day_heading(day, today), list(group)) for day, group in days]


def day_heading(day: date, today: date) -> str:
    """`Today`, `Yesterday`, or `Monday, 22 Jun 2026`."""
    near = {today: "Today", today - timedelta(days=1): "Yesterday"}.get(day)
    return near or f"{WEEKDAYS[day.weekday()]}, {format_date(day)}"
