"""The list of providers in SQL: a statement for each filter, as each has an index of its own."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import UNSET

from plankeeper.database.client import Executor
from plankeeper.http.schemas import unset_to_none
from plankeeper.providers.schemas import Provider, ProviderListQuery


async def list_page(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> list[Provider]:
    """The rows of one page and one more, which tells whether there are more."""
    if not query.has_filters:
        return await _plain_page(db, plan_manager_id, query)
    by = ((query.abn, _by_abn), (query.email, _by_email), (query.updated_since, _by_moment))
    ids_by = next(ids_by for wanted, ids_by in by if wanted is not UNSET)
    ids = await ids_by(db, plan_manager_id, query)
    return await _fetch(db, plan_manager_id, ids) if ids else []


async def count(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> int:
    """All that match."""
    by = ((query.abn, _with_abn), (query.email, _with_email), (query.updated_since, _since))
    counted = next((count_by for wanted, count_by in by if wanted is not UNSET), _all)
    return await counted(db, plan_manager_id, query)


PLAIN_PAGE = """
    select id, entity_name, abn, email, active, primary_phone_number, address, city, state, postcode,
        ndis_provider_number, created_at
    from providers
    where plan_manager_id = $1 and id > $2
    order by id
    limit $3 offset $4
"""


async def _plain_page(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> list[Provider]:
    return await db.rows(Provider, PLAIN_PAGE, plan_manager_id, query.start, query.limit + 1, query.offset)


FETCH = """
    select id, entity_name, abn, email, active, primary_phone_number, address, city, state, postcode,
        ndis_provider_number, created_at
    from providers
    where plan_manager_id = $1 and id = any ($2)
    order by id
"""


async def _fetch(db: Executor, plan_manager_id: UUID, provider_ids: Sequence[UUID]) -> list[Provider]:
    return await db.rows(Provider, FETCH, plan_manager_id, provider_ids)


BY_ABN = """
    select id
    from providers
    where plan_manager_id = $1 and id > $2
        and abn = $3
        and ($4::text is null or lower(email) = lower($4))
        and ($5::timestamptz is null or updated_at >= $5)
    order by id
    limit $6 offset $7
"""


async def _by_abn(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> list[UUID]:
    return await db.rows(UUID, BY_ABN, plan_manager_id, query.start, *_filters(query), query.limit + 1, query.offset)


BY_EMAIL = """
    select id
    from providers
    where plan_manager_id = $1 and id > $2
        and ($3::text is null or abn = $3)
        and lower(email) = lower($4)
        and ($5::timestamptz is null or updated_at >= $5)
    order by id
    limit $6 offset $7
"""


async def _by_email(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> list[UUID]:
    return await db.rows(UUID, BY_EMAIL, plan_manager_id, query.start, *_filters(query), query.limit + 1, query.offset)


BY_MOMENT = """
    -- materialized: a walk by id would have to pass over all that has not changed
    with changed as materialized (
        select id
        from providers
        where plan_manager_id = $1 and id > $2
            and ($3::text is null or abn = $3)
            and ($4::text is null or lower(email) = lower($4))
            and updated_at >= $5
    )
    select id from changed order by id limit $6 offset $7
"""


async def _by_moment(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> list[UUID]:
    return await db.rows(UUID, BY_MOMENT, plan_manager_id, query.start, *_filters(query), query.limit + 1, query.offset)


ALL = "select count(*) from providers where plan_manager_id = $1"


async def _all(db: Executor, plan_manager_id: UUID, _query: ProviderListQuery) -> int:
    return await db.one(int, ALL, plan_manager_id)


WITH_ABN = """
    select count(*)
    from providers
    where plan_manager_id = $1
        and abn = $2
        and ($3::text is null or lower(email) = lower($3))
        and ($4::timestamptz is null or updated_at >= $4)
"""


async def _with_abn(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> int:
    return await db.one(int, WITH_ABN, plan_manager_id, *_filters(query))


WITH_EMAIL = """
    select count(*)
    from providers
    where plan_manager_id = $1
        and ($2::text is null or abn = $2)
        and lower(email) = lower($3)
        and ($4::timestamptz is null or updated_at >= $4)
"""


async def _with_email(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> int:
    return await db.one(int, WITH_EMAIL, plan_manager_id, *_filters(query))


SINCE = """
    select count(*)
    from providers
    where plan_manager_id = $1
        and ($2::text is null or abn = $2)
        and ($3::text is null or lower(email) = lower($3))
        and updated_at >= $4
"""


async def _since(db: Executor, plan_manager_id: UUID, query: ProviderListQuery) -> int:
    return await db.one(int, SINCE, plan_manager_id, *_filters(query))


def _filters(query: ProviderListQuery) -> tuple[object, ...]:
    """What the list's filters ask for, in the order of the statements' parameters."""
    return unset_to_none(query.abn), unset_to_none(query.email), unset_to_none(query.updated_since)
