"""The list of providers in SQL: pages and totals for any set of filters."""

from uuid import UUID

from plankeeper.core.lists import PageRows, cut_page, fetch_page
from plankeeper.database.client import Executor
from plankeeper.database.filters import Filter, FilteredList, enum_filters, number_filter
from plankeeper.database.row_ids import in_array
from plankeeper.database.sorting import Sort
from plankeeper.resources.providers.schemas import Provider, ProviderListQuery
from plankeeper.resources.providers.store import COLUMNS, get_many
from plankeeper.resources.search.filters import PROVIDER_FILTERS, count_matches, search_values

LIST = FilteredList(
    "providers",
    (
        *PROVIDER_FILTERS,
        Filter(("id",), in_array("id", "{0}::uuid[]"), is_narrow=True),
        number_filter("abn", "11"),
        Filter(("external_id",), "external_id = {}", is_narrow=True),
        Filter(("email",), "lower(email) = lower({})", is_narrow=True),
        Filter(("updated_since",), "updated_at >= {}", materialize=True, order="updated_at"),
        *enum_filters("state", "state"),
        Filter(("active",), "active = {}"),
    ),
    sorts={
        "updated_at": Sort("updated_at", "timestamptz"),
        "name": Sort("lower(entity_name)", "text", is_nullable=True, is_text=True),
        "abn": Sort("abn", "text", is_nullable=True),
        "state": Sort("state", "text", is_nullable=True),
    },
)
PLAIN_PAGE = f"""
    select id, {COLUMNS}, updated_at
    from providers
    where plan_manager_id = $1 and id > $2
    order by id
    limit $3 offset $4
"""


async def list_page(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> PageRows[Provider]:
    if query.is_plain:
        rows = await db.rows(Provider, PLAIN_PAGE, plan_manager_id, query.start, query.limit + 1, query.offset)
        return cut_page(rows, query.limit)
    search = await search_values(db, "provider", query.q)
    return await fetch_page(db, plan_manager_id, query, LIST, get_many, **search)


async def count(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> int:
    """The number of matching providers. Of a search, at most one more than MAX_TOTAL are counted."""
    if search := await search_values(db, "provider", query.q):
        return await count_matches(db, plan_manager_id, LIST, query, search)
    return await LIST.count(db, plan_manager_id, query)
