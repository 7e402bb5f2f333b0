"""The connection to the mail server: TLS, sign-in, and what a failed message reports."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme

from plankeeper.core.setting_parsers import SmtpServer
from plankeeper.core.settings import Settings
from plankeeper.mail import client, messages
from support.mail import PUBLIC_URL, USERNAME, MailServer

RECIPIENT = "sam@example.com"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers' authority is one that this machine trusts."""
    file = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(file))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))


@pytest.fixture(params=["starttls", "smtps"])
def tls_server(request: Any, authority: trustme.CA) -> Iterator[MailServer]:
    with MailServer(tls=request.param, has_login=True, authority=authority) as mail:
        yield mail


def send(server: SmtpServer, recipient: str = RECIPIENT) -> str:
    settings = Settings.read({"PLANKEEPER_PUBLIC_URL": PUBLIC_URL})
    message = messages.build_message(settings, recipient, messages.smtp_test(PUBLIC_URL), datetime.now(UTC))
    return client.send(server, message)


def send_and_fail(server: SmtpServer, recipient: str = RECIPIENT) -> client.MailError:
    with pytest.raises(client.MailError) as error:
        send(server, recipient)
    return error.value


@pytest.mark.usefixtures("trusted")
def test_messages_are_sent_over_tls_after_signing_in(tls_server: MailServer) -> None:
    assert send(tls_server.server()) == "250 2.0.0 OK: queued as 12345"
    [received] = tls_server.received
    assert (received.recipients, received.is_encrypted, received.username) == ([RECIPIENT], True, USERNAME)
    assert received.text == f"Plankeeper at {PUBLIC_URL} can send mails.\n"
    assert str(received.message["From"]) == "plankeeper@plans.example.com"
    assert received.message["Auto-Submitted"] == "auto-generated"
    assert received.message["Message-ID"].endswith("@plans.example.com>")


def test_a_certificate_of_an_unknown_authority_is_rejected(tls_server: MailServer) -> None:
    error = send_and_fail(tls_server.server())
    assert str(error).startswith("the certificate is invalid: ")
    assert (error.is_permanent, tls_server.received) == (False, [])


@pytest.mark.usefixtures("trusted")
def test_a_certificate_for_another_name_is_rejected(authority: trustme.CA) -> None:
    with MailServer(tls="smtps", authority=authority) as mail:
        error = send_and_fail(replace(mail.server(), host="localhost"))
    assert str(error).startswith("the certificate is invalid: Hostname mismatch")


@pytest.mark.usefixtures("trusted")
def test_a_wrong_password_can_be_corrected(tls_server: MailServer) -> None:
    error = send_and_fail(replace(tls_server.server(), password="wrong"))
    assert (str(error), error.is_permanent) == ("SMTPAuthenticationError (535)", False)
    assert error.reply.startswith("535 ")
    assert tls_server.received == []


def test_a_server_on_this_machine_needs_no_tls() -> None:
    with MailServer() as mail:
        send(mail.server())
        assert [each.is_encrypted for each in mail.received] == [False]


def test_another_machine_must_offer_starttls_unless_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SmtpServer, "is_loopback", property(lambda _server: False))
    with MailServer() as mail:
        error = send_and_fail(mail.server())
        assert "doesn't offer STARTTLS" in str(error)
        assert (error.is_permanent, mail.received) == (False, [])
        send(mail.server("?starttls=off"))
        assert len(mail.received) == 1


@pytest.mark.parametrize("code, is_permanent", [(550, True), (450, False)])
def test_a_rejected_recipient_is_reported_without_the_address(code: int, is_permanent: bool) -> None:
    with MailServer() as mail:
        mail.replies[RECIPIENT] = f"{code} <{RECIPIENT}> unknown"
        error = send_and_fail(mail.server())
    assert (str(error), error.is_permanent) == (f"the recipient was rejected ({code})", is_permanent)
    assert error.reply == f"{code} <{RECIPIENT}> unknown"


def test_a_server_that_is_down_is_no_permanent_error() -> None:
    error = send_and_fail(MailServer().server())
    assert (str(error), error.is_permanent) == ("ConnectionRefusedError: Connection refused", False)


def test_a_host_name_without_an_address_is_no_permanent_error() -> None:
    error = send_and_fail(replace(MailServer().server(), host="mail.invalid"))
    assert (str(error), error.is_permanent) == ("the host name has no address", False)


async def test_the_result_and_the_error_of_a_thread_are_passed_on() -> None:
    assert await client.run_in_thread(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        await client.run_in_thread(lambda: 1 // 0)
