"""SQL of the columns and the density that accounts have chosen for lists."""

from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.saved_views.schemas import ListSettings

GET = """
    select columns, density from list_settings where plan_manager_id = $1 and account_id = $2 and list_kind = $3
"""


async def get(db: Executor, plan_manager_id: UUID, account_id: UUID, list_kind: str) -> ListSettings:
    """The settings of an account, or the default ones."""
    found = await db.one_or_none(ListSettings, GET, plan_manager_id, account_id, list_kind)
    return found or ListSettings()


UPSERT = """
    insert into list_settings (plan_manager_id, account_id, list_kind, columns, density) values ($1, $2, $3, $4, $5)
    on conflict (plan_manager_id, account_id, list_kind)
        do update set columns = excluded.columns, density = excluded.density
"""


async def upsert(
    tx: Transaction, plan_manager_id: UUID, account_id: UUID, list_kind: str, settings: ListSettings
) -> None:
    await tx.execute(UPSERT, plan_manager_id, account_id, list_kind, settings.columns, settings.density)


DELETE_OWN = "delete from list_settings where plan_manager_id = $1 and account_id = $2"


async def delete_own(tx: Transaction, plan_manager_id: UUID, account_id: UUID) -> None:
    """Delete the settings of an account for all lists."""
    await tx.execute(DELETE_OWN, plan_manager_id, account_id)
