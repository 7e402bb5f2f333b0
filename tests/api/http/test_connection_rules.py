"""The limits of connections: their number for each address, one Host, and no trailers as headers."""

import logging
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import UUID

import httpx
import pytest

from plankeeper.http.connections import Peers
from support.client import PREFIX, Client
from support.cluster import SharedCluster
from support.server import RunningServer, wait_until

TEST_TIMEOUT = 10
MAX_PER_ADDRESS = 5
CLOSE = b"Connection: close\r\n"
WARNING = "X-Forwarded-For is ignored, because its sender is not in PLANKEEPER_TRUSTED_PROXIES"


def connect(server: RunningServer) -> socket.socket:
    url = httpx.URL(server.url)
    return socket.create_connection((url.host, url.port), timeout=TEST_TIMEOUT)


def receive_all(client: socket.socket) -> bytes:
    """All that the server sends until it closes the connection."""
    received = b""
    try:
        while more := client.recv(65536):
            received += more
    except ConnectionError:
        pass
    return received


def send_raw(server: RunningServer, request: bytes) -> bytes:
    """The responses to what is sent in one segment."""
    with connect(server) as client:
        client.sendall(request)
        return receive_all(client)


def status_of(response: bytes) -> int:
    return int(response.split()[1])


def head(path: str = "/participants", *lines: str, method: str = "GET", version: str = "1.1") -> bytes:
    return "".join(f"{line}\r\n" for line in (f"{method} {PREFIX}{path} HTTP/{version}", *lines)).encode()


# Trailers


def chunked(headers: list[str], trailers: list[str], connection: str = "close") -> bytes:
    lines = ["Host: x", "Transfer-Encoding: chunked", f"Connection: {connection}", *headers]
    body = "2\r\n{}\r\n0\r\n" + "".join(f"{each}\r\n" for each in trailers) + "\r\n"
    return head("/participants", *lines) + b"\r\n" + body.encode()


def test_credentials_in_trailers_are_not_accepted(server: RunningServer, api: Client) -> None:
    credentials = [f"{name}: {value}" for name, value in api.headers().items()]
    assert status_of(send_raw(server, chunked([], credentials))) == 401
    assert status_of(send_raw(server, chunked(credentials, ["Authorization: Bearer x"]))) == 200


def test_trailers_do_not_change_the_client_address(cluster: SharedCluster) -> None:
    """Behind a proxy that passes trailers on, they must not evade the limit of an address."""
    limited = RunningServer(cluster.dsn, auth_failure_rate_limit=3).start()
    try:
        statuses = [
            status_of(
                send_raw(limited, chunked(["X-Forwarded-For: 203.0.113.9"], [f"X-Forwarded-For: 198.51.100.{n}"]))
            )
            for n in range(12)
        ]
    finally:
        limited.stop()
    # If the minute ends meanwhile, the count starts again.
    assert statuses.count(401) <= 6
    assert statuses.count(429) >= 6


def test_the_headers_of_the_next_request_are_headers_again(server: RunningServer, api: Client) -> None:
    credentials = [f"{name}: {value}" for name, value in api.headers().items()]
    first, second = chunked([], ["X-A: b"], "keep-alive"), chunked(credentials, [])
    responses = send_raw(server, first + second)
    assert re.findall(rb"HTTP/1\.1 (\d+) ", responses) == [b"401", b"200"]


# Host


def test_a_request_needs_exactly_one_host(server: RunningServer) -> None:
    assert status_of(send_raw(server, head() + CLOSE + b"\r\n")) == 400
    assert status_of(send_raw(server, head("/participants", "Host: a", "Host: a") + CLOSE + b"\r\n")) == 400
    assert status_of(send_raw(server, head("/participants", "Host: a", "Host: b") + CLOSE + b"\r\n")) == 400
    assert status_of(send_raw(server, head("/participants", "Host: a") + CLOSE + b"\r\n")) == 401


def test_the_only_transfer_coding_is_chunked(server: RunningServer) -> None:
    def status(*headers: str, version: str = "1.1") -> int:
        lines = head("/participants", "Host: a", *headers, version=version)
        return status_of(send_raw(server, lines + CLOSE + b"\r\n0\r\n\r\n"))

    assert status("Transfer-Encoding: chunked") == 401
    assert status("Transfer-Encoding: Chunked") == 401
    assert status("Transfer-Encoding: identity, chunked") == 400
    assert status("Transfer-Encoding: identity", "Transfer-Encoding: chunked") == 400
    assert status("Transfer-Encoding: gzip, chunked") == 400
    assert status("Transfer-Encoding: chunked", version="1.0") == 400


def test_http_1_0_needs_no_host(server: RunningServer) -> None:
    """Health checks of load balancers often send none."""
    assert status_of(send_raw(server, b"GET /healthz HTTP/1.0\r\n\r\n")) == 200
    two_hosts = head("/participants", "Host: a", "Host: b", version="1.0")
    assert status_of(send_raw(server, two_hosts + b"\r\n")) == 400


# The end of a server


