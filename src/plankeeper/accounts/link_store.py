"""SQL of the links between accounts of the console and account managers."""

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from plankeeper.accounts.schemas import LinkedAccountManager
from plankeeper.database.client import Executor, Transaction

# Without a link, the account manager with the account's email. A deleted account manager is none.
LIST: LiteralString = """
    select member.account_id, manager.id, coalesce(manager.name, users.email, 'No name') as name,
        link.account_id is not null as is_chosen
    from unnest($2::uuid[], $3::text[]) member (account_id, email)
    left join account_manager_links link
        on link.plan_manager_id = $1 and link.account_id = member.account_id
    left join lateral (
        select id from users
        where plan_manager_id = $1 and lower(users.email) = lower(member.email)
    ) namesake on link.account_id is null
    join account_managers manager
        on manager.plan_manager_id = $1 and manager.id = coalesce(link.account_manager_id, namesake.id)
        and not manager.deleted
    join users on users.plan_manager_id = $1 and users.id = manager.id
"""


async def list_linked(
    db: Executor, plan_manager_id: UUID, account_ids: Sequence[UUID], emails: Sequence[str]
) -> list[LinkedAccountManager]:
    """The account managers that accounts are linked to, for pairs of an account's id and its email."""
    return await db.rows(LinkedAccountManager, LIST, plan_manager_id, account_ids, emails)


UPSERT = """
    insert into account_manager_links (plan_manager_id, account_id, account_manager_id) values ($1, $2, $3)
    on conflict (plan_manager_id, account_id) do update set account_manager_id = excluded.account_manager_id
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, account_id: UUID, account_manager_id: UUID) -> None:
    await tx.execute(UPSERT, plan_manager_id, account_id, account_manager_id)


DELETE = "delete from account_manager_links where plan_manager_id = $1 and account_id = $2"


async def delete(tx: Transaction, plan_manager_id: UUID, account_id: UUID) -> None:
    """Remove an account's link, so that its email decides again."""
    await tx.execute(DELETE, plan_manager_id, account_id)
