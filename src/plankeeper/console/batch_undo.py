"""Undoes the changes of one request together, in one transaction. Each is undone as on the page of its event.

Records that have changed since are left out, each with the reason.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from plankeeper.console.edit_forms import translate_constraints
from plankeeper.console.event_changes import fields_of, resource_name, resource_url, truncate
from plankeeper.console.event_undo import find_undos
from plankeeper.console.forms import validate_struct
from plankeeper.console.lists.selection import Outcome
from plankeeper.console.routing import PREFIX, FormRequest, PageRequest
from plankeeper.console.undoable_records import UNDOABLE_RECORDS, executor
from plankeeper.core.errors import DomainError
from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.events import activity_store
from plankeeper.events.schemas import Event, HistoryEvent
from plankeeper.resources.invoices import service
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.warnings import WARNINGS

MAX_EVENTS = 1000
MAX_NAME_LENGTH = 60
LONGEST_REQUEST = timedelta(minutes=10)  # the events of a request are searched at most so long before and after one

UNCHANGED = "is as it was before"


class ValueUndo(NamedTuple):
    """A value that an undo changes: its label, and its texts now and afterwards."""

    label: str
    now: str
    after: str


class EventUndo(NamedTuple):
    """The effect of undoing an event: the values that it sets, or the reason why it does nothing.

    `values` are those of an update; for an invoice, the codes of the warnings that come back.
    """

    event: Event
    name: str
    url: str | None
    changes: Sequence[ValueUndo]
    reason: str
    values: Any

    @property
    def event_path(self) -> str:
        return f"{PREFIX}/activity/{self.event.id}"


def batch_path(event: HistoryEvent | Event) -> str:
    """The page of all changes of an event's type in its request."""
    return f"{PREFIX}/activity/{event.id}/request"


def can_undo_batch(event: HistoryEvent) -> bool:
    """Whether the events of a request can be undone together. Imports have an undo of their own."""
    kind, _, verb = event.type.partition(".")
    return verb == "updated" and (kind in UNDOABLE_RECORDS or kind == "invoice") and event.import_id is None


async def list_batch(request: PageRequest, event: Event) -> list[HistoryEvent]:
    """The events of the type, the request and the actor of an event, the latest first; itself without a request."""
    start, end = (uuid7_lower_bound(event.created_at + each) for each in (-LONGEST_REQUEST, LONGEST_REQUEST))
    place = (executor(request), request.plan_manager_id, start, end)
    return await activity_store.list_of_request(*place, event, MAX_EVENTS + 1)


async def find_event_undos(request: PageRequest, events: Sequence[Event]) -> list[EventUndo]:
    """The effect of undoing each event now."""
    return [await _find_undo(request, each) for each in events]


async def undo_events(request: FormRequest, events: Sequence[Event]) -> list[Outcome]:
    """Undo the events, the latest first, without those whose records have changed since."""
    return [await _undo_event(request, each) for each in events]


async def _find_undo(request: PageRequest, event: Event) -> EventUndo:
    if event.resource.kind == "invoice":
        return await _find_invoice_undo(request, event)
    record = UNDOABLE_RECORDS[event.resource.kind]
    current = await record.get(request, event)
    if current is None:
        return _undo(event, reason="was deleted")
    undos = find_undos(event, current, request.settings.time_zone)
    states = {each.state for each in undos}
    changes = [ValueUndo(each.label, each.now, each.before) for each in undos if each.state == "revert"]
    values = {each.name: each.values["before"] for each in undos if each.state == "revert"}
    if "conflict" in states:
        changed = [f"{each.label}: {each.now}" for each in undos if each.state == "conflict"]
        return _undo(event, reason=f"has changed since ({'; '.join(changed)})")
    if values:
        return _undo(event, changes, values=values)
    return _undo(event, reason=UNCHANGED if states <= {"same"} else "can’t be changed back")


async def _find_invoice_undo(request: PageRequest, event: Event) -> EventUndo:
    """The warnings that a person has ignored are the only values of an invoice that can be undone."""
    before, after = (_ignored_codes(each) for each in (event.previous, event.data))
    if after <= before:
        return _undo(event, reason="can’t be changed back")
    invoice_id = UUID(event.resource.id)
    current = await invoice_store.get(executor(request), request.plan_manager_id, invoice_id)
    if current is None:
        return _undo(event, reason="was deleted")
    codes = sorted((after - before).intersection(current.state_management.ignored_errors))
    titles = [WARNINGS[each].title if each in WARNINGS else each for each in codes]
    changes = [ValueUndo(each, "ignored", "not ignored") for each in titles]
    return _undo(event, changes, "" if codes else UNCHANGED, codes)


def _ignored_codes(record: Any) -> set[str]:
    state: dict[str, list[str]] = fields_of(record).get("state_management") or {}
    return set(state.get("ignored_errors") or ())


def _undo(event: Event, changes: Sequence[ValueUndo] = (), reason: str = "", values: Any = None) -> EventUndo:
    name = truncate(resource_name(event), MAX_NAME_LENGTH) or "No name"
    return EventUndo(event, name, resource_url(event), changes, reason, values)


async def _undo_event(request: FormRequest, event: Event) -> Outcome:
    undo = _undo(event)
    try:
        async with request.tx.savepoint():
            if event.resource.kind == "invoice":
                await invoice_store.select_for_update(request.tx, request.plan_manager_id, [UUID(event.resource.id)])
            else:
                await UNDOABLE_RECORDS[event.resource.kind].lock(request, event)
            undo = await _find_undo(request, event)
            if not undo.reason:
                await _apply(request, undo)
    except DomainError as error:
        undo = undo._replace(reason=error.detail)
    text = "; ".join(f"{each.label}: {each.now} → {each.after}" for each in undo.changes)
    return Outcome(undo.name, undo.url or undo.event_path, undo.reason or text, is_changed=not undo.reason)


async def _apply(request: FormRequest, undo: EventUndo) -> None:
    event = undo.event
    if event.resource.kind == "invoice":
        for code in undo.values:
            await service.restore(request.write_context, UUID(event.resource.id), code)
        return
    record = UNDOABLE_RECORDS[event.resource.kind]
    async with translate_constraints(request, record.constraint_errors):
        await record.update(request, event, validate_struct(record.update_type, undo.values))
