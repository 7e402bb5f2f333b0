"""SQL for plan managers."""

from datetime import datetime
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction


class PlanManager(Struct):
    """An organisation that manages participants' funding."""

    id: UUID
    name: str
    created_at: datetime


class SignInPolicy(Struct):
    """The sign-in requirements of a plan manager. Also the data of its events."""

    id: UUID
    name: str
    requires_two_factor: bool
    requires_single_sign_on: bool


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


POLICY_COLUMNS: LiteralString = "id, name, requires_two_factor, requires_single_sign_on"

GET_POLICY = f"select {POLICY_COLUMNS} from plan_managers where id = $1"


async def get_policy(db: Executor, plan_manager_id: UUID) -> SignInPolicy:
    return await db.one(SignInPolicy, GET_POLICY, plan_manager_id)


SELECT_POLICY_FOR_UPDATE = f"select {POLICY_COLUMNS} from plan_managers where id = $1 for update"


async def select_policy_for_update(tx: Transaction, plan_manager_id: UUID) -> SignInPolicy:
    return await tx.one(SignInPolicy, SELECT_POLICY_FOR_UPDATE, plan_manager_id)


SET_REQUIRES_TWO_FACTOR = "update plan_managers set requires_two_factor = $2 where id = $1"


async def set_requires_two_factor(tx: Transaction, plan_manager_id: UUID, required: bool) -> None:
    await tx.execute(SET_REQUIRES_TWO_FACTOR, plan_manager_id, required)


HAS_SINGLE_SIGN_ON = "select exists (select from single_sign_on_providers where plan_manager_id = $1)"

SET_REQUIRES_SINGLE_SIGN_ON = f"""
    update plan_managers set requires_single_sign_on = $2 where id = $1 returning {POLICY_COLUMNS}
"""


async def set_requires_single_sign_on(tx: Transaction, plan_manager_id: UUID, required: bool) -> SignInPolicy:
    """Set whether single sign-on is required, and return the policy. It can be required only if there is a provider.

    The caller has locked the policy.
    """
    # Without a provider, nobody could sign in.
    required = required and await tx.one(bool, HAS_SINGLE_SIGN_ON, plan_manager_id)
    return await tx.one(SignInPolicy, SET_REQUIRES_SINGLE_SIGN_ON, plan_manager_id, required)