@pytest.mark.parametrize("requests", [0, 1])
def test_a_request_in_the_moment_of_a_stop_is_not_answered_by_a_reset(cluster: SharedCluster, requests: int) -> None:
    running = RunningServer(cluster.dsn).start()
    health = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"

    async def stop_and_send(client: socket.socket) -> None:
        """The server's loop runs this, so it stops before it reads the request."""
        [connection] = running._server.server_state.connections  # noqa: SLF001
        connection.shutdown()
        client.sendall(health)

    try:
        with connect(running) as client:
            for _ in range(requests):
                client.sendall(health)
                response = b""
                while not response.endswith(b'{"status":"ok"}'):
                    response += client.recv(65536) or pytest.fail(f"closed after {response!r}")
            wait_until(lambda: count_connections(running) == 1)
            running.run(stop_and_send(client))
            assert client.recv(1) == b""
            wait_until(lambda: count_connections(running) == 0)  # though the client keeps its side open
    finally:
        running.stop()


# Connections per address


@pytest.fixture
def small_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    running = RunningServer(cluster.dsn, max_connections_per_address=MAX_PER_ADDRESS).start()
    yield running
    running.stop()


def count_connections(server: RunningServer) -> int:
    return len(server._server.server_state.connections)  # noqa: SLF001


def test_an_address_has_a_limit_of_connections(
    small_server: RunningServer, new_plan_manager: Callable[[], UUID], new_key: Callable[..., str]
) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(connect(small_server)) for _ in range(MAX_PER_ADDRESS)]
        wait_until(lambda: count_connections(small_server) == MAX_PER_ADDRESS)
        for _ in range(10):
            with connect(small_server) as surplus:
                assert receive_all(surplus) == b""
        held[0].sendall(head("/participants", "Host: x") + CLOSE + b"\r\n")
        assert status_of(receive_all(held[0])) == 401
        wait_until(lambda: count_connections(small_server) == MAX_PER_ADDRESS - 1)
        with connect(small_server) as again:
            again.sendall(head("/participants", "Host: x") + CLOSE + b"\r\n")
            assert status_of(receive_all(again)) == 401
    wait_until(lambda: count_connections(small_server) == 0)
    owner = new_plan_manager()
    api = Client(small_server.url, new_key(owner), owner)
    assert api.get("/participants").status_code == 200
    api.http.close()


def test_a_trusted_proxy_has_no_limit_of_connections(cluster: SharedCluster) -> None:
    behind_proxy = RunningServer(
        cluster.dsn, max_connections_per_address=MAX_PER_ADDRESS, trusted_proxies=("127.0.0.0/8",)
    ).start()
    with ExitStack() as stack:
        held = [stack.enter_context(connect(behind_proxy)) for _ in range(3 * MAX_PER_ADDRESS)]
        for client in held:
            client.sendall(head("/participants", "Host: x") + CLOSE + b"\r\n")
            assert status_of(receive_all(client)) == 401
    behind_proxy.stop()


@pytest.mark.parametrize(
    "same, other",
    [
        (("192.0.2.1", "192.0.2.1"), "192.0.2.2"),
        (("::ffff:192.0.2.1", "192.0.2.1"), "192.0.2.2"),
        (("2001:db8:0:1::1", "2001:db8:0:1::2"), "2001:db8:0:2::1"),
    ],
)
def test_connections_are_counted_by_network(same: tuple[str, str], other: str) -> None:
    peers = Peers((), 1)
    assert peers.add(same[0])
    assert not peers.add(same[1])
    assert peers.add(other)
    peers.remove(same[0])
    peers.remove(same[1])
    assert peers.add(same[0])


def test_trusted_proxies_are_recognised() -> None:
    peers = Peers(("10.0.0.0/8", "192.0.2.7", "fd00::/8"), 1)
    assert all(peers.is_trusted(each) for each in ("10.1.2.3", "192.0.2.7", "fd00::1"))
    assert not any(peers.is_trusted(each) for each in ("11.1.2.3", "192.0.2.8", "fe80::1", "", "nothing"))


def test_the_limit_of_an_address_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    peers = Peers((), 1)
    with caplog.at_level(logging.WARNING):
        assert peers.add("192.0.2.1")
        assert caplog.messages == []
        assert not any(peers.add(address) for address in ("192.0.2.1", "192.0.2.1"))
    [message] = caplog.messages
    assert message.startswith("an address has more connections than PLANKEEPER_MAX_CONNECTIONS_PER_ADDRESS")


# A proxy that is not trusted


def test_a_header_of_an_untrusted_proxy_is_reported_once(
    cluster: SharedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    forwarded = head("/participants", "Host: x", "X-Forwarded-For: 203.0.113.9") + CLOSE + b"\r\n"
    with caplog.at_level(logging.WARNING):
        for trusted in ((), ("127.0.0.1",)):
            caplog.clear()
            running = RunningServer(cluster.dsn, trusted_proxies=trusted).start()
            assert status_of(send_raw(running, head("/participants", "Host: x") + CLOSE + b"\r\n")) == 401
            assert [each for each in caplog.messages if each.startswith(WARNING)] == []
            for _ in range(3):
                assert status_of(send_raw(running, forwarded)) == 401
            running.stop()
            warnings = [each for each in caplog.messages if each.startswith(WARNING)]
            assert len(warnings) == (0 if trusted else 1)
            assert not any("203.0.113.9" in each for each in warnings)
