"""Undoes an update: the value of each field afterwards, and the fields that have changed since."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct

from plankeeper.console.event_changes import fields_of
from plankeeper.console.forms import Form
from plankeeper.console.labels import field_label
from plankeeper.console.record_values import format_field
from plankeeper.console.routing import PREFIX
from plankeeper.console.undoable_records import UNDOABLE_RECORDS
from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.core.json import to_json
from plankeeper.core.validation import known_fields
from plankeeper.database.versions import format_version
from plankeeper.events.schemas import Event

ERASED = "[erased]"
# The fields of a record whose update has another name, because it takes an id instead of a record.
_UPDATE_NAMES = {
    "account_manager": "account_manager_id",
    "exit_reason_category": "exit_reason_category_id",
    "exit_reason_subcategory": "exit_reason_subcategory_id",
}
_TYPES_BY_VERB = {
    "updated": tuple(UNDOABLE_RECORDS),
    "created": ("participant", "provider", "team_member", "note_type"),
    "restored": ("participant", "provider"),
    "deleted": ("participant", "provider", "team_member"),
}
UNDOABLE_TYPES = frozenset(f"{kind}.{verb}" for verb, kinds in _TYPES_BY_VERB.items() for kind in kinds)

# Whether undoing sets the field, the field has its earlier value already, has yet another one, or can't be set.
FieldState = Literal["revert", "same", "conflict", "read_only", "erased"]
Choice = Literal["before", "event", "now"]
CHOICES: Sequence[Choice] = ("before", "event", "now")


class FieldUndo(NamedTuple):
    """A changed field: its texts before the event, after the event and now, and the effect of undoing the event."""

    name: str
    label: str
    state: FieldState
    before: str
    event: str
    now: str
    values: Mapping[Choice, Any]  # as an update takes them


def undo_url(event: Event) -> str | None:
    """The page that undoes an event; null for a kind of event that can't be undone."""
    return f"{PREFIX}/activity/{event.id}/undo" if event.type in UNDOABLE_TYPES else None


def find_undos(event: Event, current: Struct, zone: ZoneInfo) -> list[FieldUndo]:
    """The effect of undoing an update on each field that the update changed. `current` is the record now."""
    before, after = fields_of(event.previous), fields_of(event.data)
    now: dict[str, Any] = msgspec.json.decode(to_json(current))
    writable = known_fields(UNDOABLE_RECORDS[event.resource.kind].update_type)
    undos = list[FieldUndo]()
    for name in before:
        states = {"before": before[name], "event": after.get(name), "now": now.get(name)}
        values = {which: _update_value(name, value) for which, value in states.items()}
        update_name = _UPDATE_NAMES.get(name, name)
        texts = [format_field(name, value, zone) for value in states.values()]
        undos.append(
            FieldUndo(
                update_name,
                field_label(update_name),
                _state(values, is_writable=update_name in writable),
                *texts,
                values=cast("Mapping[Choice, Any]", values),
            )
        )
    return undos


def _update_value(name: str, value: Any) -> Any:
    """The value of a field as an update takes it: the id of a record, the names of permissions."""
    if name in _UPDATE_NAMES:
        return value["id"] if value else None
    return sorted(each["name"] for each in value) if name == "permissions" and value else value


def _state(values: Mapping[str, Any], *, is_writable: bool) -> FieldState:
    if not is_writable:
        return "read_only"
    if any(isinstance(each, str) and ERASED in each for each in values.values()):
        return "erased"
    if values["now"] == values["before"]:
        return "same"
    return "revert" if values["now"] == values["event"] else "conflict"


def version_of_record(current: Any) -> str:
    """The version of a record, as its ETag has it."""
    return format_version(current.updated_at)


def chosen_values(undos: Sequence[FieldUndo], form: Form) -> dict[str, Any]:
    """The values that an undo sets. A field that has changed since needs a choice; raises ValidationError without."""
    choices = {each.name: form.text(choice_field(each.name)) for each in undos if each.state == "conflict"}
    missing = [name for name, choice in choices.items() if choice not in CHOICES]
    if missing:
        raise ValidationError(*(FieldError(name, "has changed since: choose a value") for name in missing))
    values = {each.name: each.values["before"] for each in undos if each.state == "revert"}
    for each in undos:
        if choices.get(each.name, "now") != "now":
            values[each.name] = each.values[cast("Choice", choices[each.name])]
    return values


def choice_field(name: str) -> str:
    """The form field with the choice for a field that has changed since."""
    return f"choice-{name}"
