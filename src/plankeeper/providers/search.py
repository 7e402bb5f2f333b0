"""The search for providers in SQL: by the beginning of a name, an ABN or an email."""

from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.providers.schemas import Provider, ProviderListQuery

SEARCH_PAGE = """
    select id, entity_name, abn, email, active, primary_phone_number, address, city, state, postcode,
        ndis_provider_number, created_at
    from providers
    where plan_manager_id = $1 and id in (
        select id from (
            select id from providers
            where plan_manager_id = $1 and id > $2
                and lower(entity_name) ~>=~ lower($3) and lower(entity_name) ~<~ (lower($3) || chr(1114111))
        union
            select id from providers
            where plan_manager_id = $1 and id > $2
                and lower(email) ~>=~ lower($3) and lower(email) ~<~ (lower($3) || chr(1114111))
        union
            select id from providers
            where plan_manager_id = $1 and id > $2
                and replace(abn, ' ', '') ~>=~ replace($3, ' ', '')
                and replace(abn, ' ', '') ~<~ (replace($3, ' ', '') || chr(1114111))
        ) matches
        order by id
        limit $4
    )
    order by id
"""


async def search_page(db: Executor, plan_manager_id: UUID, text: str, query: ProviderListQuery) -> list[Provider]:
    """The rows of one page and one more, by id. A beginning is a range of bytes, as in the search for participants."""
    return await db.rows(Provider, SEARCH_PAGE, plan_manager_id, query.start, " ".join(text.split()), query.limit + 1)
