"""Many misbehaving clients: others are served meanwhile, and no connection or memory remains afterwards."""

import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from plankeeper.server.embedded_postgres.cluster import Cluster
from support.client import NO_TLS, PREFIX
from support.folder import temporary_folder
from support.program import ServeProcess
from support.server import wait_until
from system.faults.access import Credentials, create_credentials

CONNECTION_COUNT = 500
SLOW_CLIENTS = 60
CLIENT_TIMEOUT = 6
# A healthy request waits at most as long as a storm of connections takes to be accepted; without bounds it would hang.
WAIT_TIMEOUT = 20
_TCP_REPAIR = 19  # of Linux: a socket that is closed in this mode tells the other side nothing


class HealthyClients:
    """Clients that continue to read and write; every response must be a success or an early 503."""

    def __init__(self, url: str, access: Credentials) -> None:
        self._url, self._access = url, access
        self._stop = threading.Event()
        self.seconds: list[float] = []
        self.errors: list[str] = []
        self.rejected = 0
        self._threads = [threading.Thread(target=self._work) for _ in range(2)]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        base = self._url + PREFIX
        with httpx.Client(base_url=base, headers=self._access.headers, timeout=WAIT_TIMEOUT, verify=NO_TLS) as http:
            while not self._stop.is_set():
                began = time.monotonic()
                try:
                    answers = [http.post("/participants", json={"first_name": "Well"}), http.get("/participants")]
                except httpx.TransportError as error:
                    self.errors.append(repr(error))
                    continue
                self.rejected += sum(answer.status_code == 503 for answer in answers)
                self.errors += [answer.text for answer in answers if answer.status_code not in (200, 503)]
                self.seconds.append(time.monotonic() - began)
                time.sleep(0.01)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(WAIT_TIMEOUT * 2)

    def finish(self, label: str) -> None:
        """They were served from beginning to end."""
        before = len(self.seconds)
        wait_until(lambda: len(self.seconds) > before + 10 or self.errors, WAIT_TIMEOUT)
        self.stop()
        longest = max(self.seconds)
        reported = (
            f"{len(self.seconds)} healthy pairs of requests, the longest {longest:.2f} s, {self.rejected} refused"
        )
        sys.stdout.write(f"{label}: {reported}\n")
        assert self.errors == []


@pytest.fixture(scope="module")
def server(copy_migrated_data: Callable[[Path], None]) -> Iterator[ServeProcess]:
    with temporary_folder() as folder:
        copy_migrated_data(folder)
        serving = ServeProcess(folder, workers=2, PLANKEEPER_CLIENT_IO_TIMEOUT=str(CLIENT_TIMEOUT))
        yield serving
        assert serving.stop() == 0


@pytest.fixture(scope="module")
def access(server: ServeProcess) -> Credentials:
    shared = Cluster(Path(server.postmaster().cwd()).parent)
    assert not shared.ensure()
    return create_credentials(shared.dsn)


@pytest.fixture
def healthy_clients(server: ServeProcess, access: Credentials) -> Iterator[HealthyClients]:
    running = HealthyClients(server.url, access)
    wait_until(lambda: len(running.seconds) > 10, WAIT_TIMEOUT)
    yield running
    running.stop()


def address(server: ServeProcess) -> tuple[str, int]:
    return ("127.0.0.1", int(server.url.rpartition(":")[2]))


def connections(server: ServeProcess) -> int:
    """Those that the workers hold with clients."""
    port = address(server)[1]
    found = [each for worker in server.workers() for each in worker.net_connections("tcp")]
    return sum(each.laddr.port == port and bool(each.raddr) for each in found)


