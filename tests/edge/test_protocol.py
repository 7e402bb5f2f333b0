"""Connections that cost too much are closed, and nobody else is; what every answer says to a browser."""

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

from plankeeper.embedded_postgres.cluster import Cluster
from support.client import PREFIX, Client
from support.server import RunningServer, wait_until

TIMEOUT = 1  # what a client may take, in these tests
LONG = 10  # nothing here may hang
GET = f"GET {PREFIX}/participants HTTP/1.1\r\nHost: x\r\n".encode()


@pytest.fixture(scope="module")
def strict(cluster: Cluster) -> Iterator[RunningServer]:
    """A server that is soon tired of a client."""
    running = RunningServer(cluster.dsn, client_timeout=TIMEOUT, max_connections=20).start()
    yield running
    running.stop()


@pytest.fixture
def api(strict: RunningServer, new_plan_manager: Callable[[], UUID], new_key: Callable[..., str]) -> Iterator[Client]:
    owner = new_plan_manager()
    client = Client(strict.url, new_key(owner), owner)
    yield client
    client.http.close()


@contextmanager
def connected(server: RunningServer, receive_buffer: int | None = None) -> Generator[socket.socket]:
    with socket.socket() as client:
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(LONG)
        url = httpx.URL(server.url)
        client.connect((url.host, url.port))
        yield client


def connections(server: RunningServer) -> int:
    """How many the server has."""
    return len(server._server.server_state.connections)  # noqa: SLF001


def rest(client: socket.socket) -> bytes:
    """All that comes until the server closes; a server that does not is told by TimeoutError."""
    got = b""
    try:
        while more := client.recv(65536):
            got += more
    except ConnectionError:
        pass
    return got


def answer(client: socket.socket) -> bytes:
    """One answer with its body."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += client.recv(1) or pytest.fail(f"closed after {got!r}")
    [length] = [line.split()[1] for line in got.splitlines() if line.startswith(b"content-length")]
    while not got.endswith(b"\r\n\r\n") or int(length):
        body = b""
        while len(body) < int(length):
            body += client.recv(int(length) - len(body)) or pytest.fail("closed within the answer")
        return got + body
    return got


def trickle(client: socket.socket, data: bytes) -> int:
    """Send byte after byte, slowly; answers how many went before the server closed."""
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


def head(api: Client, method: str, path: str, *more: str) -> bytes:
    """A request's line and headers."""
    lines = [f"{method} {PREFIX}{path} HTTP/1.1", "Host: x", *(f"{k}: {v}" for k, v in api.headers().items()), *more]
    return "\r\n".join([*lines, "", ""]).encode()


# Slow clients


def test_a_connection_that_sends_nothing_is_closed(strict: RunningServer) -> None:
    with connected(strict) as client:
        assert rest(client) == b""


@pytest.mark.parametrize("before", [False, True], ids=["at once", "after an answered request"])
def test_headers_that_come_byte_by_byte_are_cut(strict: RunningServer, api: Client, before: bool) -> None:
    with connected(strict) as client:
        if before:
            client.sendall(head(api, "GET", "/participants"))
            assert answer(client).startswith(b"HTTP/1.1 200 OK\r\n")
        assert 0 < trickle(client, GET + b"X-A: " + b"b" * 40) < 60


def test_a_body_that_stops_half_way_is_cut_and_writes_nothing(strict: RunningServer, api: Client) -> None:
    with connected(strict) as client:
        client.sendall(head(api, "POST", "/participants", "Content-Type: application/json", "Content-Length: 20"))
        client.sendall(b'{"first_name":')
        assert rest(client) == b""
    assert api.get("/participants").json()["pagination"]["total"] == 0
    assert {each["type"] for each in api.get("/events").json()["data"]} == {"api_key.created"}


def test_a_body_that_comes_byte_by_byte_is_cut_and_writes_nothing(strict: RunningServer, api: Client) -> None:
    with connected(strict) as client:
        client.sendall(head(api, "POST", "/participants", "Content-Type: application/json", "Content-Length: 62"))
        assert 0 < trickle(client, b'{"first_name": "Ada"' + b" " * 41 + b"}") < 60
    assert api.get("/participants").json()["pagination"]["total"] == 0


def test_who_was_refused_before_its_body_came_is_cut_too(strict: RunningServer) -> None:
    with connected(strict) as client:
        client.sendall(f"POST {PREFIX}/participants HTTP/1.1\r\nHost: x\r\nContent-Length: 62\r\n\r\n".encode())
        assert answer(client).startswith(b"HTTP/1.1 401 ")
        assert trickle(client, b" " * 62) < 60


def test_an_idle_connection_that_sends_empty_lines_is_closed(strict: RunningServer, api: Client) -> None:
    with connected(strict) as client:
        client.sendall(head(api, "GET", "/participants"))
        answer(client)
        client.sendall(b"\r\n")
        assert rest(client) == b""


