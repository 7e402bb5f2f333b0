"""Undoes an import, as long as none of its records has changed since."""

from collections.abc import AsyncIterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, NamedTuple
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from plankeeper.core.context import WriteContext
from plankeeper.core.fields import decode_custom_type
from plankeeper.core.json import to_json
from plankeeper.database.client import Executor
from plankeeper.events import store as event_store
from plankeeper.events.schemas import Event
from plankeeper.imports import store
from plankeeper.imports.schemas import Import, ImportedRow, ImportRowFilter
from plankeeper.imports.undoable_resources import UNDOABLE
from plankeeper.resources.registry import RESOURCES
from plankeeper.resources.upsert import ImportRow, InvalidRowsError

BATCH_SIZE = 1000
MAX_BLOCKERS = 50
_REFERENCES = {
    "account_manager": "account_manager_id",
    "exit_reason_category": "exit_reason_category_id",
    "exit_reason_subcategory": "exit_reason_subcategory_id",
}

# Computed by the checks of invoices. It changes with other invoices, too.
_COMPUTED = ("errors", "is_duplicate", "state_management")
_decoder = msgspec.json.Decoder(float_hook=Decimal)

BlockerReason = Literal["changed", "deleted", "has_team", "has_invoices", "expired", "invalid"]


class Reference(Struct):
    """An account manager or exit reason in an event."""

    id: str | None


class UndoBlocker(NamedTuple):
    """A record that prevents an undo, with the reason, and the last change if another actor's change is the reason."""

    line_number: int
    record_id: str
    name: str
    reason: BlockerReason
    event: Event | None = None


class UndoBlockers(NamedTuple):
    """The first records that prevent an undo, and the number of all."""

    first: list[UndoBlocker]
    total: int


class UndoBlockedError(Exception):
    """Records have changed since the import, so it wasn't undone."""

    def __init__(self, blockers: UndoBlockers) -> None:
        super().__init__()
        self.blockers = blockers


def can_be_undone(record: Import) -> bool:
    """Whether an import can be undone: not if it creates records that can't be deleted."""
    undo = UNDOABLE.get(record.resource)
    return undo is not None and (undo.delete_many is not None or not record.created_count)


async def find_blockers(db: Executor, plan_manager_id: UUID, record: Import) -> UndoBlockers:
    """The records that have changed since the import, or were deleted, or that others refer to."""
    first, count = list[UndoBlocker](), 0
    async for rows in _batches(db, plan_manager_id, record):
        found = await _find_in_batch(db, plan_manager_id, record, rows)
        first += found[: MAX_BLOCKERS - len(first)]
        count += len(found)
    return UndoBlockers(first, count)


async def undo_import(ctx: WriteContext, record: Import) -> None:
    """Delete the created records, and restore the previous values of the changed ones. Raises UndoBlockedError."""
    undo = UNDOABLE[record.resource]
    async for rows in _batches(ctx.tx, ctx.plan_manager_id, record):
        await undo.lock(ctx.tx, ctx.plan_manager_id, [each.record_id or "" for each in rows])
    blockers = await find_blockers(ctx.tx, ctx.plan_manager_id, record)
    if blockers.total:
        raise UndoBlockedError(blockers)
    async for rows in _batches(ctx.tx, ctx.plan_manager_id, record):
        created = [each.record_id or "" for each in rows if each.outcome == "created"]
        changed = [each for each in rows if each.outcome == "changed"]
        if created and undo.delete_many:
            await undo.delete_many(ctx, created)
        if changed:
            await _restore(ctx, record, changed)


async def _batches(db: Executor, plan_manager_id: UUID, record: Import) -> AsyncIterator[list[ImportedRow]]:
    """The rows of an import that wrote a record."""
    for outcome in ("created", "changed"):
        after = 0
        while rows := await store.list_rows(
            db, plan_manager_id, record.id, after, ImportRowFilter(outcome), BATCH_SIZE
        ):
            yield rows
            after = rows[-1].line_number


async def _find_in_batch(
    db: Executor, plan_manager_id: UUID, record: Import, rows: Sequence[ImportedRow]
) -> list[UndoBlocker]:
    undo = UNDOABLE[record.resource]
    ids = [each.record_id or "" for each in rows]
    events = {
        each.id: each
        for each in await event_store.get_many(db, plan_manager_id, [each.event_id for each in rows if each.event_id])
    }
    current = {_record_id(each): each for each in await undo.get_many(db, plan_manager_id, ids)}
    later = await _later_events(db, plan_manager_id, undo.kind, record, ids)
    created = [each.record_id or "" for each in rows if each.outcome == "created"]
    with_team = await undo.has_team(db, plan_manager_id, created) if undo.has_team else ()
    with_invoices = await undo.has_invoices(db, plan_manager_id, created) if undo.has_invoices else ()
    blockers: list[UndoBlocker] = []
    for row in rows:
        id_ = row.record_id or ""
        own, last = events.get(row.event_id) if row.event_id else None, later.get(id_)
        reason = _blocker_reason(own, current.get(id_), last)
        if reason is None and id_ in with_team:
            reason = "has_team"
        elif reason is None and id_ in with_invoices:
            reason = "has_invoices"
        if reason:
            blockers.append(UndoBlocker(row.line_number, id_, _name(own), reason, last))
    return blockers


