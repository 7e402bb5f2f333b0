"""Undoes an import as a whole, as long as each of its events can be undone."""

from collections.abc import AsyncIterator
from typing import Literal, NamedTuple
from uuid import UUID

from plankeeper.core.context import WriteContext
from plankeeper.database.client import Executor
from plankeeper.events import store as event_store
from plankeeper.events.schemas import Event
from plankeeper.imports import store
from plankeeper.imports.schemas import Import, ImportedRow, ImportRowFilter
from plankeeper.resources.registry import RESOURCES
from plankeeper.resources.undo import Reason, Undo, find_undos, undo_many
from plankeeper.resources.upsert import InvalidRowsError

BATCH_SIZE = 1000
MAX_BLOCKERS = 50
_NOTHING_TO_DO = {"same", "read_only"}

# Beside those of one event: the event was deleted, or an earlier value is no longer valid.
BlockerReason = Reason | Literal["expired", "invalid"]


class UndoBlocker(NamedTuple):
    """A row whose record prevents the undo, and its event."""

    row: ImportedRow
    event: Event | None
    reason: BlockerReason
    later: Event | None = None


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
    return RESOURCES[record.resource].delete_many is not None or not record.created_count


async def find_blockers(db: Executor, plan_manager_id: UUID, record: Import) -> UndoBlockers:
    """The records that have changed since the import, or were deleted, or that others refer to."""
    first, count = list[UndoBlocker](), 0
    async for rows in _batches(db, plan_manager_id, record):
        undos = await _find_undos(db, plan_manager_id, record, rows)
        found = [blocker for row in rows if (blocker := _find_blocker(row, undos.get(row.line_number)))]
        first += found[: MAX_BLOCKERS - len(first)]
        count += len(found)
    return UndoBlockers(first, count)


async def undo_import(ctx: WriteContext, record: Import) -> None:
    """Delete the created records, and restore the previous values of the changed ones. Raises UndoBlockedError."""
    resource = RESOURCES[record.resource]
    async for rows in _batches(ctx.tx, ctx.plan_manager_id, record):
        await resource.lock(ctx.tx, ctx.plan_manager_id, [each.record_id or "" for each in rows])
    blockers = await find_blockers(ctx.tx, ctx.plan_manager_id, record)
    if blockers.total:
        raise UndoBlockedError(blockers)
    async for rows in _batches(ctx.tx, ctx.plan_manager_id, record):
        undos = await _find_undos(ctx.tx, ctx.plan_manager_id, record, rows)
        try:
            await undo_many(ctx, resource, undos)
        except InvalidRowsError as error:
            lines = {each.line_number for each in error.errors}
            invalid = [
                UndoBlocker(each, undos[each.line_number].event, "invalid")
                for each in rows
                if each.line_number in lines
            ]
            raise UndoBlockedError(UndoBlockers(invalid[:MAX_BLOCKERS], len(invalid))) from None


async def _batches(db: Executor, plan_manager_id: UUID, record: Import) -> AsyncIterator[list[ImportedRow]]:
    """The rows of an import that wrote a record."""
    for outcome in ("created", "changed"):
        after = 0
        while rows := await store.list_rows(
            db, plan_manager_id, record.id, after, ImportRowFilter(outcome), BATCH_SIZE
        ):
            yield rows
            after = rows[-1].line_number


async def _find_undos(db: Executor, plan_manager_id: UUID, record: Import, rows: list[ImportedRow]) -> dict[int, Undo]:
    """The effect of undoing the events of the rows that still have one, by the number of the line."""
    lines = {each.event_id: each.line_number for each in rows if each.event_id}
    events = [each for each in await event_store.get_many(db, plan_manager_id, list(lines)) if each.data]
    undos = await find_undos(db, plan_manager_id, events, import_id=record.id)
    return {lines[each.event.id]: each for each in undos}


def _find_blocker(row: ImportedRow, undo: Undo | None) -> UndoBlocker | None:
    if undo is None:
        return UndoBlocker(row, None, "expired")
    if undo.reason is None or undo.reason in _NOTHING_TO_DO:
        return None
    return UndoBlocker(row, undo.event, undo.reason, undo.later)
