"""Password verification with throttling. Every attempt counts as a failure until it succeeds."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from plankeeper.accounts import passwords, store
from plankeeper.accounts.audit import ClientInfo, record_account_event
from plankeeper.accounts.policy import FAILURES_EXPIRE_AFTER, is_locked, login_delay
from plankeeper.accounts.schemas import Account, LoginThrottle
from plankeeper.database.client import Database, Transaction
from plankeeper.settings import Settings

# A failed attempt takes at least this long, so that its duration doesn't reveal whether the email has an account.
MIN_FAILURE_SECONDS = 0.25


class LoginError(Exception):
    """The credentials are wrong, or the attempt came too soon. `retry_after` is in seconds."""

    def __init__(self, retry_after: float = 0) -> None:
        super().__init__(f"sign-in failed; retry after {retry_after} seconds")
        self.retry_after = retry_after


class VerifiedCredentials(NamedTuple):
    """An account whose password was verified. `throttle` is the failure counted before the verification."""

    account: Account
    throttle: LoginThrottle | None


async def verify_credentials(
    db: Database, settings: Settings, email: str, password: str, client: ClientInfo
) -> VerifiedCredentials:
    """Verify a password. Raises LoginError.

    The attempt counts as a failure before the password is checked: parallel guesses are throttled too.
    """
    started_at = time.monotonic()
    async with db.transaction() as tx:
        await store.delete_old_throttles(tx, datetime.now(UTC) - FAILURES_EXPIRE_AFTER)
        throttle = await register_attempt(tx, email, datetime.now(UTC))
    account = await store.get_by_email(db, email)
    if await passwords.verify(account and account.password_hash, password) and account:
        return VerifiedCredentials(account, throttle)
    if account:
        async with db.transaction() as tx:
            await record_failure(tx, settings, account, throttle, client)
    await asyncio.sleep(started_at + MIN_FAILURE_SECONDS - time.monotonic())
    raise LoginError(login_delay(throttle.failures))


async def register_attempt(tx: Transaction, email: str, now: datetime) -> LoginThrottle:
    """Count an attempt as a failure. Raises LoginError during the delay after earlier failures."""
    before = await store.select_throttle_for_update(tx, email, now)
    if before.locked_until > now:
        raise LoginError((before.locked_until - now).total_seconds())
    failures = 1 if now - before.failed_at > FAILURES_EXPIRE_AFTER else before.failures + 1
    throttle = LoginThrottle(failures, now, now + timedelta(seconds=login_delay(failures)))
    await store.update_throttle(tx, email, throttle)
    return throttle


async def record_failure(
    tx: Transaction, settings: Settings, account: Account, throttle: LoginThrottle, client: ClientInfo
) -> None:
    """Record the events of a failure that is already counted."""
    await record_account_event(tx, settings, account, "account.sign_in_failed", client)
    if is_locked(throttle.failures):
        await record_account_event(tx, settings, account, "account.locked", client)
