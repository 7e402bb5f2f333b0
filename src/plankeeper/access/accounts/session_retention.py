"""Retention of sessions that ended. Signing in deletes only those of the same account."""

import time
from datetime import UTC, datetime, timedelta

from plankeeper.database.client import Executor

PURGE_INTERVAL = 60.0  # seconds: the statement reads all sessions

# A session also ends after an hour without use.
PURGE = """
    delete from account_sessions
    where token_hash in (select token_hash from account_sessions where expires_at < $1 or last_seen_at < $1 limit 5000)
"""


class SessionRetention:
    """A periodic task: once a minute, deletes up to 5,000 sessions that ended long ago."""

    def __init__(self, days: int) -> None:
        self._retention = timedelta(days=days)
        self._purged_at: float | None = None

    async def __call__(self, db: Executor) -> None:
        now = time.monotonic()
        if self._purged_at is None or now - self._purged_at >= PURGE_INTERVAL:
            self._purged_at = now
            await purge(db, datetime.now(UTC) - self._retention)


async def purge(db: Executor, ended_before: datetime) -> None:
    """Delete sessions that ended before a time, of all accounts."""
    await db.execute(PURGE, ended_before)
