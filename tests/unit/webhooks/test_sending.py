"""One delivery attempt on real sockets: the address, the response, and what is not revealed."""

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest
import trustme

from plankeeper.webhooks import client
from plankeeper.webhooks.client import AttemptResult, WebhookClient
from support.ports import free_port
from support.receiver import Headers, Receiver
from support.webhook_attempts import BODY, CRLF, OK, attempt, raw_server

LOOPBACK = [ip_network("127.0.0.0/8")]
HOST_NAME = "hooks.example.com"
ADDRESS_NOT_ALLOWED = "the host has no public address"
CONNECTION_FAILED = "the connection failed"
CERTIFICATE_REJECTED = "the certificate is not valid"

CA = trustme.CA()


def server_side(*names: str, ca: trustme.CA = CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*names).configure_cert(context)
    return context


@pytest.fixture(scope="module")
def trust_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    CA.configure_trust(context)
    return context


class FakeResolver:
    """A DNS that returns its results one after the other, and then the last one again and again."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.queries: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.queries.append((host, port))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def new_webhook_client(trust_context: ssl.SSLContext) -> Callable[..., WebhookClient]:
    """Makes a sender that trusts our authority: `new_sender(resolve, allowed=networks)`."""
    return lambda resolve=None, allowed=LOOPBACK, trusted=trust_context: WebhookClient(allowed, resolve, trusted)


@pytest.fixture
def public_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Local receivers count as public, so that their responses are kept."""
    monkeypatch.setattr(client, "is_public", lambda _address: True)


@pytest.fixture
def webhook_client(new_webhook_client: Callable[..., WebhookClient]) -> WebhookClient:
    return new_webhook_client()


# --- What is sent, and what is made of the answer


async def test_a_message_arrives_unchanged(webhook_client: WebhookClient, receiver: Receiver) -> None:
    headers = [("content-type", "application/json"), ("webhook-id", "1")]
    outcome = await webhook_client.post(f"{receiver.url}/hooks", headers, BODY)
    assert outcome == AttemptResult(204, None, outcome.duration_ms)
    assert outcome.succeeded
    [got] = receiver.received
    assert got.body == BODY
    own = {"host": receiver.url.removeprefix("http://"), "content-length": str(len(BODY))}
    assert got.headers == dict(headers) | own


@pytest.mark.parametrize(
    "path, target",
    [("", "/"), ("/", "/"), ("?a=1", "/?a=1"), *[(each, each) for each in ("/a;b=1;c?d=e;f&g=//h?", "//a/../%2e")]],
)
async def test_the_path_is_requested_verbatim(webhook_client: WebhookClient, path: str, target: str) -> None:
    lines: list[bytes] = []

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append(await reader.readline())
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with raw_server(behave) as url:
        assert (await attempt(webhook_client, url.removesuffix("/hooks") + path)).succeeded
    assert lines == [f"POST {target} HTTP/1.1\r\n".encode()]


@pytest.mark.usefixtures("public_addresses")
@pytest.mark.parametrize("status", [200, 201, 202, 204, 226, 300, 304, 400, 401, 404, 410, 418, 429, 500, 503, 511])
async def test_only_2xx_is_success(webhook_client: WebhookClient, receiver: Receiver, status: int) -> None:
    receiver.respond = lambda _headers, _body: (status, {}, b"secret")
    outcome = await attempt(webhook_client, receiver.url)
    succeeded = status < 300
    has_body = status not in (204, 304)
    assert outcome == AttemptResult(
        status,
        None if succeeded else f"the response status was {status}",
        outcome.duration_ms,
        response_body=b"secret" if has_body else b"",
    )
    assert outcome.succeeded == succeeded


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_failure_and_never_followed(
    webhook_client: WebhookClient, receivers: Callable[[], Receiver], status: int
) -> None:
    first, second = receivers(), receivers()
    first.respond = lambda _headers, _body: (status, {"location": f"{second.url}/there"}, b"")
    outcome = await attempt(webhook_client, first.url)
    assert outcome == AttemptResult(status, f"the response status was {status}", outcome.duration_ms)
    assert not outcome.succeeded
    assert (len(first.received), second.connections) == (1, 0)


