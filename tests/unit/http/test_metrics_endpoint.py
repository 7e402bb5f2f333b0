"""Which clients can read /metrics."""

from ipaddress import ip_network
from typing import Any

import pytest

from plankeeper.core.settings import Settings
from plankeeper.http.public.health import MetricsEndpoint

LOOPBACK = Settings.read({}).metrics_networks
TRUSTED = (ip_network("192.0.2.1"),)
PRIVATE = (*LOOPBACK, ip_network("10.0.0.0/8"))


async def status(
    networks: Any, client: tuple[str, int] | None, headers: dict[str, str], trusted_proxies: Any = ()
) -> int:
    endpoint = MetricsEndpoint(lambda: b"up 1\n", "text/plain", networks, trusted_proxies)
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    async def receive() -> Any:
        raise AssertionError("the request has no body")

    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": "/metrics", "client": client, "headers": encoded}
    await endpoint(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in messages)
    assert (body == b"up 1\n") == (messages[0]["status"] == 200)
    return messages[0]["status"]


@pytest.mark.parametrize(
    "networks, address, expected",
    [
        (LOOPBACK, "127.0.0.1", 200),
        (LOOPBACK, "::1", 200),
        (LOOPBACK, "::ffff:127.0.0.1", 200),
        (LOOPBACK, "203.0.113.9", 404),
        (LOOPBACK, "10.1.2.3", 404),
        (LOOPBACK, "2001:db8::1", 404),
        (LOOPBACK, "::ffff:203.0.113.9", 404),
        (PRIVATE, "10.1.2.3", 200),
        (PRIVATE, "127.0.0.1", 200),
        (PRIVATE, "11.1.2.3", 404),
        (LOOPBACK, "unknown", 404),
        (LOOPBACK, "", 404),
    ],
)
async def test_only_clients_in_the_networks_can_read_metrics(networks: Any, address: str, expected: int) -> None:
    assert await status(networks, (address, 1), {}) == expected


async def test_a_client_without_an_address_cannot_read_metrics() -> None:
    assert await status(LOOPBACK, None, {}) == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"x-forwarded-for": "203.0.113.9"},
        {"x-forwarded-for": "203.0.113.9, 198.51.100.1"},
        {"x-forwarded-for": "127.0.0.1"},
        {"x-forwarded-for": "127.0.0.1, 203.0.113.9"},  # the client sent the first address, and the proxy added its own
        {"x-forwarded-for": "127.0.0.1", "x-real-ip": "127.0.0.1", "forwarded": "for=127.0.0.1"},
        {"x-forwarded-proto": "https"},
        {"x-forwarded-host": "plans.example"},
        {"x-real-ip": "203.0.113.9"},
        {"forwarded": "for=203.0.113.9"},
        {"via": "1.1 proxy"},
    ],
)
async def test_the_address_of_an_untrusted_proxy_is_not_that_of_the_client(headers: dict[str, str]) -> None:
    assert await status(LOOPBACK, ("127.0.0.1", 1), headers) == 404


@pytest.mark.parametrize("forwarded", ["127.0.0.1, 203.0.113.9", "127.0.0.1, 203.0.113.9, 192.0.2.1", ""])
async def test_another_proxy_on_the_same_machine_is_not_trusted(forwarded: str) -> None:
    headers = {"x-forwarded-for": forwarded}
    assert await status(LOOPBACK, ("127.0.0.1", 1), headers, TRUSTED) == 404


@pytest.mark.parametrize("address, expected", [("127.0.0.1", 200), ("10.1.2.3", 404)])
async def test_behind_a_trusted_proxy_the_forwarded_address_counts(address: str, expected: int) -> None:
    """By then, uvicorn has replaced the peer's address."""
    for forwarded in (f"203.0.113.9, {address}", f"203.0.113.9, {address}, 192.0.2.1", address):
        headers = {"x-forwarded-for": forwarded, "x-forwarded-proto": "https"}
        assert await status(LOOPBACK, (address, 0), headers, TRUSTED) == expected


async def test_a_client_on_the_machine_of_the_trusted_proxy_can_read_metrics() -> None:
    headers = {"x-forwarded-for": "127.0.0.1"}
    assert await status(LOOPBACK, ("127.0.0.1", 0), headers, LOOPBACK) == 200
