"""The list of providers in SQL: pages and totals for any set of filters."""

from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.database.filters import Filter, FilteredList
from plankeeper.providers.schemas import Provider, ProviderListQuery
from plankeeper.providers.store import COLUMNS, get_many

LIST = FilteredList(
    "providers",
    (
        Filter(("abn",), "abn = {}"),
        Filter(("email",), "lower(email) = lower({})"),
        Filter(("updated_since",), "updated_at >= {}", materialize=True),
    ),
)
UNFILTERED_PAGE = f"""
    select id, {COLUMNS}
    from providers
    where plan_manager_id = $1 and id > $2
    order by id
    limit $3 offset $4
"""


async def list_page(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> list[Provider]:
    """The rows of one page and one more, which shows whether another page follows."""
    if not query.has_filters:
        return await db.rows(Provider, UNFILTERED_PAGE, plan_manager_id, query.start, query.limit + 1, query.offset)
    ids = await LIST.page_ids(db, plan_manager_id, query)
    return await get_many(db, plan_manager_id, ids) if ids else []


async def count(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> int:
    """The number of matching providers."""
    return await LIST.count(db, plan_manager_id, query)
