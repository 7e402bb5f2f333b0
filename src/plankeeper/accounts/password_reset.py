"""A way back in for who forgot a password or lost an authenticator: the operator's, who knows who is asking."""

import secrets

from plankeeper.accounts import passwords, store
from plankeeper.accounts.audit import record_account_event_by_operator
from plankeeper.accounts.policy import validate_password
from plankeeper.accounts.schemas import Account
from plankeeper.database.client import Transaction
from plankeeper.http.errors import ValidationError
from plankeeper.settings import Settings

NO_SESSION = b""


def generate_password() -> str:
    """A password of 120 random bits, to be given out and changed."""
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
    """Give an account another password, end its sessions and what it waits for after failures; raises ValidationError."""
    error = validate_password(password, account.email)
    if error:
        raise ValidationError(password=error)
    await store.set_password(tx, account.id, await passwords.hash_password(password))
    await store.delete_other_sessions(tx, account.id, NO_SESSION)
    await store.delete_throttle(tx, account.email)
    await record_account_event_by_operator(tx, settings, account, "account.password_reset", command)
    if disable_two_factor and account.totp_secret:
        await store.set_totp(tx, account.id, None, 0)
        await store.delete_recovery_codes(tx, account.id)
        await record_account_event_by_operator(tx, settings, account, "account.totp_disabled", command)
