"""Changes that people make to their own account: password, two-factor authentication, sessions."""

from datetime import UTC, datetime
from math import ceil

from msgspec.structs import replace

from plankeeper.access.accounts import (
    link_store,
    member_store,
    passwords,
    store,
    totp,
)
from plankeeper.access.accounts.audit import (
    ClientInfo,
    account_actor,
    member_event,
    record_account_event,
)
from plankeeper.access.accounts.credentials import (
    LoginError,
    VerifiedCredentials,
    record_code_failure,
    session_counters,
    undo_attempt,
    verify_credentials,
)
from plankeeper.access.accounts.passwords import validate_password
from plankeeper.access.accounts.schemas import Account, Session
from plankeeper.access.accounts.sessions import renew_token, use_two_factor_code
from plankeeper.access.policy import validate_name
from plankeeper.access.tokens import hash_token, new_recovery_codes
from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.encryption.cipher import secret_cipher
from plankeeper.core.errors import ValidationError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Transaction
from plankeeper.events.recorder import record_event


async def reauthenticate(
    db: Database,
    settings: Settings,
    session: Session,
    password: str,
    address: str,
    user_agent: str,
    code: str | None = None,
) -> VerifiedCredentials:
    """Verify the password of the session's account again, and a code unless it is None. Raises ValidationError.

    Attempts are counted by the session, in their own transactions: an open session doesn't allow faster guessing, and
    failed sign-ins of others don't delay it.
    """
    client = ClientInfo.from_request(address, user_agent)
    counters = session_counters(session.email, session.token_hash)
    try:
        verified = await verify_credentials(db, settings, session.email, password, client, counters)
    except LoginError as error:
        seconds = ceil(error.retry_after)
        message = (
            f"is incorrect, or you tried too soon: wait {seconds} second{'s' if seconds > 1 else ''} and try again"
        )
        raise ValidationError(password=message if seconds else "is incorrect") from None
    if verified.attempt:
        async with db.transaction() as tx:
            account = await _lock_account(tx, verified)
            is_valid = (
                code is None or account.totp_secret is None or await use_two_factor_code(tx, settings, account, code)
            )
            if is_valid:
                await undo_attempt(tx, verified.attempt, datetime.now(UTC))
            else:
                await record_code_failure(tx, settings, account, verified.attempt, client)
        # After the commit: an error inside the transaction would undo the counted failure.
        if not is_valid:
            raise ValidationError(code="is incorrect, or was used before")
    return verified


async def enable_totp(
    tx: Transaction, settings: Settings, session: Session, verified: VerifiedCredentials, secret: str, code: str
) -> tuple[list[str], str]:
    """Turn two-factor authentication on. Raises ValidationError, and SecretKeyMissingError if no key encrypts.

    Returns the recovery codes, which aren't stored, and the session's new token.
    `secret` comes from `totp.new_secret`. The code proves that an authenticator app has the secret.
    """
    account = await _lock_account(tx, verified)
    counter = totp.verify_code(secret, code, 0, datetime.now(UTC)) if totp.is_valid_secret(secret) else None
    if account.totp_secret is not None:
        raise ValidationError(code="is not needed: two-factor authentication is already on")
    if counter is None:
        raise ValidationError(code="is not the current code of the app")
    await store.set_totp(tx, account.id, secret_cipher(settings).encrypt(secret, account.id.bytes), counter)
    codes = await _replace_recovery_codes(tx, account)
    await store.delete_other_sessions(tx, account.id, session.token_hash)
    await record_account_event(tx, settings, account, "account.totp_enabled")
    return codes, await renew_token(tx, settings, account, session)


async def disable_totp(
    tx: Transaction, settings: Settings, session: Session, verified: VerifiedCredentials
) -> str | None:
    """Turn two-factor authentication off. Raises ValidationError.

    Returns the session's new token; None if two-factor authentication was off before.
    """
    account = await _lock_account(tx, verified)
    if account.totp_secret is None:
        return None
    memberships = await member_store.list_memberships(tx, account.id)
    requiring = [membership.name for membership in memberships if membership.requires_two_factor]
    if requiring:
        raise ValidationError(form=f"{requiring[0]} requires two-factor authentication, so you can’t turn it off.")
    await store.set_totp(tx, account.id, None, 0)
    await store.delete_recovery_codes(tx, account.id)
    await record_account_event(tx, settings, account, "account.totp_disabled")
    return await renew_token(tx, settings, account, session)


