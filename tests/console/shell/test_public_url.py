"""With a public URL, the console's cookies, forms and links belong to it, whatever a request says about itself."""

import re
from collections.abc import Callable, Iterator
from html import unescape
from uuid import UUID

import httpx
import pytest

from plankeeper.console.shell.static_files import static_url
from plankeeper.http.browsers import is_public_host
from support.client import NO_TLS, PREFIX
from support.cluster import SharedCluster
from support.console import PASSWORD, Account
from support.server import RunningServer

PUBLIC_URL = "https://plans.example.com"
HOST = {"Host": "plans.example.com"}
HSTS = "max-age=31536000"
OTHER_HOSTS = ["127.0.0.1", "localhost:8000", "evil.example", "plans.example.com.evil.example", "plans.example.com:80"]
BROWSER_PATHS = [
    "/console",
    "/console/sign-in",
    "/console/nothing",
    static_url("console.css"),
    "/docs",
    "/docs/api",
    "/docs/reference.js",
    "/docs/webhooks",
]


@pytest.fixture(scope="module")
def public_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    """A server with a public URL. A proxy that terminates TLS would be in front of it."""
    running = RunningServer(cluster.dsn, public_url=PUBLIC_URL).start()
    yield running
    running.stop()


@pytest.fixture
def http(public_server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=public_server.url, timeout=60, verify=NO_TLS) as client:
        yield client


def csrf_of(page: httpx.Response) -> str:
    match = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert match, page.text
    return unescape(match[1])


def set_cookies(response: httpx.Response) -> dict[str, list[str]]:
    """The attributes of the cookies that a response sets."""
    cookies = [each.split("; ") for each in response.headers.get_list("set-cookie")]
    return {pair.partition("=")[0]: sorted(attributes) for pair, *attributes in cookies}


def cookie_header(response: httpx.Response) -> dict[str, str]:
    """The cookies of a response as a browser would send them back: httpx sends no secure cookie over plain HTTP."""
    pairs = [each.partition(";")[0] for each in response.headers.get_list("set-cookie")]
    return {"Cookie": "; ".join(pair for pair in pairs if not pair.endswith('=""'))}


def sign_in(http: httpx.Client, account: Account, origin: str = PUBLIC_URL) -> httpx.Response:
    page = http.get("/console/sign-in", headers=HOST)
    form = {"csrf": csrf_of(page), "email": account.email, "password": PASSWORD}
    return http.post("/console/sign-in", data=form, headers={"Origin": origin, **HOST, **cookie_header(page)})


def test_cookies_are_secure_whatever_the_scheme_of_the_request(
    http: httpx.Client, new_account: Callable[..., Account]
) -> None:
    for headers in (HOST, HOST | {"X-Forwarded-Proto": "http"}):
        page = http.get("/console/sign-in", headers=headers)
        assert set(set_cookies(page)) == {"__Host-plankeeper-form"}
        assert "Secure" in set_cookies(page)["__Host-plankeeper-form"]
    signed_in = sign_in(http, new_account())
    assert signed_in.status_code == 303
    assert set_cookies(signed_in)["__Host-plankeeper"] == ["HttpOnly", "Path=/", "SameSite=lax", "Secure"]
    assert not {"plankeeper", "plankeeper-form", "plankeeper-flash"} & set(set_cookies(signed_in))


@pytest.mark.parametrize("origin", ["http://plans.example.com", "https://plans.example.com:8443", "https://127.0.0.1"])
def test_a_form_comes_from_the_public_url(http: httpx.Client, new_account: Callable[..., Account], origin: str) -> None:
    assert sign_in(http, new_account(), origin).status_code == 403


def test_links_begin_with_the_public_url(http: httpx.Client, new_account: Callable[..., Account]) -> None:
    session = cookie_header(sign_in(http, new_account()))
    page = http.get("/console/settings/people", headers=HOST | session)
    form = {"csrf": csrf_of(page), "email": "new@example.com", "role": "viewer", "name": ""}
    headers = {"Origin": PUBLIC_URL, **HOST, **session}
    invited = http.post("/console/settings/people", data=form, headers=headers)
    assert f"{PUBLIC_URL}/console/invitations/" in invited.text
    assert "127.0.0.1" not in invited.text


@pytest.mark.parametrize("path", BROWSER_PATHS)
def test_pages_for_browsers_are_served_only_to_the_public_host(http: httpx.Client, path: str) -> None:
    for host in ("plans.example.com", "Plans.Example.com:443"):
        response = http.get(path, headers={"Host": host})
        assert response.status_code in (200, 303, 404)
        assert response.headers["strict-transport-security"] == HSTS
    for host in OTHER_HOSTS:
        for method in ("GET", "HEAD", "POST"):
            response = http.request(method, path, headers={"Host": host})
            assert response.status_code == 421
            assert response.text == ("" if method == "HEAD" else f"This server's public address is {PUBLIC_URL}.\n")
            assert response.headers["x-request-id"]
            assert "set-cookie" not in response.headers


@pytest.mark.parametrize("host", [*OTHER_HOSTS, "plans.example.com"])
def test_the_api_and_health_checks_accept_any_host(
    http: httpx.Client, new_key: Callable[..., str], plan_manager_id: UUID, host: str
) -> None:
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json"):
        assert http.get(path, headers={"Host": host}).status_code == 200
    headers = {"Host": host, "Authorization": f"Bearer {new_key(plan_manager_id)}"}
    headers["X-Plan-Manager-Id"] = str(plan_manager_id)
    assert http.get(f"{PREFIX}/participants", headers=headers).status_code == 200
    unknown = http.get(f"{PREFIX}/nothing", headers=headers)
    assert unknown.status_code == 404
    invalid = http.get(f"{PREFIX}/participants?limit=0", headers=headers)
    for response in (unknown, invalid):
        error = response.json()
        assert error["documentation_url"] == f"{PUBLIC_URL}/docs/api/errors#{error['error']}"


def test_without_a_public_url_the_request_decides(server: RunningServer) -> None:
    with httpx.Client(base_url=server.url, timeout=60, verify=NO_TLS) as http:
        for host in OTHER_HOSTS:
            http.cookies.clear()
            plain = http.get("/console/sign-in", headers={"Host": host})
            assert plain.status_code == 200
            assert set(set_cookies(plain)) == {"plankeeper-form"}
            assert "strict-transport-security" not in plain.headers
            http.cookies.clear()
            forwarded = http.get("/console/sign-in", headers={"Host": host, "X-Forwarded-Proto": "https"})
            assert set(set_cookies(forwarded)) == {"__Host-plankeeper-form"}
            assert forwarded.headers["strict-transport-security"] == HSTS


@pytest.mark.parametrize(
    "host, public_url, same",
    [
        ("a.example", "https://a.example", True),
        ("A.EXAMPLE:443", "https://a.example", True),
        ("a.example:8443", "https://a.example:8443", True),
        ("[2001:db8::1]:443", "https://[2001:db8::1]", True),
        ("a.example", "https://a.example:8443", False),
        ("a.example:8443", "https://a.example", False),
        ("a.example.", "https://a.example", False),
        ("", "https://a.example", False),
    ],
)
def test_hosts_are_compared_with_the_public_url(host: str, public_url: str, same: bool) -> None:
    assert is_public_host(host, public_url) is same
