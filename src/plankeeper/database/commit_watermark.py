"""The commit watermark: a datetime before which no transaction that may still commit has written anything.

A row's `updated_at` is the time of its statement, and other clients see the row after the commit. The watermark tells
a client up to when it has seen everything. It is derived from PostgreSQL's transaction ids, which every role may read,
and which cover prepared transactions and those of other roles: an id that was not yet assigned at a known time belongs
to a transaction that wrote nothing before that time.

An import of ten minutes makes rows visible whose `updated_at` is ten minutes old. A client that continues from the
newest row it has seen would miss all of them. The watermark costs two short statements a second for each worker.
"""

import asyncio
import logging
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from plankeeper.database import citus, server
from plankeeper.database.client import Database, Executor
from plankeeper.database.errors import is_unavailable
from plankeeper.database.server import TransactionIds

log = logging.getLogger("plankeeper")

SAMPLE_INTERVAL = 0.5  # seconds
# Clocks of servers that take over from each other may differ, a statement begins before its transaction has an id, and
# the application may have set the time of a row up to 15 seconds before that: see `versions`.
MARGIN = timedelta(seconds=30)
MAX_MARKS = 4000  # of one node, while a transaction stays open: a mark for each half second, then fewer


class _Mark(NamedTuple):
    """At `time`, `next_id` had not been assigned yet."""

    next_id: int
    time: datetime


class NodeHistory:
    """The marks of one node since before its oldest open transaction."""

    def __init__(self) -> None:
        self._marks: deque[_Mark] = deque()

    def add(self, ids: TransactionIds) -> datetime | None:
        """The node's watermark, or None if a transaction is open that is older than the first mark."""
        marks, mark = self._marks, _Mark(ids.next_id, ids.sampled_at)
        while marks and marks[-1].next_id >= mark.next_id:  # nothing was written, or another server has taken over
            marks.pop()
        marks.append(mark)
        while len(marks) > 1 and marks[1].next_id <= ids.oldest_open:
            marks.popleft()
        if len(marks) > MAX_MARKS:  # every second one
            self._marks = deque([*list(marks)[:-1:2], mark])
        return marks[0].time if marks[0].next_id <= ids.oldest_open else None


async def sample(db: Executor) -> list[TransactionIds]:
    """The transaction ids of each node. Empty if one of them doesn't respond."""
    return await citus.list_transaction_ids(db) if db.is_citus else [await server.get_transaction_ids(db)]


class CommitWatermark:
    """The watermark of one worker, at most half a second old while the database responds."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._histories: dict[int, NodeHistory] = {}
        self.value: datetime | None = None  # None: unknown

    async def watch(self) -> None:
        """Sample periodically, until cancelled."""
        while True:
            try:
                self.add(await sample(self._db))
            except Exception as error:
                if not is_unavailable(error):
                    log.exception("cannot read the transaction ids")
            await asyncio.sleep(SAMPLE_INTERVAL)

    def add(self, samples: list[TransactionIds]) -> None:
        """Update the value by a sample of all nodes. An older value stays correct, so it remains without a sample."""
        if not samples:
            return
        self._histories = {each.node: self._histories.get(each.node) or NodeHistory() for each in samples}
        times = [self._histories[each.node].add(each) for each in samples]
        known = [each for each in times if each]
        if len(known) == len(times):
            self.value = min(known).astimezone(UTC) - MARGIN
