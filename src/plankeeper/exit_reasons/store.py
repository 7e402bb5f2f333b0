"""Exit reasons in SQL."""

from collections.abc import AsyncGenerator, Sequence
from typing import LiteralString
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_ids import HAS_ID
from plankeeper.exit_reasons.schemas import ExitReason

COLUMNS: LiteralString = "id, name, parent_id"

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


UPSERT: LiteralString = f"""
    insert into exit_reasons (plan_manager_id, {COLUMNS})
    select $1, {COLUMNS} from json_populate_recordset(null::exit_reasons, $2)
    on conflict (plan_manager_id, id) do update set name = excluded.name, parent_id = excluded.parent_id
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert exit reasons or replace existing ones. `records` is a JSON list of ExitReason."""
    await tx.execute(UPSERT, plan_manager_id, records)


EXPORT: LiteralString = f"""
    select {COLUMNS}
    from exit_reasons
    where plan_manager_id = $1
    order by parent_id nulls first, id
"""


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[ExitReason]]:
    """Parents come first, so that an import finds the parent of every subcategory."""
    return tx.stream(ExitReason, EXPORT, plan_manager_id)
