"""Password verification with throttling. Every attempt counts as a failure until it succeeds."""

import asyncio
import time
from datetime import UTC, datetime
from typing import NamedTuple

from plankeeper.accounts import devices, passwords, store
from plankeeper.accounts.audit import ClientInfo, record_account_event
from plankeeper.accounts.policy import FAILURES_EXPIRE_AFTER
from plankeeper.accounts.schemas import Account
from plankeeper.accounts.throttling import (
    Attempt,
    Counter,
    LoginError,
    count_failure,
    device_counters,
    network_counters,
    register_attempt,
)
from plankeeper.accounts.tokens import hash_token
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Executor, Transaction

# A failed attempt takes at least this long, so that its duration doesn't reveal whether the email has an account.
MIN_FAILURE_SECONDS = 0.25


class VerifiedCredentials(NamedTuple):
    """An account whose password was verified. `attempt` is the failure counted before the verification."""

    account: Account
    attempt: Attempt | None


async def sign_in_counters(db: Executor, email: str, client: ClientInfo, device_token: str) -> tuple[Counter, ...]:
    """What a failed sign-in is counted by: the device if it is known to the account, otherwise the network."""
    if await devices.is_known(db, email, device_token):
        return device_counters(email, hash_token(device_token))
    return network_counters(email, client.address)


async def verify_credentials(
    db: Database, settings: Settings, email: str, password: str, client: ClientInfo, counters: tuple[Counter, ...]
) -> VerifiedCredentials:
    """Verify a password. Raises LoginError.

    The attempt counts as a failure before the password is checked: parallel guesses are throttled too.
    """
    started_at = time.monotonic()
    async with db.transaction() as tx:
        await store.delete_old_throttles(tx, datetime.now(UTC) - FAILURES_EXPIRE_AFTER)
        attempt = await register_attempt(tx, counters)
    account = await store.get_by_email(db, email)
    if await passwords.verify(account and account.password_hash, password) and account:
        return VerifiedCredentials(account, attempt)
    if account:
        async with db.transaction() as tx:
            await record_failure(tx, settings, account, attempt, client)
    count_failure("password")
    await asyncio.sleep(started_at + MIN_FAILURE_SECONDS - time.monotonic())
    raise LoginError(attempt.delay)


async def record_code_failure(
    tx: Transaction, settings: Settings, account: Account, attempt: Attempt, client: ClientInfo
) -> None:
    """Record a wrong code after a correct password. The failure is already counted."""
    count_failure("code")
    await record_failure(tx, settings, account, attempt, client)


async def record_failure(
    tx: Transaction, settings: Settings, account: Account, attempt: Attempt, client: ClientInfo
) -> None:
    """Record the events of a failure that is already counted."""
    await record_account_event(tx, settings, account, "account.sign_in_failed", client)
    if attempt.is_locked:
        await record_account_event(tx, settings, account, "account.locked", client)
