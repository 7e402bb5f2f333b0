"""What a person does with an account of their own: password, second step, sessions."""

from datetime import UTC, datetime
from math import ceil

from plankeeper.accounts import passwords, store, totp
from plankeeper.accounts.audit import Origin, tell
from plankeeper.accounts.credentials import Proof, prove
from plankeeper.accounts.policy import fault_of_password, hash_of, line, new_recovery_codes
from plankeeper.accounts.schemas import Account, Refused, Session
from plankeeper.database.client import Database, Transaction
from plankeeper.http.context import found
from plankeeper.http.errors import Invalid
from plankeeper.settings import Settings


async def proven(
    db: Database, settings: Settings, session: Session, password: str, address: str, user_agent: str
) -> Proof:
    """The session's account, whose password was given again; raises Invalid.

    It counts like signing in, in transactions of its own: who found an open session may guess no quicker.
    """
    proof = await prove(db, settings, session.email, password, Origin(line(address, 100), line(user_agent, 500)))
    if isinstance(proof, Refused):
        wait = ceil(proof.seconds)
        told = f"is wrong, or came too soon: wait {wait} second{'s' if wait > 1 else ''} and try again"
        raise Invalid(password=told if wait else "is wrong")
    if proof.counted:
        async with db.transaction() as tx:
            await store.uncount_failure(tx, session.email, proof.counted, datetime.now(UTC))
    return proof


async def enable_totp(
    tx: Transaction, settings: Settings, session: Session, proof: Proof, secret: str, code: str
) -> list[str]:
    """Ask for a second step from now on; answers the recovery codes, which are kept nowhere. Raises Invalid.

    `secret` was made by `totp.new_secret` and shown; the code proves that an app has it.
    """
    account = await _locked(tx, proof)
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


async def disable_totp(tx: Transaction, settings: Settings, proof: Proof) -> None:
    """Ask for no second step any more; raises Invalid."""
    account = await _locked(tx, proof)
    if account.totp_secret is None:
        return
    await store.set_totp(tx, account.id, None, 0)
    await store.remove_recovery_codes(tx, account.id)
    await tell(tx, settings, account, "account.totp_disabled")


async def renew_recovery_codes(tx: Transaction, settings: Settings, proof: Proof) -> list[str]:
    """New recovery codes in place of the old ones; raises Invalid."""
    account = await _locked(tx, proof)
    if account.totp_secret is None:
        raise Invalid(password="opens no second step: it is off")  # noqa: S106 - a sentence
    codes = await _new_codes(tx, account)
    await tell(tx, settings, account, "account.recovery_codes_renewed")
    return codes


async def change_password(tx: Transaction, settings: Settings, session: Session, proof: Proof, new: str) -> None:
    """Change a password, and end every other session of the account; raises Invalid."""
    account = await _locked(tx, proof)
    fault = fault_of_password(new, account.email)
    if fault:
        raise Invalid(new_password=fault)
    await store.set_password(tx, account.id, await passwords.hash_of(new))
    await store.remove_other_sessions(tx, account.id, session.token_hash)
    await tell(tx, settings, account, "account.password_changed")


async def revoke_session(tx: Transaction, settings: Settings, session: Session, token_hash: bytes) -> bool:
    """End one of one's own sessions; false where there is none."""
    ended = await store.revoke_session(tx, session.account_id, token_hash)
    if ended is None:
        return False
    account = found(await store.fetch_for_update(tx, session.account_id))
    await tell(tx, settings, account, "account.session_revoked", Origin(ended.address, ended.user_agent))
    return True


async def revoke_other_sessions(tx: Transaction, settings: Settings, session: Session) -> int:
    """End all of one's own sessions but this one: how many."""
    known = await store.open_sessions(tx, session.account_id, datetime.now(UTC))
    others = [each.token_hash for each in known if each.token_hash != session.token_hash]
    ended = [await revoke_session(tx, settings, session, each) for each in others]
    await store.remove_other_sessions(tx, session.account_id, session.token_hash)  # those whose second step is due
    return sum(ended)


async def _locked(tx: Transaction, proof: Proof) -> Account:
    """The account, which still has the password that was proven; raises Invalid."""
    account = found(await store.fetch_for_update(tx, proof.account.id))
    if account.password_hash != proof.account.password_hash:
        raise Invalid(password="was changed meanwhile")  # noqa: S106 - a sentence
    return account


async def _new_codes(tx: Transaction, account: Account) -> list[str]:
    codes = new_recovery_codes()
    await store.remove_recovery_codes(tx, account.id)
    await store.put_recovery_codes(tx, account.id, [hash_of(each) for each in codes])
    return codes
