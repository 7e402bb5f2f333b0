"""The timeline of a participant, the latest first, by day.

It has the events of the participant, its team, its plans, its invoices, and of the notes on them.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from plankeeper.console.activity.timeline import group_by_day, timeline_entry
from plankeeper.console.components.pagination import with_query
from plankeeper.console.participants.header import participant_context
from plankeeper.console.shell.routing import HtmlPage, PageRequest, Pages
from plankeeper.core.ids import parse_uuid
from plankeeper.events import activity_store
from plankeeper.resources.invoice_view_sessions import store as view_session_store
from plankeeper.resources.notes import store as note_store

pages = Pages()
PAGE_SIZE = 30
MAX_VIEW_SESSIONS = 1000  # the latest sessions whose events are read
MAX_NOTES = 1000  # on invoices: the latest ones
KINDS: Mapping[str, tuple[str, Sequence[str]]] = {
    "": ("All changes", ("participant", "plan", "team_member", "invoice", "note", "statement", "export")),
    "details": ("Details", ("participant",)),
    "plans": ("Plans", ("plan",)),
    "team": ("Team", ("team_member",)),
    "invoices": ("Invoices", ("invoice",)),
    "notes": ("Notes", ("note",)),
    "statements": ("Statements", ("statement",)),
    "exports": ("Exports", ("export",)),
}


@pages.get("/participants/{participant_id}/timeline", role="viewer", is_limited=True, access_log="participant")
async def get(request: PageRequest, participant_id: UUID) -> HtmlPage:
    context = await participant_context(request, participant_id, "/timeline")
    kind, before = request.query.text("kind"), parse_uuid(request.query.text("before"))
    kind = kind if kind in KINDS else ""
    shows_views = bool(request.query.text("views")) and kind in ("", "invoices")
    values = (request.db, request.plan_manager_id)
    events = await activity_store.list_of_participant(*values, participant_id, before, KINDS[kind][1], PAGE_SIZE + 1)
    if kind in ("", "notes"):
        notes = await note_store.list_latest_of_invoices_of(*values, participant_id, MAX_NOTES)
        ids = [str(each) for each in notes]
        of_invoices = await activity_store.list_of_resources(*values, ids, before, "note", PAGE_SIZE + 1)
        events = sorted([*events, *of_invoices], key=lambda each: each.id, reverse=True)
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
    return HtmlPage("participants/timeline.html", context)
