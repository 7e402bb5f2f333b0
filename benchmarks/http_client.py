"""Sends a fixed number of requests over a fixed number of connections."""

import asyncio
from collections.abc import Iterable, Iterator

from benchmarks.scenarios import WrongResponseError


async def send_requests(port: int, requests: Iterable[bytes], connections: int) -> None:
    """Send each request as soon as a connection is free. Raises WrongResponseError for a status other than 2xx."""
    remaining = iter(requests)
    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(_send_over_connection(port, remaining))


async def _send_over_connection(port: int, requests: Iterator[bytes]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for request in requests:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            body = await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
            if head.split()[1][0] != "2":
                raise WrongResponseError(f"{head.splitlines()[0]}: {body.decode()}")
    finally:
        writer.transport.abort()