def request_head(access: Credentials, method: str, *more: str) -> bytes:
    lines = [f"{method} {PREFIX}/participants HTTP/1.1", "Host: faults", "Content-Type: application/json", *more]
    lines += [f"{name}: {value}" for name, value in access.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def test_a_burst_of_connections_does_not_affect_other_clients(
    server: ServeProcess, access: Credentials, healthy_clients: HealthyClients
) -> None:
    request = request_head(access, "GET", "Connection: close")
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(CONNECTION_COUNT)]
        for each in sockets:
            each.settimeout(WAIT_TIMEOUT * 2)
            each.connect(address(server))
        for each in sockets:
            each.sendall(request)
        answers = [each.recv(12) for each in sockets]
    healthy_clients.finish(f"{CONNECTION_COUNT} connections at once")
    # A connection beyond the limit is rejected at once.
    assert set(answers) <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}
    assert answers.count(b"HTTP/1.1 200") >= CONNECTION_COUNT / 2
    wait_until(lambda: connections(server) == 0, WAIT_TIMEOUT)


def test_clients_sending_one_byte_a_second_are_disconnected(
    server: ServeProcess, access: Credentials, healthy_clients: HealthyClients
) -> None:
    body = b'{"first_name": "Slow"}'
    slow_head, slow_body = (
        request_head(access, "GET"),
        request_head(access, "POST", f"Content-Length: {len(body)}") + body,
    )
    began = time.monotonic()
    with ExitStack() as stack:
        left: dict[socket.socket, list[bytes]] = {}
        for number in range(SLOW_CLIENTS):
            each = stack.enter_context(socket.create_connection(address(server)))
            # Half send their headers slowly, half the body.
            start = 0 if number % 2 else len(slow_body) - len(body)
            text = slow_head if number % 2 else slow_body
            each.sendall(text[:start])
            left[each] = [text[at : at + 1] for at in range(start, len(text))]
        while left:
            assert time.monotonic() - began < WAIT_TIMEOUT + CLIENT_TIMEOUT
            for each in [each for each in left if _is_disconnected(each, left[each])]:
                del left[each]
            time.sleep(1)
    healthy_clients.finish(
        f"{SLOW_CLIENTS} clients of 1 byte a second, cut off within {time.monotonic() - began:.0f} s"
    )
    assert healthy_clients.rejected == 0


def _is_disconnected(client: socket.socket, left: list[bytes]) -> bool:
    """Send a byte more, and see whether the server has closed."""
    client.setblocking(False)
    try:
        client.send(left.pop(0))
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def send_nothing(client: socket.socket, _access: Credentials) -> None:
    """Send nothing."""


def disappear(client: socket.socket, access: Credentials) -> None:
    """Its machine is gone in the middle of a body: no farewell was sent, and the connection is open on one side."""
    client.sendall(request_head(access, "POST", "Content-Length: 100") + b"{")
    try:
        client.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)
    except PermissionError:
        return  # then it just says no more
    client.close()


def reset(client: socket.socket, access: Credentials) -> None:
    """Send a request, and disconnect before the response."""
    client.sendall(request_head(access, "GET"))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def never_read(client: socket.socket, access: Credentials) -> None:
    """Send requests again and again, and read no response."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    with suppress(BlockingIOError, ConnectionError):
        for _ in range(200):
            client.send(request_head(access, "GET").replace(b"participants ", b"participants?limit=1000 "))


def test_dead_connections_are_closed(
    server: ServeProcess, access: Credentials, healthy_clients: HealthyClients
) -> None:
    own = connections(server)
    with ExitStack() as stack:
        for behave in (send_nothing, disappear, reset, never_read):
            for _ in range(SLOW_CLIENTS // 3):
                behave(stack.enter_context(socket.create_connection(address(server))), access)
        wait_until(lambda: connections(server) > own + SLOW_CLIENTS / 3, WAIT_TIMEOUT)
        began = time.monotonic()
        wait_until(lambda: connections(server) <= own, WAIT_TIMEOUT + CLIENT_TIMEOUT)
        gone = time.monotonic() - began
    healthy_clients.finish(
        f"{SLOW_CLIENTS // 3 * 4} silent, vanishing, resetting and deaf clients, gone after {gone:.1f} s"
    )
    assert healthy_clients.rejected == 0
