"""Whose password it is: every attempt counts as a failure until it proves to be none, wherever it is made."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from plankeeper.accounts import passwords, store
from plankeeper.accounts.audit import ClientInfo, record_account_event
from plankeeper.accounts.policy import FAILURES_EXPIRE_AFTER, is_locked, login_delay
from plankeeper.accounts.schemas import Account, LoginError, LoginThrottle
from plankeeper.database.client import Database, Transaction
from plankeeper.settings import Settings

# A wrong attempt takes as long as this at least: its time does not tell whether the email has an account.
MIN_FAILURE_SECONDS = 0.25


class VerifiedCredentials(NamedTuple):
    """Whose password was right, and what had been counted as a failure before that was known."""

    account: Account
    throttle: LoginThrottle | None


async def verify_credentials(
    db: Database, settings: Settings, email: str, password: str, client: ClientInfo
) -> VerifiedCredentials | LoginError:
    """Whose email and password these are. It is counted as a failure first, so that many at once are not free."""
    started_at = time.monotonic()
    async with db.transaction() as tx:
        await store.delete_old_throttles(tx, datetime.now(UTC) - FAILURES_EXPIRE_AFTER)
        throttle = await register_attempt(tx, email, datetime.now(UTC))
    if isinstance(throttle, LoginError):
        return throttle
    account = await store.get_by_email(db, email)
    if await passwords.verify(account and account.password_hash, password) and account:
        return VerifiedCredentials(account, throttle)
    error = LoginError(login_delay(throttle.failures))
    if account:
        async with db.transaction() as tx:
            error = await record_failure(tx, settings, account, throttle, client)
    await asyncio.sleep(started_at + MIN_FAILURE_SECONDS - time.monotonic())
    return error


async def register_attempt(tx: Transaction, email: str, now: datetime) -> LoginThrottle | LoginError:
    """Count an attempt as a failure, until it proves to be none; refused while an earlier one must be waited for."""
    before = await store.select_throttle_for_update(tx, email, now)
    if before.locked_until > now:
        return LoginError((before.locked_until - now).total_seconds())
    failures = 1 if now - before.failed_at > FAILURES_EXPIRE_AFTER else before.failures + 1
    throttle = LoginThrottle(failures, now, now + timedelta(seconds=login_delay(failures)))
    await store.update_throttle(tx, email, throttle)
    return throttle


async def record_failure(
    tx: Transaction, settings: Settings, account: Account, throttle: LoginThrottle, client: ClientInfo
) -> LoginError:
    """Tell of a failure that was counted."""
    await record_account_event(tx, settings, account, "account.sign_in_failed", client)
    if is_locked(throttle.failures):
        await record_account_event(tx, settings, account, "account.locked", client)
    return LoginError(login_delay(throttle.failures))
