"""SQL of kept forms, and of the accounts that they may belong to."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor


class EndedSession(Struct):
    """The account and the selected plan manager of an ended session."""

    account_id: UUID
    plan_manager_id: UUID | None


GET_ENDED_SESSION = """
    select account_id, chosen_plan_manager_id as plan_manager_id
    from account_sessions where token_hash = $1 and not two_factor_pending
"""


async def get_ended_session(db: Executor, session_hash: bytes) -> EndedSession | None:
    """A session that may have ended, as long as it is kept."""
    return await db.one_or_none(EndedSession, GET_ENDED_SESSION, session_hash)


LIST_DEVICE_ACCOUNTS = """
    select account_id from account_devices where token_hash = $1 and last_used_at > $2 order by account_id
"""


async def list_device_accounts(db: Executor, device_hash: bytes, used_after: datetime) -> list[UUID]:
    """The accounts that have signed in with a browser since a time."""
    return await db.rows(UUID, LIST_DEVICE_ACCOUNTS, device_hash, used_after)


INSERT = "insert into form_drafts (token_hash, account_ids, sealed, created_at) values ($1, $2, $3, $4)"


async def insert(db: Executor, token_hash: bytes, account_ids: Sequence[UUID], sealed: bytes, at: datetime) -> None:
    await db.execute(INSERT, token_hash, account_ids, sealed, at)


GET = "select sealed from form_drafts where token_hash = $1 and $2 = any (account_ids) and created_at > $3"


async def get(db: Executor, token_hash: bytes, account_id: UUID, created_after: datetime) -> bytes | None:
    """The encrypted form that may belong to an account."""
    return await db.one_or_none(bytes, GET, token_hash, account_id, created_after)


DELETE_OLD = """
    delete from form_drafts
    where created_at <= $1 or (account_ids && $2 and token_hash in (
        select token_hash from form_drafts where account_ids && $2 order by created_at desc offset $3
    ))
"""


async def delete_old(db: Executor, created_before: datetime, account_ids: Sequence[UUID], max_count: int) -> None:
    """Delete the expired forms of all accounts, and the oldest ones of these accounts above a number."""
    await db.execute(DELETE_OLD, created_before, account_ids, max_count)
