"""Legal holds in SQL."""

from datetime import datetime
from typing import LiteralString
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.personal_data.schemas import HeldParticipant, LegalHold

COLUMNS: LiteralString = "participant_id, reason, created_at, created_by"

GET = f"select {COLUMNS} from legal_holds where plan_manager_id = $1 and participant_id = $2"


async def get(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> LegalHold | None:
    return await db.one_or_none(LegalHold, GET, plan_manager_id, participant_id)


LIST: LiteralString = f"""
    select {COLUMNS}, nullif(concat_ws(' ', coalesce(preferred_name, first_name), last_name), '') as name
    from legal_holds hold
    left join lateral (
        select first_name, preferred_name, last_name from participants
        where plan_manager_id = $1 and id = hold.participant_id
    ) participant on true
    where plan_manager_id = $1
    order by created_at desc, participant_id
    limit $2
"""


async def list_newest(db: Executor, plan_manager_id: UUID, limit: int) -> list[HeldParticipant]:
    return await db.rows(HeldParticipant, LIST, plan_manager_id, limit)


INSERT: LiteralString = f"""
    insert into legal_holds (plan_manager_id, {COLUMNS}) values ($1, $2, $3, $4, $5)
    on conflict do nothing
    returning true
"""


async def insert(tx: Transaction, plan_manager_id: UUID, hold: LegalHold) -> bool:
    """False if there is one already."""
    values: tuple[UUID, str, datetime, str] = (hold.participant_id, hold.reason, hold.created_at, hold.created_by)
    return await tx.one_or_none(bool, INSERT, plan_manager_id, *values) is True


DELETE: LiteralString = f"""
    delete from legal_holds where plan_manager_id = $1 and participant_id = $2 returning {COLUMNS}
"""


async def delete(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> LegalHold | None:
    """Delete a hold and return it; None if there is none."""
    return await tx.one_or_none(LegalHold, DELETE, plan_manager_id, participant_id)
