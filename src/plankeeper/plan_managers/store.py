"""SQL for plan managers."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction


class PlanManager(Struct):
    """An organisation that manages participants' funding."""

    id: UUID
    name: str
    created_at: datetime


INSERT = """
    insert into plan_managers (id, name) values ($1, $2)
    on conflict (id) do nothing
    returning id, name, created_at
"""


async def insert(tx: Transaction, plan_manager_id: UUID, name: str) -> PlanManager | None:
    """Insert a plan manager and return it; None if the id is taken."""
    return await tx.one_or_none(PlanManager, INSERT, plan_manager_id, name)


GET = "select id, name, created_at from plan_managers where id = $1"


async def get(db: Executor, plan_manager_id: UUID) -> PlanManager | None:
    return await db.one_or_none(PlanManager, GET, plan_manager_id)


LIST_ALL = "select id, name, created_at from plan_managers order by created_at, id"


async def list_all(db: Executor) -> list[PlanManager]:
    """All plan managers, oldest first."""
    return await db.rows(PlanManager, LIST_ALL)
