"""Forgets requests: those that are too old, and those beyond so many of a plan manager."""

import time
from uuid import UUID

from plankeeper.database.client import Queries
from plankeeper.request_log import store
from plankeeper.request_log.schemas import KEPT

ROUND = 60.0  # seconds from one look for busy plan managers to the next
AT_ONCE = 10  # plan managers a second: to count a plan manager's requests reads all of its rows


class Trimming:
    """The sequencer's chore. It looks only where something was added: everywhere at first, then once a minute."""

    def __init__(self, days: int) -> None:
        self._days = days
        self._due: list[UUID] = []
        self._looked: float | None = None

    async def __call__(self, session: Queries) -> None:
        await store.purge(session, self._days)
        now = time.monotonic()
        if not self._due and (self._looked is None or now - self._looked >= ROUND):
            since = 1e9 if self._looked is None else now - self._looked + ROUND
            self._due, self._looked = await store.busy(session, since), now
        for _ in range(min(AT_ONCE, len(self._due))):
            await store.trim(session, self._due.pop(), KEPT)
