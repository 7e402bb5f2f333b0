"""Notes in SQL."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.combined_writes import Write
from plankeeper.database.row_ids import HAS_ID, in_array
from plankeeper.database.versions import UPDATED_AT, compose_update
from plankeeper.resources.notes.schemas import Note, NotedKind, NoteRow, NoteVersion

ROW_COLUMNS: LiteralString = """
    id, resource_kind, resource_id, note_type_id, text, pinned, alert, author_kind, author_id, author_name, created_at
"""
COLUMNS: LiteralString = """
    note.id, note.resource_kind, note.resource_id, note.note_type_id, type.note_type, type.badge_color,
    type.highlight_color, note.text, note.pinned, note.alert, note.author_kind, note.author_id, note.author_name,
    note.created_at, note.updated_at
"""


def with_types(notes: LiteralString) -> LiteralString:
    """A statement that reads some notes, each with its type."""
    return f"""
    select {COLUMNS}
    from ({notes}) note
    cross join lateral (
        select note_type, badge_color, highlight_color
        from note_types
        where plan_manager_id = $1 and id = note.note_type_id
        offset 0
    ) type
"""


GET: LiteralString = with_types("select * from notes where plan_manager_id = $1 and id = $2")


async def get(db: Executor, plan_manager_id: UUID, note_id: UUID) -> Note | None:
    return await db.one_or_none(Note, GET, plan_manager_id, note_id)


LOCK = "select from notes where plan_manager_id = $1 and id = $2 for update"


async def get_for_update(tx: Transaction, plan_manager_id: UUID, note_id: UUID) -> Note | None:
    """The note as `update` expects it: see `Transaction.lock_row`."""
    await tx.lock_row(LOCK, plan_manager_id, note_id)
    return await get(tx.reader, plan_manager_id, note_id)


GET_MANY: LiteralString = f"""
    {with_types(f"select * from notes where plan_manager_id = $1 and {HAS_ID}")} order by note.id
"""


async def get_many(db: Executor, plan_manager_id: UUID, note_ids: Sequence[UUID]) -> list[Note]:
    """The notes with these ids, in order of id; unknown ids are ignored."""
    return await db.rows(Note, GET_MANY, plan_manager_id, note_ids)


SELECT_FOR_UPDATE: LiteralString = f"""
    select {ROW_COLUMNS}, updated_at
    from notes
    where plan_manager_id = $1 and {HAS_ID}
    order by id
    for update
"""


async def select_for_update(tx: Transaction, plan_manager_id: UUID, note_ids: Sequence[UUID]) -> list[NoteVersion]:
    """The rows that exist among the ids, locked until the transaction ends."""
    return await tx.rows(NoteVersion, SELECT_FOR_UPDATE, plan_manager_id, note_ids)


INSERT = Write(
    "added_notes as materialized (select * from json_populate_recordset(null::notes, $2))",
    f"""
    insert into notes (plan_manager_id, {ROW_COLUMNS}, updated_at)
    select $1, {ROW_COLUMNS}, {UPDATED_AT} from added_notes
    """,
    parameters=2,
)


async def insert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert notes with new ids. `records` is a JSON list of NoteVersion."""
    await tx.queue_write(INSERT, plan_manager_id, records)


UPSERT: LiteralString = f"""
    insert into notes (plan_manager_id, {ROW_COLUMNS}, updated_at)
    select $1, {ROW_COLUMNS}, {UPDATED_AT}
    from json_populate_recordset(null::notes, $2)
    on conflict (plan_manager_id, id) do update set
        note_type_id = excluded.note_type_id, text = excluded.text, pinned = excluded.pinned, alert = excluded.alert,
        author_kind = excluded.author_kind, author_id = excluded.author_id, author_name = excluded.author_name,
        created_at = excluded.created_at, updated_at = excluded.updated_at
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert notes or replace existing ones, which stay on their records. `records` is a JSON list of NoteRow."""
    await tx.execute(UPSERT, plan_manager_id, records)


