"""The documented configurations of nginx and HAProxy, in front of a real server: the console and the API work."""

import re
import ssl
import time
from collections.abc import Iterator
from html import unescape
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest
import trustme

from support.client import PREFIX
from support.cluster import SharedCluster
from support.console import PASSWORD
from support.folder import temporary_folder
from support.ports import free_port
from support.program import ServeProcess, run_plankeeper
from support.proxies import COMMANDS, HOST, PROGRAMS, Ports, require_program, start_proxy, write_certificates
from support.receiver import Receiver
from support.server import wait_until

HSTS = "max-age=31536000"
IMPORT_BYTES = 8 * 1024 * 1024


class Site(NamedTuple):
    """A server behind a proxy, with an owner of one plan manager and a key."""

    url: str
    ports: Ports
    serving: ServeProcess
    authority: trustme.CA
    email: str
    plan_manager_id: str
    key: str
    receiver: Receiver

    def client(self) -> httpx.Client:
        """A client that connects to the proxy as if the host's name led there."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        return ProxyClient(self, verify=context)


class ProxyClient(httpx.Client):
    """Sends `Host` and the name for TLS as a browser would after resolving the name, and forms with their `Origin`."""

    def __init__(self, site: Site, **more: Any) -> None:
        super().__init__(base_url=f"https://127.0.0.1:{site.ports.https}", timeout=60, **more)
        self.site = site

    def request(self, method: str, url: Any, **more: Any) -> httpx.Response:
        own = {"Host": f"{HOST}:{self.site.ports.https}"} | ({"Origin": self.site.url} if method == "POST" else {})
        more["headers"] = own | (more.get("headers") or {})
        more["extensions"] = {"sni_hostname": HOST}
        return super().request(method, url, **more)

    def csrf(self, path: str) -> str:
        match = re.search(r'name="csrf" value="([^"]+)"', self.get(path).text)
        assert match, path
        return unescape(match[1])

    def submit(self, page: str, path: str, form: dict[str, str], **more: Any) -> httpx.Response:
        return self.post(path, data={"csrf": self.csrf(page)} | form, **more)

    def sign_in(self) -> httpx.Response:
        return self.submit("/console/sign-in", "/console/sign-in", {"email": self.site.email, "password": PASSWORD})


@pytest.fixture(scope="module", params=PROGRAMS)
def site(request: pytest.FixtureRequest, cluster: SharedCluster) -> Iterator[Site]:
    require_program(request.param)
    dsn, ports = cluster.new_database(), Ports(free_port(), free_port())
    url = f"https://{HOST}:{ports.https}"
    settings = {"PLANKEEPER_DATABASE_URL": dsn, "PLANKEEPER_PUBLIC_URL": url}
    with temporary_folder() as folder, Receiver() as receiver:
        serving = ServeProcess(
            folder,
            **settings,
            PLANKEEPER_TRUSTED_PROXIES="127.0.0.1",
            PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS="127.0.0.1",
            PLANKEEPER_WEBHOOK_WORKER="on",
            PLANKEEPER_AUTH_FAILURE_RATE_LIMIT="20/minute",
        )
        authority = write_certificates(folder, HOST)
        proxy = start_proxy(COMMANDS[request.param](folder, ports, serving.url.removeprefix("http://")), ports.https)
        plan_manager_id = run_plankeeper("plan-managers", "create", "--name", "Acacia", **settings).stdout.strip()
        email = "ada@example.com"
        arguments = ["--email", email, "--name", "Ada", "--plan-manager", plan_manager_id, "--role", "owner"]
        created = run_plankeeper(
            "accounts", "create", *arguments, "--password-stdin", stdin=PASSWORD.encode(), **settings
        )
        assert created.returncode == 0, created
        key = run_plankeeper("keys", "create", "--name", "k", "--plan-manager", plan_manager_id, **settings).stdout
        found = re.search(r"plk_\w+", key)
        assert found, key
        yield Site(url, ports, serving, authority, email, plan_manager_id, found[0], receiver)
        proxy.terminate()
        proxy.wait(30)
        assert serving.stop() == 0


@pytest.fixture
def client(site: Site) -> Iterator[ProxyClient]:
    with site.client() as opened:
        assert isinstance(opened, ProxyClient)
        yield opened


def api_headers(site: Site) -> dict[str, str]:
    return {"Authorization": f"Bearer {site.key}", "X-Plan-Manager-Id": site.plan_manager_id}


def test_sign_in_sets_a_secure_cookie(client: ProxyClient) -> None:
    response = client.sign_in()
    assert (response.status_code, response.headers["location"]) == (303, "/console")
    cookies = [each.split("; ") for each in response.headers.get_list("set-cookie")]
    [session] = [attributes for pair, *attributes in cookies if pair.startswith("__Host-plankeeper=")]
    assert sorted(session) == ["HttpOnly", "Path=/", "SameSite=lax", "Secure"]
    assert all(pair.startswith("__Host-") and "Secure" in attributes for pair, *attributes in cookies)
    assert client.get("/console/participants").status_code == 200


@pytest.mark.parametrize("path", ["/console/sign-in", f"{PREFIX}/participants", "/docs", "/healthz"])
def test_browsers_are_told_once_to_use_only_https(client: ProxyClient, path: str) -> None:
    assert client.get(path).headers.get_list("strict-transport-security") == [HSTS]


def test_plain_http_is_redirected(site: Site) -> None:
    response = httpx.get(f"http://127.0.0.1:{site.ports.http}/console?a=b", headers={"Host": HOST})
    assert (response.status_code, response.headers["location"]) == (301, f"https://{HOST}/console?a=b")


def test_the_api_works(site: Site, client: ProxyClient) -> None:
    name = f"Ada {uuid4()}"
    created = client.post(f"{PREFIX}/participants", json={"first_name": name}, headers=api_headers(site))
    assert created.status_code == 200, created.text
    read = client.get(f"{PREFIX}/participants/{created.json()['id']}", headers=api_headers(site))
    assert read.json()["first_name"] == name


def test_a_body_over_the_limit_of_the_api_gets_the_apis_error(site: Site, client: ProxyClient) -> None:
    body = b'{"first_name": "' + b"a" * 5 * 1024 * 1024 + b'"}'
    headers = api_headers(site) | {"Content-Type": "application/json"}
    response = client.post(f"{PREFIX}/participants", content=body, headers=headers)
    assert (response.status_code, response.json()["error"]) == (413, "body_too_large")


def test_a_file_of_8_mb_is_imported(site: Site, client: ProxyClient) -> None:
    client.sign_in()
    marker = uuid4().hex
    row = f"{{id}},{marker},{'x' * 10_000}\n"
    rows = [row.format(id=uuid4()) for _ in range(IMPORT_BYTES // 10_000)]
    file = ("id,first_name,reason_for_leaving\n" + "".join(rows)).encode()
    assert len(file) >= IMPORT_BYTES
    form = {"csrf": client.csrf("/console/imports/new"), "resource": "participants"}
    uploaded = client.post("/console/imports", data=form, files={"file": ("people.csv", file, "text/csv")})
    assert uploaded.status_code == 303, uploaded.text[:2000]
    done = client.submit("/console/plan-managers", uploaded.headers["location"], {})
    assert done.status_code == 303, done.text[:2000]
    listed = client.get(f"{PREFIX}/participants?limit=1000&after=0", headers=api_headers(site)).json()["data"]
    assert sum(each["first_name"] == marker for each in listed) == len(rows)


def test_a_test_event_is_sent(site: Site, client: ProxyClient) -> None:
    endpoint = {"url": site.receiver.url, "event_types": ["participant.created"]}
    created = client.post(f"{PREFIX}/webhook-endpoints", json=endpoint, headers=api_headers(site))
    assert created.status_code in (200, 201), created.text
    client.sign_in()
    page = f"/console/settings/webhooks/{created.json()['id']}"
    assert client.submit(page, f"{page}/test", {}).status_code == 303
    wait_until(lambda: site.receiver.received)
    assert "webhook-signature" in site.receiver.received[0].headers
    wait_until(lambda: "204" in client.get(page).text)


def test_metrics_are_not_public(client: ProxyClient) -> None:
    assert client.get("/metrics").status_code == 403
    assert client.get("/readyz").status_code == 200


def test_other_hosts_get_no_pages(client: ProxyClient) -> None:
    for host in (HOST, f"evil.example:{client.site.ports.https}"):
        assert client.get("/console/sign-in", headers={"Host": host}).status_code == 421
    assert client.get("/healthz", headers={"Host": "evil.example"}).status_code == 200


def test_clients_cannot_choose_their_address(client: ProxyClient) -> None:
    """The limit of an address counts the address that the proxy sees, whatever the client says."""
    while time.time() % 60 > 50:  # all requests in one minute of the limit
        time.sleep(1)
    statuses = [
        client.get(
            f"{PREFIX}/participants", headers={"X-Forwarded-For": f"198.51.100.{number}", "Authorization": "Bearer x"}
        ).status_code
        for number in range(30)
    ]
    assert (statuses[0], statuses[-1]) == (401, 429)


def test_nginx_logs_no_paths_with_tokens() -> None:
    require_program("nginx")
    ports = Ports(free_port(), free_port())
    with temporary_folder() as folder, Receiver() as backend:
        backend.respond = lambda *_: (200, {}, b"")
        context = ssl.create_default_context()
        write_certificates(folder, HOST).configure_trust(context)
        proxy = start_proxy(COMMANDS["nginx"](folder, ports, f"127.0.0.1:{backend.port}"), ports.https)
        with httpx.Client(verify=context) as client:
            for path in ("approvals/secret", "invitations/secret", "reset-password/secret", "reset-password"):
                url = f"https://127.0.0.1:{ports.https}/console/{path}"
                assert client.get(url, extensions={"sni_hostname": HOST}).status_code == 200
        proxy.terminate()
        proxy.wait(30)
        [line] = (folder / "access.log").read_text().splitlines()
        assert "/console/reset-password " in line


def test_haproxy_passes_requests_on_while_no_server_is_ready() -> None:
    require_program("haproxy")
    ports = Ports(free_port(), free_port())
    with temporary_folder() as folder, Receiver() as backend:
        # Health checks have no user agent.
        backend.respond = lambda headers, _: (200 if "user-agent" in headers else 503, {}, b"from the server")
        context = ssl.create_default_context()
        write_certificates(folder, HOST).configure_trust(context)
        proxy = start_proxy(COMMANDS["haproxy"](folder, ports, f"127.0.0.1:{backend.port}"), ports.https)
        # Until two health checks have failed, HAProxy takes the server for ready.
        wait_until(lambda: sum("user-agent" not in each.headers for each in backend.received) > 4)
        with httpx.Client(verify=context) as client:
            response = client.get(f"https://127.0.0.1:{ports.https}/console", extensions={"sni_hostname": HOST})
        assert (response.status_code, response.content) == (200, b"from the server")
        proxy.terminate()
        proxy.wait(30)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_server_is_told_the_scheme_the_host_and_the_client(name: str) -> None:
    """Also for servers without a public URL, whose cookies and links depend on it."""
    require_program(name)
    ports = Ports(free_port(), free_port())
    with temporary_folder() as folder, Receiver() as backend:
        backend.respond = lambda *_: (200, {}, b"")
        context = ssl.create_default_context()
        write_certificates(folder, HOST).configure_trust(context)
        proxy = start_proxy(COMMANDS[name](folder, ports, f"127.0.0.1:{backend.port}"), ports.https)
        sent = {"Host": f"{HOST}:{ports.https}", "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "http"}
        url = f"https://127.0.0.1:{ports.https}/console"
        with httpx.Client(verify=context) as client:
            extensions = {"sni_hostname": HOST}
            wait_until(lambda: client.get(url, headers=sent, extensions=extensions).status_code == 200)
        proxy.terminate()
        proxy.wait(30)
    # HAProxy's health checks arrive there too.
    [received] = [each.headers for each in backend.received if "user-agent" in each.headers]
    assert received["x-forwarded-proto"] == "https"
    assert received["x-forwarded-for"] == "127.0.0.1"
    assert received["host"] == f"{HOST}:{ports.https}"
