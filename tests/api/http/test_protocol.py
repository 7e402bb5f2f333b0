"""Connections that cost too much are closed, and no others; the headers of every response for browsers."""

import http.client
import socket
import struct
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest

from support.client import NO_TLS, PREFIX, Client
from support.cluster import SharedCluster
from support.factories import create_client
from support.importing import import_records
from support.server import RunningServer, wait_until

CLIENT_TIMEOUT = 2  # what a client may take, in these tests
MAX_CONNECTIONS = 40
TEST_TIMEOUT = 20  # nothing here may hang
GET = f"GET {PREFIX}/participants HTTP/1.1\r\nHost: x\r\n".encode()


@pytest.fixture(scope="module")
def strict_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    """A server with short timeouts."""
    limits = {"client_io_timeout": CLIENT_TIMEOUT, "max_connections": MAX_CONNECTIONS}
    running = RunningServer(cluster.dsn, **limits, statement_timeout=61).start()  # without a limit for locks
    yield running
    running.stop()


@pytest.fixture
def api(
    strict_server: RunningServer, new_plan_manager: Callable[[], UUID], new_key: Callable[..., str]
) -> Iterator[Client]:
    owner = new_plan_manager()
    client = Client(strict_server.url, new_key(owner), owner)
    yield client
    client.http.close()


@contextmanager
def connected(server: RunningServer, receive_buffer: int | None = None) -> Generator[socket.socket]:
    with socket.socket() as client:
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(TEST_TIMEOUT)
        url = httpx.URL(server.url)
        client.connect((url.host, url.port))
        yield client


def connections(server: RunningServer) -> int:
    """How many the server has."""
    return len(server._server.server_state.connections)  # noqa: SLF001


def is_open(server: RunningServer, client: socket.socket) -> bool:
    """Whether the server has this client's connection."""
    found: Any = server._server.server_state.connections  # noqa: SLF001
    return client.getsockname() in [each.client for each in found.copy()]


def read_to_end(client: socket.socket) -> bytes:
    """Everything received until the server closes the connection; TimeoutError if it does not."""
    received = bytearray()
    try:
        while more := client.recv(65536):
            received += more
    except ConnectionError:
        pass
    return bytes(received)


def read_response(client: socket.socket) -> bytes:
    """One response with its body."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += client.recv(1) or pytest.fail(f"closed after {received!r}")
    [length] = [line.split()[1] for line in received.splitlines() if line.startswith(b"content-length")]
    while not received.endswith(b"\r\n\r\n") or int(length):
        body = b""
        while len(body) < int(length):
            body += client.recv(int(length) - len(body)) or pytest.fail("closed within the answer")
        return received + body
    return received


def send_slowly(client: socket.socket, data: bytes) -> int:
    """Send byte after byte, slowly, and return how many were sent before the server closed the connection."""
    client.settimeout(0.2)
    for number in range(len(data)):
        try:
            client.sendall(data[number : number + 1])
            if client.recv(1) == b"":
                return number
        except TimeoutError:
            pass
        except ConnectionError:
            return number
    return len(data)


def request_head(api: Client, method: str, path: str, *more: str) -> bytes:
    """A request's line and headers."""
    lines = [f"{method} {PREFIX}{path} HTTP/1.1", "Host: x", *(f"{k}: {v}" for k, v in api.headers().items()), *more]
    return "\r\n".join([*lines, "", ""]).encode()


LIST_PATH = "/participants?limit=1000"


@pytest.fixture(scope="module")
def api_with_large_list(strict_server: RunningServer) -> Iterator[Client]:
    """A client whose list of participants is larger than the system's buffers."""
    client = strict_server.run(create_client(strict_server))
    row = {"reason_for_leaving": "x" * 10_000}
    rows = [{"id": f"017a5f00-0000-7000-8000-{number:012}", **row} for number in range(1, 1001)]
    owner = UUID(client.plan_manager_id)
    assert strict_server.run(import_records(strict_server, owner, "participants", rows)).errors == []
    yield client
    client.http.close()


# Slow clients: each takes seconds, so they all connect at the same time, with a plan manager each.


def send_nothing(server: RunningServer, _api: Client) -> None:
    with connected(server) as client:
        assert read_to_end(client) == b""


def send_headers_slowly(server: RunningServer, _api: Client) -> None:
    with connected(server) as client:
        assert 0 < send_slowly(client, GET + b"X-A: " + b"b" * 40) < 60


def send_headers_slowly_after_a_request(server: RunningServer, api: Client) -> None:
    with connected(server) as client:
        client.sendall(request_head(api, "GET", "/participants"))
        assert read_response(client).startswith(b"HTTP/1.1 200 OK\r\n")
        assert 0 < send_slowly(client, GET + b"X-A: " + b"b" * 40) < 60


