"""SQL for accounts, their sessions, login throttles, recovery codes, and the links in mails."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import LiteralString
from uuid import UUID

from msgspec.structs import astuple

from plankeeper.access.accounts.schemas import (
    Account,
    LoginThrottle,
    NewSession,
    OpenSession,
    SessionClient,
    SessionRow,
)
from plankeeper.access.policy import SESSION_IDLE_TIMEOUT
from plankeeper.database.client import Executor, Transaction

COLUMNS: LiteralString = "id, email, name, password_hash, totp_secret, totp_counter, created_at"
SESSION_COLUMNS: LiteralString = "token_hash, created_at, last_seen_at, expires_at, address, user_agent"

GET_BY_EMAIL = f"select {COLUMNS} from accounts where lower(email) = lower($1)"


async def get_by_email(db: Executor, email: str) -> Account | None:
    return await db.one_or_none(Account, GET_BY_EMAIL, email)


SELECT_FOR_UPDATE = f"select {COLUMNS} from accounts where id = $1 for update"


async def select_for_update(tx: Transaction, account_id: UUID) -> Account | None:
    return await tx.one_or_none(Account, SELECT_FOR_UPDATE, account_id)


INSERT = """
    insert into accounts (id, email, name, password_hash, created_at) values ($1, $2, $3, $4, $5)
    on conflict (lower(email)) do nothing
    returning id
"""


async def insert(tx: Transaction, account: Account) -> UUID | None:
    """Insert an account and return its id; None if the email has an account already."""
    return await tx.one_or_none(
        UUID, INSERT, account.id, account.email, account.name, account.password_hash, account.created_at
    )


DELETE = "delete from accounts where id = $1"


async def delete(tx: Transaction, account_id: UUID) -> None:
    await tx.execute(DELETE, account_id)


SET_NAME = "update accounts set name = $2 where id = $1"


async def set_name(tx: Transaction, account_id: UUID, name: str) -> None:
    await tx.execute(SET_NAME, account_id, name)


SET_PASSWORD = "update accounts set password_hash = $2 where id = $1"  # noqa: S105 - a statement


async def set_password(tx: Transaction, account_id: UUID, password_hash: str) -> None:
    await tx.execute(SET_PASSWORD, account_id, password_hash)


SET_TOTP = "update accounts set totp_secret = $2, totp_counter = $3 where id = $1"


async def set_totp(tx: Transaction, account_id: UUID, secret: str | None, counter: int) -> None:
    """Set the encrypted secret and the counter of its last used code. None turns two-factor authentication off."""
    await tx.execute(SET_TOTP, account_id, secret, counter)


INSERT_RECOVERY_CODES = "insert into account_recovery_codes (account_id, code_hash) select $1, unnest($2::bytea[])"


async def insert_recovery_codes(tx: Transaction, account_id: UUID, hashes: Sequence[bytes]) -> None:
    await tx.execute(INSERT_RECOVERY_CODES, account_id, hashes)


DELETE_RECOVERY_CODES = "delete from account_recovery_codes where account_id = $1"


async def delete_recovery_codes(tx: Transaction, account_id: UUID) -> None:
    await tx.execute(DELETE_RECOVERY_CODES, account_id)


USE_RECOVERY_CODE = """
    update account_recovery_codes set used_at = $3
    where account_id = $1 and code_hash = $2 and used_at is null
    returning true
"""


async def use_recovery_code(tx: Transaction, account_id: UUID, code_hash: bytes, at: datetime) -> bool:
    """Mark a recovery code as used. False if the account doesn't have it or has used it before."""
    return await tx.one_or_none(bool, USE_RECOVERY_CODE, account_id, code_hash, at) is not None


COUNT_UNUSED_RECOVERY_CODES = "select count(*) from account_recovery_codes where account_id = $1 and used_at is null"


async def count_unused_recovery_codes(db: Executor, account_id: UUID) -> int:
    return await db.one(int, COUNT_UNUSED_RECOVERY_CODES, account_id)


SELECT_THROTTLE_FOR_UPDATE = """
    insert into account_failures (subject, email_hash, failures, failed_at, locked_until)
    values (sha256(convert_to(lower($1), 'UTF8')), sha256(convert_to(lower(split_part($1, E'\\n', 1)), 'UTF8')), 0,
        $2, $2)
    on conflict (subject) do update set subject = excluded.subject
    returning failures, failed_at, locked_until
"""


async def select_throttle_for_update(tx: Transaction, subject: str, at: datetime) -> LoginThrottle:
    """The throttle of a subject, inserted if necessary, and locked until the transaction ends.

    A subject starts with an email. The database folds its case, as it does to look up the account. Python's folding
    differs.
    """
    return await tx.one(LoginThrottle, SELECT_THROTTLE_FOR_UPDATE, subject, at)


UPDATE_THROTTLE = """
    update account_failures set failures = $2, failed_at = $3, locked_until = $4
    where subject = sha256(convert_to(lower($1), 'UTF8'))
"""


async def update_throttle(tx: Transaction, subject: str, throttle: LoginThrottle) -> None:
    await tx.execute(UPDATE_THROTTLE, subject, throttle.failures, throttle.failed_at, throttle.locked_until)


