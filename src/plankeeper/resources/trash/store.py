"""The trash in SQL."""

from collections.abc import Sequence
from typing import Literal, LiteralString, NamedTuple
from uuid import UUID

from msgspec import Raw, Struct

from plankeeper.core.fields import AwareDatetime
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_ids import HAS_ID
from plankeeper.resources.bank_details import store as bank_details
from plankeeper.resources.bank_details.accounts import Payee

TrashKind = Literal["participant", "provider"]


class TrashSummary(Struct, kw_only=True):
    """A deleted record in the list of the trash."""

    id: UUID  # of the entry
    kind: TrashKind
    resource_id: UUID
    name: str | None
    deleted_at: AwareDatetime
    deleted_by: str | None
    member_count: int


class TrashEntry(Struct, kw_only=True):
    """A deleted record with its content: a Snapshot as JSON."""

    id: UUID
    kind: TrashKind
    resource_id: UUID
    name: str | None
    deleted_at: AwareDatetime
    deleted_by: str | None
    snapshot: Raw


class RecordReference(Struct):
    """The content of events about an entry that was deleted permanently."""

    id: UUID


class RestoredEntry(NamedTuple):
    """An entry whose record was restored, and sentences about the values that could not be restored."""

    entry: TrashEntry
    changes: Sequence[str]


ENTRY_COLUMNS: LiteralString = "id, kind, resource_id, name, deleted_at, deleted_by"
COLUMNS: LiteralString = f"{ENTRY_COLUMNS}, snapshot::json as snapshot"
SUMMARY_COLUMNS: LiteralString = f"""
    {ENTRY_COLUMNS}, jsonb_array_length(snapshot -> 'team') as member_count
"""

LIST_NEWEST: LiteralString = f"""
    select {SUMMARY_COLUMNS}
    from trash
    where plan_manager_id = $1 and ($2::uuid is null or id < $2)
    order by id desc
    limit $3
"""


async def list_newest(db: Executor, plan_manager_id: UUID, before: UUID | None, limit: int) -> list[TrashSummary]:
    """The latest deleted first; with `before`, only entries with lower ids."""
    return await db.rows(TrashSummary, LIST_NEWEST, plan_manager_id, before, limit)


GET: LiteralString = f"select {COLUMNS} from trash where plan_manager_id = $1 and id = $2"


async def get(db: Executor, plan_manager_id: UUID, entry_id: UUID) -> TrashEntry | None:
    return await db.one_or_none(TrashEntry, GET, plan_manager_id, entry_id)


FIND: LiteralString = f"""
    select {COLUMNS}
    from trash
    where plan_manager_id = $1 and resource_id = $2 and kind = $3
    order by id desc
"""


async def find(db: Executor, plan_manager_id: UUID, kind: TrashKind, resource_id: UUID) -> list[TrashEntry]:
    """The entries of one record, the latest deleted first: it can be deleted again after an import of the same id."""
    return await db.rows(TrashEntry, FIND, plan_manager_id, resource_id, kind)


INSERT: LiteralString = f"""
    insert into trash (plan_manager_id, {ENTRY_COLUMNS}, snapshot) values ($1, $2, $3, $4, $5, $6, $7, $8)
"""


async def insert(tx: Transaction, plan_manager_id: UUID, entry: TrashEntry) -> None:
    record = (entry.kind, entry.resource_id, entry.name)
    snapshot = bytes(entry.snapshot).decode()
    await tx.execute(INSERT, plan_manager_id, entry.id, *record, entry.deleted_at, entry.deleted_by, snapshot)


DELETE: LiteralString = f"delete from trash where plan_manager_id = $1 and id = $2 returning {COLUMNS}"


async def delete(tx: Transaction, plan_manager_id: UUID, entry_id: UUID) -> TrashEntry | None:
    """Delete an entry and return it. Another transaction that deletes it waits, and then finds none."""
    return await tx.one_or_none(TrashEntry, DELETE, plan_manager_id, entry_id)


DELETE_MANY = f"delete from trash where plan_manager_id = $1 and {HAS_ID}"


async def delete_many(tx: Transaction, plan_manager_id: UUID, entry_ids: Sequence[UUID]) -> None:
    await tx.execute(DELETE_MANY, plan_manager_id, entry_ids)


class PurgedEntry(Struct):
    """The record of an entry that was deleted."""

    kind: TrashKind
    resource_id: UUID


PURGE = """
    delete from trash where plan_manager_id = $1 and id in (
        select id from trash where plan_manager_id = $1 and id < $2 order by id limit $3
    )
    returning kind, resource_id
"""


async def purge(db: Executor, plan_manager_id: UUID, before_id: UUID, limit: int) -> None:
    """Delete the oldest entries with ids lower than `before_id`, up to a limit, and the bank details of the records."""
    purged = await db.rows(PurgedEntry, PURGE, plan_manager_id, before_id, limit)
    payees = [Payee(each.kind, each.resource_id) for each in purged]
    await bank_details.delete_of_missing(db, plan_manager_id, payees)