@pytest.fixture
def brisbane_time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose clock does not show UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "AEST-10")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    "value, minimum, maximum",
    [
        ("120", 120, 120),
        ("0", 0, 0),
        (" 5 ", 5, 5),
        ("999999999", 999999999, 999999999),
        ("%a, %d %b %Y %H:%M:%S GMT", 3000, 3600),
        ("%A, %d-%b-%y %H:%M:%S GMT", 3000, 3600),
        ("%a %b %d %H:%M:%S %Y", 3000, 3600),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 1e9, 1e12),
    ],
    ids=range(9),
)
async def test_retry_after_is_honoured(
    webhook_client: WebhookClient,
    receiver: Receiver,
    brisbane_time_zone: None,
    value: str,
    minimum: float,
    maximum: float,
) -> None:
    # Not when the tests are collected, which can be long before.
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    receiver.respond = lambda _headers, _body: (503, {"Retry-After": in_an_hour.strftime(value)}, b"")
    retry_after = (await attempt(webhook_client, receiver.url)).retry_after
    assert retry_after is not None
    assert minimum <= retry_after <= maximum


@pytest.mark.parametrize(
    "value",
    ["", "soon", "-5", "+5", "1.5", "1e3", "5 s", "0x10", "1_000", "9" * 400, "\xb2", "5, 6", "inf", "nan", "Mon",
     "Wed, 99 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 99999999 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:00 +99999999999"],
)  # fmt: skip
async def test_an_invalid_retry_after_is_ignored(webhook_client: WebhookClient, receiver: Receiver, value: str) -> None:
    receiver.respond = lambda _headers, _body: (503, {"Retry-After": value}, b"")
    outcome = await attempt(webhook_client, receiver.url)
    assert outcome == AttemptResult(503, "the response status was 503", outcome.duration_ms)


