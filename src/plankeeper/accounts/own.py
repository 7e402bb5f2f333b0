"""What a person does with an account of their own: password, second step, sessions."""

from datetime import UTC, datetime

from plankeeper.accounts import passwords, store, totp
from plankeeper.accounts.rules import fault_of_password, hash_of, new_recovery_codes
from plankeeper.accounts.shapes import Account, Session
from plankeeper.accounts.telling import Origin, tell
from plankeeper.database.pool import Transaction
from plankeeper.edge.call import found
from plankeeper.edge.errors import Invalid
from plankeeper.settings import Settings


async def enable_totp(tx: Transaction, settings: Settings, session: Session, secret: str, code: str) -> list[str]:
    """Ask for a second step from now on; answers the recovery codes, which are kept nowhere. Raises Invalid.

    `secret` was made by `totp.new_secret` and shown; the code proves that an app has it.
    """
    account = await _account(tx, session)
    counter = totp.counter_of(secret, code, 0, datetime.now(UTC)) if totp.is_secret(secret) else None
    if account.totp_secret is not None:
        raise Invalid(code="is not asked for: the second step is on already")
    if counter is None:
        raise Invalid(code="is not what the app should show now")
    await store.set_totp(tx, account.id, secret, counter)
    codes = await _new_codes(tx, account)
    await store.remove_other_sessions(tx, account.id, session.token_hash)
    await tell(tx, settings, account, "account.totp_enabled")
    return codes


async def disable_totp(tx: Transaction, settings: Settings, session: Session, password: str) -> None:
    """Ask for no second step any more; raises Invalid where the password is wrong."""
    account = await _proven(tx, session, password)
    if account.totp_secret is None:
        return
    await store.set_totp(tx, account.id, None, 0)
    await store.remove_recovery_codes(tx, account.id)
    await tell(tx, settings, account, "account.totp_disabled")


async def renew_recovery_codes(tx: Transaction, session: Session, password: str) -> list[str]:
    """New recovery codes in place of the old ones; raises Invalid where the password is wrong."""
    account = await _proven(tx, session, password)
    if account.totp_secret is None:
        raise Invalid(password="opens no second step: it is off")  # noqa: S106 - a sentence
    return await _new_codes(tx, account)


async def change_password(tx: Transaction, session: Session, old: str, new: str) -> None:
    """Change a password, and end every other session of the account; raises Invalid."""
    account = await _proven(tx, session, old)
    fault = fault_of_password(new, account.email)
    if fault:
        raise Invalid(new_password=fault)
    await store.set_password(tx, account.id, await passwords.hash_of(new))
    await store.remove_other_sessions(tx, account.id, session.token_hash)


async def revoke_session(tx: Transaction, settings: Settings, session: Session, token_hash: bytes) -> bool:
    """End one of one's own sessions; false where there is none."""
    ended = await store.revoke_session(tx, session.account_id, token_hash)
    if ended is None:
        return False
    account = await _account(tx, session)
    await tell(tx, settings, account, "account.session_revoked", Origin(ended.address, ended.user_agent))
    return True


async def _account(tx: Transaction, session: Session) -> Account:
    return found(await store.fetch_for_update(tx, session.account_id))


async def _proven(tx: Transaction, session: Session, password: str) -> Account:
    """The session's account, whose password was given again; raises Invalid."""
    account = await _account(tx, session)
    if not await passwords.verify(account.password_hash, password):
        raise Invalid(password="is wrong")  # noqa: S106 - a sentence
    return account


async def _new_codes(tx: Transaction, account: Account) -> list[str]:
    codes = new_recovery_codes()
    await store.remove_recovery_codes(tx, account.id)
    await store.put_recovery_codes(tx, account.id, [hash_of(each) for each in codes])
    return codes