def test_slow_but_fine_is_served(strict: RunningServer, api: Client) -> None:
    """Pauses below the timeout, between requests and within them, on one connection, for longer than the timeout."""
    body = b'{"first_name": "Ada"}'
    post = head(api, "POST", "/participants", "Content-Type: application/json", f"Content-Length: {len(body)}")
    started = time.monotonic()
    with connected(strict) as client:
        while time.monotonic() < started + 2 * TIMEOUT:
            for piece in (post[:40], post[40:], body[:5], body[5:]):
                client.sendall(piece)
                time.sleep(TIMEOUT / 10)
            assert answer(client).startswith(b"HTTP/1.1 200 OK\r\n")
            time.sleep(TIMEOUT / 4)


def test_a_connection_is_kept_for_a_usual_client(strict: RunningServer, api: Client) -> None:
    url = httpx.URL(strict.url)
    client = http.client.HTTPConnection(url.host, url.port, timeout=LONG)
    started, ports = time.monotonic(), set[int]()
    while time.monotonic() < started + 3 * TIMEOUT:
        client.request("GET", f"{PREFIX}/participants", headers=api.headers())
        assert client.getresponse().read().startswith(b'{"data":[]')
        ports.add(client.sock.getsockname()[1])
        time.sleep(TIMEOUT * 1.3)  # longer than a request may take, and shorter than a connection may be idle
    client.close()
    assert len(ports) == 1


def test_who_waits_for_the_server_is_not_cut(strict: RunningServer, api: Client) -> None:
    """The time that the server takes is not the client's."""
    made = api.made("/participants", {"first_name": "Ada"})
    holder: Any = strict.run(asyncpg.connect(strict.dsn))
    strict.run(holder.execute("begin"))
    strict.run(holder.execute("select from participants where id = $1 for update", UUID(made["id"])))
    with ThreadPoolExecutor(1) as pool:
        update = pool.submit(api.put, f"/participants/{made['id']}", {"first_name": "Eve"})
        time.sleep(2 * TIMEOUT)
        strict.run(holder.execute("commit"))
        assert update.result(LONG).json()["first_name"] == "Eve"
    strict.run(holder.close())


# Greedy clients


@pytest.mark.parametrize(
    "endless",
    [b"GET /" + b"a" * 40_000, GET + b"X-A: b\r\n" * 10_000, GET + b"X-A: " + b"b" * 40_000 + b"\r\nX-B"],
    ids=["address", "many headers", "one header"],
)
def test_headers_beyond_32_kib_are_refused_at_once(server: RunningServer, endless: bytes) -> None:
    with connected(server) as client:
        client.sendall(endless)
        assert rest(client).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "start",
    [GET + b"X-A: ", b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: "],
    ids=["header", "trailer"],
)
def test_one_header_without_end_is_refused_at_once(server: RunningServer, start: bytes) -> None:
    with connected(server) as client:
        client.settimeout(5)  # well below what a client may take to send its headers
        client.sendall(start)
        with suppress(ConnectionError):
            for _ in range(64):
                client.sendall(b"b" * 2**16)
        rest(client)


def test_headers_below_32_kib_are_taken(server: RunningServer) -> None:
    with connected(server) as client:
        client.sendall(GET + b"X-A: b\r\n" * 4000 + b"\r\n")
        assert answer(client).startswith(b"HTTP/1.1 401 ")


@pytest.fixture
def wordy(api: Client, import_rows: Callable[..., Any]) -> Client:
    """A client whose list of participants is larger than the system's buffers."""
    row = {"reason_for_leaving": "x" * 10_000}
    rows = [{"id": f"017a5f00-0000-7000-8000-{number:012}", **row} for number in range(1, 1001)]
    assert import_rows(api, "participants", rows).bad == []
    return api


LIST = "/participants?limit=1000"


def test_who_does_not_take_its_answer_is_cut(strict: RunningServer, wordy: Client) -> None:
    before = connections(strict)
    with connected(strict, receive_buffer=4096) as client:
        client.sendall(head(wordy, "GET", LIST))
        wait_until(lambda: connections(strict) > before)
        wait_until(lambda: connections(strict) <= before, LONG)
        got = rest(client)
    assert got.startswith(b"HTTP/1.1 200 OK\r\n")
    assert len(got) < 10_000_000
    assert len(wordy.get(LIST).content) > 10_000_000


def test_who_asks_on_without_taking_its_answer_is_cut(strict: RunningServer, wordy: Client) -> None:
    before = connections(strict)
    with connected(strict, receive_buffer=4096) as client:
        client.sendall(head(wordy, "GET", LIST))
        assert client.recv(1) == b"H"
        client.sendall(head(wordy, "GET", LIST))
        wait_until(lambda: connections(strict) <= before, 3 * TIMEOUT)


def test_half_a_request_is_cut_also_where_an_answer_was_taken_in_meanwhile(
    strict: RunningServer, wordy: Client
) -> None:
    with connected(strict, receive_buffer=4096) as client:
        client.sendall(head(wordy, "GET", LIST))
        assert client.recv(1) == b"H"
        client.sendall(GET)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**22)
        assert len(rest(client)) > 10_000_000