def send_an_incomplete_body(server: RunningServer, api: Client) -> None:
    """It writes nothing."""
    with connected(server) as client:
        client.sendall(
            request_head(api, "POST", "/participants", "Content-Type: application/json", "Content-Length: 20")
        )
        client.sendall(b'{"first_name":')
        assert read_to_end(client) == b""
    assert api.get("/participants").json()["pagination"]["total"] == 0
    events = wait_until(lambda: api.get("/events").json()["data"])
    assert {each["type"] for each in events} == {"api_key.created"}


def send_a_body_slowly(server: RunningServer, api: Client) -> None:
    """It writes nothing."""
    with connected(server) as client:
        client.sendall(
            request_head(api, "POST", "/participants", "Content-Type: application/json", "Content-Length: 62")
        )
        assert 0 < send_slowly(client, b'{"first_name": "Ada"' + b" " * 41 + b"}") < 60
    assert api.get("/participants").json()["pagination"]["total"] == 0


def send_a_body_slowly_after_a_rejection(server: RunningServer, _api: Client) -> None:
    with connected(server) as client:
        client.sendall(f"POST {PREFIX}/participants HTTP/1.1\r\nHost: x\r\nContent-Length: 62\r\n\r\n".encode())
        assert read_response(client).startswith(b"HTTP/1.1 401 ")
        assert send_slowly(client, b" " * 62) < 60


def send_empty_lines_while_idle(server: RunningServer, api: Client) -> None:
    with connected(server) as client:
        client.sendall(request_head(api, "GET", "/participants"))
        read_response(client)
        client.sendall(b"\r\n")
        assert read_to_end(client) == b""


def pause_within_the_limits(server: RunningServer, api: Client) -> None:
    """Pauses below the timeout, between requests and within them, on one connection, for longer than the timeout."""
    body = b'{"first_name": "Ada"}'
    post = request_head(api, "POST", "/participants", "Content-Type: application/json", f"Content-Length: {len(body)}")
    started = time.monotonic()
    with connected(server) as client:
        while time.monotonic() < started + 2 * CLIENT_TIMEOUT:
            for piece in (post[:40], post[40:], body[:5], body[5:]):
                client.sendall(piece)
                time.sleep(CLIENT_TIMEOUT / 10)
            assert read_response(client).startswith(b"HTTP/1.1 200 OK\r\n")
            time.sleep(CLIENT_TIMEOUT / 4)


def pause_between_requests(server: RunningServer, api: Client) -> None:
    """A connection is kept alive for a normal client."""
    url = httpx.URL(server.url)
    client = http.client.HTTPConnection(url.host, url.port, timeout=TEST_TIMEOUT)
    ports = set[int]()
    # The pauses are longer than a request may take, and shorter than a connection may be idle.
    for pause in (0, 1.3, 1.3):
        time.sleep(pause * CLIENT_TIMEOUT)
        client.request("GET", f"{PREFIX}/participants", headers=api.headers())
        assert client.getresponse().read().startswith(b'{"data":[]')
        ports.add(client.sock.getsockname()[1])
    client.close()
    assert len(ports) == 1


def wait_for_the_server(server: RunningServer, api: Client) -> None:
    """The time that the server takes is not the client's."""
    made = api.create("/participants", {"first_name": "Ada"})
    holder: Any = server.run(asyncpg.connect(server.dsn))
    server.run(holder.execute("begin"))
    server.run(holder.execute("select from participants where id = $1 for update", UUID(made["id"])))
    with ThreadPoolExecutor(1) as pool:
        update = pool.submit(api.put, f"/participants/{made['id']}", {"first_name": "Eve"})
        time.sleep(2 * CLIENT_TIMEOUT)
        server.run(holder.execute("commit"))
        assert update.result(TEST_TIMEOUT).json()["first_name"] == "Eve"
    server.run(holder.close())


def read_slowly_but_steadily(server: RunningServer, api: Client) -> None:
    """A large response is completed, and the client can send another request on the same connection."""
    with connected(server) as client:
        client.sendall(request_head(api, "GET", LIST_PATH))
        got = 0
        while got < 10_000_000:
            got += len(client.recv(2**18) or pytest.fail("closed within the response"))
            time.sleep(CLIENT_TIMEOUT / 200)
        client.settimeout(0.2)
        with suppress(TimeoutError):
            while client.recv(2**18):
                pass
        client.settimeout(TEST_TIMEOUT)
        time.sleep(1.3 * CLIENT_TIMEOUT)
        client.sendall(request_head(api, "GET", "/note-types"))
        assert read_response(client).startswith(b"HTTP/1.1 200 OK\r\n")


