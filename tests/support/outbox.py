"""The queue of mails with a sender whose clock a test sets, and a server that sends its mails by itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from plankeeper.core.settings import Settings
from plankeeper.mail import sender as mail_sender
from plankeeper.mail.sender import MailSender
from plankeeper.server.mails import OUTCOMES, WRITERS
from support.cluster import SharedCluster
from support.mail import PUBLIC_URL, MailServer
from support.server import RunningServer


class Outbox:
    """The queue of a server that sends no mails, a sender, and the mail server that it sends to."""

    def __init__(self, server: RunningServer, mail: MailServer) -> None:
        self.server, self.mail = server, mail
        self.settings: Settings = replace(server.settings, smtp_server=mail.server(), public_url=PUBLIC_URL)
        self.now = datetime.now(UTC)

    def sender(self) -> MailSender:
        place = (self.server.db, self.settings, self.mail.server())
        return MailSender(*place, WRITERS, clock=lambda: self.now, outcomes=OUTCOMES)

    def send_due(self) -> int:
        """Send what is due, and return how many mails were handled."""
        sender, count = self.sender(), 0
        while self.server.run(sender.send_next()):
            count += 1
        return count

    def wait(self, delay: timedelta) -> None:
        self.now += delay

    def catch_up(self) -> None:
        """Set the clock to the present, after something that used the real time."""
        self.now = max(self.now, datetime.now(UTC))

    def rows(self) -> list[str]:
        """Everything that is stored about mails."""
        return self.server.run(self.server.db.rows(str, "select outgoing_mails::text from outgoing_mails order by id"))


class MailingServer(NamedTuple):
    """A server with a database of its own that sends its mails to `mail`, soon."""

    server: RunningServer
    mail: MailServer


@contextmanager
def mailing_server(cluster: SharedCluster, **settings: object) -> Iterator[MailingServer]:
    dsn = cluster.new_database()
    with MailServer() as mail, pytest.MonkeyPatch.context() as patch:
        patch.setattr(mail_sender, "POLL_INTERVAL", 0.05)
        server = RunningServer(dsn, smtp_server=mail.server(), public_url=PUBLIC_URL, **settings).start()
        try:
            yield MailingServer(server, mail)
        finally:
            server.stop()
            cluster.drop(dsn)
