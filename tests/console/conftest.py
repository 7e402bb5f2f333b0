"""A server that may send webhooks to this machine, people with roles, and their browsers."""

from collections.abc import Callable, Iterator
from ipaddress import ip_network
from uuid import UUID

import pytest

from console.people import Account, Browser, create_account
from plankeeper.embedded_postgres.cluster import Cluster
from support.server import RunningServer


@pytest.fixture(scope="session")
def server(cluster: Cluster) -> Iterator[RunningServer]:
    """The application on a real socket, with loopback among the networks that webhooks may be sent to."""
    running = RunningServer(cluster.dsn, webhook_allowed_networks=(ip_network("127.0.0.0/8"),)).start()
    yield running
    running.stop()


@pytest.fixture
def plan_manager_id(new_plan_manager: Callable[[], UUID]) -> UUID:
    return new_plan_manager()


@pytest.fixture
def new_person(server: RunningServer, plan_manager_id: UUID) -> Callable[..., Account]:
    """Makes a sign-in: `new_person("viewer")`; of another plan manager with its id."""
    return lambda role="owner", owner=None: server.run(create_account(server, owner or plan_manager_id, role))


@pytest.fixture
def new_browser(server: RunningServer) -> Iterator[Callable[..., Browser]]:
    """Opens a browser, signed in where somebody is given: `new_browser(new_person("viewer"))`."""
    opened: list[Browser] = []

    def make(account: Account | None = None) -> Browser:
        opened.append(Browser(server.url))
        if account:
            assert opened[-1].sign_in(account).status_code == 303
        return opened[-1]

    yield make
    for each in opened:
        each.http.close()


@pytest.fixture
def owner(new_browser: Callable[..., Browser], new_person: Callable[..., Account]) -> Browser:
    """Signed in with the role owner."""
    return new_browser(new_person("owner"))