DISCONNECTED = (
    send_nothing, send_headers_slowly, send_headers_slowly_after_a_request, send_an_incomplete_body, send_a_body_slowly,
    send_a_body_slowly_after_a_rejection, send_empty_lines_while_idle,
)  # fmt: skip
SERVED = (pause_within_the_limits, pause_between_requests, wait_for_the_server)


def test_slow_clients_are_disconnected_and_those_within_the_limits_are_served(
    strict_server: RunningServer, api_with_large_list: Client
) -> None:
    clients = {each: strict_server.run(create_client(strict_server)) for each in (*DISCONNECTED, *SERVED)}
    with ThreadPoolExecutor(len(clients) + 1) as pool:
        ended = {each: pool.submit(each, strict_server, client) for each, client in clients.items()}
        ended[read_slowly_but_steadily] = pool.submit(read_slowly_but_steadily, strict_server, api_with_large_list)
    for client in clients.values():
        client.http.close()
    assert {each.__name__: error for each, future in ended.items() if (error := future.exception())} == {}


# Greedy clients


@pytest.mark.parametrize(
    "endless",
    [b"GET /" + b"a" * 40_000, GET + b"X-A: b\r\n" * 10_000, GET + b"X-A: " + b"b" * 40_000 + b"\r\nX-B"],
    ids=["address", "many headers", "one header"],
)
def test_headers_over_32_kib_are_rejected_immediately(server: RunningServer, endless: bytes) -> None:
    with connected(server) as client:
        client.sendall(endless)
        assert read_to_end(client).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "start",
    [GET + b"X-A: ", b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: "],
    ids=["header", "trailer"],
)
def test_one_endless_header_is_rejected_immediately(server: RunningServer, start: bytes) -> None:
    with connected(server) as client:
        client.settimeout(5)  # well below what a client may take to send its headers
        client.sendall(start)
        with suppress(ConnectionError):
            for _ in range(64):
                client.sendall(b"b" * 2**16)
        read_to_end(client)


def test_headers_below_32_kib_are_accepted(server: RunningServer) -> None:
    with connected(server) as client:
        client.sendall(GET + b"X-A: b\r\n" * 4000 + b"\r\n")
        assert read_response(client).startswith(b"HTTP/1.1 401 ")


# Clients that do not read: each waits for a timeout, so they all connect at the same time, too.


def read_nothing(server: RunningServer, api: Client) -> None:
    with connected(server, receive_buffer=4096) as client:
        client.sendall(request_head(api, "GET", LIST_PATH))
        wait_until(lambda: is_open(server, client))
        wait_until(lambda: not is_open(server, client), TEST_TIMEOUT)
        got = read_to_end(client)
    assert got.startswith(b"HTTP/1.1 200 OK\r\n")
    assert len(got) < 10_000_000
    with connected(server) as client:
        client.sendall(request_head(api, "GET", LIST_PATH, "Connection: close"))
        assert len(read_to_end(client)) > 10_000_000


def pipeline_without_reading(server: RunningServer, api: Client) -> None:
    with connected(server, receive_buffer=4096) as client:
        client.sendall(request_head(api, "GET", LIST_PATH))
        assert client.recv(1) == b"H"
        client.sendall(request_head(api, "GET", LIST_PATH))
        wait_until(lambda: not is_open(server, client), TEST_TIMEOUT)


def send_half_a_request_while_reading(server: RunningServer, api: Client) -> None:
    """It times out even while a response is read."""
    with connected(server, receive_buffer=4096) as client:
        client.sendall(request_head(api, "GET", LIST_PATH))
        assert client.recv(1) == b"H"
        client.sendall(GET)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**22)
        assert len(read_to_end(client)) > 10_000_000


def leave_the_end_unread(server: RunningServer, api: Client) -> None:
    """The rest fits into the socket's buffer, so the server cannot notice that the client does not read."""
    ids = [f"017a5f00-0000-7000-8000-{number:012}" for number in range(1, 6)]
    rows = [{"id": each, "reason_for_leaving": "x" * 10_000} for each in ids]
    assert server.run(import_records(server, UUID(api.plan_manager_id), "participants", rows)).errors == []
    small = RunningServer(server.dsn, idle_timeout=1, client_io_timeout=CLIENT_TIMEOUT)
    small._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # noqa: SLF001
    small.start()
    with connected(small, receive_buffer=4096) as closing, connected(small, receive_buffer=4096) as kept:
        for client, how in ((closing, "close"), (kept, "keep-alive")):
            client.sendall(request_head(api, "GET", LIST_PATH, f"Connection: {how}"))
            assert client.recv(1) == b"H"
        try:
            wait_until(lambda: connections(small) == 0, TEST_TIMEOUT)
        finally:
            closing.close()
            kept.close()
            small.stop()


