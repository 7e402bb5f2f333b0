"""Counts of attempts by endpoint and hour: written once a second, because many attempts change the same row."""

import logging
from collections import defaultdict
from datetime import datetime
from uuid import UUID

from plankeeper.database.client import Database
from plankeeper.database.errors import is_unavailable
from plankeeper.database.write_buffer import WriteBuffer
from plankeeper.webhooks import attempt_count_store
from plankeeper.webhooks.schemas import AttemptHour

log = logging.getLogger("plankeeper")


class AttemptCountBuffer(WriteBuffer):
    """The buffer of one webhook worker."""

    contents = "counts of webhook attempts"

    def __init__(self, db: Database) -> None:
        self._db = db
        self._counts: defaultdict[tuple[UUID, UUID, datetime], list[int]] = defaultdict(lambda: [0, 0])

    def add(self, plan_manager_id: UUID, endpoint_id: UUID, at: datetime, *, succeeded: bool) -> None:
        hour = at.replace(minute=0, second=0, microsecond=0)
        self._counts[plan_manager_id, endpoint_id, hour][0 if succeeded else 1] += 1

    async def flush(self) -> None:
        counts = sorted(self._counts.items())
        self._counts.clear()
        if not counts:
            return
        try:
            async with self._db.transaction() as tx:
                await attempt_count_store.add(tx, [AttemptHour(*key, *values) for key, values in counts])
        except Exception as error:
            if not is_unavailable(error):
                log.exception("cannot save the counts of webhook attempts")
                return
            for key, (succeeded, failed) in counts:
                self._counts[key][0] += succeeded
                self._counts[key][1] += failed
