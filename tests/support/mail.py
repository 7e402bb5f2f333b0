"""A real mail server that keeps what it gets, with TLS and a password as a test requires."""

import re
import ssl
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, NamedTuple, Self

import httpx
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from plankeeper.core.setting_parsers import SmtpServer, parse_smtp_url
from support.client import LIMITS, NO_TLS
from support.console import Browser
from support.ports import free_port
from support.server import wait_until

PUBLIC_URL = "https://plans.example.com"
USERNAME, PASSWORD = "plankeeper", "pass word@1"


class ReceivedMail(NamedTuple):
    """A message as the server got it."""

    recipients: list[str]
    message: EmailMessage
    is_encrypted: bool
    username: str | None

    @property
    def text(self) -> str:
        body = self.message.get_body(("plain",))
        assert body
        return body.get_content().replace("\r\n", "\n")

    @property
    def links(self) -> list[str]:
        return re.findall(r"https?://\S+", self.text)


class MailServer:
    """`with MailServer() as mail`: messages are in `received`. `replies` rejects recipients with a reply of the server.

    `tls` is `starttls` or `smtps`. Stopped and started again, it keeps its port.
    """

    def __init__(self, *, tls: str = "", has_login: bool = False, authority: trustme.CA | None = None) -> None:
        self.received: list[ReceivedMail] = []
        self.replies: dict[str, str] = {}
        self._tls, self._has_login = tls, has_login
        self._authority = authority or trustme.CA()
        self.port: int = free_port()
        self._controller: Any = None

    def url(self, query: str = "") -> str:
        login = f"{USERNAME}:{PASSWORD.replace(' ', '%20').replace('@', '%40')}@" if self._has_login else ""
        return f"{'smtps' if self._tls == 'smtps' else 'smtp'}://{login}127.0.0.1:{self.port}{query}"

    def server(self, query: str = "") -> SmtpServer:
        parsed = parse_smtp_url(self.url(query))
        assert parsed
        return parsed

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._controller:
            self.stop()

    def start(self) -> None:
        context = None
        if self._tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._authority.issue_cert("127.0.0.1").configure_cert(context)
        self._controller = Controller(
            self, hostname="127.0.0.1", port=self.port, ready_timeout=60,
            ssl_context=context if self._tls == "smtps" else None,
            tls_context=context if self._tls == "starttls" else None,
            require_starttls=self._tls == "starttls",
            auth_require_tls=self._tls == "starttls", authenticator=_authenticate, auth_required=False,
        )  # fmt: skip
        self._controller.start()

    def stop(self) -> None:
        self._controller.stop()
        self._controller = None

    async def handle_RCPT(self, _server: Any, session: Any, envelope: Any, address: str, _options: Any) -> str:  # noqa: N802
        if self._has_login and not session.authenticated:
            return "530 5.7.0 Authentication required"
        if address in self.replies:
            return self.replies[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        message: Any = message_from_bytes(envelope.content, policy=default)
        username = session.auth_data.login.decode() if session.auth_data else None
        is_encrypted = server.transport.get_extra_info("ssl_object") is not None
        self.received.append(ReceivedMail(list(envelope.rcpt_tos), message, is_encrypted, username))
        return "250 2.0.0 OK: queued as 12345"

    def to(self, email: str) -> list[ReceivedMail]:
        """The messages to an address, oldest first."""
        return [each for each in self.received if each.recipients == [email]]

    def wait_for(self, email: str, count: int = 1) -> ReceivedMail:
        """The mail number `count` to an address."""
        wait_until(lambda: len(self.to(email)) >= count)
        return self.to(email)[count - 1]


def _authenticate(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
    is_right = isinstance(data, LoginPassword) and (data.login, data.password) == (USERNAME.encode(), PASSWORD.encode())
    return AuthResult(success=is_right, handled=is_right, auth_data=data)


class ProxyTransport(httpx.HTTPTransport):
    """Leads requests for the public URL to a server, as a proxy does that terminates TLS."""

    def __init__(self, url: str) -> None:
        super().__init__(verify=NO_TLS, limits=LIMITS)
        self._url = httpx.URL(url)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url.copy_with(scheme="http", host=self._url.host, port=self._url.port)
        inner = httpx.Request(request.method, url, headers=request.headers, stream=request.stream)
        inner.extensions = request.extensions
        return super().handle_request(inner)


def public_browser(url: str) -> Browser:
    """A browser for a server with PUBLIC_URL, without being signed in."""
    return Browser(PUBLIC_URL, ProxyTransport(url))
