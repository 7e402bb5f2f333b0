"""Receivers of webhooks that keep count, the program that sends them, and writers in a process of their own."""

import asyncio
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from support.program import environment, shared_key_file
from system.load.client import Connection, closing

_HEAD = re.compile(rb"POST /(\S*) HTTP/1\.1\r\n(.*?)\r\n\r\n", re.DOTALL)
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_ID = re.compile(rb"webhook-id: *([0-9a-f-]+)", re.IGNORECASE)


class Arrival(NamedTuple):
    """A request that was here: of which event, when by the wall clock, and the answer's status."""

    event_id: str
    at: float
    status: int


class Receivers:
    """Endpoints behind one port, each a path: and the requests that each received.

    A path's first letters say how it answers: `slow` after 10 s, `third` every third time with 500, all others at
    once with 204.
    """

    def __init__(self) -> None:
        self.arrivals: dict[str, list[Arrival]] = {}
        self.url = ""

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["Receivers"]:
        loop = asyncio.get_running_loop()
        calls: set[asyncio.Transport] = set()
        listening = await loop.create_server(lambda: _RequestProtocol(self, calls), "127.0.0.1", 0, backlog=1000)
        self.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            listening.close()
            for each in list(calls):
                each.abort()
            await listening.wait_closed()

    def record(self, name: str, event_id: str) -> tuple[int, float]:
        """A request is here: the status of its answer, and after how many seconds to send it."""
        arrivals = self.arrivals.setdefault(name, [])
        fails = name.startswith("third") and len(arrivals) % 3 == 2
        arrivals.append(Arrival(event_id, time.time(), 500 if fails else 204))
        return arrivals[-1].status, 10.0 if name.startswith("slow") else 0.0

    def delivered(self, name: str) -> Counter[str]:
        """How often each event was taken in."""
        return Counter(each.event_id for each in self.arrivals.get(name, []) if each.status == 204)

    def total(self) -> int:
        return sum(len(each) for each in self.arrivals.values())


class _RequestProtocol(asyncio.Protocol):
    """One connection, one request."""

    def __init__(self, receivers: Receivers, calls: set[asyncio.Transport]) -> None:
        self._receivers = receivers
        self._calls = calls
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._calls.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._calls.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        head = _HEAD.match(self._data)
        if not head or len(self._data) - head.end() < int(_search(_LENGTH, head[2])):
            return
        status, wait = self._receivers.record(head[1].decode(), _search(_ID, head[2]).decode())
        answer = f"HTTP/1.1 {status} Told\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        if wait:
            asyncio.get_running_loop().call_later(wait, self._transport.write, answer)
        else:
            self._transport.write(answer)


def _search(pattern: re.Pattern[bytes], head: bytes) -> bytes:
    match = pattern.search(head)
    assert match, head
    return match[1]


class WebhookWorker:
    """`plankeeper webhook-worker`, which can be killed and started again."""

    def __init__(self, log: Path, **settings: str) -> None:
        self._log = log
        self._settings = {"PLANKEEPER_SECRET_KEY_FILE": str(shared_key_file())} | settings  # as the servers of tests
        self._start()

    def _start(self) -> None:
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "plankeeper", "webhook-worker"]
            self.process = subprocess.Popen(command, env=environment(self._settings), stdout=log, stderr=log)

    def kill(self) -> None:
        """Kill -9, and another at once."""
        self.process.kill()
        self.process.wait()
        self._start()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(30) == 0
        output = self._log.read_text()
        assert "Traceback" not in output, output

    def end(self) -> None:
        """End the process, in whatever state the test left it."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def create_for(url: str, request: bytes, connections: int, seconds: float) -> float:
    """How often a second a request that creates something was answered: the whole of a process of its own."""
    return asyncio.run(_create_for(url, request, connections, seconds))


async def _create_for(url: str, request: bytes, connections: int, seconds: float) -> float:
    made = [await Connection.open(url) for _ in range(connections)]
    began = time.monotonic()

    async def send_until_end(connection: Connection) -> int:
        count = 0
        while time.monotonic() < began + seconds:
            answer = await connection.send(request)
            assert answer.status == 200, answer
            count += 1
        return count

    async with closing(made):
        counts = await asyncio.wait_for(asyncio.gather(*(send_until_end(each) for each in made)), seconds + 60)
        return sum(counts) / (time.monotonic() - began)


async def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    """Repeat until the result is true; fails after so many seconds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.05)
