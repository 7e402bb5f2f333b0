"""SQL of saved views."""

from collections.abc import Sequence
from typing import Literal, LiteralString
from uuid import UUID

from msgspec import Struct
from msgspec.structs import astuple

from plankeeper.core.fields import AwareDatetime
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_ids import HAS_ID

Density = Literal["compact", "comfortable"]


class SavedView(Struct):
    """The filters and the order of a list under a name, for its owner or for everyone of the plan manager."""

    id: UUID
    owner_id: UUID  # an account
    list_kind: str  # such as `participants`
    name: str
    query: str  # of the list's page, without a question mark
    is_shared: bool
    created_at: AwareDatetime


class ListSettings(Struct):
    """An account's settings for a list. `columns` are the names of those that are shown; null for the default ones."""

    columns: list[str] | None = None
    density: Density = "compact"


class SavedList(ListSettings):
    """An account's settings for a list, and the views of it that the account can use, by name."""

    views: list[SavedView] = []


COLUMNS: LiteralString = "id, owner_id, list_kind, name, query, is_shared, created_at"
LIST_VISIBLE: LiteralString = f"""
    select {COLUMNS} from saved_views
    where plan_manager_id = $1 and (owner_id = $2 or is_shared)
    order by lower(name), id
"""


async def list_visible(db: Executor, plan_manager_id: UUID, account_id: UUID) -> list[SavedView]:
    """The views of an account and the shared ones, of all lists, by name."""
    return await db.rows(SavedView, LIST_VISIBLE, plan_manager_id, account_id)


INSERT: LiteralString = f"""
    insert into saved_views (plan_manager_id, {COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8)
"""


async def insert(tx: Transaction, plan_manager_id: UUID, view: SavedView) -> None:
    await tx.execute(INSERT, plan_manager_id, *astuple(view))


UPDATE = "update saved_views set name = $3, is_shared = $4 where plan_manager_id = $1 and id = $2"


async def update(tx: Transaction, plan_manager_id: UUID, view_id: UUID, name: str, *, is_shared: bool) -> None:
    await tx.execute(UPDATE, plan_manager_id, view_id, name, is_shared)


DELETE_OWN = "delete from saved_views where plan_manager_id = $1 and owner_id = $2 and not is_shared"


async def delete_own(tx: Transaction, plan_manager_id: UUID, account_id: UUID) -> None:
    """Delete the views that aren't shared with other accounts."""
    await tx.execute(DELETE_OWN, plan_manager_id, account_id)


LIST_ALL: LiteralString = f"select {COLUMNS} from saved_views where plan_manager_id = $1 order by id"


async def list_all(db: Executor, plan_manager_id: UUID) -> list[SavedView]:
    """The views of all accounts."""
    return await db.rows(SavedView, LIST_ALL, plan_manager_id)


DELETE_MANY = f"delete from saved_views where plan_manager_id = $1 and {HAS_ID}"


async def delete_many(tx: Transaction, plan_manager_id: UUID, view_ids: Sequence[UUID]) -> None:
    await tx.execute(DELETE_MANY, plan_manager_id, view_ids)


GET_SETTINGS = """
    select columns, density from list_settings where plan_manager_id = $1 and account_id = $2 and list_kind = $3
"""


async def get_settings(db: Executor, plan_manager_id: UUID, account_id: UUID, list_kind: str) -> ListSettings:
    """The settings of an account, or the default ones."""
    found = await db.one_or_none(ListSettings, GET_SETTINGS, plan_manager_id, account_id, list_kind)
    return found or ListSettings()


GET_LIST: LiteralString = f"""
    select settings.columns, coalesce(settings.density, 'compact') as density, (
        select coalesce(json_agg(view order by lower(name), id), '[]')
        from (
            select {COLUMNS} from saved_views
            where plan_manager_id = $1 and (owner_id = $2 or is_shared) and list_kind = $3
        ) view
    ) as views
    from (select) one_row
    left join list_settings settings on plan_manager_id = $1 and account_id = $2 and list_kind = $3
"""


async def get_list(db: Executor, plan_manager_id: UUID, account_id: UUID, list_kind: str) -> SavedList:
    """The settings and the views of an account for a list."""
    return await db.one(SavedList, GET_LIST, plan_manager_id, account_id, list_kind)


UPSERT_SETTINGS = """
    insert into list_settings (plan_manager_id, account_id, list_kind, columns, density) values ($1, $2, $3, $4, $5)
    on conflict (plan_manager_id, account_id, list_kind)
        do update set columns = excluded.columns, density = excluded.density
"""


async def upsert_settings(
    tx: Transaction, plan_manager_id: UUID, account_id: UUID, list_kind: str, settings: ListSettings
) -> None:
    await tx.execute(UPSERT_SETTINGS, plan_manager_id, account_id, list_kind, settings.columns, settings.density)


DELETE_OWN_SETTINGS = "delete from list_settings where plan_manager_id = $1 and account_id = $2"


async def delete_own_settings(tx: Transaction, plan_manager_id: UUID, account_id: UUID) -> None:
    """Delete the settings of an account for all lists."""
    await tx.execute(DELETE_OWN_SETTINGS, plan_manager_id, account_id)
