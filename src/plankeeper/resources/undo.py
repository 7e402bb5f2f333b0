"""Undoing what events describe. The rules are the same for one event, for the events of a request, and for an import.

* The update of a record is undone field by field. A field whose value has changed since is a conflict.
* A new record is deleted, unless other records refer to it.
* A deleted record is restored from its snapshot, unless there is one with its id again.
* What an import did is only undone if each record is as the import left it.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, NamedTuple
from uuid import UUID

import asyncpg
import msgspec
from msgspec import Raw, Struct

from plankeeper.core.context import WriteContext
from plankeeper.core.errors import DomainError
from plankeeper.core.fields import decode_custom_type
from plankeeper.core.json import to_json
from plankeeper.core.settings import Settings
from plankeeper.core.validation import known_fields, validate_struct
from plankeeper.database.client import Executor
from plankeeper.events import store as event_store
from plankeeper.events.schemas import Event
from plankeeper.resources.registry import BY_KIND
from plankeeper.resources.resource import Resource, Restored, Snapshot, event_key, record_key
from plankeeper.resources.upsert import ImportRow

ERASED = "[erased]"
_decode = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal).decode

# Whether undoing sets the field, the field has its earlier value already, has yet another one, or can't be set.
FieldState = Literal["revert", "same", "conflict", "read_only", "erased"]
Choice = Literal["before", "event", "now"]
# Why an event isn't undone. `same` and `read_only`: all fields have their earlier values, or none can be set.
Reason = Literal[
    "changed", "deleted", "exists", "has_team", "has_plans", "has_invoices", "has_notes", "same", "read_only"
]

_TYPES_BY_VERB = {
    "updated": [each.kind for each in BY_KIND.values() if each.update_schema],
    "created": [each.kind for each in BY_KIND.values() if each.update_schema and each.delete_many],
    "restored": [each.kind for each in BY_KIND.values() if each.remove],
    "deleted": [each.kind for each in BY_KIND.values() if each.restore],
}
ACTION_TYPES = frozenset(f"{each.kind}.{verb}" for each in BY_KIND.values() for verb in each.inverses)
WARNING_TYPES = ("invoice.warning_ignored", "invoice.warning_restored")
UNDOABLE_TYPES = ACTION_TYPES | {f"{kind}.{verb}" for verb, kinds in _TYPES_BY_VERB.items() for kind in kinds}
# Those that are undone with others of their request.
UNDOABLE_TOGETHER = ACTION_TYPES | {f"{kind}.updated" for kind in _TYPES_BY_VERB["updated"]}


class FieldUndo(NamedTuple):
    """A changed field: its values before the event, after the event and now, as an update takes them and as events
    have them (`shown`).
    """

    name: str  # of an update
    event_name: str
    state: FieldState
    values: Mapping[Choice, Any]
    shown: Mapping[Choice, Any]


class Undo(NamedTuple):
    """The effect of undoing an event: the changed fields of an update, or the reason why it isn't undone.

    `current` is the record now. `later` is its last event, if the event belongs to an import and that one doesn't.
    """

    event: Event
    current: Struct | None
    fields: Sequence[FieldUndo] = ()
    reason: Reason | None = None
    later: Event | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The values that an update gets, as long as nobody chooses others for conflicts."""
        return {each.name: each.values["before"] for each in self.fields if each.state == "revert"}


