"""One attempt, on real sockets: which address is called, what is made of the answer, and what nobody is told."""

import asyncio
import gc
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_network
from typing import Any

import pytest
import trustme

from plankeeper.webhooks import client
from plankeeper.webhooks.client import AttemptResult, WebhookClient
from support.receiver import Headers, Receiver

LOOPBACK = [ip_network("127.0.0.0/8")]
NAME = "hooks.example.com"
BODY = b'{"type":"participant.created"}'
NOT_ALLOWED = "the address is not allowed"
FAILED = "the connection failed"
UNTRUSTED = "the certificate was not accepted"
CRLF = b"\r\n"

CA = trustme.CA()


def server_side(*names: str, ca: trustme.CA = CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*names).configure_cert(context)
    return context


@pytest.fixture(scope="module")
def trust() -> ssl.SSLContext:
    context = ssl.create_default_context()
    CA.configure_trust(context)
    return context


class Names:
    """A DNS that answers each question with the next of its answers, and with the last of them from then on."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append((host, port))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def new_sender(trust: ssl.SSLContext) -> Callable[..., WebhookClient]:
    """Makes a sender that trusts our authority: `new_sender(resolve, allowed=networks)`."""
    return lambda resolve=None, allowed=LOOPBACK, trusted=trust: WebhookClient(allowed, resolve, trusted)


@pytest.fixture
def sender(new_sender: Callable[..., WebhookClient]) -> WebhookClient:
    return new_sender()


async def post(sender: WebhookClient, url: str) -> AttemptResult:
    """One attempt, after which nothing is left open."""
    outcome = await sender.post(url, [("webhook-id", "1")], BODY)
    assert sender._pool.connections == []  # noqa: SLF001
    return outcome


@asynccontextmanager
async def speaking(behave: Callable[[asyncio.StreamReader, Any], Awaitable[None]]) -> AsyncIterator[str]:
    """A server that knows no HTTP. It waits at its end until the other side has closed each connection, by itself and
    not by way of the garbage collector.
    """
    serving: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        with suppress(ConnectionError, EOFError):
            await behave(reader, writer)
            await reader.read()
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    gc.disable()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hooks"
        await asyncio.wait_for(asyncio.gather(*(each for each in serving if each)), 10)
    finally:
        gc.enable()
        server.close()
        await server.wait_closed()


# --- What is sent, and what is made of the answer


async def test_a_message_arrives_as_it_was_made(sender: WebhookClient, receiver: Receiver) -> None:
    headers = [("content-type", "application/json"), ("webhook-id", "1")]
    outcome = await sender.post(f"{receiver.url}/hooks", headers, BODY)
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
async def test_the_path_is_asked_for_as_it_was_written(sender: WebhookClient, path: str, target: str) -> None:
    lines: list[bytes] = []

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append(await reader.readline())
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with speaking(behave) as url:
        assert (await post(sender, url.removesuffix("/hooks") + path)).succeeded
    assert lines == [f"POST {target} HTTP/1.1\r\n".encode()]


@pytest.mark.parametrize("status", [200, 201, 202, 204, 226, 300, 304, 400, 401, 404, 410, 418, 429, 500, 503, 511])
async def test_only_2xx_is_success(sender: WebhookClient, receiver: Receiver, status: int) -> None:
    receiver.answer = lambda _headers, _body: (status, {}, b"secret")
    outcome = await post(sender, receiver.url)
    succeeded = status < 300
    assert outcome == AttemptResult(status, None if succeeded else f"the answer was {status}", outcome.duration_ms)
    assert outcome.succeeded == succeeded


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_failure_and_never_followed(
    sender: WebhookClient, receivers: Callable[[], Receiver], status: int
) -> None:
    first, second = receivers(), receivers()
    first.answer = lambda _headers, _body: (status, {"location": f"{second.url}/there"}, b"")
    outcome = await post(sender, first.url)
    assert outcome == AttemptResult(status, f"the answer was {status}", outcome.duration_ms)
    assert not outcome.succeeded
    assert (len(first.received), second.connections) == (1, 0)


@pytest.fixture
def brisbane(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose clock does not show UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "AEST-10")
        time.tzset()
        yield
    time.tzset()


def in_an_hour(text: str) -> str:
    return (datetime.now(UTC) + timedelta(hours=1)).strftime(text)


@pytest.mark.parametrize(
    "value, least, most",
    [
        ("120", 120, 120), ("0", 0, 0), (" 5 ", 5, 5), ("999999999", 999999999, 999999999),
        (format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True), 3000, 3600),
        (in_an_hour("%A, %d-%b-%y %H:%M:%S GMT"), 3000, 3600), (in_an_hour("%a %b %d %H:%M:%S %Y"), 3000, 3600),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0), ("Fri, 31 Dec 9999 23:59:59 GMT", 1e9, 1e12),
    ],
    ids=range(9),
)  # fmt: skip
async def test_a_receiver_may_say_when_to_come_again(
    sender: WebhookClient, receiver: Receiver, brisbane: None, value: str, least: float, most: float
) -> None:
    receiver.answer = lambda _headers, _body: (503, {"Retry-After": value}, b"")
    retry_after = (await post(sender, receiver.url)).retry_after
    assert retry_after is not None
    assert least <= retry_after <= most


@pytest.mark.parametrize(
    "value",
    ["", "soon", "-5", "+5", "1.5", "1e3", "5 s", "0x10", "1_000", "9" * 400, "\xb2", "5, 6", "inf", "nan", "Mon",
     "Wed, 99 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 99999999 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:00 +99999999999"],
)  # fmt: skip
async def test_nonsense_in_retry_after_is_ignored(sender: WebhookClient, receiver: Receiver, value: str) -> None:
    receiver.answer = lambda _headers, _body: (503, {"Retry-After": value}, b"")
    outcome = await post(sender, receiver.url)
    assert outcome == AttemptResult(503, "the answer was 503", outcome.duration_ms)


async def test_settings_for_proxies_are_not_followed(
    new_sender: Callable[..., WebhookClient], receivers: Callable[[], Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, receiver = receivers(), receivers()
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    assert (await post(new_sender(), receiver.url)).succeeded
    assert (proxy.connections, receiver.connections) == (0, 1)


# --- Which address is called


async def test_the_connection_goes_to_the_address_that_was_checked_whatever_dns_says_next(
    new_sender: Callable[..., WebhookClient],
) -> None:
    names = Names(["127.0.0.2"], ["127.0.0.3"])  # of which only the first is allowed
    sender = new_sender(names, [ip_network("127.0.0.2/32")])
    with (
        Receiver(server_side(NAME), "127.0.0.2") as right,
        Receiver(server_side(NAME), "127.0.0.3", right.port) as wrong,
    ):
        url = f"https://{NAME}:{right.port}/"
        assert (await post(sender, url)).status_code == 204
        assert names.asked == [(NAME, right.port)]
        outcome = await post(sender, url)  # asked again: a kept connection would go to yesterday's address
        assert outcome == AttemptResult(None, NOT_ALLOWED, outcome.duration_ms)
        assert names.asked == [(NAME, right.port)] * 2
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
async def test_a_name_is_refused_unless_all_its_addresses_are_public(
    new_sender: Callable[..., WebhookClient], monkeypatch: pytest.MonkeyPatch, answer: list[str]
) -> None:
    names = Names(answer)
    sender = new_sender(names, ())
    called = forbid_connections(sender, monkeypatch)
    outcome = await post(sender, f"https://{NAME}/")
    assert outcome == AttemptResult(None, NOT_ALLOWED, outcome.duration_ms)
    assert (names.asked, called) == ([(NAME, 443)], [])


async def test_each_of_a_name_s_public_addresses_is_called_at_times(
    new_sender: Callable[..., WebhookClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = ["1.1.1.1", "1.0.0.1", "2606:4700::1"]
    sender = new_sender(Names(answer), ())
    called = forbid_connections(sender, monkeypatch)
    for _ in range(100):
        outcome = await post(sender, f"https://{NAME}/")
        assert outcome == AttemptResult(None, FAILED, outcome.duration_ms)
    assert len(called) == 100
    assert set(called) == set(answer)


def forbid_connections(sender: WebhookClient, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """None is made; answers the list of those that would have been."""
    called: list[str] = []

    async def connect_tcp(host: str, *_: object, **__: object) -> None:
        called.append(host)
        raise ConnectionRefusedError(host)

    monkeypatch.setattr(sender._pool._network_backend._inner, "connect_tcp", connect_tcp)  # noqa: SLF001
    return called


async def test_the_system_s_own_names_are_checked_too(
    new_sender: Callable[..., WebhookClient], receiver: Receiver
) -> None:
    """`localhost` is resolved by the system, as every name is in production."""
    sender = new_sender(allowed=())
    outcome = await post(sender, f"https://localhost:{receiver.port}/")
    assert (outcome.error, receiver.connections) == (NOT_ALLOWED, 0)


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "localhost", "127.0.0.1", "[::ffff:127.0.0.1]"])
async def test_an_address_that_was_kept_before_it_was_forbidden_is_not_called(
    new_sender: Callable[..., WebhookClient], receiver: Receiver, host: str
) -> None:
    for scheme in ("http", "https"):
        outcome = await post(new_sender(allowed=()), f"{scheme}://{host}:{receiver.port}/")
        assert (outcome.error, receiver.connections) == (NOT_ALLOWED, 0)


@pytest.mark.parametrize(
    "fault, told",
    [
        (socket.gaierror(-2, "Name or service not known"), "the name has no address"),
        (UnicodeError("label empty or too long"), "the name has no address"),
        (OSError("too many open files"), FAILED),
    ],
)
async def test_a_name_that_cannot_be_looked_up_is_a_failure(
    new_sender: Callable[..., WebhookClient], fault: Exception, told: str
) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        raise fault

    outcome = await post(new_sender(resolve), f"https://{NAME}/")
    assert outcome == AttemptResult(None, told, outcome.duration_ms)


# --- TLS


async def test_the_certificate_must_be_the_name_s_though_an_address_is_called(
    new_sender: Callable[..., WebhookClient],
) -> None:
    told: list[str | None] = []
    context = server_side(NAME)
    context.sni_callback = lambda _connection, name, _context: told.append(name)
    with Receiver(context) as receiver:
        names = Names(["127.0.0.1"])
        assert (await post(new_sender(names), f"https://{NAME.upper()}:{receiver.port}/")).status_code == 204
        outcome = await post(new_sender(names), f"https://other.example.com:{receiver.port}/")
        assert outcome == AttemptResult(None, UNTRUSTED, outcome.duration_ms)
        assert told == [NAME, "other.example.com"]
        [got] = receiver.received
        assert got.headers["host"] == f"{NAME}:{receiver.port}"


async def test_an_address_s_certificate_must_be_for_the_address(new_sender: Callable[..., WebhookClient]) -> None:
    for name, status in (("127.0.0.1", 204), (NAME, None), ("127.0.0.2", None)):
        with Receiver(server_side(name)) as receiver:
            assert (await post(new_sender(), receiver.url)).status_code == status


@pytest.mark.parametrize("trusted", [None, ssl.create_default_context()])
async def test_a_certificate_of_an_unknown_authority_is_refused(
    new_sender: Callable[..., WebhookClient], trusted: ssl.SSLContext | None
) -> None:
    with Receiver(server_side(NAME)) as receiver:
        outcome = await post(new_sender(Names(["127.0.0.1"]), trusted=trusted), f"https://{NAME}:{receiver.port}/")
    assert outcome == AttemptResult(None, UNTRUSTED, outcome.duration_ms)
    assert receiver.received == []


async def test_a_certificate_that_has_run_out_is_refused(new_sender: Callable[..., WebhookClient]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CA.issue_cert(NAME, not_after=datetime.now(UTC) - timedelta(days=1)).configure_cert(context)
    with Receiver(context) as receiver:
        outcome = await post(new_sender(Names(["127.0.0.1"])), f"https://{NAME}:{receiver.port}/")
    assert (outcome.error, receiver.received) == (UNTRUSTED, [])


# --- Receivers that do not behave


async def nothing(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    pass


def says(*pieces: bytes, again: bytes = b"") -> Callable[..., Awaitable[None]]:
    """Says the pieces and closes, or says the last one without an end."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(BODY)
        for piece in pieces:
            writer.write(piece)
        while again:
            writer.write(again)
            await writer.drain()
            await asyncio.sleep(0.02)
        await writer.drain()
        writer.write_eof()

    return behave


