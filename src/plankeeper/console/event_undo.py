"""The undo of events in words: each changed field with its values, and why an event isn't undone."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast
from zoneinfo import ZoneInfo

from plankeeper.console.forms import Form
from plankeeper.console.labels import field_label
from plankeeper.console.record_values import format_field
from plankeeper.console.routing import PREFIX
from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.database.versions import format_version
from plankeeper.events.schemas import Event
from plankeeper.imports.undo import BlockerReason
from plankeeper.resources.invoices.warnings import WARNINGS
from plankeeper.resources.undo import UNDOABLE_TYPES, Choice, FieldState, FieldUndo, Undo

CHOICES: Sequence[Choice] = ("before", "event", "now")
REASONS: Mapping[BlockerReason, str] = {
    "changed": "has changed since",
    "deleted": "was deleted",
    "exists": "exists again",
    "has_team": "has team members now",
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
    """The page that undoes an event; null for a kind of event that can't be undone."""
    return f"{PREFIX}/activity/{event.id}/undo" if event.type in UNDOABLE_TYPES else None


def show_fields(undo: Undo, zone: ZoneInfo) -> list[ShownField]:
    show = _show_warning if undo.event.resource.kind == "invoice" else _show_field
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