async def find_undos(
    db: Executor,
    plan_manager_id: UUID,
    events: Sequence[Event],
    *,
    settings: Settings | None = None,
    import_id: UUID | None = None,
) -> list[Undo]:
    """The effect of undoing each event now, of records of one kind.

    With `settings`, hidden records count as deleted. `import_id`: the import that recorded all events.
    """
    if not events:
        return []
    resource, keys = BY_KIND[events[0].resource.kind], list({event_key(each) for each in events})
    current = {record_key(each): each for each in await resource.get_many(db, plan_manager_id, keys)}
    if settings:
        current = {key: each for key, each in current.items() if not resource.is_hidden(each, settings)}
    if import_id is None:
        return [_find_undo(resource, each, current.get(event_key(each))) for each in events]
    ids = [each.resource.id for each in events]
    latest = await event_store.latest_of_resources(db, plan_manager_id, resource.kind, ids, import_id)
    later = {event_key(each): each for each in latest}
    dependents = await _find_dependents(db, plan_manager_id, resource, [each for each in events if not each.previous])
    return [
        _find_undo(resource, each, current.get(key), later.get(key), dependents.get(key), is_import=True)
        for each in events
        for key in [event_key(each)]
    ]


async def _find_dependents(
    db: Executor, plan_manager_id: UUID, resource: Resource, created: Sequence[Event]
) -> dict[str, Reason]:
    """Why new records can't be deleted, by key."""
    keys = [event_key(each) for each in created]
    dependents = [each for other in BY_KIND.values() for each in other.dependents if each.of == resource.kind]
    return {key: each.reason for each in dependents for key in await each.find(db, plan_manager_id, keys)}


def _find_undo(
    resource: Resource,
    event: Event,
    current: Struct | None,
    later: Event | None = None,
    dependents: Reason | None = None,
    *,
    is_import: bool = False,
) -> Undo:
    if event.type.endswith(".deleted"):
        return Undo(event, current, reason="exists" if current else None)
    if current is None:
        return Undo(event, None, reason="deleted", later=later)
    # Also compared by value: clocks of several servers can differ.
    if is_import and ((later and later.id > event.id) or _has_other_values(resource, event, current)):
        return Undo(event, current, reason="changed", later=later)
    if event.previous is None:
        return Undo(event, current, reason=dependents)
    schema = resource.import_schema if is_import else resource.update_schema
    is_action = event.type.partition(".")[2] in resource.inverses
    if event.type in WARNING_TYPES:
        fields = _find_ignored_warnings(event, current)
    else:
        fields = _find_fields(resource, event, current, None if is_action else schema)
    states = {each.state for each in fields}
    reason: Reason | None = None
    if "conflict" in states:
        reason = "changed"
    elif "revert" not in states:
        reason = "same" if states <= {"same"} else "read_only"
    return Undo(event, current, fields, reason)


def _has_other_values(resource: Resource, event: Event, current: Struct) -> bool:
    event_fields, now = _fields_of(event.data), _decode(to_json(current))
    names = (event_fields.keys() | now.keys()) - resource.computed
    return any(
        _update_value(resource, name, event_fields.get(name)) != _update_value(resource, name, now.get(name))
        for name in names
    )


def _find_fields(resource: Resource, event: Event, current: Struct, schema: type[Struct] | None) -> list[FieldUndo]:
    """The effect on each field that an update changed. `schema` has the fields that can be set; None: all."""
    before, after, now = _fields_of(event.previous), _fields_of(event.data), _decode(to_json(current))
    writable = known_fields(schema) if schema else set(before) - resource.computed
    undos = list[FieldUndo]()
    for name in before:
        shown: dict[Choice, Any] = {"before": before[name], "event": after.get(name), "now": now.get(name)}
        values: dict[Choice, Any] = {which: _update_value(resource, name, value) for which, value in shown.items()}
        update_name = resource.references[name].column if name in resource.references else name
        if update_name not in writable:
            state = "read_only"
        else:
            state = "revert" if name in resource.computed else _state(values)
        undos.append(FieldUndo(update_name, name, state, values, shown))
    return undos


def _find_ignored_warnings(event: Event, current: Struct) -> list[FieldUndo]:
    """The effect on each warning that a person has ignored or restored. Others that are ignored since don't matter."""
    after, now = _fields_of(event.data), _decode(to_json(current))
    old, new, ignored = (_ignored_codes(each) for each in (_fields_of(event.previous), after, now))
    undos = list[FieldUndo]()
    for code in sorted(old ^ new):
        values: dict[Choice, Any] = {"before": code in old, "event": code in new, "now": code in ignored}
        undos.append(FieldUndo(code, code, _state(values), values, values))
    return undos


