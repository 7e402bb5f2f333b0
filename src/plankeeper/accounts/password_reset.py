"""Password reset by the operator, for a person who forgot the password or lost the authenticator."""

import secrets

from plankeeper.accounts import member_store, passwords, store
from plankeeper.accounts.audit import record_account_event_by_operator
from plankeeper.accounts.password_policy import validate_password
from plankeeper.accounts.schemas import Account
from plankeeper.database.client import Transaction
from plankeeper.http.errors import ValidationError
from plankeeper.settings import Settings

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
    memberships = await member_store.list_memberships(tx, account.id)
    error = validate_password(password, account.email, [account.name, *(each.name for each in memberships)])
    if error:
        raise ValidationError(password=error)
    await store.set_password(tx, account.id, await passwords.hash_password(password))
    await store.delete_other_sessions(tx, account.id, EXCEPT_NONE)
    await store.delete_other_devices(tx, account.id, EXCEPT_NONE)
    await store.delete_throttles(tx, account.email)
    await record_account_event_by_operator(tx, settings, account, "account.password_reset", command)
    if disable_two_factor and account.totp_secret:
        await store.set_totp(tx, account.id, None, 0)
        await store.delete_recovery_codes(tx, account.id)
        await record_account_event_by_operator(tx, settings, account, "account.totp_disabled", command)
