"""A server with a public URL and a secret key, and browsers that reach it through TLS."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from plankeeper.access.single_sign_on import providers
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.encryption.cipher import create_key_file
from support.client import NO_TLS
from support.cluster import SharedCluster
from support.console import PASSWORD, Account, Browser
from support.openid_provider import CLIENT_ID, CLIENT_SECRET, OpenIdProvider
from support.server import RunningServer
from support.tls_front import PUBLIC_URL

START = "/console/single-sign-on"
LINK = f"{START}/link"


class _ProxyTransport(httpx.BaseTransport):
    """Stands for a proxy that terminates TLS: the client sees https, the server the name of the public host."""

    def __init__(self, url: str) -> None:
        self._url, self._inner = httpx.URL(url), httpx.HTTPTransport(verify=NO_TLS)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url.copy_with(scheme="http", host=self._url.host, port=self._url.port)
        forwarded = httpx.Request(request.method, url, headers=request.headers, stream=request.stream)
        return self._inner.handle_request(forwarded)

    def close(self) -> None:
        self._inner.close()


class PublicBrowser(Browser):
    """A browser at the public URL. It doesn't follow redirects to a provider: that is the test's part."""

    session_cookie = "__Host-plankeeper"

    def __init__(self, server: RunningServer) -> None:
        super().__init__(PUBLIC_URL, _ProxyTransport(server.url))

    def start(self, plan_manager_id: UUID, **query: str) -> str:
        """The provider's address that a sign-in leads to."""
        response = self.get(f"{START}/{plan_manager_id}/start", params=query)
        assert response.status_code == 303, response.text
        return response.headers["location"]

    def come_back(self, url: str) -> str:
        """Where the callback leads to."""
        response = self.get(url)
        assert response.status_code == 303, response.text
        return response.headers["location"]

    def sign_in_at(self, provider: OpenIdProvider, plan_manager_id: UUID, email: str, **claims: Any) -> str:
        """Where a complete round trip leads to."""
        return self.come_back(provider.authorize(self.start(plan_manager_id), email, **claims))


def public_server(cluster: SharedCluster, folder: Path) -> RunningServer:
    """A server whose single sign-on works, started."""
    create_key_file(folder / "secret.keys")
    return RunningServer(cluster.dsn, public_url=PUBLIC_URL, secret_key_file=folder / "secret.keys").start()


def set_up_provider(server: RunningServer, plan_manager_id: UUID, issuer: str, *domains: str) -> None:
    async def run() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            await providers.set_up(ctx, issuer, CLIENT_ID, CLIENT_SECRET, domains)

    server.run(run())


def move_to_domain(server: RunningServer, account: Account, domain: str) -> Account:
    """Give an account an email in a provider's domain."""
    email = f"robin@{domain}"
    server.run(server.db.execute("update accounts set email = $2 where id = $1", account.account_id, email))
    return account._replace(email=email)


def link(browser: PublicBrowser, provider: OpenIdProvider, plan_manager_id: UUID, person: Account) -> str:
    return link_at(browser, provider.authorize, plan_manager_id, person)


def link_at(
    browser: PublicBrowser, authorize: Callable[[str, str], str], plan_manager_id: UUID, person: Account
) -> str:
    """Sign in at a provider, and link the identity with the account's password: where it leads to."""
    assert browser.come_back(authorize(browser.start(plan_manager_id), person.email)) == LINK
    response = browser.submit(LINK, {"password": PASSWORD}, LINK)
    assert response.status_code == 303, response.text
    return response.headers["location"]
