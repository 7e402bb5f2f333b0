"""Undoes the changes of one request together, in one transaction. Each is undone as on the page of its event.

Records that have changed since are left out, each with the reason.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from plankeeper.console.edit_forms import translate_constraints
from plankeeper.console.event_changes import resource_name, resource_url, truncate
from plankeeper.console.event_undo import reason_text, show_fields
from plankeeper.console.lists.selection import Outcome
from plankeeper.console.routing import PREFIX, FormRequest, PageRequest
from plankeeper.core.errors import DomainError
from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.events import activity_store
from plankeeper.events.schemas import Event, HistoryEvent
from plankeeper.resources.registry import BY_KIND
from plankeeper.resources.undo import UNDOABLE_TOGETHER, Undo, find_undos, lock, undo_update

MAX_EVENTS = 1000
MAX_NAME_LENGTH = 60
LONGEST_REQUEST = timedelta(minutes=10)  # the events of a request are searched at most so long before and after one


class ValueUndo(NamedTuple):
    """A value that an undo changes: its label, and its texts now and afterwards."""

    label: str
    now: str
    after: str


class EventUndo(NamedTuple):
    """The effect of undoing an event: the values that it sets, or the reason why it does nothing."""

    event: Event
    name: str
    url: str | None
    changes: Sequence[ValueUndo] = ()
    reason: str = ""

    @property
    def event_path(self) -> str:
        return f"{PREFIX}/activity/{self.event.id}"


def batch_path(event: HistoryEvent | Event) -> str:
    """The page of all changes of an event's type in its request."""
    return f"{PREFIX}/activity/{event.id}/request"


def can_undo_batch(event: HistoryEvent) -> bool:
    """Whether the events of a request can be undone together. Imports have an undo of their own."""
    return event.type in UNDOABLE_TOGETHER and event.import_id is None


async def list_batch(request: PageRequest, event: Event) -> list[HistoryEvent]:
    """The events of the type, the request and the actor of an event, the latest first; itself without a request."""
    start, end = (uuid7_lower_bound(event.created_at + each) for each in (-LONGEST_REQUEST, LONGEST_REQUEST))
    place = (request.executor, request.plan_manager_id, start, end)
    return await activity_store.list_of_request(*place, event, MAX_EVENTS + 1)


async def find_event_undos(request: PageRequest, events: Sequence[Event]) -> list[EventUndo]:
    """The effect of undoing each event now."""
    undos = await find_undos(request.executor, request.plan_manager_id, events)
    return [_show(request, each) for each in undos]


async def undo_events(request: FormRequest, events: Sequence[Event]) -> list[Outcome]:
    """Undo the events, the latest first, without those whose records have changed since."""
    return [await _undo_event(request, each) for each in events]


def _show(request: PageRequest, undo: Undo) -> EventUndo:
    fields = show_fields(undo, request.settings.time_zone)
    reason = reason_text(undo, fields)
    changes = [ValueUndo(each.label, each.now, each.before) for each in fields if each.state == "revert" and not reason]
    return describe_event(undo.event)._replace(changes=changes, reason=reason)


def describe_event(event: Event) -> EventUndo:
    """An event with the name and the page of its record."""
    return EventUndo(event, truncate(resource_name(event), MAX_NAME_LENGTH) or "No name", resource_url(event))


async def _undo_event(request: FormRequest, event: Event) -> Outcome:
    shown = describe_event(event)
    ctx = request.write_context
    try:
        async with translate_constraints(request, BY_KIND[event.resource.kind].constraint_errors):
            await lock(ctx, event)
            [undo] = await find_undos(request.tx, request.plan_manager_id, [event])
            shown = _show(request, undo)
            if not undo.reason:
                await undo_update(ctx, event, undo.values)
    except DomainError as error:
        shown = shown._replace(reason=error.detail)
    text = "; ".join(f"{each.label}: {each.now} → {each.after}" for each in shown.changes)
    return Outcome(shown.name, shown.url or shown.event_path, shown.reason or text, is_changed=not shown.reason)