def _ignored_codes(invoice: Mapping[str, Any]) -> set[str]:
    state: dict[str, list[str]] = invoice.get("state_management") or {}
    return set(state.get("ignored_errors") or ())


def _fields_of(raw: Raw | None) -> dict[str, Any]:
    return _decode(raw) if raw else {}


def _update_value(resource: Resource, name: str, value: Any) -> Any:
    """The value of a field as an update takes it: the id of a record, the names of permissions."""
    if name in resource.references:
        return value["id"] if value else None
    return sorted(each["name"] for each in value) if name == "permissions" and value else value


def _state(values: Mapping[Choice, Any]) -> FieldState:
    if any(isinstance(each, str) and ERASED in each for each in values.values()):
        return "erased"
    if values["now"] == values["before"]:
        return "same"
    return "revert" if values["now"] == values["event"] else "conflict"


async def lock(ctx: WriteContext, event: Event) -> None:
    """Lock the record of an event until the transaction ends."""
    await BY_KIND[event.resource.kind].lock(ctx.tx, ctx.plan_manager_id, [event_key(event)])


async def undo_update(ctx: WriteContext, event: Event, values: Mapping[str, Any]) -> None:
    """Set fields of the record of an event. Raises NotFound and ValidationError, and violates constraints."""
    resource = BY_KIND[event.resource.kind]
    if inverse := resource.inverses.get(event.type.partition(".")[2]):
        await inverse(ctx, event_key(event), _fields_of(event.previous), _fields_of(event.data))
        return
    if resource.update_schema is None:
        raise LookupError(f"a {resource.kind} can't be updated")
    await resource.update(ctx, event_key(event), validate_struct(resource.update_schema, values))


async def undo_many(ctx: WriteContext, resource: Resource, undos: Mapping[int, Undo]) -> None:
    """Undo events of an import, which have no reason against it, by the number of their lines.

    Raises InvalidRowsError for records whose earlier values are no longer valid.
    """
    created = [event_key(each.event) for each in undos.values() if each.event.previous is None]
    if created and resource.delete_many:
        await resource.delete_many(ctx, created)
    rows = [
        ImportRow(line_number, _import_values(resource, each)) for line_number, each in undos.items() if each.values
    ]
    if rows:
        await resource.upsert(ctx, rows)


def _import_values(resource: Resource, undo: Undo) -> Struct:
    """The earlier values of an updated record as a row of an import."""
    participant_id, _, id_ = event_key(undo.event).rpartition("/")
    owner = {"participant_id": participant_id} if participant_id else {}
    values = undo.values | owner | {"id": int(id_) if id_.isdecimal() else id_}
    return msgspec.convert(values, resource.import_schema, dec_hook=decode_custom_type)


def snapshot_of(event: Event) -> Snapshot:
    """The record of an event as it was before its deletion."""
    resource = BY_KIND[event.resource.kind]
    fields = _fields_of(event.previous)
    return Snapshot({name: _update_value(resource, name, value) for name, value in fields.items()})


async def undo_deletion(ctx: WriteContext, kind: str, snapshot: Snapshot) -> Restored:
    """Restore a deleted record. Raises DomainError if there is one with its id again."""
    restore = BY_KIND[kind].restore
    if restore is None:
        raise LookupError(f"a {kind} can't be restored")
    try:
        async with ctx.tx.savepoint():
            return await restore(ctx, snapshot)
    except asyncpg.UniqueViolationError:
        label = kind.replace("_", " ")
        raise DomainError(
            "precondition_failed",
            f"Another {label} has the same ID, or was created at the same moment. Nothing was restored.",
        ) from None