def _blocker_reason(own: Event | None, current: Struct | None, last: Event | None) -> BlockerReason | None:
    """The reason why a record prevents the undo; `last` is its last event that the import didn't record."""
    if current is None:
        return "deleted"
    if own is None or own.data is None:
        return "expired"
    if last and last.id > own.id:
        return "changed"
    # Also compared by value: clocks of several servers can differ.
    return None if _comparable(own.data) == _comparable(Raw(to_json(current).encode())) else "changed"


async def _later_events(
    db: Executor, plan_manager_id: UUID, kind: str, record: Import, ids: Sequence[str]
) -> dict[str, Event]:
    """The last event of each record that isn't of the import."""
    resource_ids = [each.rpartition("/")[2] for each in ids]
    events = await event_store.latest_of_resources(db, plan_manager_id, kind, resource_ids, record.id)
    return {_event_record_id(each): each for each in events}


def _event_record_id(event: Event) -> str:
    if event.resource.kind != "team_member":
        return event.resource.id
    fields: dict[str, Any] = msgspec.json.decode(event.data or event.previous or b"{}")
    return f"{fields.get('participant_id')}/{event.resource.id}"


def _record_id(record: Any) -> str:
    prefix = f"{record.participant_id}/" if hasattr(record, "permissions") else ""
    return f"{prefix}{record.id}".lower()


def _comparable(record: Raw) -> dict[str, Any]:
    """A record without the names of its references, which change without an event of the record."""
    fields: dict[str, Any] = msgspec.json.decode(record)
    references: dict[str, Any] = {name: _reference_id(fields.get(name)) for name in _REFERENCES}
    return {name: value for name, value in fields.items() if name not in _COMPUTED} | references


def _reference_id(reference: Any) -> str | None:
    return msgspec.convert(reference, Reference).id if reference else None


def _name(event: Event | None) -> str:
    fields: dict[str, Any] = msgspec.json.decode(event.data) if event and event.data else {}
    full_name = " ".join(filter(None, (fields.get("first_name"), fields.get("last_name"))))
    names = ("entity_name", "note_type", "name", "invoice_number", "email")
    return full_name or next((fields[name] for name in names if fields.get(name)), "")


async def _restore(ctx: WriteContext, record: Import, rows: Sequence[ImportedRow]) -> None:
    """Write the previous values of changed records, which their events have."""
    resource = RESOURCES[record.resource]
    found = await event_store.get_many(ctx.tx, ctx.plan_manager_id, [each.event_id for each in rows if each.event_id])
    events = {each.id: each for each in found}
    previous: list[ImportRow[Any]] = []
    for row in rows:
        event = events[row.event_id] if row.event_id else None
        values = _import_values(event.previous if event else None, row.record_id or "")
        known = {name: value for name, value in values.items() if name in resource.import_schema.__struct_fields__}
        parsed = msgspec.convert(known, resource.import_schema, dec_hook=decode_custom_type)
        previous.append(ImportRow(row.line_number, parsed))
    try:
        await resource.upsert(ctx, previous)
    except InvalidRowsError as error:
        raise UndoBlockedError(_invalid_rows(error, {each.line_number: each for each in rows}, events)) from None


def _invalid_rows(
    error: InvalidRowsError, rows: Mapping[int, ImportedRow], events: Mapping[UUID, Event]
) -> UndoBlockers:
    """The errors of records whose previous values are no longer valid, such as an account manager without an email."""
    found = [rows[each] for each in sorted({each.line_number for each in error.errors})]
    blockers = [
        UndoBlocker(
            each.line_number, each.record_id or "", _name(events[each.event_id] if each.event_id else None), "invalid"
        )
        for each in found
    ]
    return UndoBlockers(blockers[:MAX_BLOCKERS], len(blockers))


def _import_values(previous: Raw | None, record_id: str) -> dict[str, Any]:
    """The previous values of an event as the columns of an import, with the record's id."""
    values: dict[str, Any] = _decoder.decode(previous or b"{}")
    for name, column in _REFERENCES.items():
        if name in values:
            values[column] = _reference_id(values.pop(name))
    if "permissions" in values:
        values["permissions"] = [each["name"] for each in values["permissions"]]
    participant_id, _, id_ = record_id.rpartition("/")
    values["id"] = int(id_) if id_.isdecimal() else id_
    return values | ({"participant_id": participant_id} if participant_id else {})
