"""Providers in SQL."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from plankeeper.database.pool import Queries, Transaction
from plankeeper.edge.shapes import given
from plankeeper.providers.shapes import Provider, ProviderListQuery


async def page(db: Queries, plan_manager_id: UUID, query: ProviderListQuery) -> list[Provider]:
    """The rows of one page and one more, which tells whether there are more."""
    return await (_matching_page if query.filtered else _plain_page)(db, plan_manager_id, query)


async def _plain_page(db: Queries, plan_manager_id: UUID, query: ProviderListQuery) -> list[Provider]:
    return await db.rows(
        Provider,
        """
        select id, entity_name, abn, email, active, primary_phone_number, address, city, state, postcode,
            ndis_provider_number, created_at
        from providers
        where plan_manager_id = $1 and id > $2
        order by id
        limit $3 offset $4
        """,
        plan_manager_id, query.start, query.limit + 1, query.offset,
    )  # fmt: skip


async def _matching_page(db: Queries, plan_manager_id: UUID, query: ProviderListQuery) -> list[Provider]:
    return await db.rows(
        Provider,
        """
        select id, entity_name, abn, email, active, primary_phone_number, address, city, state, postcode,
            ndis_provider_number, created_at
        from providers
        where plan_manager_id = $1 and id > $2
            and ($3::text is null or abn = $3)
            and ($4::text is null or lower(email) = lower($4))
            and ($5::timestamptz is null or updated_at >= $5)
        order by id
        limit $6 offset $7
        """,
        plan_manager_id, query.start, given(query.abn), given(query.email), given(query.updated_since),
        query.limit + 1, query.offset,
    )  # fmt: skip


async def count(db: Queries, plan_manager_id: UUID, query: ProviderListQuery) -> int:
    return await db.one(
        int,
        """
        select count(*)
        from providers
        where plan_manager_id = $1
            and ($2::text is null or abn = $2)
            and ($3::text is null or lower(email) = lower($3))
            and ($4::timestamptz is null or updated_at >= $4)
        """,
        plan_manager_id, given(query.abn), given(query.email), given(query.updated_since),
    )  # fmt: skip


async def fetch(db: Queries, plan_manager_id: UUID, provider_id: UUID) -> Provider | None:
    return await db.one_or_none(
        Provider,
        """
        select id, entity_name, abn, email, active, primary_phone_number, address, city, state, postcode,
            ndis_provider_number, created_at
        from providers
        where plan_manager_id = $1 and id = $2
        """,
        plan_manager_id, provider_id,
    )  # fmt: skip


async def records_for_update(tx: Transaction, plan_manager_id: UUID, provider_ids: Sequence[UUID]) -> list[Provider]:
    """Those of the ids that there are, locked until the transaction ends."""
    return await tx.rows(
        Provider,
        """
        select id, entity_name, abn, email, active, primary_phone_number, address, city, state, postcode,
            ndis_provider_number, created_at
        from providers
        where plan_manager_id = $1 and id = any ($2)
        order by id
        for update
        """,
        plan_manager_id, provider_ids,
    )  # fmt: skip


async def put(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Write whole providers, new or not. `records` is a JSON list of Provider."""
    await tx.execute(
        """
        insert into providers (plan_manager_id, id, entity_name, abn, email, active, primary_phone_number,
            address, city, state, postcode, ndis_provider_number, created_at)
        select $1, id, entity_name, abn, email, active, primary_phone_number,
            address, city, state, postcode, ndis_provider_number, created_at
        from json_populate_recordset(null::providers, $2)
        on conflict (plan_manager_id, id) do update set
            entity_name = excluded.entity_name, abn = excluded.abn, email = excluded.email,
            active = excluded.active, primary_phone_number = excluded.primary_phone_number,
            address = excluded.address, city = excluded.city, state = excluded.state,
            postcode = excluded.postcode, ndis_provider_number = excluded.ndis_provider_number,
            created_at = excluded.created_at, updated_at = clock_timestamp()
        """,
        plan_manager_id, records,
    )  # fmt: skip


async def remove(tx: Transaction, plan_manager_id: UUID, provider_id: UUID) -> Provider | None:
    """Delete a provider; answers what it was."""
    return await tx.one_or_none(
        Provider,
        """
        delete from providers
        where plan_manager_id = $1 and id = $2
        returning id, entity_name, abn, email, active, primary_phone_number, address, city, state, postcode,
            ndis_provider_number, created_at
        """,
        plan_manager_id, provider_id,
    )  # fmt: skip


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncIterator[Provider]:
    return tx.stream(
        Provider,
        """
        select id, entity_name, abn, email, active, primary_phone_number, address, city, state, postcode,
            ndis_provider_number, created_at
        from providers
        where plan_manager_id = $1
        order by id
        """,
        plan_manager_id,
    )
