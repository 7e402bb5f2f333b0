"""SQL of the links that reset a password, which the queue of mails inserts."""

from datetime import datetime
from uuid import UUID

from plankeeper.database.client import Executor, Transaction

GET_ACCOUNT_ID = """
    select account_id from account_password_resets where token_hash = $1 and expires_at > $2
"""


async def get_account_id(db: Executor, token_hash: bytes, at: datetime) -> UUID | None:
    """The account of an unexpired token."""
    return await db.one_or_none(UUID, GET_ACCOUNT_ID, token_hash, at)


DELETE = "delete from account_password_resets where account_id = $1"


async def delete(tx: Transaction, account_id: UUID) -> None:
    await tx.execute(DELETE, account_id)


DELETE_EXPIRED = "delete from account_password_resets where expires_at <= $1"


async def delete_expired(db: Executor, at: datetime) -> None:
    await db.execute(DELETE_EXPIRED, at)


DELETE_ALL = "delete from account_password_resets"


async def delete_all(tx: Transaction) -> None:
    await tx.execute(DELETE_ALL)
