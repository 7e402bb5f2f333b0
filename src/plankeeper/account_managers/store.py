"""Account managers in SQL. Hidden are: the deleted, the internal, and the operator's own staff."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from plankeeper.account_managers.schemas import AccountManager, AccountManagerListQuery, AccountManagerRow
from plankeeper.database.client import Executor, Transaction
from plankeeper.http.schemas import unset_to_none

LIST_PAGE = """
    select manager.id, manager.first_name, manager.last_name, manager.name, users.email, manager.active
    from account_managers manager
    join users on users.plan_manager_id = $1 and users.id = manager.id
    where manager.plan_manager_id = $1 and manager.id > $2
        and not manager.deleted and not manager.is_internal
        and ($3 = '' or users.email is null or strpos(lower(split_part(users.email, '@', -1)), $3) = 0)
        and ($4::boolean is null or manager.active = $4)
        and ($5::text is null or lower(users.email) = lower($5))
    order by manager.id
    limit $6 offset $7
"""


async def list_page(
    db: Executor, plan_manager_id: UUID, query: AccountManagerListQuery, operator: str
) -> list[AccountManager]:
    """The rows of one page and one more, which tells whether there are more."""
    return await db.rows(
        AccountManager,
        LIST_PAGE,
        plan_manager_id,
        query.start,
        operator.lower(),
        unset_to_none(query.active),
        unset_to_none(query.email),
        query.limit + 1,
        query.offset,
    )


COUNT = """
    select count(*)
    from account_managers manager
    join users on users.plan_manager_id = $1 and users.id = manager.id
    where manager.plan_manager_id = $1
        and not manager.deleted and not manager.is_internal
        and ($2 = '' or users.email is null or strpos(lower(split_part(users.email, '@', -1)), $2) = 0)
        and ($3::boolean is null or manager.active = $3)
        and ($4::text is null or lower(users.email) = lower($4))
"""


async def count(db: Executor, plan_manager_id: UUID, query: AccountManagerListQuery, operator: str) -> int:
    return await db.one(
        int, COUNT, plan_manager_id, operator.lower(), unset_to_none(query.active), unset_to_none(query.email)
    )


GET_VISIBLE = """
    select manager.id, manager.first_name, manager.last_name, manager.name, users.email, manager.active
    from account_managers manager
    join users on users.plan_manager_id = $1 and users.id = manager.id
    where manager.plan_manager_id = $1 and manager.id = $2
        and not manager.deleted and not manager.is_internal
        and ($3 = '' or users.email is null or strpos(lower(split_part(users.email, '@', -1)), $3) = 0)
"""


async def get_visible(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID, operator: str
) -> AccountManager | None:
    """An account manager that the list would return."""
    return await db.one_or_none(AccountManager, GET_VISIBLE, plan_manager_id, account_manager_id, operator.lower())


SELECT_FOR_UPDATE = """
    select manager.id, manager.first_name, manager.last_name, users.email, manager.active,
        manager.is_internal, manager.deleted
    from account_managers manager
    join users on users.plan_manager_id = $1 and users.id = manager.id
    where manager.plan_manager_id = $1 and manager.id = any ($2)
    order by manager.id
    for update
"""


async def select_for_update(
    tx: Transaction, plan_manager_id: UUID, account_manager_ids: Sequence[UUID]
) -> list[AccountManagerRow]:
    """Those of the ids that there are, locked until the transaction ends."""
    return await tx.rows(AccountManagerRow, SELECT_FOR_UPDATE, plan_manager_id, account_manager_ids)


UPSERT = """
    insert into account_managers (
        plan_manager_id, id, first_name, last_name, active, is_internal, deleted
    )
    select $1, id, first_name, last_name, active, is_internal, deleted
    from json_populate_recordset(null::account_managers, $2)
    on conflict (plan_manager_id, id) do update set
        first_name = excluded.first_name, last_name = excluded.last_name, active = excluded.active,
        is_internal = excluded.is_internal, deleted = excluded.deleted
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Write whole account managers, new or not. `records` is a JSON list of AccountManagerRow."""
    await tx.execute(UPSERT, plan_manager_id, records)


INSERT = """
    insert into account_managers (
        plan_manager_id, id, first_name, last_name, active, is_internal, deleted
    )
    select $1, id, first_name, last_name, active, is_internal, deleted
    from json_populate_recordset(null::account_managers, $2)
    on conflict (plan_manager_id, id) do nothing
    returning id
"""


async def insert(tx: Transaction, plan_manager_id: UUID, records: str) -> list[UUID]:
    """Write new account managers: the ids of those that were not there. `records` is as in `upsert`."""
    return await tx.rows(UUID, INSERT, plan_manager_id, records)


EXPORT = """
    select manager.id, manager.first_name, manager.last_name, users.email, manager.active,
        manager.is_internal, manager.deleted
    from account_managers manager
    join users on users.plan_manager_id = $1 and users.id = manager.id
    where manager.plan_manager_id = $1
    order by manager.id
"""


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncIterator[AccountManagerRow]:
    return tx.stream(AccountManagerRow, EXPORT, plan_manager_id)
