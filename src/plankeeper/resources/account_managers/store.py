"""Account managers in SQL. The API hides those that are deleted, internal or staff of the operator."""

from collections.abc import AsyncGenerator, Sequence
from typing import LiteralString
from uuid import UUID

from plankeeper.core.lists import PageRows, fetch_page
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT, Filter
from plankeeper.database.row_ids import in_array
from plankeeper.resources.account_managers.schemas import (
    AccountManager,
    AccountManagerListQuery,
    AccountManagerRow,
    StoredAccountManager,
)

COLUMNS: LiteralString = """
        manager.id, manager.first_name, manager.last_name, manager.name, users.email, manager.active,
        manager.updated_at"""
ROW_COLUMNS: LiteralString = """
        manager.id, manager.first_name, manager.last_name, users.email, manager.active, manager.is_internal,
        manager.deleted"""
TABLE_COLUMNS: LiteralString = "id, first_name, last_name, active, is_internal, deleted"
FROM_MANAGERS: LiteralString = """from account_managers manager
    join users on users.plan_manager_id = $1 and users.id = manager.id"""
WITH_IDS: LiteralString = f"where manager.plan_manager_id = $1 and {in_array('manager.id', '$2::uuid[]')}"
IS_VISIBLE: LiteralString = """not manager.deleted and not manager.is_internal
        and ($2 = '' or users.email is null or strpos(lower(split_part(users.email, '@', -1)), $2) = 0)"""

# `operator` is the name of the operator, whose staff the API hides.
LIST = FilteredList(
    """(
        select manager.plan_manager_id, manager.id, manager.active, manager.updated_at, users.email,
            not manager.deleted and not manager.is_internal as is_visible
        from account_managers manager
        join users on users.plan_manager_id = $1 and users.id = manager.id
        where manager.plan_manager_id = $1
    ) account_managers""",
    AccountManagerListQuery,
    {
        "operator": Filter(
            "is_visible and ({0} = '' or email is null or strpos(lower(split_part(email, '@', -1)), {0}) = 0)"
        )
    },
    sorts=BY_UPDATED_AT,
)


async def list_page(
    db: Executor, plan_manager_id: UUID, query: AccountManagerListQuery, operator: str
) -> PageRows[AccountManager]:
    """A page of the account managers that the API shows."""
    name = operator.lower()
    return await fetch_page(db, plan_manager_id, query, LIST, get_many, operator=name)


async def count(db: Executor, plan_manager_id: UUID, query: AccountManagerListQuery, operator: str) -> int:
    return await LIST.count(db, plan_manager_id, LIST.values_of(query, operator=operator.lower()))


GET_MANY: LiteralString = f"""
    select {COLUMNS}
    {FROM_MANAGERS}
    {WITH_IDS}
"""


async def get_many(db: Executor, plan_manager_id: UUID, account_manager_ids: Sequence[UUID]) -> list[AccountManager]:
    """The account managers that exist among the ids, hidden ones too."""
    return await db.rows(AccountManager, GET_MANY, plan_manager_id, account_manager_ids)


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


GET_ROWS: LiteralString = f"""
    select {ROW_COLUMNS}, manager.name, manager.updated_at
    {FROM_MANAGERS}
    {WITH_IDS}
"""


async def get_rows(
    db: Executor, plan_manager_id: UUID, account_manager_ids: Sequence[UUID]
) -> list[StoredAccountManager]:
    """The rows that exist among the ids, of hidden account managers too."""
    return await db.rows(StoredAccountManager, GET_ROWS, plan_manager_id, account_manager_ids)


SELECT_FOR_UPDATE: LiteralString = f"""
    select {ROW_COLUMNS}
    {FROM_MANAGERS}
    {WITH_IDS} order by manager.id for update
"""


async def select_for_update(
    tx: Transaction, plan_manager_id: UUID, account_manager_ids: Sequence[UUID]
) -> list[AccountManagerRow]:
    """The rows that exist among the ids, locked until the transaction ends."""
    return await tx.rows(AccountManagerRow, SELECT_FOR_UPDATE, plan_manager_id, account_manager_ids)


UPSERT: LiteralString = f"""
    insert into account_managers (plan_manager_id, {TABLE_COLUMNS}, updated_at)
    select $1, {TABLE_COLUMNS}, statement_timestamp()
    from json_populate_recordset(null::account_managers, $2)
    on conflict (plan_manager_id, id) do update set
        first_name = excluded.first_name, last_name = excluded.last_name, active = excluded.active,
        is_internal = excluded.is_internal, deleted = excluded.deleted, updated_at = excluded.updated_at
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


EXPORT: LiteralString = f"select {ROW_COLUMNS} {FROM_MANAGERS} where manager.plan_manager_id = $1 order by manager.id"


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[AccountManagerRow]]:
    return tx.stream(AccountManagerRow, EXPORT, plan_manager_id)
