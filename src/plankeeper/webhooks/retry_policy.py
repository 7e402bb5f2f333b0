"""The retry schedule (backoff) of failed deliveries, and when an endpoint is disabled."""

from datetime import timedelta

DISABLE_AFTER = timedelta(days=5)  # without a successful attempt
HTTP_GONE = 410  # a receiver that responds with 410 Gone wants no more messages

# The delay before each attempt, counted from the attempt before.
RETRY_DELAYS = tuple(
    timedelta(seconds=seconds)
    for seconds in (0, 5, 300, 1800, 7200, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600)
)
MAX_JITTER = 0.1  # the largest random extension of a delay, as a fraction: retries must not arrive all at once


def retry_delay(attempt_count: int, jitter: float, retry_after: float | None = None) -> timedelta | None:
    """The delay after `attempt_count` failed attempts; None after the last attempt.

    `jitter` is from 0 to 1. `retry_after` is the delay in seconds that the receiver requested; the longest delay of
    the schedule limits it.
    """
    if attempt_count >= len(RETRY_DELAYS):
        return None
    delay = RETRY_DELAYS[attempt_count] * (1 + MAX_JITTER * jitter)
    return max(delay, timedelta(seconds=min(retry_after or 0.0, RETRY_DELAYS[-1].total_seconds())))
