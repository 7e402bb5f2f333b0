"""SQL for the providers of single sign-on and for sign-ins in progress."""

from datetime import datetime
from typing import LiteralString
from uuid import UUID

from msgspec.structs import astuple

from plankeeper.access.single_sign_on.schemas import (
    Flow,
    NewFlow,
    PendingIdentity,
    Provider,
)
from plankeeper.database.client import Executor, Transaction

COLUMNS: LiteralString = "plan_manager_id, id, issuer, client_id, encrypted_client_secret, allowed_domains, created_at"

GET = f"select {COLUMNS} from single_sign_on_providers where plan_manager_id = $1"


async def get(db: Executor, plan_manager_id: UUID) -> Provider | None:
    """The provider of a plan manager."""
    return await db.one_or_none(Provider, GET, plan_manager_id)


GET_BY_ID = f"select {COLUMNS} from single_sign_on_providers where id = $1"


async def get_by_id(db: Executor, provider_id: UUID) -> Provider | None:
    return await db.one_or_none(Provider, GET_BY_ID, provider_id)


GET_BY_DOMAIN = f"select {COLUMNS} from single_sign_on_providers where $1 = any (allowed_domains) limit 1"


async def get_by_domain(db: Executor, domain: str) -> Provider | None:
    """The provider of the people whose email has a domain, in lower case."""
    return await db.one_or_none(Provider, GET_BY_DOMAIN, domain)


LIST_FIRST = f"select {COLUMNS} from single_sign_on_providers order by plan_manager_id limit $1"


async def list_first(db: Executor, limit: int) -> list[Provider]:
    """Some of the providers: enough to tell whether there are none, one or several."""
    return await db.rows(Provider, LIST_FIRST, limit)


LIST_ALL = f"select {COLUMNS} from single_sign_on_providers order by created_at, plan_manager_id"


async def list_all(db: Executor) -> list[Provider]:
    """The providers of all plan managers, oldest first."""
    return await db.rows(Provider, LIST_ALL)


LOCK = "lock table single_sign_on_providers in share row exclusive mode"

UPSERT = f"""
    insert into single_sign_on_providers ({COLUMNS})
    select $1, $2, $3, $4, $5, $6, $7
    -- A domain leads to one provider.
    where not exists (
        select from single_sign_on_providers other
        where other.plan_manager_id <> $1 and other.allowed_domains && $6::text[]
    )
    on conflict (plan_manager_id) do update set
        id = excluded.id, issuer = excluded.issuer, client_id = excluded.client_id,
        encrypted_client_secret = excluded.encrypted_client_secret, allowed_domains = excluded.allowed_domains,
        created_at = excluded.created_at
    returning true
"""


async def upsert(tx: Transaction, provider: Provider) -> bool:
    """Insert or replace the provider of a plan manager. False if another plan manager uses one of the domains."""
    await tx.execute(LOCK)
    return await tx.one_or_none(bool, UPSERT, *astuple(provider)) is not None


DELETE = f"delete from single_sign_on_providers where plan_manager_id = $1 returning {COLUMNS}"


async def delete(tx: Transaction, plan_manager_id: UUID) -> Provider | None:
    """Delete the provider of a plan manager and return it."""
    return await tx.one_or_none(Provider, DELETE, plan_manager_id)


INSERT_FLOW = """
    insert into single_sign_on_flows (token_hash, provider_id, next_path, invitation_token_hash, expires_at)
    values ($1, $2, $3, $4, $5)
"""


async def insert_flow(tx: Transaction, flow: NewFlow) -> None:
    await tx.execute(INSERT_FLOW, *astuple(flow))


USE_FLOW = """
    delete from single_sign_on_flows
    where token_hash = $1 and expires_at > $2
    returning provider_id, next_path, invitation_token_hash
"""


async def use_flow(db: Executor, token_hash: bytes, at: datetime) -> Flow | None:
    """Delete a flow that hasn't expired and return it: each can be used once."""
    return await db.one_or_none(Flow, USE_FLOW, token_hash, at)


DELETE_OLD_FLOWS = """
    delete from single_sign_on_flows
    where token_hash = any (array(
        select token_hash from single_sign_on_flows where expires_at < $1 order by expires_at limit 10
        for update skip locked
    ))
"""


async def delete_old_flows(tx: Transaction, before: datetime) -> None:
    """Delete a few expired flows. Each request inserts at most one row, so a few at a time are enough."""
    await tx.execute(DELETE_OLD_FLOWS, before)


PENDING_COLUMNS: LiteralString = (
    "token_hash, provider_id, issuer, subject, email, next_path, invitation_token_hash, expires_at"
)

INSERT_PENDING_IDENTITY = f"insert into pending_identities ({PENDING_COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8)"


async def insert_pending_identity(tx: Transaction, pending: PendingIdentity) -> None:
    await tx.execute(INSERT_PENDING_IDENTITY, *astuple(pending))


GET_PENDING_IDENTITY = f"select {PENDING_COLUMNS} from pending_identities where token_hash = $1 and expires_at > $2"


async def get_pending_identity(db: Executor, token_hash: bytes, at: datetime) -> PendingIdentity | None:
    return await db.one_or_none(PendingIdentity, GET_PENDING_IDENTITY, token_hash, at)


DELETE_PENDING_IDENTITY = "delete from pending_identities where token_hash = $1 returning true"


async def delete_pending_identity(tx: Transaction, token_hash: bytes) -> bool:
    """Delete a pending identity. Of two concurrent calls only one returns True."""
    return await tx.one_or_none(bool, DELETE_PENDING_IDENTITY, token_hash) is not None


DELETE_OLD_PENDING_IDENTITIES = """
    delete from pending_identities
    where token_hash = any (array(
        select token_hash from pending_identities where expires_at < $1 order by expires_at limit 10
        for update skip locked
    ))
"""


async def delete_old_pending_identities(tx: Transaction, before: datetime) -> None:
    await tx.execute(DELETE_OLD_PENDING_IDENTITIES, before)
