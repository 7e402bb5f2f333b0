"""What a person does with an account of their own: password, two-factor authentication, sessions."""

from datetime import UTC, datetime
from math import ceil

from plankeeper.accounts import passwords, store, totp
from plankeeper.accounts.audit import ClientInfo, record_account_event
from plankeeper.accounts.credentials import VerifiedCredentials, verify_credentials
from plankeeper.accounts.policy import hash_token, new_recovery_codes, single_line, validate_password
from plankeeper.accounts.schemas import Account, LoginError, Session
from plankeeper.database.client import Database, Transaction
from plankeeper.http.context import or_404
from plankeeper.http.errors import ValidationError
from plankeeper.settings import Settings


async def reauthenticate(
    db: Database, settings: Settings, session: Session, password: str, address: str, user_agent: str
) -> VerifiedCredentials:
    """The session's account, whose password was given again; raises ValidationError.

    It counts like signing in, in transactions of its own: who found an open session may guess no quicker.
    """
    verified = await verify_credentials(
        db, settings, session.email, password, ClientInfo(single_line(address, 100), single_line(user_agent, 500))
    )
    if isinstance(verified, LoginError):
        wait = ceil(verified.retry_after)
        message = f"is wrong, or came too soon: wait {wait} second{'s' if wait > 1 else ''} and try again"
        raise ValidationError(password=message if wait else "is wrong")
    if verified.throttle:
        async with db.transaction() as tx:
            await store.undo_attempt(tx, session.email, verified.throttle, datetime.now(UTC))
    return verified


async def enable_totp(
    tx: Transaction, settings: Settings, session: Session, verified: VerifiedCredentials, secret: str, code: str
) -> list[str]:
    """Ask for two-factor authentication from now on; answers the recovery codes, which are kept nowhere. Raises ValidationError.

    `secret` was made by `totp.new_secret` and shown; the code proves that an app has it.
    """
    account = await _lock_account(tx, verified)
    counter = totp.verify_code(secret, code, 0, datetime.now(UTC)) if totp.is_valid_secret(secret) else None
    if account.totp_secret is not None:
        raise ValidationError(code="is not asked for: two-factor authentication is on already")
    if counter is None:
        raise ValidationError(code="is not what the app should show now")
    await store.set_totp(tx, account.id, secret, counter)
    codes = await _replace_recovery_codes(tx, account)
    await store.delete_other_sessions(tx, account.id, session.token_hash)
    await record_account_event(tx, settings, account, "account.totp_enabled")
    return codes


async def disable_totp(tx: Transaction, settings: Settings, verified: VerifiedCredentials) -> None:
    """Ask for no two-factor authentication any more; raises ValidationError."""
    account = await _lock_account(tx, verified)
    if account.totp_secret is None:
        return
    await store.set_totp(tx, account.id, None, 0)
    await store.delete_recovery_codes(tx, account.id)
    await record_account_event(tx, settings, account, "account.totp_disabled")


async def renew_recovery_codes(tx: Transaction, settings: Settings, verified: VerifiedCredentials) -> list[str]:
    """New recovery codes in place of the old ones; raises ValidationError."""
    account = await _lock_account(tx, verified)
    if account.totp_secret is None:
        raise ValidationError(password="opens no two-factor authentication: it is off")  # noqa: S106 - a sentence
    codes = await _replace_recovery_codes(tx, account)
    await record_account_event(tx, settings, account, "account.recovery_codes_renewed")
    return codes


async def change_password(
    tx: Transaction, settings: Settings, session: Session, verified: VerifiedCredentials, new_password: str
) -> None:
    """Change a password, and end every other session of the account; raises ValidationError."""
    account = await _lock_account(tx, verified)
    error = validate_password(new_password, account.email)
    if error:
        raise ValidationError(new_password=error)
    await store.set_password(tx, account.id, await passwords.hash_password(new_password))
    await store.delete_other_sessions(tx, account.id, session.token_hash)
    await record_account_event(tx, settings, account, "account.password_changed")


async def revoke_session(tx: Transaction, settings: Settings, session: Session, token_hash: bytes) -> bool:
    """End one of one's own sessions; false where there is none."""
    revoked = await store.revoke_session(tx, session.account_id, token_hash)
    if revoked is None:
        return False
    account = or_404(await store.select_for_update(tx, session.account_id))
    await record_account_event(
        tx, settings, account, "account.session_revoked", ClientInfo(revoked.address, revoked.user_agent)
    )
    return True


async def revoke_other_sessions(tx: Transaction, settings: Settings, session: Session) -> int:
    """End all of one's own sessions but this one: how many."""
    open_sessions = await store.list_sessions(tx, session.account_id, datetime.now(UTC))
    other_hashes = [each.token_hash for each in open_sessions if each.token_hash != session.token_hash]
    results = [await revoke_session(tx, settings, session, each) for each in other_hashes]
    await store.delete_other_sessions(
        tx, session.account_id, session.token_hash
    )  # those whose two-factor authentication is due
    return sum(results)


async def _lock_account(tx: Transaction, verified: VerifiedCredentials) -> Account:
    """The account, which still has the password that was proven; raises ValidationError."""
    account = or_404(await store.select_for_update(tx, verified.account.id))
    if account.password_hash != verified.account.password_hash:
        raise ValidationError(password="was changed meanwhile")  # noqa: S106 - a sentence
    return account


async def _replace_recovery_codes(tx: Transaction, account: Account) -> list[str]:
    codes = new_recovery_codes()
    await store.delete_recovery_codes(tx, account.id)
    await store.insert_recovery_codes(tx, account.id, [hash_token(each) for each in codes])
    return codes
