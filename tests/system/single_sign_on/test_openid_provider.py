"""Single sign-on with a real OpenID Connect provider, npm's `oidc-provider`, and what it never sends.

A proxy in front of the provider can replace the ID token in the response of the token endpoint.
"""

import hmac
import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import UUID

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import invitations
from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.access.single_sign_on.service import code_challenge_of, code_verifier_of
from plankeeper.core.context import SYSTEM, WriteContext
from support.client import NO_TLS
from support.cluster import SharedCluster
from support.console import Account
from support.openid_provider import CLIENT_ID, CLIENT_SECRET, KEY, Claims, encode_part, join_token, sign_token
from support.program import run_plankeeper
from support.server import RunningServer
from support.single_sign_on import (
    LINK,
    PUBLIC_URL,
    START,
    PublicBrowser,
    link_at,
    move_to_domain,
    public_server,
    set_up_provider,
)

FOLDER = Path(__file__).parent
HOME = "/console"
OTHER_CLIENT = ("another client", "another secret")
OTHER_CALLBACK = f"{PUBLIC_URL}/another-client"
MAX_TESTS = 30  # the number of plan managers whose redirect addresses are registered
INVALID = f"{START}/failed?reason=invalid"


def require_node() -> None:
    """Skip a test that needs Node where it is missing; in continuous integration, fail it."""
    reason = ""
    if not shutil.which("node"):
        reason = "node is missing: install it (Debian: apt-get install nodejs npm), run scripts/node_modules.sh"
    elif not (FOLDER / "node_modules/oidc-provider").is_dir():
        reason = "the npm package oidc-provider is missing: run scripts/node_modules.sh"
    if reason:
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


class RealProvider:
    """`oidc-provider` behind a proxy, while in `with`."""

    def __init__(self, claims_in_id_token: str) -> None:
        self.replace: Callable[[str], str] = str
        self.id_tokens: list[str] = []  # those that the provider issued
        self.http = httpx.Client(timeout=60, verify=NO_TLS)
        handler = type("Handler", (_Proxy,), {"provider": self})
        self.plan_manager_ids = [uuid7() for _ in range(MAX_TESTS)]
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        keys = json.dumps([KEY.as_dict(private=True)])
        self._process = subprocess.Popen(
            ["node", "provider.mjs", self.issuer, keys, self._clients(), claims_in_id_token],
            cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().removeprefix("port "))
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def _clients(self) -> str:
        callbacks = [f"{PUBLIC_URL}{START}/{each}/callback" for each in self.plan_manager_ids]
        clients = ((CLIENT_ID, CLIENT_SECRET, callbacks), (*OTHER_CLIENT, [OTHER_CALLBACK]))
        names = ("client_id", "client_secret", "redirect_uris")
        return json.dumps([dict(zip(names, each, strict=True)) for each in clients])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.http.close()
        self._process.terminate()
        self._process.wait(20)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def authorize(self, url: str, email: str) -> str:
        """Sign in and consent, as a person does with a browser: the address that the provider redirects to."""
        assert url.startswith(f"{self.issuer}/auth?"), url
        with httpx.Client(base_url=self.issuer, timeout=60, verify=NO_TLS) as browser:
            response = browser.get(url)
            for _ in range(10):
                location = response.headers.get("location", "")
                if location.startswith(PUBLIC_URL):
                    return location
                response = browser.get(location) if location else self._submit(browser, response, email)
        raise AssertionError(response.text)

    def _submit(self, browser: httpx.Client, page: httpx.Response, email: str) -> httpx.Response:
        action = re.search(r'<form[^>]* action="([^"]+)"', page.text)
        prompt = re.search(r'name="prompt" value="([^"]+)"', page.text)
        assert action, page.text
        assert prompt, page.text
        return browser.post(action[1], data={"prompt": prompt[1], "login": email, "password": "any"})

    def token_for_another_client(self, nonce: str, email: str) -> str:
        """A token that the provider issues to another client, with the nonce of the sign-in."""
        query = {
            "response_type": "code", "client_id": OTHER_CLIENT[0], "redirect_uri": OTHER_CALLBACK,
            "scope": "openid email profile", "nonce": nonce, "state": "x", "code_challenge_method": "S256",
            "code_challenge": code_challenge_of("x"),
        }  # fmt: skip
        address = self.authorize(f"{self.issuer}/auth?{urlencode(query)}", email)
        form = {
            "grant_type": "authorization_code", "code": parse_qs(urlsplit(address).query)["code"][0],
            "redirect_uri": OTHER_CALLBACK, "code_verifier": code_verifier_of("x"),
        }  # fmt: skip
        response = self.http.post(f"{self.issuer}/token", data=form, auth=OTHER_CLIENT)
        return response.json()["id_token"]


