"""SQL for API keys. Call `bump_version` after a change, so that every worker clears its cache."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from plankeeper.access.api_keys.schemas import ApiKey, CurrentApiKey
from plankeeper.database.client import Executor, Transaction

COLUMNS: LiteralString = """id, name, last_four,
        array(select plan_manager_id from api_key_plan_managers where api_key_id = api_keys.id order by 1)
            as plan_managers,
        scopes, created_by, created_by_account_id, created_at, expires_at, revoked_at, rate_limit, original_id,
        last_used_at"""

GET_BY_HASH = f"select {COLUMNS} from api_keys where key_hash = $1"


async def get_by_hash(db: Executor, key_hash: bytes) -> ApiKey | None:
    """The key with a hash. The only query that isn't limited to a plan manager: the key determines those."""
    return await db.one_or_none(ApiKey, GET_BY_HASH, key_hash)


GET_CREATOR = """
    select coalesce(api_keys.created_by_account_id, (
        select original.created_by_account_id from api_keys original where original.id = api_keys.original_id
    ))
    from api_keys
    where id = $1
"""


async def get_creator(db: Executor, key_id: UUID) -> UUID | None:
    """The account that made a key; null if it was made by command. A rotation by command changes nothing."""
    return await db.one_or_none(UUID, GET_CREATOR, key_id)


GET_VERSION = "select version from grants_version"


async def get_version(db: Executor) -> int:
    """A number that increases with every change to a key or its plan managers."""
    return await db.one(int, GET_VERSION)


BUMP_VERSION = "update grants_version set version = version + 1"


async def bump_version(tx: Transaction) -> None:
    await tx.execute(BUMP_VERSION)


LIST_ALL = f"select {COLUMNS} from api_keys order by id"


async def list_all(db: Executor) -> list[ApiKey]:
    """All keys, oldest first."""
    return await db.rows(ApiKey, LIST_ALL)


LIST_BY_PLAN_MANAGER = f"""
    select {COLUMNS}
    from api_keys
    where id in (select api_key_id from api_key_plan_managers where plan_manager_id = $1)
    order by id desc
"""


async def list_by_plan_manager(db: Executor, plan_manager_id: UUID) -> list[ApiKey]:
    """The keys with access to a plan manager, newest first. Each has all its plan managers."""
    return await db.rows(ApiKey, LIST_BY_PLAN_MANAGER, plan_manager_id)


SELECT_FOR_UPDATE = f"select {COLUMNS} from api_keys where id = $1 for update"


async def select_for_update(tx: Transaction, key_id: UUID) -> ApiKey | None:
    return await tx.one_or_none(ApiKey, SELECT_FOR_UPDATE, key_id)


INSERT = """
    insert into api_keys (id, name, key_hash, last_four, scopes, created_by, created_by_account_id, created_at,
        expires_at, rate_limit, original_id)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
"""


async def insert(tx: Transaction, key: ApiKey, key_hash: bytes) -> None:
    """Insert a key. Its plan managers are inserted by `insert_plan_managers`."""
    creation = (key.created_by, key.created_by_account_id, key.created_at)
    rest = (*creation, key.expires_at, key.rate_limit, key.original_id)
    await tx.execute(INSERT, key.id, key.name, key_hash, key.last_four, key.scopes, *rest)


INSERT_PLAN_MANAGERS = "insert into api_key_plan_managers (plan_manager_id, api_key_id) select unnest($1::uuid[]), $2"


async def insert_plan_managers(tx: Transaction, key_id: UUID, plan_manager_ids: list[UUID]) -> None:
    await tx.execute(INSERT_PLAN_MANAGERS, plan_manager_ids, key_id)


DELETE_PLAN_MANAGER = "delete from api_key_plan_managers where plan_manager_id = $1 and api_key_id = $2"


async def delete_plan_manager(tx: Transaction, plan_manager_id: UUID, key_id: UUID) -> None:
    await tx.execute(DELETE_PLAN_MANAGER, plan_manager_id, key_id)


REVOKE = "update api_keys set revoked_at = $2 where id = $1 and revoked_at is null"


async def revoke(tx: Transaction, key_id: UUID, at: datetime) -> None:
    await tx.execute(REVOKE, key_id, at)


SET_EXPIRY = "update api_keys set expires_at = $2, warned_at = clock_timestamp() where id = $1"


async def set_expiry(tx: Transaction, key_id: UUID, at: datetime) -> None:
    """Set the expiry of a rotated key. It gets no expiry warning."""
    await tx.execute(SET_EXPIRY, key_id, at)


RECORD_USAGE = """
    with report as materialized (
        select * from unnest($1::uuid[], $2::timestamptz[]) as report (id, used_at)
    ), locked as materialized (
        select id from api_keys where id = any ($1) order by id for update
    )
    update api_keys set last_used_at = greatest(last_used_at, date_trunc('minute', report.used_at))
    from locked join report on report.id = locked.id
    where api_keys.id = locked.id
        and (last_used_at is null or last_used_at < date_trunc('minute', report.used_at))
"""


async def record_usage(db: Executor, key_ids: Sequence[UUID], used_at: Sequence[datetime]) -> None:
    """Update `last_used_at`, to the minute. Rows are locked in a fixed order, because workers report the same keys."""
    await db.execute(RECORD_USAGE, key_ids, used_at)


LIST_EXPIRING = f"""
    select {COLUMNS}
    from api_keys
    where revoked_at is null and expires_at between clock_timestamp() and $1
        and not exists (
            select from api_keys newer
            where newer.original_id = api_keys.original_id and newer.id > api_keys.id
                and newer.revoked_at is null and (newer.expires_at is null or newer.expires_at > $1)
        )
    order by expires_at, id
"""


async def list_expiring(db: Executor, until: datetime) -> list[ApiKey]:
    """Active keys that expire before `until` and weren't replaced by a rotation."""
    return await db.rows(ApiKey, LIST_EXPIRING, until)


SELECT_UNWARNED_FOR_UPDATE = f"""
    select {COLUMNS}
    from api_keys
    where revoked_at is null and warned_at is null and expires_at between clock_timestamp() and $1
    order by expires_at
    limit $2
    for update skip locked
"""


async def select_unwarned_for_update(tx: Transaction, until: datetime, limit: int) -> list[ApiKey]:
    """Active keys that expire before `until` and had no warning yet, locked; at most `limit`."""
    return await tx.rows(ApiKey, SELECT_UNWARNED_FOR_UPDATE, until, limit)


MARK_WARNED = "update api_keys set warned_at = clock_timestamp() where id = any ($1)"


async def mark_warned(tx: Transaction, key_ids: Sequence[UUID]) -> None:
    await tx.execute(MARK_WARNED, key_ids)


GET_CURRENT = """
    select id, name, scopes, expires_at, rate_limit, (
        select coalesce(json_agg(json_build_object('id', plan_managers.id, 'name', plan_managers.name)
            order by plan_managers.name, plan_managers.id), '[]')
        from api_key_plan_managers access
        join plan_managers on plan_managers.id = access.plan_manager_id
        where access.api_key_id = api_keys.id
    ) as plan_managers
    from api_keys
    where id = $1
"""


async def get_current(db: Executor, api_key_id: UUID) -> CurrentApiKey | None:
    """A key as its holder sees it. `rate_limit` is null for the server's default, and 0 for none."""
    return await db.one_or_none(CurrentApiKey, GET_CURRENT, api_key_id)
