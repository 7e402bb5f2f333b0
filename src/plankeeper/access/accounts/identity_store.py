"""SQL for identities: the people of single sign-on providers, each linked to an account, and their sessions."""

from datetime import datetime
from uuid import UUID

from plankeeper.database.client import Executor, Transaction

GET_ACCOUNT_ID = "select account_id from account_identities where issuer = $1 and subject = $2"


async def get_account_id(db: Executor, issuer: str, subject: str) -> UUID | None:
    """The account that an identity is linked to."""
    return await db.one_or_none(UUID, GET_ACCOUNT_ID, issuer, subject)


INSERT = """
    insert into account_identities (issuer, subject, account_id, created_at) values ($1, $2, $3, $4)
    on conflict (issuer, subject) do nothing
    returning true
"""


async def insert(tx: Transaction, issuer: str, subject: str, account_id: UUID, at: datetime) -> bool:
    """Link an identity to an account. False if it is linked already."""
    inserted = await tx.one_or_none(bool, INSERT, issuer, subject, account_id, at)
    return inserted is not None


DELETE_ALL_OF_ACCOUNT = """
    with deleted as (delete from account_identities where account_id = $1 returning 1)
    select count(*) from deleted
"""


async def delete_all_of_account(tx: Transaction, account_id: UUID) -> int:
    """Unlink all identities of an account, and return their number."""
    return await tx.one(int, DELETE_ALL_OF_ACCOUNT, account_id)


ADD_TO_SESSION = """
    update account_sessions set provider_ids = array_append(provider_ids, $2)
    where token_hash = $1 and not $2 = any (provider_ids)
"""


async def add_to_session(tx: Transaction, token_hash: bytes, provider_id: UUID) -> None:
    """Record that an open session was also signed in at a provider. A second call changes nothing."""
    await tx.execute(ADD_TO_SESSION, token_hash, provider_id)
