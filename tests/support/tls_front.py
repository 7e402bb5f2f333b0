"""A proxy that terminates TLS in front of a server, for a browser that must see an https address."""

import asyncio
import ssl
import threading
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

import trustme
import uvloop

HOST = "plans.example.com"
PUBLIC_URL = f"https://{HOST}"


class TlsFront:
    """`with TlsFront() as front`: start Chromium with `front.flags`, and `ignore_https_errors` for its contexts.

    `front.lead_to(url)` says which server stands behind it from now on.
    """

    def __init__(self) -> None:
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert(HOST).configure_cert(self._tls)
        self._loop = uvloop.new_event_loop()
        self._ready = threading.Event()
        self.port = 0

    @property
    def flags(self) -> list[str]:
        return [f"--host-resolver-rules=MAP {HOST}:443 127.0.0.1:{self.port}"]

    def lead_to(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = parts.hostname, parts.port

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._thread.start()
        assert self._ready.wait(60), "the proxy did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)

    def _main(self) -> None:
        server = self._loop.run_until_complete(asyncio.start_server(self._connect, "127.0.0.1", 0, ssl=self._tls))
        self.port = server.sockets[0].getsockname()[1]
        self._loop.call_soon(self._ready.set)
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            server_reader, server_writer = await asyncio.open_connection(*self._target)
            await asyncio.gather(_copy(reader, server_writer), _copy(server_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