OK = b"HTTP/1.1 200 OK\r\n"
SLOW = [
    nothing,
    says(OK, again=b"X-A: b\r\n"),
    says(OK, b"X: ", again=b"x"),
    says(again=b"HTTP/1.1 100 Continue\r\n\r\n"),
    says(again=b"HTTP/1.1 103 Early Hints\r\n\r\n"),
]


@pytest.mark.parametrize("scheme, behave", [("https", nothing), *(("http", each) for each in SLOW)])
async def test_who_does_not_answer_in_time_has_failed_and_is_hung_up_on(
    sender: WebhookClient, monkeypatch: pytest.MonkeyPatch, scheme: str, behave: Callable[..., Awaitable[None]]
) -> None:
    monkeypatch.setattr(client, "ATTEMPT_TIMEOUT", 0.3)
    async with speaking(behave) as url:
        outcome = await asyncio.wait_for(post(sender, url.replace("http:", f"{scheme}:")), 10)
    assert outcome == AttemptResult(None, "no answer within 0.3 s", outcome.duration_ms)


async def test_a_slow_dns_is_given_no_more_time(
    new_sender: Callable[..., WebhookClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ATTEMPT_TIMEOUT", 0.3)

    async def resolve(_host: str, _port: int) -> list[str]:
        await asyncio.sleep(60)
        return ["127.0.0.1"]

    assert (await post(new_sender(resolve), f"https://{NAME}/")).error == "no answer within 0.3 s"


@pytest.mark.parametrize(
    "head",
    [OK + CRLF, OK + b"content-length: 99999999999\r\n\r\n", OK + b"transfer-encoding: chunked\r\n\r\nfffffff\r\n"],
)
async def test_an_endless_body_is_not_read(sender: WebhookClient, head: bytes) -> None:
    sent = 0

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(BODY)
        writer.write(head)
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536

    async with speaking(behave) as url:
        outcome = await asyncio.wait_for(post(sender, url), 10)
    assert outcome == AttemptResult(200, None, outcome.duration_ms)
    assert sent < 50_000_000


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
async def test_what_is_no_answer_is_a_failure(sender: WebhookClient, answer: bytes) -> None:
    async with speaking(says(answer)) as url:
        outcome = await post(sender, url)
    assert outcome == AttemptResult(None, FAILED, outcome.duration_ms)


async def test_who_does_not_speak_tls_has_failed(sender: WebhookClient) -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(OK + CRLF)
        await writer.drain()

    async with speaking(behave) as url:
        outcome = await post(sender, url.replace("http:", "https:"))
    assert outcome.status_code is None
    assert outcome.error in {UNTRUSTED, FAILED}


async def test_a_closed_port_is_a_failure_that_tells_no_address(sender: WebhookClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    outcome = await post(sender, f"http://127.0.0.1:{port}/")
    assert outcome == AttemptResult(None, FAILED, outcome.duration_ms)


async def test_attempts_run_side_by_side(sender: WebhookClient, receiver: Receiver) -> None:
    """Each waits until all have arrived."""
    here = 0

    async def answer(_headers: Headers, _body: bytes) -> tuple[int, Headers, bytes]:
        nonlocal here
        here += 1
        while here < 50:
            await asyncio.sleep(0.01)
        return 200, {}, b""

    receiver.answer = answer
    began = time.monotonic()
    outcomes = await asyncio.gather(*(sender.post(receiver.url, [], BODY) for _ in range(50)))
    assert [each.status_code for each in outcomes] == [200] * 50
    assert all(0 <= each.duration_ms <= (time.monotonic() - began) * 1000 + 1 for each in outcomes)
