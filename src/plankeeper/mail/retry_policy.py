"""The delays between attempts to send a mail, and their end."""

from datetime import timedelta

MAIL_LIFETIME = timedelta(days=3)  # a mail that can't be sent for so long is deleted
RESET_REQUEST_LIFETIME = timedelta(minutes=30)
LEASE = timedelta(minutes=5)  # longer than an attempt: then another worker tries again
FIRST_RETRY_DELAY, MAX_RETRY_DELAY = timedelta(seconds=15), timedelta(hours=1)


def retry_delay(attempt_count: int) -> timedelta:
    """The delay after `attempt_count` failed attempts, which doubles with each."""
    return min(FIRST_RETRY_DELAY * 2 ** min(attempt_count - 1, 20), MAX_RETRY_DELAY)
