"""A server that may send to this machine, receivers, and no endpoint left behind by another test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from ipaddress import ip_network
from typing import Any

import pytest

from plankeeper.embedded_postgres.cluster import Cluster
from support.client import Client
from support.receiver import Receiver
from support.server import RunningServer

NewEndpoint = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def server(cluster: Cluster) -> Iterator[RunningServer]:
    """The application on a real socket, with loopback among the networks that webhooks may be sent to."""
    running = RunningServer(cluster.dsn, webhook_allowed_networks=(ip_network("127.0.0.0/8"),)).start()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def no_leftover_endpoints(request: pytest.FixtureRequest) -> Iterator[None]:
    """A worker sends for all plan managers: what other tests have left would be sent in this one."""
    server: Any = request.getfixturevalue("server") if "server" in request.fixturenames else None
    if server:
        server.run(server.db.execute("delete from webhook_endpoints"))
    yield
    if server:
        server.run(server.db.execute("delete from webhook_endpoints"))


@pytest.fixture
def receivers() -> Iterator[Callable[[], Receiver]]:
    """Starts a receiver: `receivers()`."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Receiver())


@pytest.fixture
def receiver(receivers: Callable[[], Receiver]) -> Receiver:
    return receivers()


@pytest.fixture
def new_endpoint(api: Client, receiver: Receiver) -> NewEndpoint:
    """Makes an endpoint that sends to `receiver`: `hook(payload="full")`; answers it with its secret.

    It wants events of notes alone where nothing else is said: what is done to endpoints makes events too.
    """
    return lambda **members: api.create(
        "/webhook-endpoints", {"url": receiver.url, "event_types": ["note_type.*"]} | members
    )
