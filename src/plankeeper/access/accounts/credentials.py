"""Password verification with throttling. Every attempt counts as a failure until it succeeds."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from plankeeper.access.accounts import passwords, store
from plankeeper.access.accounts.audit import ClientInfo, record_account_event
from plankeeper.access.accounts.schemas import Account, LoginThrottle
from plankeeper.access.policy import (
    ACCOUNT_FREE_FAILURES,
    ACCOUNT_MAX_DELAY,
    DEVICE_LIFETIME,
    FAILURES_EXPIRE_AFTER,
    FREE_FAILURES,
    MAX_DELAY,
    MAX_DEVICES,
    login_delay,
)
from plankeeper.access.tokens import hash_token, new_token
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Executor, Transaction


class LoginError(Exception):
    """The credentials are wrong, or the attempt came too soon and wasn't checked. `retry_after` is in seconds."""

    def __init__(self, retry_after: float = 0, *, is_too_soon: bool = False) -> None:
        super().__init__(f"sign-in failed; retry after {retry_after} seconds")
        self.retry_after, self.is_too_soon = retry_after, is_too_soon


class Counter(NamedTuple):
    """The subject by which failures are counted. It begins with the email, which a line break ends."""

    subject: str
    free_failures: int = FREE_FAILURES
    max_delay: float = MAX_DELAY
    first_delay: float = 1.0

    def delay(self, failures: int) -> float:
        return min(self.first_delay * login_delay(failures, self.free_failures, self.max_delay), self.max_delay)


class Attempt(NamedTuple):
    """An attempt that was counted as a failure before it was checked."""

    counted: tuple[tuple[Counter, LoginThrottle], ...]

    @property
    def delay(self) -> float:
        """Seconds until the next attempt is allowed."""
        return max(counter.delay(throttle.failures) for counter, throttle in self.counted)

    @property
    def is_locked(self) -> bool:
        """Whether this failure reached the longest delay of a network, a device or a session."""
        counter, throttle = self.counted[0]
        return counter.delay(throttle.failures) >= MAX_DELAY


def network_counters(email: str, network: str) -> tuple[Counter, ...]:
    """For an unknown device: the network's delays, and for all networks together a much higher limit."""
    return (
        Counter(f"{email}\nnetwork {network}"),
        Counter(email, ACCOUNT_FREE_FAILURES, ACCOUNT_MAX_DELAY),
    )


def device_counters(email: str, token_hash: bytes) -> tuple[Counter, ...]:
    return (Counter(f"{email}\ndevice {token_hash.hex()}"),)


def session_counters(email: str, token_hash: bytes) -> tuple[Counter, ...]:
    return (Counter(f"{email}\nsession {token_hash.hex()}"),)


async def register_attempt(tx: Transaction, counters: tuple[Counter, ...]) -> Attempt:
    """Count an attempt as a failure. Raises LoginError during the delay after earlier failures.

    Concurrent attempts wait for each other: the counters of an account's networks come before the account's own.
    """
    started_at = datetime.now(UTC)
    before = [await store.select_throttle_for_update(tx, counter.subject, started_at) for counter in counters]
    now = datetime.now(UTC)  # after the wait for an attempt that was counted at the same time
    locked_until = max(throttle.locked_until for throttle in before)
    if locked_until > now:
        count_failure("too_soon")
        raise LoginError((locked_until - now).total_seconds(), is_too_soon=True)
    counted: list[tuple[Counter, LoginThrottle]] = []
    for counter, earlier in zip(counters, before, strict=True):
        failures = 1 if now - earlier.failed_at > FAILURES_EXPIRE_AFTER else earlier.failures + 1
        throttle = LoginThrottle(failures, now, now + timedelta(seconds=counter.delay(failures)))
        await store.update_throttle(tx, counter.subject, throttle)
        counted.append((counter, throttle))
    return Attempt(tuple(counted))


def count_failure(reason: str) -> None:
    """Count a failed attempt for the metrics."""
    # Imported here: commands import this module, and `serve` must choose the metrics' folder before they are imported.
    from plankeeper.core.metrics import SIGN_IN_FAILURES

    SIGN_IN_FAILURES.labels(reason).inc()


async def undo_attempt(tx: Transaction, attempt: Attempt, now: datetime) -> None:
    """Undo the failure counted before a successful check that isn't a complete sign-in."""
    for counter, throttle in attempt.counted:
        await store.undo_attempt(tx, counter.subject, throttle, now)


async def clear_attempt(tx: Transaction, attempt: Attempt) -> None:
    """Forget the failures of an attempt's counters, after a complete sign-in."""
    for counter, _ in attempt.counted:
        await store.delete_throttle(tx, counter.subject)


async def is_known(db: Executor, email: str | None, token: str) -> bool:
    """Whether the browser with a token has completed a sign-in to the email's account, or to any if it is None."""
    if not token:
        return False
    return await store.has_device(db, email, hash_token(token), datetime.now(UTC) - DEVICE_LIFETIME)


async def remember(tx: Transaction, account_id: UUID, token: str) -> str:
    """Remember the browser of a complete sign-in, and return its new token, also for its other accounts."""
    now, new = datetime.now(UTC), new_token()
    if token:
        await store.replace_device_token(tx, hash_token(token), hash_token(new))
    await store.upsert_device(tx, account_id, hash_token(new), now)
    await store.delete_old_devices(tx, account_id, now - DEVICE_LIFETIME, MAX_DEVICES)
    return new


# A failed attempt takes at least this long, so that its duration doesn't reveal whether the email has an account.
MIN_FAILURE_SECONDS = 0.25


class VerifiedCredentials(NamedTuple):
    """An account whose password was verified. `attempt` is the failure counted before the verification."""

    account: Account
    attempt: Attempt | None


async def sign_in_counters(db: Executor, email: str, client: ClientInfo, device_token: str) -> tuple[Counter, ...]:
    """The counters of a failed sign-in: the device if it is known to the account, otherwise the network."""
    if await is_known(db, email, device_token):
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
