"""Clients that read single records and often disconnect: each response has the record that was asked for."""

import asyncio
import json
import random
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from support.cluster import SharedCluster
from support.program import ServeProcess
from system.faults.conftest import is_full_run
from system.load.client import create_plan_manager_and_key, get_request, write_request

REQUESTS = 1_000_000 if is_full_run() else 30_000
CONNECTIONS = 48
RECORDS = 200  # of each plan manager
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Tenant(NamedTuple):
    """A plan manager with a key and the bodies of its participants by id."""

    id: UUID
    key: str
    bodies: dict[str, bytes]


class Counts:
    """The number of reads and disconnections of the clients."""

    def __init__(self) -> None:
        self.started = self.answered = self.disconnected = 0


async def read_response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.partition("content-length:")[2].partition("\r\n")[0])
    return int(head.split()[1]), await reader.readexactly(length)


async def request(streams: Streams, content: bytes) -> tuple[int, bytes]:
    streams[1].write(content)
    return await read_response(streams[0])


async def create_tenant(dsn: str, url: str) -> Tenant:
    """A plan manager with records, each read alone."""
    id_, key = await create_plan_manager_and_key(dsn, 1_000_000_000)
    streams = await connect(url)
    bodies: dict[str, bytes] = {}
    for number in range(RECORDS):
        body = json.dumps({"first_name": f"Robin {number}", "last_name": str(id_)}).encode()
        status, created = await request(streams, write_request("POST", "/participants", key, id_, body))
        assert status in (200, 201), created
        record = json.loads(created)["id"]
        status, bodies[record] = await request(streams, get_request(f"/participants/{record}", key, id_))
        assert status == 200
    streams[1].close()
    return Tenant(id_, key, bodies)


async def connect(url: str) -> Streams:
    parts = urlsplit(url)
    return await asyncio.open_connection(parts.hostname, parts.port)


async def read_records(url: str, tenants: list[Tenant], counts: Counts, seed: int) -> None:
    """One client: after every thirtieth request or so it disconnects without waiting for the response."""
    dice = random.Random(seed)
    choices = [(each, record) for each in tenants for record in each.bodies]
    streams = await connect(url)
    while counts.started < REQUESTS:
        counts.started += 1
        tenant, record = dice.choice(choices)
        content = get_request(f"/participants/{record}", tenant.key, tenant.id)
        if dice.random() < 1 / 30:
            streams[1].write(content)
            await asyncio.sleep(dice.random() / 500)  # before, while or after it is answered
            streams[1].transport.abort()
            counts.disconnected += 1
            streams = await connect(url)
            continue
        assert await request(streams, content) == (200, tenant.bodies[record])
        counts.answered += 1
    streams[1].transport.abort()


def test_each_response_has_the_record_that_was_asked_for(
    cluster: SharedCluster, serve: Callable[..., ServeProcess]
) -> None:
    dsn = cluster.new_database()
    server = serve(workers=1, PLANKEEPER_DATABASE_URL=dsn, PLANKEEPER_RATE_LIMIT="1000000000/minute")
    counts = Counts()

    async def run() -> None:
        tenants = [await create_tenant(dsn, server.url) for _ in range(2)]
        await asyncio.gather(*(read_records(server.url, tenants, counts, seed) for seed in range(CONNECTIONS)))

    asyncio.run(run())
    assert counts.answered + counts.disconnected == counts.started >= REQUESTS
    assert counts.disconnected > REQUESTS / 100
    assert server.stop() == 0
    print(f"{counts.answered:,} responses, {counts.disconnected:,} requests without waiting for one")  # noqa: T201 - for -rP
