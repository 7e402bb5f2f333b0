"""A way back in for who forgot a password or lost an authenticator: the operator's, who knows who is asking."""

import secrets

from plankeeper.accounts import passwords, store
from plankeeper.accounts.audit import tell_by_system
from plankeeper.accounts.policy import fault_of_password
from plankeeper.accounts.schemas import Account
from plankeeper.database.client import Transaction
from plankeeper.http.errors import Invalid
from plankeeper.settings import Settings

NO_SESSION = b""


def new_password() -> str:
    """A password of 120 random bits, to be given out and changed."""
    return secrets.token_hex(15)


async def reset(
    tx: Transaction, settings: Settings, account: Account, password: str, command: str, *, second_step_off: bool = False
) -> None:
    """Give an account another password, end its sessions and what it waits for after failures; raises Invalid."""
    fault = fault_of_password(password, account.email)
    if fault:
        raise Invalid(password=fault)
    await store.set_password(tx, account.id, await passwords.hash_of(password))
    await store.remove_other_sessions(tx, account.id, NO_SESSION)
    await store.forget_failures(tx, account.email)
    await tell_by_system(tx, settings, account, "account.password_reset", command)
    if second_step_off and account.totp_secret:
        await store.set_totp(tx, account.id, None, 0)
        await store.remove_recovery_codes(tx, account.id)
        await tell_by_system(tx, settings, account, "account.totp_disabled", command)
