"""The list of providers in SQL: pages and totals for any set of filters."""

from uuid import UUID

from plankeeper.core.lists import PageRows, cut_page, fetch_page
from plankeeper.database.client import Executor
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT, Filter, Sort
from plankeeper.resources.providers.schemas import Provider, ProviderListQuery
from plankeeper.resources.providers.store import READ_COLUMNS, get_many
from plankeeper.resources.search.filters import PROVIDER_FILTERS, count_matches, search_values

LIST = FilteredList(
    "providers",
    ProviderListQuery,
    {**PROVIDER_FILTERS, "active": Filter("active = {}", label="Status")},
    sorts={
        **BY_UPDATED_AT,
        "name": Sort('(lower(entity_name) collate "C")', "text", is_nullable=True),
        "abn": Sort("abn", "text", is_nullable=True),
        "state": Sort("state", "text", is_nullable=True),
    },
)
PLAIN_PAGE = f"""
    select {READ_COLUMNS}
    from providers
    where plan_manager_id = $1 and id > $2
    order by id
    limit $3 offset $4
"""


async def list_page(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> PageRows[Provider]:
    if query.is_plain:
        return cut_page(await db.rows(Provider, PLAIN_PAGE, plan_manager_id, *query.position), query.limit)
    search = await search_values(db, "provider", query.q)
    return await fetch_page(db, plan_manager_id, query, LIST, get_many, **search)


async def count(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> int:
    """The number of matching providers. Of a search, at most one more than MAX_TOTAL are counted."""
    if search := await search_values(db, "provider", query.q):
        return await count_matches(db, plan_manager_id, LIST, query, search)
    return await LIST.count(db, plan_manager_id, LIST.values_of(query))
