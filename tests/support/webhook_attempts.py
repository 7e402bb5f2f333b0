"""Single attempts of webhook deliveries, and receivers that know no HTTP."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from plankeeper.webhooks.client import AttemptResult, WebhookClient

BODY = b'{"type":"participant.created"}'
CRLF = b"\r\n"
OK = b"HTTP/1.1 200 OK\r\n"


async def attempt(webhook_client: WebhookClient, url: str) -> AttemptResult:
    """One attempt, after which nothing is left open."""
    result = await webhook_client.post(url, [("webhook-id", "1")], BODY)
    assert webhook_client._pool.connections == []  # noqa: SLF001
    return result


@asynccontextmanager
async def raw_server(behave: Callable[[asyncio.StreamReader, Any], Awaitable[None]]) -> AsyncIterator[str]:
    """A server that knows no HTTP. It waits at its end until the other side has closed each connection, by itself and
    not by way of the garbage collector.
    """
    serving: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        with suppress(ConnectionError, EOFError):
            await behave(reader, writer)
            await reader.read()
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    gc.disable()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hooks"
        await asyncio.wait_for(asyncio.gather(*(each for each in serving if each)), 10)
    finally:
        gc.enable()
        server.close()
        await server.wait_closed()