async def test_proxy_environment_variables_are_ignored(
    new_webhook_client: Callable[..., WebhookClient], receivers: Callable[[], Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, receiver = receivers(), receivers()
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    assert (await attempt(new_webhook_client(), receiver.url)).succeeded
    assert (proxy.connections, receiver.connections) == (0, 1)


# --- Which address is called


async def test_the_connection_uses_the_validated_address_despite_dns_changes(
    new_webhook_client: Callable[..., WebhookClient],
) -> None:
    names = FakeResolver(["127.0.0.2"], ["127.0.0.3"])  # of which only the first is allowed
    sender = new_webhook_client(names, [ip_network("127.0.0.2/32")])
    with (
        Receiver(server_side(HOST_NAME), "127.0.0.2") as right,
        Receiver(server_side(HOST_NAME), "127.0.0.3", right.port) as wrong,
    ):
        url = f"https://{HOST_NAME}:{right.port}/"
        assert (await attempt(sender, url)).status_code == 204
        assert names.queries == [(HOST_NAME, right.port)]
        outcome = await attempt(sender, url)  # resolved again: a keep-alive connection would use the old address
        assert outcome == AttemptResult(None, ADDRESS_NOT_ALLOWED, outcome.duration_ms)
        assert names.queries == [(HOST_NAME, right.port)] * 2
        assert (right.connections, wrong.connections) == (1, 0)


@pytest.mark.parametrize(
    "answer",
    [
        ["127.0.0.1"], ["1.1.1.1", "127.0.0.1"], ["127.0.0.1", "1.1.1.1"], ["2606:4700::1", "::1"], ["0.0.0.0"],  # noqa: S104
        ["::ffff:127.0.0.1"], ["::ffff:1.1.1.1"], ["64:ff9b::7f00:1"], ["64:ff9b::1.1.1.1"], ["2002:7f00:1::"], ["::"],
        ["2001:0:7f00:1::"], ["fe80::1%lo"], ["::1%1"], ["169.254.169.254"], ["100.64.0.1"], ["10.0.0.1"],
        ["::127.0.0.1"], [], [""], ["localhost"], ["1.1.1.1", "127.1"], ["0x7f000001"],
    ],
)  # fmt: skip
async def test_a_name_is_rejected_unless_all_its_addresses_are_public(
    new_webhook_client: Callable[..., WebhookClient], monkeypatch: pytest.MonkeyPatch, answer: list[str]
) -> None:
    names = FakeResolver(answer)
    sender = new_webhook_client(names, ())
    called = forbid_connections(sender, monkeypatch)
    outcome = await attempt(sender, f"https://{HOST_NAME}/")
    assert outcome == AttemptResult(None, ADDRESS_NOT_ALLOWED, outcome.duration_ms)
    assert (names.queries, called) == ([(HOST_NAME, 443)], [])


async def test_each_public_address_of_a_name_is_used_eventually(
    new_webhook_client: Callable[..., WebhookClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = ["1.1.1.1", "1.0.0.1", "2606:4700::1"]
    sender = new_webhook_client(FakeResolver(answer), ())
    called = forbid_connections(sender, monkeypatch)
    for _ in range(100):
        outcome = await attempt(sender, f"https://{HOST_NAME}/")
        assert outcome == AttemptResult(None, CONNECTION_FAILED, outcome.duration_ms)
    assert len(called) == 100
    assert set(called) == set(answer)


def forbid_connections(webhook_client: WebhookClient, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make no connection, and return the list of the attempted ones."""
    called: list[str] = []

    async def connect_tcp(host: str, *_: object, **__: object) -> None:
        called.append(host)
        raise ConnectionRefusedError(host)

    monkeypatch.setattr(webhook_client._pool._network_backend._inner, "connect_tcp", connect_tcp)  # noqa: SLF001
    return called


async def test_system_host_names_are_validated_too(
    new_webhook_client: Callable[..., WebhookClient], receiver: Receiver
) -> None:
    """`localhost` is resolved by the system, as every name is in production."""
    sender = new_webhook_client(allowed=())
    outcome = await attempt(sender, f"https://localhost:{receiver.port}/")
    assert (outcome.error, receiver.connections) == (ADDRESS_NOT_ALLOWED, 0)


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "localhost", "127.0.0.1", "[::ffff:127.0.0.1]"])
async def test_a_stored_address_that_became_forbidden_is_not_called(
    new_webhook_client: Callable[..., WebhookClient], receiver: Receiver, host: str
) -> None:
    for scheme in ("http", "https"):
        outcome = await attempt(new_webhook_client(allowed=()), f"{scheme}://{host}:{receiver.port}/")
        assert (outcome.error, receiver.connections) == (ADDRESS_NOT_ALLOWED, 0)


@pytest.mark.parametrize(
    "error, message",
    [
        # The same as for an address that is not allowed, or the message would reveal which internal names exist.
        (socket.gaierror(-2, "Name or service not known"), ADDRESS_NOT_ALLOWED),
        (UnicodeError("label empty or too long"), ADDRESS_NOT_ALLOWED),
        (OSError("too many open files"), CONNECTION_FAILED),
    ],
)
async def test_a_name_that_cannot_be_resolved_is_a_failure(
    new_webhook_client: Callable[..., WebhookClient], error: Exception, message: str
) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        raise error

    outcome = await attempt(new_webhook_client(resolve), f"https://{HOST_NAME}/")
    assert outcome == AttemptResult(None, message, outcome.duration_ms)


# --- TLS


async def test_the_certificate_must_match_the_host_name(
    new_webhook_client: Callable[..., WebhookClient],
) -> None:
    reported: list[str | None] = []
    context = server_side(HOST_NAME)
    context.sni_callback = lambda _connection, name, _context: reported.append(name)
    with Receiver(context) as receiver:
        names = FakeResolver(["127.0.0.1"])
        assert (
            await attempt(new_webhook_client(names), f"https://{HOST_NAME.upper()}:{receiver.port}/")
        ).status_code == 204
        outcome = await attempt(new_webhook_client(names), f"https://other.example.com:{receiver.port}/")
        assert outcome == AttemptResult(None, CERTIFICATE_REJECTED, outcome.duration_ms)
        assert reported == [HOST_NAME, "other.example.com"]
        [got] = receiver.received
        assert got.headers["host"] == f"{HOST_NAME}:{receiver.port}"


async def test_the_certificate_for_an_ip_address_must_match_it(
    new_webhook_client: Callable[..., WebhookClient],
) -> None:
    for name, status in (("127.0.0.1", 204), (HOST_NAME, None), ("127.0.0.2", None)):
        with Receiver(server_side(name)) as receiver:
            assert (await attempt(new_webhook_client(), receiver.url)).status_code == status


@pytest.mark.parametrize("trusted", [None, ssl.create_default_context()])
async def test_a_certificate_of_an_unknown_authority_is_rejected(
    new_webhook_client: Callable[..., WebhookClient], trusted: ssl.SSLContext | None
) -> None:
    with Receiver(server_side(HOST_NAME)) as receiver:
        outcome = await attempt(
            new_webhook_client(FakeResolver(["127.0.0.1"]), trusted=trusted), f"https://{HOST_NAME}:{receiver.port}/"
        )
    assert outcome == AttemptResult(None, CERTIFICATE_REJECTED, outcome.duration_ms)
    assert receiver.received == []


async def test_an_expired_certificate_is_rejected(new_webhook_client: Callable[..., WebhookClient]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CA.issue_cert(HOST_NAME, not_after=datetime.now(UTC) - timedelta(days=1)).configure_cert(context)
    with Receiver(context) as receiver:
        outcome = await attempt(
            new_webhook_client(FakeResolver(["127.0.0.1"])), f"https://{HOST_NAME}:{receiver.port}/"
        )
    assert (outcome.error, receiver.received) == (CERTIFICATE_REJECTED, [])


# --- Receivers that do not behave


async def do_nothing(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    pass


def send_pieces(*pieces: bytes, repeated: bytes = b"") -> Callable[..., Awaitable[None]]:
    """Says the pieces and closes, or says the last one without an end."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(BODY)
        for piece in pieces:
            writer.write(piece)
        while repeated:
            writer.write(repeated)
            await writer.drain()
            await asyncio.sleep(0.02)
        await writer.drain()
        writer.write_eof()

    return behave


SLOW_BEHAVIOURS = [
    do_nothing,
    send_pieces(OK, repeated=b"X-A: b\r\n"),
    send_pieces(OK, b"X: ", repeated=b"x"),
    send_pieces(repeated=b"HTTP/1.1 100 Continue\r\n\r\n"),
    send_pieces(repeated=b"HTTP/1.1 103 Early Hints\r\n\r\n"),
]


@pytest.mark.parametrize("scheme, behave", [("https", do_nothing), *(("http", each) for each in SLOW_BEHAVIOURS)])
async def test_a_receiver_that_does_not_respond_in_time_fails_and_is_disconnected(
    webhook_client: WebhookClient, monkeypatch: pytest.MonkeyPatch, scheme: str, behave: Callable[..., Awaitable[None]]
) -> None:
    monkeypatch.setattr(client, "ATTEMPT_TIMEOUT", 0.3)
    async with raw_server(behave) as url:
        outcome = await asyncio.wait_for(attempt(webhook_client, url.replace("http:", f"{scheme}:")), 10)
    assert outcome == AttemptResult(None, "no response within 0.3 s", outcome.duration_ms)


async def test_slow_dns_counts_towards_the_timeout(
    new_webhook_client: Callable[..., WebhookClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ATTEMPT_TIMEOUT", 0.3)

    async def resolve(_host: str, _port: int) -> list[str]:
        await asyncio.sleep(60)
        return ["127.0.0.1"]

    assert (await attempt(new_webhook_client(resolve), f"https://{HOST_NAME}/")).error == "no response within 0.3 s"


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"\x15\x03\x01\x00\x02\x02\x46", b"<html>", b"\xff" * 3000, OK,
        b"HTTP/1.1\r\n\r\n", b"HTTP/1.1 OK\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1 -20 OK\r\n\r\n", OK + b"X",
        b"HTTP/1.1 200", OK + b"content-length: x\r\n\r\n", OK + b"content-length: -1\r\n\r\n", b"\0" * 200_000,
        OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\n", OK + b"a b: c\r\n\r\n", OK + b": x\r\n\r\n",
        OK + b"x: " + b"y" * 200_000, OK + b"x: a\0b\r\n\r\n",
    ],
)  # fmt: skip
async def test_an_invalid_response_is_a_failure(webhook_client: WebhookClient, answer: bytes) -> None:
    async with raw_server(send_pieces(answer)) as url:
        outcome = await attempt(webhook_client, url)
    assert outcome == AttemptResult(None, CONNECTION_FAILED, outcome.duration_ms)


async def test_a_receiver_without_tls_is_a_failure(webhook_client: WebhookClient) -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(OK + CRLF)
        await writer.drain()

    async with raw_server(behave) as url:
        outcome = await attempt(webhook_client, url.replace("http:", "https:"))
    assert outcome.status_code is None
    assert outcome.error in {CERTIFICATE_REJECTED, CONNECTION_FAILED}


async def test_a_closed_port_is_a_failure_that_reveals_no_address(webhook_client: WebhookClient) -> None:
    outcome = await attempt(webhook_client, f"http://127.0.0.1:{free_port()}/")
    assert outcome == AttemptResult(None, CONNECTION_FAILED, outcome.duration_ms)


async def test_attempts_run_concurrently(webhook_client: WebhookClient, receiver: Receiver) -> None:
    """Each waits until all have arrived."""
    here = 0

    async def answer(_headers: Headers, _body: bytes) -> tuple[int, Headers, bytes]:
        nonlocal here
        here += 1
        while here < 50:
            await asyncio.sleep(0.01)
        return 200, {}, b""

    receiver.respond = answer
    began = time.monotonic()
    outcomes = await asyncio.gather(*(webhook_client.post(receiver.url, [], BODY) for _ in range(50)))
    assert [each.status_code for each in outcomes] == [200] * 50
    assert all(0 <= each.duration_ms <= (time.monotonic() - began) * 1000 + 1 for each in outcomes)
