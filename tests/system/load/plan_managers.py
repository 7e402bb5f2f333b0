"""Many plan managers with participants, and clients that read and write for all of them at a pace."""

import asyncio
import io
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.imports.importer import import_file
from plankeeper.resources.registry import CONSTRAINT_ERRORS, RESOURCES
from system.load.client import (
    Connection,
    TimedResponse,
    closing,
    get_request,
    insert_plan_manager_and_key,
    write_request,
)  # fmt: skip

PARTICIPANTS = "/participants"
READ_SHARE, CREATE_SHARE = 0.7, 0.15  # the rest are updates
SAMPLE_SIZE = 20  # participants of a plan manager that are read and updated


@dataclass(frozen=True)
class LoadedPlanManager:
    id: UUID
    key: str
    participant_ids: list[str]

    def get(self, path: str) -> bytes:
        return get_request(path, self.key, self.id)

    def write(self, method: str, path: str, body: bytes) -> bytes:
        return write_request(method, path, self.key, self.id, body)


def participant_lines(count: int) -> tuple[bytes, list[str]]:
    """A file to import, and the ids in it."""
    ids = [str(uuid7()) for _ in range(count)]
    rows = (
        b'{"id": "%s", "first_name": "Robin %d", "last_name": "Hale"}\n' % (ident.encode(), number)
        for number, ident in enumerate(ids)
    )
    return b"".join(rows), ids


async def create_plan_managers(
    dsn: str, sizes: Sequence[int], rate_limits: Sequence[int | None]
) -> list[LoadedPlanManager]:
    """A plan manager with as many participants as each size says, and a key with the rate limit."""
    found: list[LoadedPlanManager] = []
    async with Database(dsn, pool_size=1).open() as db:
        for size, rate_limit in zip(sizes, rate_limits, strict=True):
            content, ids = participant_lines(size)
            async with db.transaction() as tx:
                plan_manager_id, key = await insert_plan_manager_and_key(tx, rate_limit)
                ctx = WriteContext(tx, plan_manager_id, Settings.read({}), SYSTEM)
                report = await import_file(
                    ctx, RESOURCES["participants"], io.BytesIO(content), CONSTRAINT_ERRORS, lambda _lines: None
                )
                assert not report.errors, report.errors
            found.append(LoadedPlanManager(plan_manager_id, key, ids[:SAMPLE_SIZE]))
    return found


@dataclass
class MixedTraffic:
    """Reads, creates and updates of random plan managers, over connections to all servers."""

    urls: Sequence[str]
    plan_managers: Sequence[LoadedPlanManager]
    rate: float  # requests a second
    connections: int = 16
    written: Counter[UUID] = field(default_factory=Counter[UUID])  # acknowledged, by plan manager
    _random: random.Random = field(default_factory=lambda: random.Random(20))
    _serial: int = 0

    async def run(self, seconds: float) -> list[TimedResponse]:
        until = time.time() + seconds
        async with AsyncExitStack() as stack:
            opened = [await Connection.open(self.urls[number % len(self.urls)]) for number in range(self.connections)]
            await stack.enter_async_context(closing(opened))
            found = await asyncio.gather(*(self._send_paced(each, until) for each in opened))
        return [answer for each in found for answer in each]

    async def _send_paced(self, connection: Connection, until: float) -> list[TimedResponse]:
        """Requests at a pace. The time of each counts from when it was due, with the wait for the one before."""
        every, responses = self.connections / self.rate, list[TimedResponse]()
        due = time.time() + self._random.uniform(0, every)
        while due < until:
            await asyncio.sleep(max(0.0, due - time.time()))
            plan_manager = self._random.choice(self.plan_managers)
            request = self._next_request(plan_manager)
            response = await connection.send(request)
            responses.append(response._replace(sent=due))
            if response.status == 200 and not request.startswith(b"GET"):
                self.written[plan_manager.id] += 1
            due += every
        return responses

    def _next_request(self, plan_manager: LoadedPlanManager) -> bytes:
        self._serial += 1
        share, ident = self._random.random(), self._random.choice(plan_manager.participant_ids)
        if share < READ_SHARE:
            paths = (f"{PARTICIPANTS}/{ident}", f"{PARTICIPANTS}?limit=20", f"{PARTICIPANTS}?limit=20&after=0")
            return plan_manager.get(self._random.choice(paths))
        body = b'{"first_name": "Kim %d"}' % self._serial
        if share < READ_SHARE + CREATE_SHARE:
            return plan_manager.write("POST", PARTICIPANTS, body)
        return plan_manager.write("PUT", f"{PARTICIPANTS}/{ident}", body)
