"""Import of notes. A row names its record by kind and id, or a participant by number, and its type by id or name."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from msgspec import UNSET

from plankeeper.core.context import WriteContext
from plankeeper.core.fields import unset_to_none
from plankeeper.events.recorder import Change
from plankeeper.resources import recheck_queue
from plankeeper.resources.notes import store
from plankeeper.resources.notes.schemas import NotedKind, NoteImport, NoteRow
from plankeeper.resources.notes.service import ARTICLES
from plankeeper.resources.parents import list_participants_by_numbers, number_of
from plankeeper.resources.upsert import (
    ImportCounts,
    ImportRow,
    InvalidRowsError,
    RecordUpserter,
    RowError,
    created_or_updated,
)

NoteImportRow = ImportRow[NoteImport]
_Changed = Sequence[tuple[int, NoteRow | None, NoteRow]]


class _References:
    """The records and types of imported notes, which must exist, and the invoices to check again."""

    async def prepare(self, ctx: WriteContext, changed: _Changed) -> _Changed:
        errors = [
            RowError(number, "resource_id", "can't be changed")
            for number, before, after in changed
            if before and (before.resource_kind, before.resource_id) != (after.resource_kind, after.resource_id)
        ]
        errors += await _find_unknown_types(ctx, changed)
        errors += await _find_unknown_records(ctx, [each for each in changed if each[1] is None])
        if errors:
            raise InvalidRowsError(errors)
        return changed

    async def write(self, ctx: WriteContext, prepared: _Changed) -> Sequence[Change]:
        concerned = [after for _, before, after in prepared if _alert(before) != _alert(after)]
        for kind in ("participant", "provider"):
            ids = {each.resource_id: None for each in concerned if each.resource_kind == kind}
            await recheck_queue.enqueue(ctx, kind, ids)
        return ()


def _alert(row: NoteRow | None) -> str | None:
    return row.text if row and row.alert else None


async def _find_unknown_types(ctx: WriteContext, changed: _Changed) -> list[RowError]:
    ids = sorted({after.note_type_id for _, _, after in changed})
    known = {each.id for each in await store.lock_note_types(ctx.tx, ctx.plan_manager_id, ids)}
    message = "must be the id of a note type of this plan manager"
    return [RowError(number, "note_type_id", message) for number, _, row in changed if row.note_type_id not in known]


async def _find_unknown_records(ctx: WriteContext, created: _Changed) -> list[RowError]:
    ids = defaultdict[NotedKind, set[UUID]](set)
    for _, _, row in created:
        ids[row.resource_kind].add(row.resource_id)
    known = {
        (kind, id_)
        for kind, of_kind in ids.items()
        for id_ in await store.lock_resources(ctx.tx, ctx.plan_manager_id, kind, sorted(of_kind))
    }
    return [
        RowError(number, "resource_id", f"must be the id of {ARTICLES[row.resource_kind]} of this plan manager")
        for number, _, row in created
        if (row.resource_kind, row.resource_id) not in known
    ]


UPSERTER = RecordUpserter(
    record_type=NoteRow,
    select_for_update=store.select_for_update,
    save=store.upsert,
    get_many=store.get_many,
    event_type=created_or_updated("note"),
    part=_References(),
)


async def upsert(ctx: WriteContext, rows: Sequence[NoteImportRow]) -> ImportCounts:
    """Insert or update the notes of rows. The author of a new one is the row's, or who imports it."""
    errors = [*await _resolve_participants(ctx, rows), *await _resolve_types(ctx, rows)]
    if errors:
        raise InvalidRowsError(errors)

    def defaults(values: Any) -> dict[str, Any]:
        created_at = {"created_at": datetime.now(UTC)}
        if any(unset_to_none(each) for each in (values.author_kind, values.author_id, values.author_name)):
            return created_at
        return created_at | {f"author_{name}": getattr(ctx.actor, name) for name in ("kind", "id", "name")}

    return await replace(UPSERTER, defaults=defaults)(ctx, rows)


async def _resolve_participants(ctx: WriteContext, rows: Sequence[NoteImportRow]) -> list[RowError]:
    """Set the record of rows with the number of a participant. Returns the errors of those without exactly one."""
    named = [(row, number) for row in rows if (number := number_of(row))]
    if not named:
        return []
    numbers = sorted({number for _, number in named})
    found = await list_participants_by_numbers(ctx.tx, ctx.plan_manager_id, numbers)
    counts = Counter(each.participant_number for each in found)
    ids = {each.participant_number: str(each.id) for each in found}
    errors = list[RowError]()
    for row, number in named:
        if row.values.resource_id is not UNSET:
            errors.append(RowError(row.line_number, "participant_number", "isn't allowed with resource_id"))
        elif counts[number] == 1:
            row.values.resource_kind, row.values.resource_id = "participant", ids[number]
        else:
            message = "is shared by two participants; use resource_id" if number in counts else "isn't known"
            errors.append(RowError(row.line_number, "participant_number", message))
        row.values.participant_number = UNSET
    return errors


async def _resolve_types(ctx: WriteContext, rows: Sequence[NoteImportRow]) -> list[RowError]:
    """Set the type of rows with the name of one. Returns the errors of those without exactly one."""
    named = [(row, name) for row in rows if (name := unset_to_none(row.values.note_type))]
    if not named:
        return []
    names = sorted({name.strip().lower() for _, name in named})
    found = await store.list_note_types_by_names(ctx.tx, ctx.plan_manager_id, names)
    counts = Counter(each.note_type.lower() for each in found)
    ids = {each.note_type.lower(): each.id for each in found}
    errors = list[RowError]()
    for row, name in named:
        folded = name.strip().lower()
        if row.values.note_type_id is not UNSET:
            continue
        if counts[folded] == 1:
            row.values.note_type_id = ids[folded]
        else:
            message = "is the name of several note types; use note_type_id" if folded in counts else "isn't known"
            errors.append(RowError(row.line_number, "note_type", message))
    return errors