UPDATE = compose_update("notes", "note_type_id, text, pinned, alert")


async def update(tx: Transaction, plan_manager_id: UUID, records: str, version: datetime) -> None:
    """Update the note that was read with this version. `records` is a JSON list with its Note."""
    await tx.queue_write(UPDATE, plan_manager_id, records, version)


DELETE_MANY: LiteralString = f"delete from notes where plan_manager_id = $1 and {HAS_ID}"


async def delete_many(tx: Transaction, plan_manager_id: UUID, note_ids: Sequence[UUID]) -> None:
    await tx.execute(DELETE_MANY, plan_manager_id, note_ids)


OF_RESOURCES: LiteralString = f"""
    select * from notes
    where plan_manager_id = $1 and resource_kind = $2 and {in_array("resource_id", "$3::uuid[]")}
"""
LIST_OF_RESOURCES: LiteralString = f"{with_types(OF_RESOURCES)} order by note.id"


async def list_of_resources(
    db: Executor, plan_manager_id: UUID, kind: NotedKind, resource_ids: Sequence[UUID]
) -> list[Note]:
    """All notes on some records of one kind."""
    return await db.rows(Note, LIST_OF_RESOURCES, plan_manager_id, kind, resource_ids)


LIST_NOTED = f"""
    select distinct resource_id::text
    from notes
    where plan_manager_id = $1 and resource_kind = $2 and {in_array("resource_id", "$3::uuid[]")}
"""


async def list_noted(db: Executor, plan_manager_id: UUID, kind: NotedKind, resource_ids: Sequence[UUID]) -> list[str]:
    """Those of the records that have notes."""
    return await db.rows(str, LIST_NOTED, plan_manager_id, kind, resource_ids)


NEWEST: LiteralString = "order by pinned desc, created_at desc, id desc"
LIST_SHOWN: LiteralString = f"""
    {
    with_types(f'''
        select * from notes
        where plan_manager_id = $1 and resource_kind = $2 and resource_id = $3
        {NEWEST}
        limit $4 offset $5
    ''')
} {NEWEST}
"""


async def list_shown(
    db: Executor, plan_manager_id: UUID, kind: NotedKind, resource_id: UUID, limit: int, offset: int = 0
) -> list[Note]:
    """The notes on a record as its page shows them: pinned ones first, of each the newest first."""
    return await db.rows(Note, LIST_SHOWN, plan_manager_id, kind, resource_id, limit, offset)


# Each part walks an index of the record's notes, of which few are pinned or alerts.
LIST_FOR_REVIEW: LiteralString = f"""
    {
    with_types('''
        select own.*
        from (
            values ('invoice', $2::uuid, 1), ('participant', $3::uuid, 2), ('provider', $4::uuid, 3)
        ) subject (kind, id, position)
        cross join lateral (
            select notes.*, position
            from notes
            where plan_manager_id = $1 and resource_kind = kind and resource_id = subject.id and (pinned or alert)
            offset 0
        ) own
    ''')
}
    order by alert desc, position, note.created_at desc, note.id desc
    limit $5
"""


async def list_for_review(
    db: Executor,
    plan_manager_id: UUID,
    invoice_id: UUID,
    participant_id: UUID | None,
    provider_id: UUID | None,
    limit: int,
) -> list[Note]:
    """The pinned notes and the alerts of an invoice, its participant and its provider: alerts first."""
    ids = (invoice_id, participant_id, provider_id)
    return await db.rows(Note, LIST_FOR_REVIEW, plan_manager_id, *ids, limit)


LIST_OF_INVOICES_OF: LiteralString = f"""
    {
    with_types('''
        select notes.* from notes
        where plan_manager_id = $1 and resource_kind = 'invoice'
            and resource_id in (select id from invoices where plan_manager_id = $1 and participant_id = $2)
    ''')
} order by note.id
"""