async def renew_recovery_codes(tx: Transaction, settings: Settings, verified: VerifiedCredentials) -> list[str]:
    """Replace the recovery codes and return the new ones. Raises ValidationError."""
    account = await _lock_account(tx, verified)
    if account.totp_secret is None:
        raise ValidationError(password="can't renew recovery codes: two-factor authentication is off")  # noqa: S106 - a message
    codes = await _replace_recovery_codes(tx, account)
    await record_account_event(tx, settings, account, "account.recovery_codes_renewed")
    return codes


async def change_name(tx: Transaction, settings: Settings, session: Session, name: str) -> None:
    """Change the display name. Raises ValidationError.

    Other plan managers see it too, so the session has to act for the whole account.
    """
    error = validate_name(name)
    if not session.reaches_whole_account:
        error = "can be changed after you sign in with your password"
    if error:
        raise ValidationError(name=error)
    before = or_404(await store.select_for_update(tx, session.account_id))
    after = replace(before, name=name)
    await store.set_name(tx, session.account_id, name)
    for membership in await member_store.list_memberships(tx, session.account_id):
        ctx = WriteContext(tx, membership.plan_manager_id, settings, account_actor(after))
        changes = [member_event(each, membership.role, membership.details) for each in (before, after)]
        await record_event(ctx, "account.renamed", *changes)


async def change_password(
    tx: Transaction,
    settings: Settings,
    session: Session,
    verified: VerifiedCredentials,
    new_password: str,
    device_token: str = "",
) -> str:
    """Change the password, and return the session's new token. Raises ValidationError.

    The account's other sessions end, and its other devices are forgotten.
    """
    account = await _lock_account(tx, verified)
    error = validate_password(new_password, account.email, [account.name, *session.plan_manager_names.values()])
    if error:
        raise ValidationError(new_password=error)
    await store.set_password(tx, account.id, await passwords.hash_password(new_password))
    await store.delete_other_sessions(tx, account.id, session.token_hash)
    await store.delete_other_devices(tx, account.id, hash_token(device_token))
    await link_store.delete_reset_link(tx, account.id)
    await record_account_event(tx, settings, account, "account.password_changed")
    return await renew_token(tx, settings, account, session)


async def revoke_session(tx: Transaction, settings: Settings, session: Session, token_hash: bytes) -> bool:
    """End a session of the account; False if there is none."""
    revoked = await store.revoke_session(tx, session.account_id, token_hash)
    if revoked is None:
        return False
    account = or_404(await store.select_for_update(tx, session.account_id))
    await record_account_event(
        tx, settings, account, "account.session_revoked", ClientInfo(revoked.address, revoked.user_agent)
    )
    return True


async def revoke_other_sessions(tx: Transaction, settings: Settings, session: Session) -> int:
    """End all sessions of the account except the current one, and return their number."""
    open_sessions = await store.list_sessions(tx, session.account_id, datetime.now(UTC))
    other_hashes = [other.token_hash for other in open_sessions if other.token_hash != session.token_hash]
    results = [await revoke_session(tx, settings, session, token_hash) for token_hash in other_hashes]
    # The list leaves out sessions that wait for two-factor authentication. They end too.
    await store.delete_other_sessions(tx, session.account_id, session.token_hash)
    return sum(results)


async def _lock_account(tx: Transaction, verified: VerifiedCredentials) -> Account:
    """Lock the account. Raises ValidationError if its password has changed since it was verified."""
    account = or_404(await store.select_for_update(tx, verified.account.id))
    if account.password_hash != verified.account.password_hash:
        raise ValidationError(password="was changed in the meantime")  # noqa: S106 - a message
    return account


async def _replace_recovery_codes(tx: Transaction, account: Account) -> list[str]:
    codes = new_recovery_codes()
    await store.delete_recovery_codes(tx, account.id)
    await store.insert_recovery_codes(tx, account.id, [hash_token(code) for code in codes])
    return codes
