"""Counts failed attempts and delays further ones: by account and network, by known device, or by session.

Whoever fails somewhere else doesn't delay a person on a device that has signed in before.
"""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from plankeeper.accounts import store
from plankeeper.accounts.policy import (
    ACCOUNT_FREE_FAILURES,
    ACCOUNT_MAX_DELAY,
    FAILURES_EXPIRE_AFTER,
    FREE_FAILURES,
    MAX_DELAY,
    login_delay,
)
from plankeeper.accounts.schemas import LoginThrottle
from plankeeper.database.client import Transaction


class LoginError(Exception):
    """The credentials are wrong, or the attempt came too soon and wasn't checked. `retry_after` is in seconds."""

    def __init__(self, retry_after: float = 0, *, is_too_soon: bool = False) -> None:
        super().__init__(f"sign-in failed; retry after {retry_after} seconds")
        self.retry_after, self.is_too_soon = retry_after, is_too_soon


class Counter(NamedTuple):
    """What failures are counted by. In the subject, a line break ends the email, which contains none."""

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
    """Forget the failures of what an attempt was counted by, after a complete sign-in."""
    for counter, _ in attempt.counted:
        await store.delete_throttle(tx, counter.subject)