UNDO_ATTEMPT = """
    update account_failures set failures = failures - 1, locked_until = $4
    where subject = sha256(convert_to(lower($1), 'UTF8')) and failures = $2 and failed_at = $3
"""


async def undo_attempt(tx: Transaction, subject: str, throttle: LoginThrottle, at: datetime) -> None:
    """Undo the failure counted before a successful verification, unless another attempt was counted since."""
    await tx.execute(UNDO_ATTEMPT, subject, throttle.failures, throttle.failed_at, at)


DELETE_THROTTLE = "delete from account_failures where subject = sha256(convert_to(lower($1), 'UTF8'))"


async def delete_throttle(tx: Transaction, subject: str) -> None:
    await tx.execute(DELETE_THROTTLE, subject)


DELETE_THROTTLES = "delete from account_failures where email_hash = sha256(convert_to(lower($1), 'UTF8'))"


async def delete_throttles(tx: Transaction, email: str) -> None:
    """Forget all failures of an email, on every network and device."""
    await tx.execute(DELETE_THROTTLES, email)


DELETE_OLD_THROTTLES = """
    delete from account_failures
    where subject = any (array(
        select subject from account_failures where failed_at < $1 order by failed_at limit 10
        for update skip locked
    ))
"""


async def delete_old_throttles(tx: Transaction, before: datetime) -> None:
    """Delete a few expired throttles. Each attempt inserts at most one row, so a few at a time are enough."""
    await tx.execute(DELETE_OLD_THROTTLES, before)


INSERT_SESSION = """
    insert into account_sessions (token_hash, account_id, chosen_plan_manager_id, created_at, last_seen_at,
        expires_at, address, user_agent, two_factor_pending, with_password, provider_ids)
    values ($1, $2, $3, $4, $4, $5, $6, $7, $8, $9, $10)
"""


async def insert_session(tx: Transaction, session: NewSession) -> None:
    await tx.execute(INSERT_SESSION, *astuple(session))


GET_SESSION = """
    select account.id as account_id, account.email, account.name, account.totp_secret is not null as totp,
        account.password_hash <> '' as has_password, session.two_factor_pending, session.with_password,
        session.chosen_plan_manager_id, session.last_seen_at,
        coalesce((
            select json_agg(json_build_object('plan_manager_id', manager.id, 'name', manager.name,
                'role', role.role, 'requires_two_factor', manager.requires_two_factor,
                'requires_single_sign_on', manager.requires_single_sign_on,
                'has_single_sign_on', coalesce(provider.id = any (session.provider_ids), false),
                'last_seen_at', role.last_seen_at, 'permissions', role.permissions,
                'participants_of', role.participants_of, 'can_download', role.can_download)
                order by role.created_at, manager.id)
            from account_roles role join plan_managers manager on manager.id = role.plan_manager_id
            left join single_sign_on_providers provider on provider.plan_manager_id = manager.id
            where role.account_id = account.id
        ), '[]') as memberships
    from account_sessions session join accounts account on account.id = session.account_id
    where session.token_hash = $1 and session.expires_at > $2 and session.last_seen_at > $3
"""

UPDATE_LAST_SEEN = """
    update account_sessions set last_seen_at = $2 where token_hash = $1 and last_seen_at < $2
"""


async def get_session(db: Executor, token_hash: bytes, at: datetime, *, is_use: bool) -> SessionRow | None:
    """An unexpired session that was used within SESSION_IDLE_TIMEOUT, with all roles of its account, oldest first.

    A use updates `last_seen_at`, to the minute.
    """
    session = await db.one_or_none(SessionRow, GET_SESSION, token_hash, at, at - SESSION_IDLE_TIMEOUT)
    if session and is_use and session.last_seen_at < at - timedelta(minutes=1):
        await db.execute(UPDATE_LAST_SEEN, token_hash, at)
    return session


SELECT_SESSION_FOR_UPDATE = """
    select token_hash, account_id, chosen_plan_manager_id, created_at, expires_at, address, user_agent,
        two_factor_pending, with_password, provider_ids
    from account_sessions
    where token_hash = $1 and expires_at > $2
    for update
"""


async def select_session_for_update(tx: Transaction, token_hash: bytes, at: datetime) -> NewSession | None:
    """An unexpired session, locked: of two concurrent two-factor attempts only one succeeds."""
    return await tx.one_or_none(NewSession, SELECT_SESSION_FOR_UPDATE, token_hash, at)


LIST_SESSIONS = f"""
    select {SESSION_COLUMNS}
    from account_sessions
    where account_id = $1 and expires_at > $2 and last_seen_at > $3 and not two_factor_pending
    order by created_at desc, token_hash
"""


async def list_sessions(db: Executor, account_id: UUID, at: datetime) -> list[OpenSession]:
    """The open sessions of an account, newest first, without those that wait for two-factor authentication."""
    return await db.rows(OpenSession, LIST_SESSIONS, account_id, at, at - SESSION_IDLE_TIMEOUT)


