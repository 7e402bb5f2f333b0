"""Account managers in SQL. The API hides those that are deleted, internal or staff of the operator."""

from collections.abc import AsyncIterator, Sequence
from typing import LiteralString
from uuid import UUID

from plankeeper.account_managers.schemas import AccountManager, AccountManagerListQuery, AccountManagerRow
from plankeeper.database.client import Executor, Transaction
from plankeeper.http.schemas import unset_to_none

COLUMNS: LiteralString = """
        manager.id, manager.first_name, manager.last_name, manager.name, users.email, manager.active"""
ROW_COLUMNS: LiteralString = """
        manager.id, manager.first_name, manager.last_name, users.email, manager.active, manager.is_internal,
        manager.deleted"""
TABLE_COLUMNS: LiteralString = "id, first_name, last_name, active, is_internal, deleted"
FROM_MANAGERS: LiteralString = """from account_managers manager
    join users on users.plan_manager_id = $1 and users.id = manager.id"""
IS_VISIBLE: LiteralString = """not manager.deleted and not manager.is_internal
        and ($2 = '' or users.email is null or strpos(lower(split_part(users.email, '@', -1)), $2) = 0)"""
MATCHES_FILTER: LiteralString = """($3::boolean is null or manager.active = $3)
        and ($4::text is null or lower(users.email) = lower($4))"""

LIST_PAGE: LiteralString = f"""
    select {COLUMNS}
    {FROM_MANAGERS}
    where manager.plan_manager_id = $1 and manager.id > $5
        and {IS_VISIBLE}
        and {MATCHES_FILTER}
    order by manager.id
    limit $6 offset $7
"""


async def list_page(
    db: Executor, plan_manager_id: UUID, query: AccountManagerListQuery, operator: str
) -> list[AccountManager]:
    """The rows of one page, and one more if another page follows."""
    return await db.rows(
        AccountManager,
        LIST_PAGE,
        plan_manager_id,
        operator.lower(),
        unset_to_none(query.active),
        unset_to_none(query.email),
        query.start,
        query.limit + 1,
        query.offset,
    )


COUNT: LiteralString = f"""
    select count(*)
    {FROM_MANAGERS}
    where manager.plan_manager_id = $1
        and {IS_VISIBLE}
        and {MATCHES_FILTER}
"""


async def count(db: Executor, plan_manager_id: UUID, query: AccountManagerListQuery, operator: str) -> int:
    return await db.one(
        int, COUNT, plan_manager_id, operator.lower(), unset_to_none(query.active), unset_to_none(query.email)
    )


GET_VISIBLE: LiteralString = f"""
    select {COLUMNS}
    {FROM_MANAGERS}
    where manager.plan_manager_id = $1 and manager.id = $3
        and {IS_VISIBLE}
"""


async def get_visible(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID, operator: str
) -> AccountManager | None:
    """An account manager that the API shows."""
    return await db.one_or_none(AccountManager, GET_VISIBLE, plan_manager_id, operator.lower(), account_manager_id)


SELECT_FOR_UPDATE: LiteralString = f"""
    select {ROW_COLUMNS}
    {FROM_MANAGERS}
    where manager.plan_manager_id = $1 and manager.id = any ($2)
    order by manager.id
    for update
"""


async def select_for_update(
    tx: Transaction, plan_manager_id: UUID, account_manager_ids: Sequence[UUID]
) -> list[AccountManagerRow]:
    """The rows that exist among the ids, locked until the transaction ends."""
    return await tx.rows(AccountManagerRow, SELECT_FOR_UPDATE, plan_manager_id, account_manager_ids)


UPSERT: LiteralString = f"""
    insert into account_managers (plan_manager_id, {TABLE_COLUMNS})
    select $1, {TABLE_COLUMNS}
    from json_populate_recordset(null::account_managers, $2)
    on conflict (plan_manager_id, id) do update set
        first_name = excluded.first_name, last_name = excluded.last_name, active = excluded.active,
        is_internal = excluded.is_internal, deleted = excluded.deleted
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert account managers or replace existing ones. `records` is a JSON list of AccountManagerRow."""
    await tx.execute(UPSERT, plan_manager_id, records)


INSERT: LiteralString = f"""
    insert into account_managers (plan_manager_id, {TABLE_COLUMNS})
    select $1, {TABLE_COLUMNS}
    from json_populate_recordset(null::account_managers, $2)
    on conflict (plan_manager_id, id) do nothing
    returning id
"""


async def insert(tx: Transaction, plan_manager_id: UUID, records: str) -> list[UUID]:
    """Insert new account managers, skip existing ones and return the new ids. `records` is as in `upsert`."""
    return await tx.rows(UUID, INSERT, plan_manager_id, records)


EXPORT: LiteralString = f"""
    select {ROW_COLUMNS}
    {FROM_MANAGERS}
    where manager.plan_manager_id = $1
    order by manager.id
"""


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncIterator[AccountManagerRow]:
    return tx.stream(AccountManagerRow, EXPORT, plan_manager_id)
