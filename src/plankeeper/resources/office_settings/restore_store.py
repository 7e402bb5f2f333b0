"""Restores of the database in SQL."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction


class Restore(Struct):
    """A restore that no owner has confirmed yet."""

    restored_at: datetime


INSERT = "insert into restores (plan_manager_id, restored_at) values ($1, $2) on conflict do nothing"


async def insert(tx: Transaction, plan_manager_id: UUID, at: datetime) -> None:
    """Record that the database was restored."""
    await tx.execute(INSERT, plan_manager_id, at)


FIND_OPEN = """
    select restored_at
    from restores
    where plan_manager_id = $1 and confirmed_at is null
    order by restored_at desc
    limit 1
"""


async def find_open(db: Executor, plan_manager_id: UUID) -> Restore | None:
    """The latest restore that no owner has confirmed, if there is one."""
    return await db.one_or_none(Restore, FIND_OPEN, plan_manager_id)


CONFIRM = """
    update restores set confirmed_at = $2, confirmed_by = $3 where plan_manager_id = $1 and confirmed_at is null
    returning restored_at
"""


async def confirm(tx: Transaction, plan_manager_id: UUID, at: datetime, by: str) -> list[Restore]:
    """Confirm all restores, and return them."""
    return await tx.rows(Restore, CONFIRM, plan_manager_id, at, by)
