"""Note types in SQL."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from plankeeper.core.lists import PageRows, fetch_page
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT
from plankeeper.database.row_ids import in_array
from plankeeper.database.versions import UPDATED_AT, compose_update
from plankeeper.resources.note_types.schemas import (
    NoteType,
    NoteTypeListQuery,
    NoteTypeRow,
    NoteTypeVersion,
)

COLUMNS: LiteralString = "id, note_type, plan_manager_id, badge_color, highlight_color, updated_at"
ROW_COLUMNS: LiteralString = "id, note_type, badge_color, highlight_color"
HAS_NUMBER: LiteralString = in_array("id", "$2::bigint[]")

LIST = FilteredList(
    "note_types",
    NoteTypeListQuery,
    sorts=BY_UPDATED_AT,
    id_type="bigint",
)


async def list_page(db: Executor, plan_manager_id: UUID, query: NoteTypeListQuery) -> PageRows[NoteType]:
    return await fetch_page(db, plan_manager_id, query, LIST, get_many)


GET: LiteralString = f"select {COLUMNS} from note_types where plan_manager_id = $1 and id = $2"


async def get(db: Executor, plan_manager_id: UUID, note_type_id: int) -> NoteType | None:
    return await db.one_or_none(NoteType, GET, plan_manager_id, note_type_id)


LOCK = "select from note_types where plan_manager_id = $1 and id = $2 for update"


async def get_for_update(tx: Transaction, plan_manager_id: UUID, note_type_id: int) -> NoteType | None:
    """The note type as `update` expects it: see `Transaction.lock_row`."""
    await tx.lock_row(LOCK, plan_manager_id, note_type_id)
    return await get(tx.reader, plan_manager_id, note_type_id)


GET_MANY: LiteralString = f"""
    select {COLUMNS}
    from note_types
    where plan_manager_id = $1 and {HAS_NUMBER}
    order by id
"""


async def get_many(db: Executor, plan_manager_id: UUID, note_type_ids: Sequence[int]) -> list[NoteType]:
    """The note types that exist among the ids."""
    return await db.rows(NoteType, GET_MANY, plan_manager_id, note_type_ids)


SELECT_FOR_UPDATE: LiteralString = f"""
    select {ROW_COLUMNS}, updated_at
    from note_types
    where plan_manager_id = $1 and {HAS_NUMBER}
    order by id
    for update
"""


async def select_for_update(
    tx: Transaction, plan_manager_id: UUID, note_type_ids: Sequence[int]
) -> list[NoteTypeVersion]:
    """The rows that exist among the ids, locked until the transaction ends."""
    return await tx.rows(NoteTypeVersion, SELECT_FOR_UPDATE, plan_manager_id, note_type_ids)


NEXT_IDS = "select nextval('note_type_ids') from generate_series(1, $1)"


async def next_ids(tx: Transaction, count: int) -> list[int]:
    """Take new ids from the sequence, which all plan managers share."""
    return await tx.rows(int, NEXT_IDS, count)


UPSERT: LiteralString = f"""
    insert into note_types (plan_manager_id, {ROW_COLUMNS}, updated_at)
    select $1, {ROW_COLUMNS}, {UPDATED_AT}
    from json_populate_recordset(null::note_types, $2)
    on conflict (plan_manager_id, id) do update set
        note_type = excluded.note_type, badge_color = excluded.badge_color,
        highlight_color = excluded.highlight_color, updated_at = excluded.updated_at
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert note types or replace existing ones. `records` is a JSON list of NoteTypeRow."""
    await tx.execute(UPSERT, plan_manager_id, records)


UPDATE = compose_update("note_types", "note_type, badge_color, highlight_color")


async def update(tx: Transaction, plan_manager_id: UUID, records: str, version: datetime) -> None:
    """Update the note type that was read with this version. `records` is a JSON list with its NoteType."""
    await tx.queue_write(UPDATE, plan_manager_id, records, version)


# All plan managers share the sequence. It never moves beyond 2^52, so that no import can use up the ids of the others,
# which are exact in every client up to 2^53. It doesn't reach an imported id above 2^52 either.
ADVANCE_ID_SEQUENCE = """
    select setval('note_type_ids', highest.id)
    from note_type_ids, (
        select max(id) as id from note_types where plan_manager_id = $1 and id <= 4503599627370496
    ) highest
    where highest.id > last_value
"""


async def advance_id_sequence(tx: Transaction, plan_manager_id: UUID) -> None:
    """Advance the sequence past imported ids. The sequence never goes back."""
    await tx.execute(ADVANCE_ID_SEQUENCE, plan_manager_id)


COUNT_NOTES = "select count(*) from notes where plan_manager_id = $1 and note_type_id = $2"


async def count_notes(db: Executor, plan_manager_id: UUID, note_type_id: int) -> int:
    """The number of notes with a note type."""
    return await db.one(int, COUNT_NOTES, plan_manager_id, note_type_id)


LIST_USED = f"""
    select id::text
    from note_types
    where plan_manager_id = $1 and {HAS_NUMBER}
        and exists (select from notes where plan_manager_id = $1 and note_type_id = note_types.id)
"""


async def list_used(db: Executor, plan_manager_id: UUID, note_type_ids: Sequence[int]) -> list[str]:
    """Those of the note types that notes have."""
    return await db.rows(str, LIST_USED, plan_manager_id, note_type_ids)


DELETE: LiteralString = f"delete from note_types where plan_manager_id = $1 and id = $2 returning {COLUMNS}"


async def delete(tx: Transaction, plan_manager_id: UUID, note_type_id: int) -> NoteType | None:
    """Delete a note type, and return the deleted note type."""
    return await tx.one_or_none(NoteType, DELETE, plan_manager_id, note_type_id)


EXPORT: LiteralString = f"select {ROW_COLUMNS} from note_types where plan_manager_id = $1 order by id"


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[NoteTypeRow]]:
    return tx.stream(NoteTypeRow, EXPORT, plan_manager_id)
