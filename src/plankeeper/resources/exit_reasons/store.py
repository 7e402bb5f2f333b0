"""Exit reasons in SQL."""

from collections.abc import AsyncGenerator, Sequence
from typing import LiteralString
from uuid import UUID

from plankeeper.core.lists import PageRows, fetch_page
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT
from plankeeper.database.row_ids import HAS_ID
from plankeeper.database.versions import UPDATED_AT
from plankeeper.resources.exit_reasons.schemas import ExitReason, ExitReasonListQuery, ExitReasonRow

ROW_COLUMNS: LiteralString = "id, name, parent_id"
COLUMNS: LiteralString = f"{ROW_COLUMNS}, updated_at"

LIST = FilteredList(
    "exit_reasons",
    ExitReasonListQuery,
    sorts=BY_UPDATED_AT,
)


async def list_page(db: Executor, plan_manager_id: UUID, query: ExitReasonListQuery) -> PageRows[ExitReason]:
    return await fetch_page(db, plan_manager_id, query, LIST, get_many)


LIST_ALL: LiteralString = f"""
    select {COLUMNS}
    from exit_reasons
    where plan_manager_id = $1
    order by parent_id is not null, lower(name), id
    limit $2
"""


async def list_all(db: Executor, plan_manager_id: UUID, limit: int) -> list[ExitReason]:
    """The first `limit` exit reasons by name, categories before subcategories."""
    return await db.rows(ExitReason, LIST_ALL, plan_manager_id, limit)


LIST_EXISTING = f"select id from exit_reasons where plan_manager_id = $1 and {HAS_ID}"


async def list_existing(db: Executor, plan_manager_id: UUID, exit_reason_ids: Sequence[UUID]) -> list[UUID]:
    """Those of the ids that exist."""
    return await db.rows(UUID, LIST_EXISTING, plan_manager_id, exit_reason_ids)


GET: LiteralString = f"select {COLUMNS} from exit_reasons where plan_manager_id = $1 and id = $2"


async def get(db: Executor, plan_manager_id: UUID, exit_reason_id: UUID) -> ExitReason | None:
    return await db.one_or_none(ExitReason, GET, plan_manager_id, exit_reason_id)


GET_MANY: LiteralString = f"select {COLUMNS} from exit_reasons where plan_manager_id = $1 and {HAS_ID} order by id"


async def get_many(db: Executor, plan_manager_id: UUID, exit_reason_ids: Sequence[UUID]) -> list[ExitReason]:
    """The exit reasons that exist among the ids."""
    return await db.rows(ExitReason, GET_MANY, plan_manager_id, exit_reason_ids)


SELECT_FOR_UPDATE: LiteralString = GET_MANY + " for update"


async def select_for_update(
    tx: Transaction, plan_manager_id: UUID, exit_reason_ids: Sequence[UUID]
) -> list[ExitReason]:
    """The rows that exist among the ids, locked until the transaction ends."""
    return await tx.rows(ExitReason, SELECT_FOR_UPDATE, plan_manager_id, exit_reason_ids)


HAS_SUBCATEGORIES = "select exists (select from exit_reasons where plan_manager_id = $1 and parent_id = $2)"


async def has_subcategories(tx: Transaction, plan_manager_id: UUID, exit_reason_id: UUID) -> bool:
    return await tx.one(bool, HAS_SUBCATEGORIES, plan_manager_id, exit_reason_id)


UPSERT: LiteralString = f"""
    insert into exit_reasons (plan_manager_id, {ROW_COLUMNS}, updated_at)
    select $1, {ROW_COLUMNS}, {UPDATED_AT} from json_populate_recordset(null::exit_reasons, $2)
    on conflict (plan_manager_id, id) do update set
        name = excluded.name, parent_id = excluded.parent_id, updated_at = excluded.updated_at
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert exit reasons or replace existing ones. `records` is a JSON list of ExitReasonRow."""
    await tx.execute(UPSERT, plan_manager_id, records)


DELETE: LiteralString = f"delete from exit_reasons where plan_manager_id = $1 and id = $2 returning {COLUMNS}"


async def delete(tx: Transaction, plan_manager_id: UUID, exit_reason_id: UUID) -> ExitReason | None:
    """Delete an exit reason, and return the deleted one."""
    return await tx.one_or_none(ExitReason, DELETE, plan_manager_id, exit_reason_id)


EXPORT: LiteralString = f"""
    select {ROW_COLUMNS}
    from exit_reasons
    where plan_manager_id = $1
    order by parent_id nulls first, id
"""


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[ExitReasonRow]]:
    """Parents come first, so that an import finds the parent of every subcategory."""
    return tx.stream(ExitReasonRow, EXPORT, plan_manager_id)
