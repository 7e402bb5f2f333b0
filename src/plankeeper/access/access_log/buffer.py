"""Buffers a worker's access records and writes them once a second: a request only appends to a list."""

import hashlib
import logging
import time
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import NamedTuple
from urllib.parse import unquote_plus
from uuid import UUID

import uuid_utils

from plankeeper.access.access_log import store
from plankeeper.access.access_log.schemas import AccessRecordRow
from plankeeper.core.context import Access, AccessedKind
from plankeeper.core.json import to_json
from plankeeper.database.client import Database
from plankeeper.database.errors import is_unavailable
from plankeeper.database.write_buffer import WriteBuffer

log = logging.getLogger("plankeeper")

MAX_PENDING = 100_000  # the oldest are dropped beyond it, with a log line: memory is bounded while the database is down
MAX_REMEMBERED = 100_000  # single reads of keys within an hour, which are recorded once
MAX_QUERY_LENGTH = 500  # characters
BATCH_SIZE = 1000  # records of one statement: composing it delays other requests by about 5 ms
MAX_BATCH_IDS = 5000  # of the records that they list
HOUR = 3600


class _Pending(NamedTuple):
    """A read whose record is not written yet."""

    access: Access
    accessed_at: float  # seconds since 1970
    id: uuid_utils.UUID | None  # None: a single read of a key, whose id is the same in every worker


class AccessRecordBuffer(WriteBuffer):
    """The buffer of one worker. A record of a key's single read is kept once an hour.

    `append` is called while a client waits, so everything that can wait for `flush` does.
    """

    contents = "access records"

    def __init__(self, db: Database) -> None:
        self._db = db
        self._pending: deque[_Pending] = deque()
        self._remembered: set[tuple[str | None, AccessedKind, UUID | None]] = set()
        self._hour = 0
        self._dropped = 0

    def append(self, access: Access) -> None:
        now = time.time()
        actor = access.actor
        if access.action != "viewed" or actor.kind != "api_key":
            self._add(_Pending(access, now, uuid_utils.uuid7()))
            return
        hour = int(now) // HOUR
        if hour != self._hour or len(self._remembered) >= MAX_REMEMBERED:
            self._hour, self._remembered = hour, set()
        read = (actor.id, access.kind, access.resource_id)
        if read not in self._remembered:
            self._remembered.add(read)
            self._add(_Pending(access, now, None))

    def _add(self, pending: _Pending) -> None:
        if len(self._pending) >= MAX_PENDING:
            self._pending.popleft()
            self._dropped += 1
        self._pending.append(pending)

    async def flush(self) -> None:
        """Write the buffered records. Those of plan managers whose database is unavailable stay in the buffer."""
        if self._dropped:
            log.error("access records are lost", extra={"count": self._dropped})
            self._dropped = 0
        by_plan_manager: dict[UUID, list[_Pending]] = {}
        for each in self._pending:
            by_plan_manager.setdefault(each.access.plan_manager_id, []).append(each)
        self._pending.clear()
        try:
            while by_plan_manager:
                plan_manager_id, pending = next(iter(by_plan_manager.items()))
                size = _batch_size(pending)
                if not await self._write(plan_manager_id, pending[:size]):
                    self._pending.extendleft(reversed(by_plan_manager.pop(plan_manager_id)))
                elif len(pending) > size:
                    del pending[:size]
                else:
                    del by_plan_manager[plan_manager_id]
        finally:  # after a cancellation, there are some left
            for pending in by_plan_manager.values():
                self._pending.extendleft(reversed(pending))

    async def _write(self, plan_manager_id: UUID, batch: list[_Pending]) -> bool:
        """False if the database is unavailable. Writing a record twice does no harm."""
        try:
            await store.insert(self._db, plan_manager_id, to_json([_row(each) for each in batch]))
        except Exception as error:
            if is_unavailable(error):
                return False
            log.exception("access records cannot be written")
        return True


def _batch_size(pending: Sequence[_Pending]) -> int:
    """The number of records that one statement writes: at least one."""
    ids = accumulate(len(each.access.resource_ids or ()) for each in pending[:BATCH_SIZE])
    return max(1, sum(1 for each in ids if each <= MAX_BATCH_IDS))


def _row(pending: _Pending) -> AccessRecordRow:
    # Decoded, so that an erasure finds names in it.
    access = pending.access
    return AccessRecordRow(
        id=str(pending.id) if pending.id else _hourly_id(pending),
        accessed_at=datetime.fromtimestamp(pending.accessed_at, UTC),
        actor_kind=access.actor.kind,
        actor_id=access.actor.id,
        actor_name=access.actor.name,
        action=access.action,
        resource_kind=access.kind,
        resource_id=access.resource_id,
        query=unquote_plus(access.query)[:MAX_QUERY_LENGTH] if access.query else None,
        resource_ids=access.resource_ids,
        first_id=access.first_id,
        last_id=access.last_id,
        request_id=access.request_id,
    )


def _hourly_id(pending: _Pending) -> str:
    """The same id for the same read in every worker, in the order of time: a version 7 UUID without random bits."""
    access = pending.access
    read = f"{access.actor.id} {access.kind} {access.resource_id}".encode()
    digest = hashlib.blake2b(read, digest_size=9).hexdigest()
    start = int(pending.accessed_at) // HOUR * HOUR
    moment = f"{start * 1000:012x}"
    return f"{moment[:8]}-{moment[8:]}-7{digest[:3]}-8{digest[3:6]}-{digest[6:]}"