def test_clients_that_do_not_read_their_response_are_disconnected(
    strict_server: RunningServer, api_with_large_list: Client, api: Client
) -> None:
    with ThreadPoolExecutor(4) as pool:
        ended = {
            each: pool.submit(each, strict_server, api_with_large_list)
            for each in (read_nothing, pipeline_without_reading, send_half_a_request_while_reading)
        }
        ended[leave_the_end_unread] = pool.submit(leave_the_end_unread, strict_server, api)
    assert {each.__name__: error for each, future in ended.items() if (error := future.exception())} == {}


# Many clients


def test_connections_over_the_limit_are_closed_and_others_work(
    cluster: SharedCluster, new_plan_manager: Callable[[], UUID], new_key: Callable[..., str]
) -> None:
    small = RunningServer(cluster.dsn, max_connections=5).start()
    owner = new_plan_manager()
    api = Client(small.url, new_key(owner), owner)
    held = [connected(small) for _ in range(5)]
    clients = [each.__enter__() for each in held]
    wait_until(lambda: connections(small) == 5)
    for _ in range(20):
        with connected(small) as surplus:
            assert read_to_end(surplus) == b""
    for client in clients:
        client.sendall(request_head(api, "GET", "/participants"))
        assert read_response(client).startswith(b"HTTP/1.1 200 OK\r\n")
    for each in held:
        each.__exit__(None, None, None)
    wait_until(lambda: connections(small) == 0)
    assert api.get("/participants").status_code == 200
    api.http.close()
    small.stop()


def test_aborted_connections_leave_nothing_behind(strict_server: RunningServer, api: Client) -> None:
    """Closed, half closed, and torn off, before, within and after a request."""
    post = request_head(api, "POST", "/participants", "Content-Type: application/json", "Content-Length: 20")
    before = connections(strict_server)
    for sent in (b"", GET, post, post + b'{"first'):
        for way in ("closed", "half closed", "torn off"):
            with connected(strict_server) as client:
                client.sendall(sent)
                if way == "half closed":
                    client.shutdown(socket.SHUT_WR)
                    read_to_end(client)
                elif way == "torn off":
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wait_until(lambda: connections(strict_server) <= before, TEST_TIMEOUT)
    assert api.get("/participants").json()["pagination"]["total"] == 0


def test_idle_connections_do_not_block_others_for_long(strict_server: RunningServer, api: Client) -> None:
    """A client that has disappeared without closing its connection is idle, too."""
    held = [connected(strict_server) for _ in range(MAX_CONNECTIONS)]
    for each in held:
        each.__enter__()
    with httpx.Client(base_url=strict_server.url, timeout=TEST_TIMEOUT, verify=NO_TLS) as fresh:

        def served() -> bool:
            try:
                return fresh.get(f"{PREFIX}/participants", headers=api.headers()).status_code == 200
            except httpx.TransportError:
                return False

        wait_until(served, TEST_TIMEOUT)
    for each in held:
        each.__exit__(None, None, None)


# The headers for browsers


@pytest.mark.parametrize("path", ["/docs/api", "/docs/reference.js", "/docs/swagger-ui.css", "/openapi.json"])
def test_pages_cannot_be_framed_by_other_sites(api: Client, path: str) -> None:
    headers = api.http.get(path).headers
    policy = {name: rest for name, *rest in (part.split() for part in headers["content-security-policy"].split(";"))}
    assert policy == {
        "default-src": ["'none'"], "script-src": ["'self'"], "style-src": ["'self'"], "img-src": ["'self'", "data:"],
        "font-src": ["'self'"], "connect-src": ["'self'"], "worker-src": ["'self'"],
        "frame-ancestors": ["'none'"], "base-uri": ["'none'"], "form-action": ["'self'"],
    }  # fmt: skip
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]


def test_api_responses_are_not_cached_or_sniffed(api: Client) -> None:
    path = f"/participants/{api.create('/participants', {'first_name': 'Ada'})['id']}"
    tag = api.get(path).headers["etag"]
    for answered in (
        api.get("/participants"),
        api.get(path),
        api.request("GET", path, headers={"If-None-Match": tag}),
        api.put(path, {"last_name": "L"}),
        api.get("/participants", limit=0),
        api.send("GET", "/participants"),
        api.get("/nothing"),
    ):
        assert answered.headers["cache-control"] == "no-store"
        assert answered.headers["x-content-type-options"] == "nosniff"


def test_no_response_reveals_the_server_software(api: Client) -> None:
    for answered in (api.get("/participants"), api.get("/nothing"), api.http.get("/docs")):
        assert not {"x-powered-by", "via"} & set(answered.headers)
