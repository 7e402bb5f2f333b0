"""Providers in SQL."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.providers.schemas import Provider

GET = """
    select id, entity_name, abn, email, active, primary_phone_number, address, city, state, postcode,
        ndis_provider_number, created_at
    from providers
    where plan_manager_id = $1 and id = $2
"""


async def get(db: Executor, plan_manager_id: UUID, provider_id: UUID) -> Provider | None:
    return await db.one_or_none(Provider, GET, plan_manager_id, provider_id)


SELECT_FOR_UPDATE = """
    select id, entity_name, abn, email, active, primary_phone_number, address, city, state, postcode,
        ndis_provider_number, created_at
    from providers
    where plan_manager_id = $1 and id = any ($2)
    order by id
    for update
"""


async def select_for_update(tx: Transaction, plan_manager_id: UUID, provider_ids: Sequence[UUID]) -> list[Provider]:
    """Those of the ids that there are, locked until the transaction ends."""
    return await tx.rows(Provider, SELECT_FOR_UPDATE, plan_manager_id, provider_ids)


UPSERT = """
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
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Write whole providers, new or not. `records` is a JSON list of Provider."""
    await tx.execute(UPSERT, plan_manager_id, records)


DELETE = """
    delete from providers
    where plan_manager_id = $1 and id = $2
    returning id, entity_name, abn, email, active, primary_phone_number, address, city, state, postcode,
        ndis_provider_number, created_at
"""


async def delete(tx: Transaction, plan_manager_id: UUID, provider_id: UUID) -> Provider | None:
    """Delete a provider; answers what it was."""
    return await tx.one_or_none(Provider, DELETE, plan_manager_id, provider_id)


EXPORT = """
    select id, entity_name, abn, email, active, primary_phone_number, address, city, state, postcode,
        ndis_provider_number, created_at
    from providers
    where plan_manager_id = $1
    order by id
"""


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncIterator[Provider]:
    return tx.stream(Provider, EXPORT, plan_manager_id)