REPLACE_SESSION_HASH = """
    update account_sessions set token_hash = $2 where token_hash = $1
"""


async def replace_session_token(tx: Transaction, old_hash: bytes, new_hash: bytes) -> None:
    await tx.execute(REPLACE_SESSION_HASH, old_hash, new_hash)


MARK_RECORDED = """
    update account_sessions set recorded_for = array_append(recorded_for, $1::uuid)
    where token_hash = $2 and not $1 = any (recorded_for)
    returning address, user_agent, case when exists (
        select from single_sign_on_providers where plan_manager_id = $1 and id = any (provider_ids)
    ) then 'single_sign_on' else 'password' end as method
"""


async def mark_recorded(tx: Transaction, plan_manager_id: UUID, token_hash: bytes) -> SessionClient | None:
    """Mark a session's sign-in as recorded for a plan manager, and return its client; None if it already was."""
    return await tx.one_or_none(SessionClient, MARK_RECORDED, plan_manager_id, token_hash)


SET_CHOSEN_PLAN_MANAGER = "update account_sessions set chosen_plan_manager_id = $2 where token_hash = $1"


async def set_chosen_plan_manager(tx: Transaction, token_hash: bytes, plan_manager_id: UUID) -> None:
    await tx.execute(SET_CHOSEN_PLAN_MANAGER, token_hash, plan_manager_id)


DELETE_SESSION = "delete from account_sessions where token_hash = $1"


async def delete_session(db: Executor, token_hash: bytes) -> None:
    await db.execute(DELETE_SESSION, token_hash)


REVOKE_SESSION = f"""
    delete from account_sessions
    where account_id = $1 and token_hash = $2
    returning {SESSION_COLUMNS}
"""


async def revoke_session(tx: Transaction, account_id: UUID, token_hash: bytes) -> OpenSession | None:
    """Delete a session of an account and return it."""
    return await tx.one_or_none(OpenSession, REVOKE_SESSION, account_id, token_hash)


DELETE_OTHER_SESSIONS = "delete from account_sessions where account_id = $1 and token_hash <> $2"


async def delete_other_sessions(tx: Transaction, account_id: UUID, except_token_hash: bytes) -> None:
    """Delete all sessions of an account except one. An empty hash excepts none."""
    await tx.execute(DELETE_OTHER_SESSIONS, account_id, except_token_hash)


DELETE_EXPIRED_SESSIONS = "delete from account_sessions where account_id = $1 and expires_at <= $2"


async def delete_expired_sessions(tx: Transaction, account_id: UUID, at: datetime) -> None:
    await tx.execute(DELETE_EXPIRED_SESSIONS, account_id, at)


DELETE_ALL_SESSIONS = "delete from account_sessions"


DELETE_ALL_DEVICES = "delete from account_devices"


async def delete_all_sessions_and_devices(tx: Transaction) -> None:
    await tx.execute(DELETE_ALL_SESSIONS)
    await tx.execute(DELETE_ALL_DEVICES)


HAS_DEVICE = """
    select exists (
        select from account_devices device join accounts account on account.id = device.account_id
        where device.token_hash = $2 and ($1::text is null or lower(account.email) = lower($1))
            and device.last_used_at > $3
    )
"""


async def has_device(db: Executor, email: str | None, token_hash: bytes, used_after: datetime) -> bool:
    """Whether the account with an email, or any if it is None, has a device that was used since a time."""
    return await db.one(bool, HAS_DEVICE, email, token_hash, used_after)


REPLACE_DEVICE_TOKEN = "update account_devices set token_hash = $2 where token_hash = $1"  # noqa: S105 - a statement


async def replace_device_token(tx: Transaction, old_hash: bytes, new_hash: bytes) -> None:
    """Give a device a new token, for all its accounts."""
    await tx.execute(REPLACE_DEVICE_TOKEN, old_hash, new_hash)


UPSERT_DEVICE = """
    insert into account_devices (account_id, token_hash, created_at, last_used_at) values ($1, $2, $3, $3)
    on conflict (account_id, token_hash) do update set last_used_at = excluded.last_used_at
"""


async def upsert_device(tx: Transaction, account_id: UUID, token_hash: bytes, at: datetime) -> None:
    await tx.execute(UPSERT_DEVICE, account_id, token_hash, at)


DELETE_OLD_DEVICES = """
    delete from account_devices
    where account_id = $1 and (last_used_at < $2 or token_hash in (
        select token_hash from account_devices where account_id = $1 order by last_used_at desc offset $3
    ))
"""


async def delete_old_devices(tx: Transaction, account_id: UUID, before: datetime, max_count: int) -> None:
    """Delete the devices of an account that weren't used since a time, and the oldest ones above a number."""
    await tx.execute(DELETE_OLD_DEVICES, account_id, before, max_count)


DELETE_OTHER_DEVICES = "delete from account_devices where account_id = $1 and token_hash <> $2"


async def delete_other_devices(tx: Transaction, account_id: UUID, except_token_hash: bytes) -> None:
    """Delete all devices of an account except one. An empty hash excepts none."""
    await tx.execute(DELETE_OTHER_DEVICES, account_id, except_token_hash)
