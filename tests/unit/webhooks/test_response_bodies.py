"""The limit on the body of a receiver's response."""

import asyncio
from ipaddress import ip_network

import pytest

from plankeeper.webhooks import client
from plankeeper.webhooks.client import AttemptResult, WebhookClient
from plankeeper.webhooks.schemas import MAX_BODY_BYTES
from support.webhook_attempts import BODY, CRLF, OK, attempt, raw_server


@pytest.fixture
def webhook_client(monkeypatch: pytest.MonkeyPatch) -> WebhookClient:
    monkeypatch.setattr(client, "is_public", lambda _address: True)
    return WebhookClient([ip_network("127.0.0.0/8")])


@pytest.mark.parametrize(
    "head",
    [OK + CRLF, OK + b"content-length: 99999999999\r\n\r\n", OK + b"transfer-encoding: chunked\r\n\r\nfffffff\r\n"],
)
async def test_only_the_beginning_of_an_endless_body_is_read(webhook_client: WebhookClient, head: bytes) -> None:
    sent = 0

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(BODY)
        writer.write(head)
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536

    async with raw_server(behave) as url:
        outcome = await asyncio.wait_for(attempt(webhook_client, url), 10)
    assert outcome == AttemptResult(200, None, outcome.duration_ms, response_body=b"x" * MAX_BODY_BYTES)
    assert sent < 50_000_000


@pytest.mark.parametrize("body", [b"", b"a part"])
async def test_a_body_that_does_not_end_in_time_is_no_failure(
    webhook_client: WebhookClient, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    monkeypatch.setattr(client, "BODY_TIMEOUT", 0.3)

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(BODY)
        writer.write(OK + b"content-length: 99\r\n\r\n" + body)
        await writer.drain()

    async with raw_server(behave) as url:
        outcome = await asyncio.wait_for(attempt(webhook_client, url), 10)
    assert outcome == AttemptResult(200, None, outcome.duration_ms, response_body=body)


async def test_a_connection_that_ends_within_the_body_is_no_failure(webhook_client: WebhookClient) -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(BODY)
        writer.write(OK + b"content-length: 99\r\n\r\na part")
        await writer.drain()
        writer.transport.abort()

    async with raw_server(behave) as url:
        outcome = await attempt(webhook_client, url)
    assert (outcome.status_code, outcome.error) == (200, None)


@pytest.mark.parametrize(
    "address, expected",
    [("1.1.1.1", True), ("2606:4700::1111", True), ("127.0.0.1", False), ("10.0.0.8", False), ("fd00::1", False)],
)
def test_only_responses_of_public_addresses_are_kept(address: str, *, expected: bool) -> None:
    assert client.is_public(address) == expected
