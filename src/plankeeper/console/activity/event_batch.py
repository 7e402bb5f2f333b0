"""The changes of one request, and the page that undoes them together."""

from uuid import UUID

from plankeeper.console.activity.undo import (
    MAX_EVENTS,
    EventUndo,
    ValueUndo,
    can_undo_batch,
    describe_event,
    find_event_undos,
    list_batch,
    undo_events,
)
from plankeeper.console.components.events import EventGroup, field_changes, without_technical
from plankeeper.console.lists.selection import show_outcomes
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
)
from plankeeper.core.context import or_404
from plankeeper.core.errors import NotFound
from plankeeper.events import store
from plankeeper.events.schemas import HistoryEvent, list_disclosed

pages = Pages()


@pages.get("/activity/{event_id}/request", role="viewer")
async def get(request: PageRequest, event_id: UUID) -> HtmlPage:
    """All events of a request that have the type of one event, and the effect of undoing them."""
    events = await _list_events(request, event_id)
    can_undo = request.has_role("manager") and can_undo_batch(events[0])
    undos = await find_event_undos(request, events) if can_undo else [_describe(request, each) for each in events]
    ready = [each for each in undos if not each.reason]
    left_out = [each for each in undos if each.reason]
    context = {
        "title": EventGroup(events).title,
        "event": events[0],
        "can_undo": can_undo,
        "is_limited": len(events) == MAX_EVENTS,
        "undos": undos,
        "ready": len(ready),
        "left_out": len(left_out),
        "groups": (("To undo" if can_undo else "Changes", ready), ("Left out", left_out)),
    }
    return HtmlPage("activity/event_batch.html", context)


@pages.post("/activity/{event_id}/request", role="manager", on_error=get)
async def undo(request: FormRequest, event_id: UUID) -> HtmlPage:
    events = await _list_events(request, event_id)
    if not can_undo_batch(events[0]):
        raise NotFound
    outcomes = await undo_events(request, events)
    context = {"section": "activity", "back_url": f"{PREFIX}/activity", "back_title": "Activity", "missing": 0}
    return show_outcomes(request, "Undone", _count_changes, outcomes, context)


def _count_changes(count: int) -> str:
    return f"{count:,} change{'s' if count != 1 else ''}"


async def _list_events(request: PageRequest, event_id: UUID) -> list[HistoryEvent]:
    """The events of a request, at most MAX_EVENTS; raises NotFound."""
    event = or_404(await store.get(request.executor, request.plan_manager_id, event_id))
    events = (await list_batch(request, event))[:MAX_EVENTS]
    request.record_disclosed(list_disclosed(events), {"request": events[0].request_id or ""})
    return events


def _describe(request: PageRequest, event: HistoryEvent) -> EventUndo:
    """An event that isn't undone: its changes, before and after."""
    found = without_technical(field_changes(event, request.settings.time_zone)) if event.previous and event.data else []
    changes = [ValueUndo(each.label, each.before or "not set", each.after or "not set") for each in found]
    return describe_event(event)._replace(changes=changes)