async def list_of_invoices_of(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[Note]:
    """The notes on the invoices of a participant."""
    return await db.rows(Note, LIST_OF_INVOICES_OF, plan_manager_id, participant_id)


LIST_LATEST_OF_INVOICES_OF = """
    select note.id
    from invoices invoice
    cross join lateral (
        select id from notes
        where plan_manager_id = $1 and resource_kind = 'invoice' and resource_id = invoice.id
        offset 0
    ) note
    where invoice.plan_manager_id = $1 and invoice.participant_id = $2
    order by note.id desc
    limit $3
"""


async def list_latest_of_invoices_of(
    db: Executor, plan_manager_id: UUID, participant_id: UUID, limit: int
) -> list[UUID]:
    """The latest notes on the invoices of a participant."""
    return await db.rows(UUID, LIST_LATEST_OF_INVOICES_OF, plan_manager_id, participant_id, limit)


RESOURCE_EXISTS = """
    select case $2::text
        when 'participant' then exists (select from participants where plan_manager_id = $1 and id = $3)
        when 'provider' then exists (select from providers where plan_manager_id = $1 and id = $3)
        else exists (select from invoices where plan_manager_id = $1 and id = $3)
    end
"""


async def exists(db: Executor, plan_manager_id: UUID, kind: NotedKind, resource_id: UUID) -> bool:
    """Whether the record of a note exists."""
    return await db.one(bool, RESOURCE_EXISTS, plan_manager_id, kind, resource_id)


# A key lock: others can change the record, but not delete it.
LOCK_PARTICIPANTS = f"select id from participants where plan_manager_id = $1 and {HAS_ID} order by id for key share"
LOCK_PROVIDERS = f"select id from providers where plan_manager_id = $1 and {HAS_ID} order by id for key share"
LOCK_INVOICES = f"select id from invoices where plan_manager_id = $1 and {HAS_ID} order by id for key share"


async def lock_resources(
    tx: Transaction, plan_manager_id: UUID, kind: NotedKind, resource_ids: Sequence[UUID]
) -> list[UUID]:
    """Those of the records that exist; they can't be deleted until the transaction ends."""
    if kind == "participant":
        return await tx.rows(UUID, LOCK_PARTICIPANTS, plan_manager_id, resource_ids)
    if kind == "provider":
        return await tx.rows(UUID, LOCK_PROVIDERS, plan_manager_id, resource_ids)
    return await tx.rows(UUID, LOCK_INVOICES, plan_manager_id, resource_ids)


class UsedNoteType(Struct):
    """The type of a note."""

    id: int
    note_type: str
    badge_color: str | None
    highlight_color: str | None


LOCK_NOTE_TYPES: LiteralString = f"""
    select id, note_type, badge_color, highlight_color
    from note_types
    where plan_manager_id = $1 and {in_array("id", "$2::bigint[]")}
    order by id
    for key share
"""


async def lock_note_types(tx: Transaction, plan_manager_id: UUID, ids: Sequence[int]) -> list[UsedNoteType]:
    """Those of the note types that exist; they can't be deleted until the transaction ends."""
    return await tx.rows(UsedNoteType, LOCK_NOTE_TYPES, plan_manager_id, ids)


LIST_NOTE_TYPES_BY_NAMES = """
    select id, note_type, badge_color, highlight_color
    from note_types
    where plan_manager_id = $1 and lower(note_type) = any ($2)
    order by id
"""


async def list_note_types_by_names(tx: Transaction, plan_manager_id: UUID, names: Sequence[str]) -> list[UsedNoteType]:
    """The note types with one of these names, which are in lower case; several can have the same name."""
    return await tx.rows(UsedNoteType, LIST_NOTE_TYPES_BY_NAMES, plan_manager_id, names)


EXPORT: LiteralString = f"select {ROW_COLUMNS} from notes where plan_manager_id = $1 order by id"


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[NoteRow]]:
    return tx.stream(NoteRow, EXPORT, plan_manager_id)
