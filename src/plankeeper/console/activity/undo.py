"""The undo of events in words: each changed field with its values, and why an event isn't undone."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, cast
from zoneinfo import ZoneInfo

from plankeeper.console.components.edit_forms import translate_constraints
from plankeeper.console.components.events import resource_name, resource_url
from plankeeper.console.components.labels import field_label, format_field
from plankeeper.console.lists.selection import Outcome
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import PREFIX, FormRequest, PageRequest
from plankeeper.core.errors import DomainError, FieldError, ValidationError
from plankeeper.core.formatting import truncate
from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.database.versions import format_version
from plankeeper.events import activity_store
from plankeeper.events.schemas import Event, HistoryEvent
from plankeeper.imports.undo import BlockerReason
from plankeeper.resources.invoices.warnings import WARNINGS
from plankeeper.resources.registry import BY_KIND
from plankeeper.resources.undo import (
    UNDOABLE_TOGETHER,
    UNDOABLE_TYPES,
    WARNING_TYPES,
    Choice,
    FieldState,
    FieldUndo,
    Undo,
    find_undos,
    lock,
    undo_update,
)

CHOICES: Sequence[Choice] = ("before", "event", "now")
REASONS: Mapping[BlockerReason, str] = {
    "changed": "has changed since",
    "deleted": "was deleted",
    "exists": "exists again",
    "has_team": "has team members now",
    "has_plans": "has a plan with a budget now",
    "has_notes": "has notes now",
    "has_invoices": "has invoices now",
    "same": "is as it was before",
    "read_only": "can’t be changed back",
    "expired": "no longer has an event",
    "invalid": "can’t get its previous values back: an email can’t be removed",
}


class ShownField(NamedTuple):
    """A changed field: its label, and its texts before the event, after the event and now."""

    name: str
    label: str
    state: FieldState
    before: str
    event: str
    now: str


def undo_url(event: Event) -> str | None:
    """The page that undoes an event; null for a kind of event that can't be undone.

    An invoice isn't deleted, but cancelled.
    """
    is_undoable = event.type in UNDOABLE_TYPES and event.type != "invoice.created"
    return f"{PREFIX}/activity/{event.id}/undo" if is_undoable else None


def show_fields(undo: Undo, zone: ZoneInfo) -> list[ShownField]:
    show = _show_warning if undo.event.type in WARNING_TYPES else _show_field
    return [show(each, zone) for each in undo.fields]


def _show_field(field: FieldUndo, zone: ZoneInfo) -> ShownField:
    texts = [format_field(field.event_name, field.shown[each], zone) for each in CHOICES]
    return ShownField(field.name, field_label(field.name), field.state, *texts)


def _show_warning(field: FieldUndo, _zone: ZoneInfo) -> ShownField:
    label = WARNINGS[field.name].title if field.name in WARNINGS else field.name
    texts = ["ignored" if field.values[each] else "not ignored" for each in CHOICES]
    return ShownField(field.name, label, field.state, *texts)


def reason_text(undo: Undo, fields: Sequence[ShownField]) -> str:
    """Why an event isn't undone, as the end of a sentence about its record; empty if it is."""
    conflicts = "; ".join(f"{each.label}: {each.now}" for each in fields if each.state == "conflict")
    return (REASONS[undo.reason] if undo.reason else "") + (f" ({conflicts})" if conflicts else "")


def version_of_record(current: Any) -> str:
    """The version of a record, as its ETag has it."""
    return format_version(current.updated_at)


def chosen_values(undo: Undo, form: Form) -> dict[str, Any]:
    """The values that an undo sets. A field that has changed since needs a choice; raises ValidationError without."""
    choices = {each.name: form.text(choice_field(each.name)) for each in undo.fields if each.state == "conflict"}
    missing = [name for name, choice in choices.items() if choice not in CHOICES]
    if missing:
        raise ValidationError(*(FieldError(name, "has changed since: choose a value") for name in missing))
    chosen = {
        each.name: each.values[cast("Choice", choices[each.name])]
        for each in undo.fields
        if choices.get(each.name, "now") != "now"
    }
    return undo.values | chosen


def choice_field(name: str) -> str:
    """The form field with the choice for a field that has changed since."""
    return f"choice-{name}"


MAX_EVENTS = 1000
MAX_NAME_LENGTH = 60
LONGEST_REQUEST = timedelta(minutes=10)  # the events of a request are searched at most so long before and after one


class ValueUndo(NamedTuple):
    """The change of one value by an undo: its label, and its texts now and afterwards."""

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
    undos = await find_undos(request.executor, request.plan_manager_id, events, settings=request.settings)
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
            [undo] = await find_undos(request.tx, request.plan_manager_id, [event], settings=request.settings)
            shown = _show(request, undo)
            if not undo.reason:
                await undo_update(ctx, event, undo.values)
    except DomainError as error:
        shown = shown._replace(reason=error.detail)
    text = "; ".join(f"{each.label}: {each.now} → {each.after}" for each in shown.changes)
    return Outcome(shown.name, shown.url or shown.event_path, shown.reason or text, is_changed=not shown.reason)
