"""Providers in SQL."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from plankeeper.core.record_matches import ValueHolder
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.number_keys import abn_key
from plankeeper.database.row_ids import HAS_ID
from plankeeper.database.versions import UPDATED_AT, compose_update
from plankeeper.resources.providers.schemas import Provider, ProviderRecord

COLUMNS: LiteralString = """
    entity_name, abn, email, active, primary_phone_number, address, city, state, postcode, ndis_provider_number,
    remittance_email, external_id, created_at
"""
READ_COLUMNS: LiteralString = f"id, {COLUMNS}, abn_exempt, abn_statement_date, updated_at"


GET = f"select {READ_COLUMNS} from providers where plan_manager_id = $1 and id = $2"


async def get(db: Executor, plan_manager_id: UUID, provider_id: UUID) -> Provider | None:
    return await db.one_or_none(Provider, GET, plan_manager_id, provider_id)


LOCK = "select from providers where plan_manager_id = $1 and id = $2 for update"


async def get_for_update(tx: Transaction, plan_manager_id: UUID, provider_id: UUID) -> Provider | None:
    """The provider as `update` expects it: see `Transaction.lock_row`."""
    await tx.lock_row(LOCK, plan_manager_id, provider_id)
    return await get(tx.reader, plan_manager_id, provider_id)


GET_MANY = f"select {READ_COLUMNS} from providers where plan_manager_id = $1 and {HAS_ID} order by id"


async def get_many(db: Executor, plan_manager_id: UUID, provider_ids: Sequence[UUID]) -> list[Provider]:
    """The providers with these ids, in order of id; unknown ids are ignored."""
    return await db.rows(Provider, GET_MANY, plan_manager_id, provider_ids)


IS_SAME_ABN: LiteralString = f"{abn_key()} = {abn_key('$2')}"
SAME_ABN = f"""
    select {READ_COLUMNS} from providers where plan_manager_id = $1 and {IS_SAME_ABN} and id <> $3 limit $4
"""


async def list_same_abn(db: Executor, plan_manager_id: UUID, provider: Provider, limit: int) -> list[Provider]:
    """Other providers with the ABN of a provider, which must have one."""
    return await db.rows(Provider, SAME_ABN, plan_manager_id, provider.abn, provider.id, limit)


LIST_BY_EXTERNAL_IDS = """
    select id, external_id as value
    from providers
    where plan_manager_id = $1 and external_id is not null and external_id = any ($2) -- the index has no nulls
"""


async def list_by_external_ids(db: Executor, plan_manager_id: UUID, external_ids: Sequence[str]) -> list[ValueHolder]:
    return await db.rows(ValueHolder, LIST_BY_EXTERNAL_IDS, plan_manager_id, external_ids)


LIST_BY_ABNS = f"""
    select id, abn as value from providers where plan_manager_id = $1 and {abn_key()} = any ($2)
"""


async def list_by_abns(db: Executor, plan_manager_id: UUID, abns: Sequence[str]) -> list[ValueHolder]:
    """The providers whose ABN is one of these, apart from spaces and hyphens."""
    spaceless = [each.replace(" ", "") for each in abns]
    return await db.rows(ValueHolder, LIST_BY_ABNS, plan_manager_id, spaceless)


LOCK_MATCHES = "select pg_advisory_xact_lock(hashtextextended('provider matches ' || $1::uuid::text, 0))"


async def lock_matches(tx: Transaction, plan_manager_id: UUID) -> None:
    """Wait until no other transaction creates providers for values that no record has."""
    await tx.execute(LOCK_MATCHES, plan_manager_id)


SELECT_FOR_UPDATE = GET_MANY + " for update"


async def select_for_update(tx: Transaction, plan_manager_id: UUID, provider_ids: Sequence[UUID]) -> list[Provider]:
    """The providers with these ids, locked until the transaction ends; unknown ids are ignored."""
    return await tx.rows(Provider, SELECT_FOR_UPDATE, plan_manager_id, provider_ids)


UPSERT = f"""
    insert into providers (plan_manager_id, id, {COLUMNS}, updated_at)
    select $1, id, {COLUMNS}, {UPDATED_AT}
    from json_populate_recordset(null::providers, $2)
    on conflict (plan_manager_id, id) do update set
        -- the sub-select only turns the columns of `excluded` into a list
        ({COLUMNS}, updated_at) = (select {COLUMNS}, updated_at from (select excluded.*) written)
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert or replace whole providers. `records` is a JSON list of ProviderRecord."""
    await tx.execute(UPSERT, plan_manager_id, records)


UPDATE = compose_update("providers", COLUMNS)


async def update(tx: Transaction, plan_manager_id: UUID, records: str, version: datetime) -> None:
    """Update the provider that was read with this version. `records` is a JSON list with its Provider."""
    await tx.queue_write(UPDATE, plan_manager_id, records, version)


SET_STATEMENT = """
    update providers set abn_exempt = $3, abn_statement_date = $4, updated_at = $5
    where plan_manager_id = $1 and id = $2
"""


async def set_statement(tx: Transaction, plan_manager_id: UUID, provider: Provider) -> None:
    """Write whether a provider, which is locked, needn't quote an ABN, and the day of the statement that says so."""
    values = (provider.abn_exempt, provider.abn_statement_date, provider.updated_at)
    await tx.execute(SET_STATEMENT, plan_manager_id, provider.id, *values)


INSERT = f"""
    insert into providers (plan_manager_id, id, {COLUMNS})
    select $1, id, {COLUMNS}
    from json_populate_recordset(null::providers, $2)
    returning id -- without this, Citus would copy the rows and report an error without its code
"""


async def insert(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Insert providers with new ids. `records` is a JSON list of ProviderRecord."""
    await tx.rows(UUID, INSERT, plan_manager_id, records)


DELETE = f"delete from providers where plan_manager_id = $1 and id = $2 returning {READ_COLUMNS}"


async def delete(tx: Transaction, plan_manager_id: UUID, provider_id: UUID) -> Provider | None:
    """Delete a provider and return its last state; null if it doesn't exist."""
    return await tx.one_or_none(Provider, DELETE, plan_manager_id, provider_id)


DELETE_MANY = f"delete from providers where plan_manager_id = $1 and {HAS_ID} returning {READ_COLUMNS}"


async def delete_many(tx: Transaction, plan_manager_id: UUID, provider_ids: Sequence[UUID]) -> list[Provider]:
    """Delete providers and return their last states."""
    return await tx.rows(Provider, DELETE_MANY, plan_manager_id, provider_ids)


EXPORT = f"select id, {COLUMNS} from providers where plan_manager_id = $1 order by id"


def export(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[ProviderRecord]]:
    return tx.stream(ProviderRecord, EXPORT, plan_manager_id)
