"""The search for providers in SQL, by the prefix of a name, an ABN or an email address."""

from typing import LiteralString
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.providers.schemas import Provider, ProviderListQuery
from plankeeper.providers.store import COLUMNS

CANDIDATES: LiteralString = "select id from providers where plan_manager_id = $1 and id > $2"
# A prefix is a range of bytes: `like` has no range while its pattern is a parameter.
SEARCH_PAGE = f"""
    select id, {COLUMNS}
    from providers
    where plan_manager_id = $1 and id in (
        select id from (
            {CANDIDATES} and lower(entity_name) ~>=~ lower($3) and lower(entity_name) ~<~ (lower($3) || chr(1114111))
            union
            {CANDIDATES} and lower(email) ~>=~ lower($3) and lower(email) ~<~ (lower($3) || chr(1114111))
            union
            {CANDIDATES}
                and replace(abn, ' ', '') ~>=~ replace($3, ' ', '')
                and replace(abn, ' ', '') ~<~ (replace($3, ' ', '') || chr(1114111))
        ) matches
        order by id
        limit $4
    )
    order by id
"""


async def search_page(db: Executor, plan_manager_id: UUID, text: str, query: ProviderListQuery) -> list[Provider]:
    """The rows of one page and one more, in order of id."""
    return await db.rows(Provider, SEARCH_PAGE, plan_manager_id, query.start, " ".join(text.split()), query.limit + 1)
