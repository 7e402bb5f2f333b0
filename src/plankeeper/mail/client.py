"""Sends a message to the operator's SMTP server: one connection for each message, with TLS."""

import asyncio
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from typing import Any, TypeVar, cast

from plankeeper.core.setting_parsers import SmtpServer

T = TypeVar("T")

TIMEOUT = 10.0  # seconds for each step of the conversation with the server


class MailError(Exception):
    """A message that wasn't sent. The reason has no address; `reply` is the server's, which can contain one.

    A permanent error concerns this message or its recipient: another attempt would fail too.
    """

    def __init__(self, reason: str, reply: str = "", *, is_permanent: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.reply, self.is_permanent = reason, reply, is_permanent


class _ReplyRecorder(smtplib.SMTP):
    """Keeps the server's reply to the message, which smtplib drops."""

    reply = ""

    @property
    def is_encrypted(self) -> bool:
        return isinstance(self.sock, ssl.SSLSocket)

    def data(self, msg: Any) -> tuple[int, bytes]:
        code, text = super().data(msg)
        self.reply = format_reply(code, text)
        return code, text


class _SmtpOverTls(_ReplyRecorder, smtplib.SMTP_SSL):
    pass


@contextmanager
def smtp_connection(server: SmtpServer, local_name: str) -> Generator[_ReplyRecorder]:
    """A connection, encrypted and signed in as the server's settings say. Raises MailError."""
    with _mail_errors():
        if server.uses_tls:
            context = ssl.create_default_context()
            smtp = _SmtpOverTls(server.host, server.port, local_name, timeout=TIMEOUT, context=context)
        else:
            smtp = _ReplyRecorder(server.host, server.port, local_name, timeout=TIMEOUT)
        with smtp:
            smtp.ehlo_or_helo_if_needed()
            if server.uses_starttls:
                _start_tls(smtp, server)
            if server.username:
                smtp.login(server.username, server.password)
            yield smtp


def send(server: SmtpServer, message: EmailMessage) -> str:
    """Send a message and return the server's reply. Raises MailError."""
    domain = message["From"].addresses[0].domain
    with smtp_connection(server, domain) as smtp:
        try:
            smtp.send_message(message)
        except (smtplib.SMTPNotSupportedError, ValueError) as error:
            raise MailError("the server doesn't support the address", str(error), is_permanent=True) from None
    return smtp.reply


async def run_in_thread(work: Callable[[], T]) -> T:
    """The result of a blocking function, in a thread that doesn't keep the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error:
            future.set_exception(error)
        else:
            future.set_result(cast("T", result))

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:  # noqa: BLE001 - it is raised where the result is awaited
            error = raised
        with suppress(RuntimeError):  # the loop has ended in the meantime
            loop.call_soon_threadsafe(finish, result, error)

    threading.Thread(target=run, name="mail", daemon=True).start()
    return await future


def _start_tls(smtp: smtplib.SMTP, server: SmtpServer) -> None:
    if smtp.has_extn("starttls"):
        smtp.starttls(context=ssl.create_default_context())
        smtp.ehlo()
    elif not server.is_loopback:
        raise MailError("the server doesn't offer STARTTLS; ?starttls=off sends mails without encryption")


@contextmanager
def _mail_errors() -> Generator[None]:
    """Errors of the connection and replies of the server as MailError."""
    try:
        yield
    except smtplib.SMTPRecipientsRefused as error:
        code, text = next(iter(error.recipients.values()))
        reply = format_reply(code, text)
        raise MailError(f"the recipient was rejected ({code})", reply, is_permanent=code >= 500) from None
    except smtplib.SMTPResponseException as error:
        is_permanent = isinstance(error, smtplib.SMTPDataError) and error.smtp_code >= 500
        text = f"{type(error).__name__} ({error.smtp_code})"
        raise MailError(text, format_reply(error.smtp_code, error.smtp_error), is_permanent=is_permanent) from None
    except ssl.SSLCertVerificationError as error:
        raise MailError(f"the certificate is invalid: {error.verify_message}") from None
    except socket.gaierror:
        raise MailError("the host name has no address") from None
    except (smtplib.SMTPException, OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else None
        raise MailError(f"{type(error).__name__}{f': {cause}' if cause else ''}") from None


def format_reply(code: int, text: bytes | str) -> str:
    """A reply of the server as one line."""
    decoded = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return f"{code} {' '.join(decoded.split())}"
