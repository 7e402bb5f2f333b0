"""Retention of sessions that ended. Signing in deletes only those of the same account."""

import time
from datetime import UTC, datetime, timedelta

from plankeeper.accounts import store
from plankeeper.database.client import Executor

PURGE_INTERVAL = 60.0  # seconds: the statement reads all sessions


class SessionRetention:
    """A periodic task: once a minute, deletes up to 5,000 sessions that ended long ago."""

    def __init__(self, days: int) -> None:
        self._retention = timedelta(days=days)
        self._purged_at: float | None = None

    async def __call__(self, db: Executor) -> None:
        now = time.monotonic()
        if self._purged_at is None or now - self._purged_at >= PURGE_INTERVAL:
            self._purged_at = now
            await store.purge_sessions(db, datetime.now(UTC) - self._retention)
