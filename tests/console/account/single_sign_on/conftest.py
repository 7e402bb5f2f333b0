"""A server with a public URL, a provider for each test, and browsers at the public URL."""

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from support.cluster import SharedCluster
from support.console import Account
from support.openid_provider import OpenIdProvider
from support.server import RunningServer
from support.single_sign_on import PublicBrowser, move_to_domain, public_server, set_up_provider


@pytest.fixture(scope="module")
def server(cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = public_server(cluster, tmp_path_factory.mktemp("keys"))
    yield running
    running.stop()


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    with OpenIdProvider() as running:
        yield running


@pytest.fixture
def domain(server: RunningServer, provider: OpenIdProvider, plan_manager_id: UUID) -> str:
    """A domain of the test's own, whose people sign in at the provider."""
    name = f"{plan_manager_id}.example"
    set_up_provider(server, plan_manager_id, provider.issuer, name)
    return name


@pytest.fixture
def new_browser(server: RunningServer) -> Iterator[Callable[..., PublicBrowser]]:
    opened: list[PublicBrowser] = []

    def make(account: Account | None = None) -> PublicBrowser:
        opened.append(PublicBrowser(server))
        if account:
            assert opened[-1].sign_in(account).status_code == 303
        return opened[-1]

    yield make
    for each in opened:
        each.http.close()


@pytest.fixture
def browser(new_browser: Callable[..., PublicBrowser]) -> PublicBrowser:
    return new_browser()


@pytest.fixture
def person(server: RunningServer, new_account: Callable[..., Account], domain: str) -> Account:
    """An owner with a password and an email in the provider's domain."""
    return move_to_domain(server, new_account("owner"), domain)