class _Proxy(BaseHTTPRequestHandler):
    provider: RealProvider

    def do_GET(self) -> None:
        self._forward(b"")

    def do_POST(self) -> None:
        self._forward(self.rfile.read(int(self.headers["content-length"])))

    def _forward(self, body: bytes) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        url = f"http://127.0.0.1:{self.provider.port}{self.path}"
        response = self.provider.http.request(self.command, url, headers=headers, content=body)
        self.provider.http.cookies.clear()
        content = response.content
        if self.path == "/token" and response.status_code == 200:
            document = response.json()
            self.provider.id_tokens.append(document["id_token"])
            content = json.dumps(document | {"id_token": self.provider.replace(document["id_token"])}).encode()
        self.send_response(response.status_code)
        for name, value in response.headers.multi_items():
            if name not in ("content-length", "transfer-encoding", "content-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests' output is for failures."""


@pytest.fixture(scope="module", params=["yes", "no"], ids=["claims in the ID token", "claims of userinfo"])
def provider(request: pytest.FixtureRequest) -> Iterator[RealProvider]:
    require_node()
    running = RealProvider(request.param)
    yield running
    running.close()


@pytest.fixture(autouse=True)
def honest(provider: RealProvider) -> None:
    provider.replace = str


@pytest.fixture(scope="module")
def server(cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = public_server(cluster, tmp_path_factory.mktemp("keys"))
    yield running
    running.stop()


@pytest.fixture
def plan_manager_id(server: RunningServer, provider: RealProvider) -> UUID:
    """A plan manager whose redirect address is registered at the provider."""

    async def insert() -> UUID:
        async with server.db.transaction() as tx:
            inserted = await plan_managers.insert(tx, provider.plan_manager_ids.pop(), "Test plan manager")
            assert inserted
            return inserted.id

    return server.run(insert())


@pytest.fixture
def domain(server: RunningServer, provider: RealProvider, plan_manager_id: UUID) -> str:
    name = f"{plan_manager_id}.example"
    set_up_provider(server, plan_manager_id, provider.issuer, name)
    return name


@pytest.fixture
def person(server: RunningServer, new_account: Callable[..., Account], domain: str) -> Account:
    return move_to_domain(server, new_account("owner"), domain)


@pytest.fixture
def new_browser(server: RunningServer) -> Iterator[Callable[[], PublicBrowser]]:
    opened: list[PublicBrowser] = []

    def make() -> PublicBrowser:
        opened.append(PublicBrowser(server))
        return opened[-1]

    yield make
    for each in opened:
        each.http.close()


def resigned(**changes: Any) -> Callable[[str], str]:
    """The provider's token with other claims, signed with its key."""

    def replace(token: str) -> str:
        return sign_token(jwt.decode(token, KeySet([KEY])).claims | changes)

    return replace


def unsigned(token: str) -> str:
    return join_token({"alg": "none"}, jwt.decode(token, KeySet([KEY])).claims)


def with_public_key_as_secret(token: str) -> str:
    signed = join_token({"alg": "HS256", "kid": "first"}, jwt.decode(token, KeySet([KEY])).claims).rpartition(".")[0]
    return f"{signed}.{encode_part(hmac.digest(KEY.as_pem(private=False), signed.encode(), 'sha256'))}"


def test_a_person_links_signs_in_and_requires_single_sign_on(
    server: RunningServer, provider: RealProvider, new_browser: Callable[[], PublicBrowser],
    plan_manager_id: UUID, person: Account, cluster: SharedCluster,
) -> None:  # fmt: skip
    browser = new_browser()
    assert link_at(browser, provider.authorize, plan_manager_id, person) == HOME
    again = new_browser()
    assert again.come_back(provider.authorize(again.start(plan_manager_id), person.email)) == HOME
    assert again.get(HOME).status_code == 200
    required = again.submit("/console/settings/people/single-sign-on", {"required": "yes"})
    assert required.status_code == 303
    with_password = new_browser()
    assert with_password.sign_in(person).status_code == 303
    assert with_password.get(HOME).headers["location"] == "/console/plan-managers"
    done = run_plankeeper(
        "sso", "optional", "--plan-manager", str(plan_manager_id), PLANKEEPER_DATABASE_URL=cluster.dsn
    )
    assert (done.returncode, done.stdout) == (0, "Single sign-on is now optional.\n")
    assert with_password.get(HOME).status_code == 200


def test_an_invited_person_joins(
    server: RunningServer, provider: RealProvider, new_browser: Callable[[], PublicBrowser],
    plan_manager_id: UUID, domain: str,
) -> None:  # fmt: skip
    async def invite() -> str:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            return await invitations.invite(ctx, f"kim@{domain}", "viewer")

    browser = new_browser()
    url = browser.start(plan_manager_id, invitation=server.run(invite()))
    assert browser.come_back(provider.authorize(url, f"kim@{domain}")) == HOME
    assert "Robin Hale" in browser.get("/console/account").text


@pytest.mark.parametrize(
    "replace",
    [
        resigned(aud="another client"),
        resigned(exp=int(time.time()) - 120),
        resigned(iat=int(time.time()) - 3600),
        resigned(iss="https://login.example.com"),
        resigned(nonce="another"),
        unsigned,
        with_public_key_as_secret,
        lambda token: token.rpartition(".")[0] + ".",
    ],
    ids=["audience", "expired", "old", "issuer", "nonce", "unsigned", "HS256", "without signature"],
)
def test_a_changed_token_is_rejected(
    provider: RealProvider, new_browser: Callable[[], PublicBrowser], plan_manager_id: UUID, person: Account,
    replace: Callable[[str], str],
) -> None:  # fmt: skip
    provider.replace = replace
    browser = new_browser()
    assert browser.come_back(provider.authorize(browser.start(plan_manager_id), person.email)) == INVALID


def test_a_token_that_was_issued_to_another_client_is_rejected(
    provider: RealProvider, new_browser: Callable[[], PublicBrowser], plan_manager_id: UUID, person: Account
) -> None:
    browser = new_browser()
    url = browser.start(plan_manager_id)
    foreign = provider.token_for_another_client(parse_qs(urlsplit(url).query)["nonce"][0], person.email)
    claims: Claims = jwt.decode(foreign, KeySet([KEY])).claims
    assert (claims["aud"], claims["sub"]) == ("another client", person.email)
    provider.replace = lambda _own: foreign
    assert browser.come_back(provider.authorize(url, person.email)) == INVALID


def test_the_redirect_address_of_another_plan_manager_is_refused(
    server: RunningServer, provider: RealProvider, new_browser: Callable[[], PublicBrowser],
    new_plan_manager: Callable[[], UUID],
) -> None:  # fmt: skip
    other = new_plan_manager()
    set_up_provider(server, other, provider.issuer, f"{other}.example")
    response = provider.http.get(new_browser().start(other))
    provider.http.cookies.clear()
    assert (response.status_code, "redirect_uri" in response.text) == (400, True)


def test_responses_codes_and_tokens_cannot_be_replayed(
    provider: RealProvider, new_browser: Callable[[], PublicBrowser], plan_manager_id: UUID, person: Account
) -> None:
    browser, thief = new_browser(), new_browser()
    address = provider.authorize(browser.start(plan_manager_id), person.email)
    assert browser.come_back(address) == LINK
    token = provider.id_tokens[-1]
    assert browser.come_back(address) == f"{START}/failed?reason=expired"
    own = httpx.URL(provider.authorize(thief.start(plan_manager_id), person.email))
    code = parse_qs(urlsplit(address).query)["code"][0]
    assert thief.come_back(str(own.copy_set_param("code", code))) == f"{START}/failed?reason=unavailable"
    provider.replace = lambda _new: token
    again = new_browser()
    assert again.come_back(provider.authorize(again.start(plan_manager_id), person.email)) == INVALID


@pytest.mark.parametrize("email", ["robin@example.com", "unverified@{domain}"])
def test_an_email_of_another_domain_or_without_verification_is_rejected(
    provider: RealProvider, new_browser: Callable[[], PublicBrowser], plan_manager_id: UUID, domain: str, email: str
) -> None:
    browser = new_browser()
    address = provider.authorize(browser.start(plan_manager_id), email.format(domain=domain))
    assert browser.come_back(address) == f"{START}/failed?reason=email"
