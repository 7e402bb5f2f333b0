"""Gathers what a worker answers, and writes it down once a second: a request itself appends to a list, no more."""

import asyncio
import logging
from collections import deque
from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.database.client import Database, unavailable
from plankeeper.http.instrumentation import Answered
from plankeeper.http.schemas import json_text
from plankeeper.request_log import store
from plankeeper.request_log.schemas import KEPT, Batch, Request

log = logging.getLogger("plankeeper")

PERIOD = 1.0  # seconds
MOST = 3 * KEPT  # requests that wait to be written: what is older is dropped, so that a lost database costs no memory
LONGEST_PATH = 500  # characters
LAST_WAIT = 2.0  # seconds for which a worker that stops waits for the database


class Gathering:
    """One worker's. `answered` takes what is told of each request, and drops the oldest where too many wait."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._waiting: deque[Answered] = deque(maxlen=MOST)
        self.answered = self._waiting.append

    async def watch(self) -> None:
        """Until cancelled: write down what was gathered."""
        while True:
            await asyncio.sleep(PERIOD)
            await self.flush()

    async def close(self) -> None:
        """Write down what is left, if the database takes it soon."""
        try:
            await asyncio.wait_for(self.flush(), LAST_WAIT)
        except TimeoutError:
            log.warning("the last requests are not in the request log: the database does not answer")

    async def flush(self) -> None:
        """Write down what waits; what cannot be written for now waits on."""
        taken = [*self._waiting]
        self._waiting.clear()
        if not taken:
            return
        try:
            async with self._db.transaction() as tx:
                await store.insert(tx, batches_of(taken))
        except asyncio.CancelledError:
            self._put_back(taken)
            raise
        except Exception as error:
            if unavailable(error):
                self._put_back(taken)
            else:
                log.exception("requests cannot be written to the request log")

    def _put_back(self, taken: list[Answered]) -> None:
        newer = [*self._waiting]
        self._waiting.clear()
        self._waiting.extend([*taken, *newer])  # in their order, so that what is dropped is the oldest


def batches_of(answered: list[Answered]) -> list[Batch]:
    """A row for each plan manager, with the newest of its requests."""
    by_owner: dict[UUID, deque[Answered]] = {}
    for each in answered:
        by_owner.setdefault(each[0], deque(maxlen=KEPT)).append(each)
    now = datetime.now(UTC)
    return [
        Batch(owner, uuid7(), now, len(found), json_text([_request(each) for each in found]))
        for owner, found in by_owner.items()
    ]


def _request(answered: Answered) -> Request:
    _, at, key_id, method, route, path, status, seconds, request_id = answered
    return Request(
        int(at * 1000) / 1000, key_id or "", method, route, path.decode("latin-1")[:LONGEST_PATH], status,
        int(seconds * 100_000) / 100, request_id.decode("latin-1"),
    )  # fmt: skip
