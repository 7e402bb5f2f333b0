"""A server that sends mails, on the database of the run: the story also runs on Citus."""

from collections.abc import Iterator

import pytest

from support.cluster import SharedCluster
from support.mail import PUBLIC_URL, MailServer
from support.outbox import MailingServer
from support.server import RunningServer


@pytest.fixture(scope="module")
def mailing(cluster: SharedCluster) -> Iterator[MailingServer]:
    with MailServer() as mail:
        server = RunningServer(cluster.dsn, smtp_server=mail.server(), public_url=PUBLIC_URL).start()
        yield MailingServer(server, mail)
        server.stop()


@pytest.fixture
def server(mailing: MailingServer) -> RunningServer:
    return mailing.server
