"""Password reset by the operator, or by the person with a link in a mail."""

import secrets
from datetime import UTC, datetime

from plankeeper.access.accounts import (
    link_store,
    member_store,
    passwords,
    store,
)
from plankeeper.access.accounts.audit import ClientInfo, record_account_event, record_account_event_by_operator
from plankeeper.access.accounts.credentials import Counter, register_attempt
from plankeeper.access.accounts.mails import PasswordResetMail
from plankeeper.access.accounts.passwords import validate_password
from plankeeper.access.accounts.schemas import Account
from plankeeper.access.policy import FAILURES_EXPIRE_AFTER, RESET_FIRST_DELAY, RESET_FREE_REQUESTS
from plankeeper.access.tokens import hash_token
from plankeeper.core.errors import ValidationError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Executor, Transaction
from plankeeper.mail import store as mail_store
from plankeeper.mail.retry_policy import RESET_REQUEST_LIFETIME

EXCEPT_NONE = b""


def generate_password() -> str:
    """An initial password of 120 random bits."""
    return secrets.token_hex(15)


async def reset(
    tx: Transaction,
    settings: Settings,
    account: Account,
    password: str,
    command: str,
    *,
    disable_two_factor: bool = False,
) -> None:
    """Set a new password, end all sessions, and forget all devices and failures. Raises ValidationError."""
    await _set_password(tx, account, password)
    await record_account_event_by_operator(tx, settings, account, "account.password_reset", command)
    if disable_two_factor and account.totp_secret:
        await store.set_totp(tx, account.id, None, 0)
        await store.delete_recovery_codes(tx, account.id)
        await record_account_event_by_operator(tx, settings, account, "account.totp_disabled", command)


async def purge(db: Executor) -> None:
    """Delete expired links."""
    await link_store.delete_expired_reset_links(db, datetime.now(UTC))


async def request_link(db: Database, email: str) -> None:
    """Request a mail with a link to reset a password. Raises LoginError if it was requested too often.

    Whether the email has an account is looked up only when the mail is sent. Neither the result nor its time can
    therefore reveal it.
    """
    now = datetime.now(UTC)
    counter = Counter(f"{email}\npassword reset", RESET_FREE_REQUESTS, first_delay=RESET_FIRST_DELAY)
    async with db.transaction() as tx:
        await store.delete_old_throttles(tx, now - FAILURES_EXPIRE_AFTER)
        await register_attempt(tx, (counter,))
        await mail_store.insert(tx, PasswordResetMail(email), now, RESET_REQUEST_LIFETIME)


async def is_open(db: Executor, token: str, at: datetime) -> bool:
    """Whether a link can be used."""
    return await link_store.get_account_id_of_reset_link(db, hash_token(token), at) is not None


async def use_link(
    tx: Transaction, settings: Settings, token: str, password: str, client: ClientInfo, at: datetime
) -> bool:
    """Set a new password with a link, end all sessions, and forget all devices and failures. Raises ValidationError.

    False if the link has expired, was used or was replaced. The person isn't signed in by it, and still needs a code if
    two-factor authentication is on.
    """
    account_id = await link_store.get_account_id_of_reset_link(tx, hash_token(token), at)
    account = await store.select_for_update(tx, account_id) if account_id else None
    # Another request could have used the link before the account was locked.
    if account is None or not await is_open(tx, token, at):
        return False
    await _set_password(tx, account, password)
    await record_account_event(tx, settings, account, "account.password_reset", client)
    return True


async def _set_password(tx: Transaction, account: Account, password: str) -> None:
    memberships = await member_store.list_memberships(tx, account.id)
    error = validate_password(password, account.email, [account.name, *(each.name for each in memberships)])
    if error:
        raise ValidationError(password=error)
    await store.set_password(tx, account.id, await passwords.hash_password(password))
    await link_store.delete_reset_link(tx, account.id)
    await store.delete_other_sessions(tx, account.id, EXCEPT_NONE)
    await store.delete_other_devices(tx, account.id, EXCEPT_NONE)
    await store.delete_throttles(tx, account.email)