@pytest.mark.parametrize("how", ["close", "keep-alive"])
def test_who_leaves_a_small_rest_of_its_answer_is_cut(
    cluster: Cluster, api: Client, import_rows: Callable[..., Any], how: str
) -> None:
    """What is left is too small for the server to be told that the client lags behind."""
    ids = [f"017a5f00-0000-7000-8000-{number:012}" for number in range(1, 6)]
    import_rows(api, "participants", [{"id": each, "reason_for_leaving": "x" * 10_000} for each in ids])
    small = RunningServer(cluster.dsn, client_timeout=TIMEOUT)
    small._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # noqa: SLF001
    small.start()
    with connected(small, receive_buffer=4096) as client:
        client.sendall(head(api, "GET", LIST, f"Connection: {how}"))
        assert client.recv(1) == b"H"
        try:
            wait_until(lambda: connections(small) == 0, LONG)
        finally:
            client.close()
            small.stop()


def test_who_takes_a_large_answer_slowly_but_steadily_gets_all_of_it(strict: RunningServer, wordy: Client) -> None:
    """And may ask again on the same connection."""
    with connected(strict) as client:
        client.sendall(head(wordy, "GET", LIST))
        got = 0
        while got < 10_000_000:
            got += len(client.recv(2**18))
            time.sleep(TIMEOUT / 200)
        client.settimeout(0.2)
        with suppress(TimeoutError):
            while client.recv(2**18):
                pass
        client.settimeout(LONG)
        time.sleep(1.3 * TIMEOUT)
        client.sendall(head(wordy, "GET", "/note-types"))
        assert answer(client).startswith(b"HTTP/1.1 200 OK\r\n")


# Many clients


def test_connections_beyond_the_most_are_closed_and_the_others_work(
    cluster: Cluster, new_plan_manager: Callable[[], UUID], new_key: Callable[..., str]
) -> None:
    small = RunningServer(cluster.dsn, max_connections=5).start()
    owner = new_plan_manager()
    api = Client(small.url, new_key(owner), owner)
    held = [connected(small) for _ in range(5)]
    clients = [each.__enter__() for each in held]
    wait_until(lambda: connections(small) == 5)
    for _ in range(20):
        with connected(small) as surplus:
            assert rest(surplus) == b""
    for client in clients:
        client.sendall(head(api, "GET", "/participants"))
        assert answer(client).startswith(b"HTTP/1.1 200 OK\r\n")
    for each in held:
        each.__exit__(None, None, None)
    wait_until(lambda: connections(small) == 0)
    assert api.get("/participants").status_code == 200
    api.http.close()
    small.stop()


def test_connections_that_break_off_leave_nothing_behind(strict: RunningServer, api: Client) -> None:
    """Closed, half closed, and torn off, before, within and after a request."""
    post = head(api, "POST", "/participants", "Content-Type: application/json", "Content-Length: 20")
    before = connections(strict)
    for sent in (b"", GET, post, post + b'{"first'):
        for way in ("closed", "half closed", "torn off"):
            with connected(strict) as client:
                client.sendall(sent)
                if way == "half closed":
                    client.shutdown(socket.SHUT_WR)
                    rest(client)
                elif way == "torn off":
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wait_until(lambda: connections(strict) <= before, LONG)
    assert api.get("/participants").json()["pagination"]["total"] == 0


def test_silent_connections_do_not_keep_others_out_for_long(strict: RunningServer, api: Client) -> None:
    """Whoever has vanished without a word is silent too."""
    held = [connected(strict) for _ in range(20)]
    for each in held:
        each.__enter__()
    with httpx.Client(base_url=strict.url, timeout=LONG) as fresh:

        def served() -> bool:
            try:
                return fresh.get(f"{PREFIX}/participants", headers=api.headers()).status_code == 200
            except httpx.TransportError:
                return False

        wait_until(served, LONG)
    for each in held:
        each.__exit__(None, None, None)


# What browsers are told


@pytest.mark.parametrize("path", ["/docs", "/docs/docs.js", "/docs/swagger-ui.css", "/openapi.json"])
def test_pages_are_closed_to_other_sites(api: Client, path: str) -> None:
    headers = api.http.get(path).headers
    policy = {name: rest for name, *rest in (part.split() for part in headers["content-security-policy"].split(";"))}
    assert policy == {
        "default-src": ["'self'"], "style-src": ["'self'", "'unsafe-inline'"], "img-src": ["'self'", "data:"],
        "frame-ancestors": ["'none'"], "base-uri": ["'none'"], "form-action": ["'self'"],
    }  # fmt: skip
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]


def test_nothing_of_the_api_is_kept_or_guessed_at_on_the_way(api: Client) -> None:
    path = f"/participants/{api.made('/participants', {'first_name': 'Ada'})['id']}"
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


def test_no_answer_tells_what_serves_it(api: Client) -> None:
    for answered in (api.get("/participants"), api.get("/nothing"), api.http.get("/docs")):
        assert not {"x-powered-by", "via"} & set(answered.headers)
