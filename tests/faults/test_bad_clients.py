"""Clients that behave badly, many at a time: the others are served meanwhile, and nothing of the bad ones stays."""

import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from faults.access import Access, new_access
from plankeeper.embedded_postgres.cluster import Cluster
from support.client import NO_TLS, PREFIX
from support.folder import open_folder
from support.program import Serving
from support.server import wait_until

STORM = 500
SLOW = 60
CLIENT_TIMEOUT = 3
# A healthy request waits at most as long as a storm of connections takes to be accepted; without bounds it would hang.
PATIENCE = 15
_TCP_REPAIR = 19  # of Linux: a socket that is closed in this mode tells the other side nothing


class Healthy:
    """Clients that go on reading and writing; every answer must be a success, or an early refusal."""

    def __init__(self, url: str, access: Access) -> None:
        self._url, self._access = url, access
        self._stop = threading.Event()
        self.seconds: list[float] = []
        self.faults: list[str] = []
        self.refused = 0
        self._threads = [threading.Thread(target=self._work) for _ in range(2)]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        base = self._url + PREFIX
        with httpx.Client(base_url=base, headers=self._access.headers, timeout=PATIENCE, verify=NO_TLS) as http:
            while not self._stop.is_set():
                began = time.monotonic()
                try:
                    answers = [http.post("/participants", json={"first_name": "Well"}), http.get("/participants")]
                except httpx.TransportError as error:
                    self.faults.append(repr(error))
                    continue
                self.refused += sum(answer.status_code == 503 for answer in answers)
                self.faults += [answer.text for answer in answers if answer.status_code not in (200, 503)]
                self.seconds.append(time.monotonic() - began)
                time.sleep(0.01)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE * 2)

    def finish(self, figures: str) -> None:
        """They were served from beginning to end."""
        before = len(self.seconds)
        wait_until(lambda: len(self.seconds) > before + 10 or self.faults, PATIENCE)
        self.stop()
        longest = max(self.seconds)
        told = f"{len(self.seconds)} healthy pairs of requests, the longest {longest:.2f} s, {self.refused} refused"
        sys.stdout.write(f"{figures}: {told}\n")
        assert self.faults == []


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with open_folder() as folder:
        serving = Serving(folder, workers=2, PLANKEEPER_CLIENT_TIMEOUT=str(CLIENT_TIMEOUT))
        yield serving
        assert serving.stop() == 0


@pytest.fixture(scope="module")
def access(server: Serving) -> Access:
    shared = Cluster(Path(server.postmaster().cwd()).parent)
    assert not shared.ensure()
    return new_access(shared.dsn)


@pytest.fixture
def healthy(server: Serving, access: Access) -> Iterator[Healthy]:
    running = Healthy(server.url, access)
    wait_until(lambda: len(running.seconds) > 10, PATIENCE)
    yield running
    running.stop()


def address(server: Serving) -> tuple[str, int]:
    return ("127.0.0.1", int(server.url.rpartition(":")[2]))


def connections(server: Serving) -> int:
    """Those that the workers hold with clients."""
    port = address(server)[1]
    found = [each for worker in server.workers() for each in worker.net_connections("tcp")]
    return sum(each.laddr.port == port and bool(each.raddr) for each in found)


def head(access: Access, method: str, *more: str) -> bytes:
    lines = [f"{method} {PREFIX}/participants HTTP/1.1", "Host: faults", "Content-Type: application/json", *more]
    lines += [f"{name}: {value}" for name, value in access.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def test_a_storm_of_connections_is_served_beside_the_others(server: Serving, access: Access, healthy: Healthy) -> None:
    request = head(access, "GET", "Connection: close")
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(STORM)]
        for each in sockets:
            each.settimeout(PATIENCE * 2)
            each.connect(address(server))
        for each in sockets:
            each.sendall(request)
        answers = [each.recv(12) for each in sockets]
    healthy.finish(f"{STORM} connections at once")
    # Who is one too many is told so at once.
    assert set(answers) <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}
    assert answers.count(b"HTTP/1.1 200") >= STORM / 2
    wait_until(lambda: connections(server) == 0, PATIENCE)


def test_clients_of_one_byte_a_second_are_cut_off(server: Serving, access: Access, healthy: Healthy) -> None:
    body = b'{"first_name": "Slow"}'
    slow_head, slow_body = head(access, "GET"), head(access, "POST", f"Content-Length: {len(body)}") + body
    began = time.monotonic()
    with ExitStack() as stack:
        left: dict[socket.socket, list[bytes]] = {}
        for number in range(SLOW):
            each = stack.enter_context(socket.create_connection(address(server)))
            # Half send their headers slowly, half the body.
            start = 0 if number % 2 else len(slow_body) - len(body)
            text = slow_head if number % 2 else slow_body
            each.sendall(text[:start])
            left[each] = [text[at : at + 1] for at in range(start, len(text))]
        while left:
            assert time.monotonic() - began < PATIENCE + CLIENT_TIMEOUT
            for each in [each for each in left if _cut_off(each, left[each])]:
                del left[each]
            time.sleep(1)
    healthy.finish(f"{SLOW} clients of 1 byte a second, cut off within {time.monotonic() - began:.0f} s")
    assert healthy.refused == 0


def _cut_off(client: socket.socket, left: list[bytes]) -> bool:
    """Send a byte more, and see whether the server has closed."""
    client.setblocking(False)
    try:
        client.send(left.pop(0))
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def silent(client: socket.socket, _access: Access) -> None:
    """Says nothing at all."""


def vanishing(client: socket.socket, access: Access) -> None:
    """Its machine is gone in the middle of a body: no farewell was sent, and the connection is open on one side."""
    client.sendall(head(access, "POST", "Content-Length: 100") + b"{")
    try:
        client.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)
    except PermissionError:
        return  # then it just says no more
    client.close()


def resetting(client: socket.socket, access: Access) -> None:
    """Asks, and breaks off before the answer."""
    client.sendall(head(access, "GET"))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def deaf(client: socket.socket, access: Access) -> None:
    """Asks again and again, and takes in no answer."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    with suppress(BlockingIOError, ConnectionError):
        for _ in range(200):
            client.send(head(access, "GET").replace(b"participants ", b"participants?limit=1000 "))


def test_connections_that_lead_nowhere_are_given_up(server: Serving, access: Access, healthy: Healthy) -> None:
    own = connections(server)
    with ExitStack() as stack:
        for behave in (silent, vanishing, resetting, deaf):
            for _ in range(SLOW // 3):
                behave(stack.enter_context(socket.create_connection(address(server))), access)
        wait_until(lambda: connections(server) > own + SLOW / 3, PATIENCE)
        began = time.monotonic()
        wait_until(lambda: connections(server) <= own, PATIENCE + CLIENT_TIMEOUT)
        gone = time.monotonic() - began
    healthy.finish(f"{SLOW // 3 * 4} silent, vanishing, resetting and deaf clients, gone after {gone:.1f} s")
    assert healthy.refused == 0
