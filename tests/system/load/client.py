"""Load for running programs: requests over sockets of our own, at a pace, each with its response and its times."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple, Self
from urllib.parse import urlsplit
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import service
from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Transaction


class TimedResponse(NamedTuple):
    """A response: the wall-clock times of its request and of its arrival, its status and its headers."""

    sent: float
    received: float
    status: int
    headers: dict[str, str]

    @property
    def seconds(self) -> float:
        return self.received - self.sent


class Connection:
    """A keep-alive connection to a server; raises OSError or EOFError if the server closes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, url: str) -> Self:
        parts = urlsplit(url)
        return cls(*await asyncio.open_connection(parts.hostname, parts.port))

    @property
    def port(self) -> int:
        """Our end's."""
        return self._writer.get_extra_info("sockname")[1]

    async def send(self, request: bytes) -> TimedResponse:
        sent = time.time()
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status, *lines = head.rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        await self._reader.readexactly(int(headers.get("content-length", "0")))
        return TimedResponse(sent, time.time(), int(status.split()[1]), headers)

    def close(self) -> None:
        self._writer.transport.abort()


def get_request(path: str, key: str, plan_manager_id: UUID | str) -> bytes:
    return _head("GET", path, key, plan_manager_id)


def write_request(method: str, path: str, key: str, plan_manager_id: UUID | str, body: bytes) -> bytes:
    return (
        _head(method, path, key, plan_manager_id, "Content-Type: application/json", f"Content-Length: {len(body)}")
        + body
    )


def _head(method: str, path: str, key: str, plan_manager_id: UUID | str, *headers: str) -> bytes:
    lines = (
        f"{method} /api/public/v1{path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {key}",
        f"X-Plan-Manager-Id: {plan_manager_id}", *headers, "", "",
    )  # fmt: skip
    return "\r\n".join(lines).encode()


@asynccontextmanager
async def closing(connections: list[Connection]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        for each in connections:
            each.close()
        await asyncio.sleep(0)  # the transports are gone a turn later


async def create_plan_manager_and_key(dsn: str, rate_limit: int | None = None) -> tuple[UUID, str]:
    """A plan manager of its own, and a key for it."""
    async with Database(dsn, pool_size=1).open() as db, db.transaction() as tx:
        return await insert_plan_manager_and_key(tx, rate_limit)


async def insert_plan_manager_and_key(tx: Transaction, rate_limit: int | None = None) -> tuple[UUID, str]:
    plan_manager = await plan_managers.insert(tx, uuid7(), "Soaked")
    assert plan_manager is not None
    ctx = WriteContext(tx, plan_manager.id, Settings.read({}), SYSTEM)
    return plan_manager.id, await service.create(ctx, "soak", [plan_manager.id], ("read", "write"), None, rate_limit)


def percentile(values: list[float], fraction: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * fraction))] if values else 0.0
