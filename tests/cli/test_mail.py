"""Commands and the mail server: `mail test`, `doctor`, `accounts create`, and servers that don't start."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from support.cluster import SharedCluster
from support.mail import PUBLIC_URL, MailServer
from support.outbox import Outbox
from support.program import Done, run_plankeeper
from support.server import RunningServer

RECIPIENT = "sam@example.com"


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with MailServer() as running:
        yield running


def run(mail: MailServer, *arguments: str, **more: str) -> Done:
    settings = {"PLANKEEPER_PUBLIC_URL": PUBLIC_URL, "PLANKEEPER_SMTP_URL": mail.url()}
    return run_plankeeper(*arguments, **(settings | more))


def test_a_test_message_reports_the_reply_of_the_server(mail: MailServer) -> None:
    done = run(mail, "mail", "test", RECIPIENT, PLANKEEPER_MAIL_FROM="Plans <plans@example.com>")
    assert done == (0, f"127.0.0.1:{mail.port} accepted the message: 250 2.0.0 OK: queued as 12345\n", "")
    [received] = mail.to(RECIPIENT)
    assert (received.message["Subject"], received.message["From"]) == (
        "Test of Plankeeper", "Plans <plans@example.com>",
    )  # fmt: skip


def test_a_failed_test_message_says_why(mail: MailServer) -> None:
    mail.replies[RECIPIENT] = f"550 5.1.1 <{RECIPIENT}> unknown"
    done = run(mail, "mail", "test", RECIPIENT)
    assert done.returncode == 1
    assert done.stderr == (
        f"Error: Cannot send mails with 127.0.0.1:{mail.port}: the recipient was rejected (550)."
        f" It replied: 550 5.1.1 <{RECIPIENT}> unknown\n"
    )
    mail.stop()
    assert "Connection refused" in run(mail, "mail", "test", RECIPIENT).stderr
    mail.start()
    invalid = run(mail, "mail", "test", "sam")
    assert (invalid.returncode, invalid.stderr.startswith("Error: The email must")) == (1, True)
    unset = run_plankeeper("mail", "test", RECIPIENT)
    assert unset.stderr == "Error: PLANKEEPER_SMTP_URL isn't set, so Plankeeper sends no mails.\n"


def test_doctor_connects_to_the_mail_server(cluster: SharedCluster, mail: MailServer) -> None:
    dsn = cluster.new_database()
    well = run(mail, "doctor", PLANKEEPER_DATABASE_URL=dsn)
    assert f"ok    mail server 127.0.0.1:{mail.port}, without encryption\n" in well.stdout
    assert (well.returncode, mail.received) == (0, [])
    mail.stop()
    sick = run(mail, "doctor", PLANKEEPER_DATABASE_URL=dsn)
    error = "ConnectionRefusedError: Connection refused."
    assert f"FAIL  mail server 127.0.0.1:{mail.port}: {error}\n" in sick.stdout
    assert sick.returncode == 1


def test_doctor_signs_in_to_the_mail_server(cluster: SharedCluster) -> None:
    dsn = cluster.new_database()
    with MailServer(has_login=True) as mail:
        well = run(mail, "doctor", PLANKEEPER_DATABASE_URL=dsn)
        assert f"ok    mail server 127.0.0.1:{mail.port}, without encryption, signed in\n" in well.stdout
        wrong = mail.url().replace("plankeeper:", "plankeeper:wrong")
        sick = run(mail, "doctor", PLANKEEPER_DATABASE_URL=dsn, PLANKEEPER_SMTP_URL=wrong)
    assert f"FAIL  mail server 127.0.0.1:{mail.port}: SMTPAuthenticationError (535). It replied: 535 " in sick.stdout
    assert wrong not in sick.stdout


@pytest.mark.parametrize("command", [["serve"], ["webhook-worker"], ["mail", "test", RECIPIENT], ["doctor"]])
def test_a_mail_server_requires_a_public_url(command: list[str]) -> None:
    done = run_plankeeper(*command, PLANKEEPER_SMTP_URL="smtp://127.0.0.1:25")
    assert done.returncode == 1
    assert "PLANKEEPER_SMTP_URL requires PLANKEEPER_PUBLIC_URL, the address" in done.stdout + done.stderr


def test_an_invitation_on_the_command_line_is_mailed_and_not_printed(
    server: RunningServer, mail: MailServer, plan_manager_id: UUID
) -> None:
    outbox, email = Outbox(server, mail), f"{uuid7().hex}@example.com"
    outbox.server.run(server.db.execute("delete from outgoing_mails"))
    arguments = ["--email", email, "--name", "Sam", "--plan-manager", str(plan_manager_id), "--role", "owner"]
    done = run(mail, "accounts", "create", *arguments, PLANKEEPER_DATABASE_URL=server.dsn)
    assert done == (0, f"A server will send the invitation to {email}.\n", "")
    outbox.catch_up()
    assert outbox.send_due() == 1
    [received] = mail.to(email)
    assert received.links[0].startswith(f"{PUBLIC_URL}/console/invitations/")
