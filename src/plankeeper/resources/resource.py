"""What the rest of the program knows about a resource: how its records are read, written, deleted and restored.

A record is identified by its key, a text: its id, or the ids of the participant and of its plan or team member, with a
slash.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct

from plankeeper.core.context import ConstraintErrorHandler, WriteContext
from plankeeper.core.errors import DomainError, ValidationError
from plankeeper.core.json import to_json
from plankeeper.core.record_matches import MatchField
from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.errors import ConstraintViolation
from plankeeper.events.schemas import Event
from plankeeper.resources.upsert import ImportCounts, ImportRow

C = TypeVar("C", bound=Executor)
R = TypeVar("R")

GetMany = Callable[[Executor, UUID, Sequence[str]], Awaitable[Sequence[Struct]]]
Lock = Callable[[Transaction, UUID, Sequence[str]], Awaitable[object]]


# Undoes an action on a record. Takes its key, the changed fields with their values before the action, and the record
# after it.
Inverse = Callable[[WriteContext, str, Mapping[str, Any], Mapping[str, Any]], Awaitable[object]]


class Reference(NamedTuple):
    """A field that refers to another record: its name in a row, and what it refers to."""

    column: str
    label: str


class Dependents(NamedTuple):
    """Records of a resource that refer to records of another kind. Undoing an import doesn't delete the latter.

    `find` returns those of the keys that have dependents.
    """

    of: str  # the kind
    reason: Literal["has_team", "has_plans", "has_invoices", "has_notes"]
    find: Callable[[Executor, UUID, Sequence[str]], Awaitable[Sequence[str]]]


class Snapshot(Struct):
    """A deleted record as it was stored, its team, plans and notes, and the names of its references, by id.

    The fields of the record and of its parts are those of the rows when it was deleted.
    """

    record: dict[str, Any]
    team: Sequence[dict[str, Any]] = ()
    names: dict[str, str] = {}
    plans: Sequence[dict[str, Any]] = ()
    notes: Sequence[dict[str, Any]] = ()


class Restored(NamedTuple):
    """The keys of restored records, and sentences about the values that could not be restored."""

    keys: Sequence[str]
    changes: Sequence[str]


async def _no_update(_ctx: WriteContext, _key: str, _change: Any) -> Struct:
    raise LookupError("the records of this resource can't be updated one by one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource, with what its records can do.

    Import and export: `import_schema` is a row of an import, `export_schema` one of an export. An import writes to
    `tables`. `check` returns a warning about a valid row, or None. `match_fields` are those by which rows can find
    their record. `import_errors` are those of constraints that only an import can violate, or that it words otherwise.

    Changes: `get_many` returns records as events have them, and `lock` locks them until the transaction ends. `update`
    sets the fields of an `update_schema`, and `delete_many` deletes records. `inverses` undo the events of actions, by
    their verbs. Without them, the records can't be changed
    one by one, or deleted. Only an import can change records that are hidden (`is_hidden`). `references` are the fields
    that refer to other records, by their name in events. `computed` fields change with other records or with any
    change. `dependents` are records of this resource that refer to others.

    Trash: `remove` deletes a record with its parts, and returns its name and content, from which `restore` inserts it
    again.
    """

    kind: str  # of its events
    import_schema: type[Struct]
    upsert: Callable[[WriteContext, Sequence[ImportRow[Any]]], Awaitable[ImportCounts]]
    export_schema: type[Struct]
    export: Callable[[Transaction, UUID], AsyncGenerator[Sequence[Struct]]]
    tables: tuple[str, ...]
    check: Callable[[Any], str | None] = lambda _values: None
    match_fields: Mapping[str, MatchField] = field(default_factory=dict[str, MatchField])
    import_errors: Mapping[str, ConstraintErrorHandler] = field(default_factory=dict[str, ConstraintErrorHandler])
    get_many: GetMany
    is_hidden: Callable[[Any, Settings], bool] = lambda _record, _settings: False
    lock: Lock
    update_schema: type[Struct] | None = None
    update: Callable[[WriteContext, str, Any], Awaitable[Struct]] = _no_update
    inverses: Mapping[str, Inverse] = field(default_factory=dict[str, "Inverse"])
    delete_many: Callable[[WriteContext, Sequence[str]], Awaitable[None]] | None = None
    constraint_errors: Mapping[str, ConstraintErrorHandler] = field(default_factory=dict[str, ConstraintErrorHandler])
    references: Mapping[str, Reference] = field(default_factory=dict[str, Reference])
    computed: frozenset[str] = frozenset()
    dependents: Sequence[Dependents] = ()
    remove: Callable[[WriteContext, UUID], Awaitable[tuple[str | None, Snapshot]]] | None = None
    restore: Callable[[WriteContext, Snapshot], Awaitable[Restored]] | None = None


def event_key(event: Event) -> str:
    """The key of the record of an event."""
    participant_id = event.resource.participant_id
    return f"{participant_id}/{event.resource.id}" if participant_id else event.resource.id


def record_key(record: Any) -> str:
    """The key of a record as events have it."""
    is_part = hasattr(record, "permissions") or hasattr(record, "components")
    return f"{record.participant_id}/{record.id}" if is_part else str(record.id)


def stored_fields(row: Struct) -> dict[str, Any]:
    """The fields of a row for a snapshot, without the time of its last change: restoring it is a change."""
    record = msgspec.json.decode(to_json(row), type=dict[str, Any])
    record.pop("updated_at", None)
    return record


def uuids(keys: Sequence[str]) -> list[UUID]:
    """The ids of the records themselves."""
    return [UUID(each.rpartition("/")[2]) for each in keys]


def by_uuid(run: Callable[[C, UUID, list[UUID]], Awaitable[R]]) -> Callable[[C, UUID, Sequence[str]], Awaitable[R]]:
    """A function of a store, with keys instead of ids."""
    return lambda db, plan_manager_id, keys: run(db, plan_manager_id, uuids(keys))


def invalid(**errors: str) -> ConstraintErrorHandler:
    """The error of a constraint, with a message for a field."""

    async def handle(_db: Executor, _plan_manager_id: UUID, _violation: ConstraintViolation) -> DomainError:
        return ValidationError(**errors)

    return handle
