"""The common behaviour of all paths: methods, unknown paths, request ids, health, documentation, other origins."""

import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.errors import CODES
from plankeeper.core.logs import JsonFormatter
from plankeeper.http.responses import error_response
from plankeeper.server.app import group_by_path, operations
from support.client import NO_TLS, PREFIX, Client, check_response
from support.cluster import SharedCluster
from support.server import RunningServer
from support.sweeps import sweep

PUBLIC_PATHS = [
    "/",
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/docs",
    "/docs/api",
    "/docs/reference.js",
    "/docs/swagger-ui.css",
]
ORIGIN = "https://app.example.com"


def test_head_returns_the_headers_of_get_without_the_body(api: Client) -> None:
    api.create("/note-types", {"note_type": "Visit"})
    own = {"X-Request-Id": "same"}
    got, head = (api.request(method, "/note-types", headers=own) for method in ("GET", "HEAD"))
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) == len(got.content)
    ignored = {"date", "ratelimit", "synced-until"}
    assert {k: v for k, v in head.headers.items() if k not in ignored} == {
        k: v for k, v in got.headers.items() if k not in ignored
    }


def test_head_is_rejected_like_get(api: Client) -> None:
    assert api.send("HEAD", "/note-types").status_code == 401
    assert api.request("HEAD", f"/participants/{uuid7()}").status_code == 404
    assert api.request("HEAD", "/note-types?limit=0").status_code == 400


@sweep("action", ["cancel", "reopen", "retry", "split", "claim-rest", "claim-result"])
def test_an_action_on_a_line_names_the_invoice_or_the_line_that_is_missing(api: Client, action: str) -> None:
    body = {
        "split": {"date": "2026-01-02", "quantities": [1, 1]},
        "cancel": {"reason": "Wrong"},
        "claim-result": {"outcome": "rejected", "reason": "Wrong"},
    }.get(action)
    invoice_id, line_id = api.create("/invoices", {})["id"], str(uuid7())
    for id_, named in ((str(uuid7()), "invoice"), (invoice_id, "line_item")):
        missing = api.post(f"/invoices/{id_}/lines/{line_id}/{action}", body)
        expected = {"kind": named, "id": id_ if named == "invoice" else line_id}
        assert (missing.status_code, missing.json()["resource"]) == (404, expected)


def test_the_resource_that_is_missing_is_named_as_in_events(api: Client) -> None:
    session_id, run_id = str(uuid7()), str(uuid7())
    session = api.get(f"/invoice-view-sessions/{session_id}").json()
    assert session["resource"] == {"kind": "invoice_view_session", "id": session_id}
    assert session["detail"] == "The plan manager has no invoice view session with the id in the path."
    payment = {"date": "2026-01-02", "reason": "Closed"}
    returned = api.post(f"/payment-runs/{run_id}/payments/{uuid7()}/returned", payment)
    assert returned.json()["resource"] == {"kind": "payment_run", "id": run_id}


@sweep("path", group_by_path(operations()))
def test_a_path_lists_its_methods_and_rejects_all_others(api: Client, path: str) -> None:
    methods = {*group_by_path(operations())[path], "OPTIONS"}
    methods |= {"HEAD"} if "GET" in methods else set()
    allow = ", ".join(sorted(methods))
    real = path.replace("{note_type_id}", "1")
    real = re.sub(r"\{\w+\}", str(uuid7()), real)
    options = api.http.options(real)
    assert (options.status_code, options.headers["allow"], options.json()) == (200, allow, {})
    # The path of one resource has the other methods of a path such as /participants/bulk: see test_bulk.py.
    elsewhere = {"GET", "HEAD", "PUT", "DELETE"} if path.endswith("/bulk") else set[str]()
    for method in {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "TRACE"} - methods - elsewhere:
        response = api.http.request(method, real)
        check_response(response)
        assert (response.status_code, response.headers["allow"]) == (405, allow)
        if method != "HEAD":
            assert response.json() == {
                "success": False, "error": "method_not_allowed", "detail": f"The path supports {allow}.",
                "request_id": response.headers["x-request-id"],
                "documentation_url": "/docs/api/errors#method_not_allowed",
            }  # fmt: skip


@pytest.mark.parametrize("path", PUBLIC_PATHS)
def test_a_public_path_accepts_only_get_and_head(api: Client, path: str) -> None:
    plain = {"Accept-Encoding": "identity"}
    got, head = api.http.get(path, headers=plain), api.http.head(path, headers=plain)
    assert (got.status_code, head.status_code, head.content) == (200, 200, b"")
    assert head.headers["content-length"] == str(len(got.content))
    options = api.http.options(path)
    assert (options.status_code, options.headers["allow"], options.json()) == (200, "GET, HEAD, OPTIONS", {})
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        response = api.http.request(method, path)
        check_response(response)
        assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
        assert response.json()["error"] == "method_not_allowed"


@sweep(
    "path",
    [
        "/nothing", PREFIX, f"{PREFIX}/", f"{PREFIX}/nothing", f"{PREFIX}/participants/", "/participants",
        f"{PREFIX}//participants", f"{PREFIX}/Participants", "/api/public/v2/participants", f"{PREFIX}/note-types/1/",
        "/docs/../docs.html", "/docs/docs.html", "/docs/%2e%2e/__init__.py", "/openapi.json/", "/healthz/",
    ],
)  # fmt: skip
def test_an_unknown_path_is_not_found_by_any_method_and_never_redirected(api: Client, path: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        response = api.http.request(method, path, headers=api.headers())
        check_response(response)
        assert response.status_code == 404
        assert response.json() == {
            "success": False, "error": "path_not_found",
            "detail": CODES["path_not_found"].description,
            "request_id": response.headers["x-request-id"],
            "documentation_url": "/docs/api/errors#path_not_found",
        }  # fmt: skip


def test_the_root_shows_people_and_programs_where_to_go(api: Client) -> None:
    as_program = api.http.get("/")
    assert as_program.json()["documentation"] == "/docs"
    as_browser = api.http.get("/", headers={"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"})
    assert as_browser.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in as_browser.headers["content-security-policy"]
    links = re.findall(r'href="(/[^"]*)"', as_browser.text)
    assert "/docs" in links
    for path in {*links, *(each for each in as_program.json().values() if each.startswith("/"))} - {PREFIX}:
        assert api.http.get(path, follow_redirects=True).status_code == 200
    for response in (as_program, as_browser):
        assert response.headers["vary"] == "Accept"


VALID_REQUEST_IDS = ["a", "~!@#", "3f1c", "a" * 128]
INVALID_REQUEST_IDS = ["", "a b", "a\tb", "a" * 129, "é"]


@pytest.mark.parametrize("path", [f"{PREFIX}/note-types", f"{PREFIX}/nothing", *PUBLIC_PATHS])
def test_a_valid_request_id_is_returned_and_an_invalid_one_replaced(api: Client, path: str) -> None:
    for sane in VALID_REQUEST_IDS:
        assert api.http.get(path, headers={"X-Request-Id": sane}).headers["x-request-id"] == sane
    made = [
        *(api.http.get(path, headers={"X-Request-Id": insane.encode()}) for insane in INVALID_REQUEST_IDS),
        api.http.get(path, headers=[("X-Request-Id", "one"), ("X-Request-Id", "two")]),
        api.http.get(path),
    ]
    ids = [UUID(response.headers["x-request-id"]) for response in made]
    assert len(set(ids)) == len(made)


def test_the_request_id_is_in_the_error(api: Client) -> None:
    response = api.http.get(f"{PREFIX}/note-types", headers={"X-Request-Id": "mine-1"})
    assert response.json()["request_id"] == "mine-1"


def test_a_success_has_a_content_type_and_length(api: Client) -> None:
    response = api.get("/note-types")
    assert response.headers["content-type"] == "application/json"
    assert response.headers["content-length"] == str(len(response.content))


@pytest.mark.parametrize("path", ["/console", "/docs"])
def test_a_slash_at_the_end_of_a_pages_address_is_redirected(api: Client, path: str) -> None:
    for query in ("", "?a=b%20c"):
        response = api.http.get(f"{path}/{query}")
        assert (response.status_code, response.headers["location"]) == (308, path + query)
        assert response.headers["x-request-id"]
    assert api.http.post(f"{path}/").status_code == 405


def test_health_checks_need_no_key(api: Client) -> None:
    for path in ("/healthz", "/readyz"):
        response = api.http.get(path)
        assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_readiness_fails_while_the_database_is_down_but_liveness_does_not() -> None:
    away = RunningServer("postgresql://nobody@127.0.0.1:1/none").start()
    ready = httpx.get(f"{away.url}/readyz", verify=NO_TLS)
    check_response(ready)
    assert (ready.status_code, ready.headers["retry-after"]) == (503, "1")
    assert ready.json() == {
        "success": False, "error": "service_unavailable", "detail": "The database does not respond.",
        "request_id": ready.headers["x-request-id"],
        "documentation_url": "/docs/api/errors#service_unavailable",
    }  # fmt: skip
    assert httpx.get(f"{away.url}/healthz", verify=NO_TLS).json() == {"status": "ok"}
    away.stop()


def test_the_served_openapi_document_is_the_committed_one(api: Client, project: Path) -> None:
    served = api.http.get("/openapi.json")
    assert served.headers["content-type"] == "application/json"
    assert served.json() == json.loads((project / "openapi.json").read_text())


class ResourceParser(HTMLParser):
    """The addresses that a page loads from, and the elements that hold code of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.inline = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.inline += (tag == "script" and "src" not in found) + (tag == "style")
        name = {"link": "href", "script": "src", "img": "src", "iframe": "src"}.get(tag)
        if name:
            self.loaded.append(found[name] or "")


def test_the_reference_loads_nothing_from_another_host(api: Client) -> None:
    page = api.http.get("/docs/api")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    read = ResourceParser()
    read.feed(page.text)
    assert read.loaded == [
        "/docs/swagger-ui.css",
        "/docs/reference.css",
        "data:,",
        "/docs/swagger-ui-bundle.js",
        "/docs/reference.js",
    ]
    assert read.inline == 0
    for address in read.loaded:
        if address.startswith("/"):
            asset = api.http.get(address)
            assert asset.status_code == 200
            assert asset.headers["content-type"].startswith(("text/css", "text/javascript"))
    style = api.http.get("/docs/swagger-ui.css").text
    assert not [found for found in re.findall(r"url\(([^)]*)\)", style) if not found.strip("'\"").startswith("data:")]
    assert "@import" not in style
    own = api.http.get("/docs/reference.js").text
    assert 'url: "/openapi.json"' in own
    assert "validatorUrl: null" in own
    assert "http" not in own


def test_an_unexpected_error_is_logged_and_not_revealed(caplog: pytest.LogCaptureFixture) -> None:
    response = error_response(RuntimeError("select secret from people"), "id-1")
    assert response.status == 500
    assert json.loads(response.body) == {
        "success": False, "error": "internal_error", "request_id": "id-1",
        "detail": CODES["internal_error"].description,
        "documentation_url": "/docs/api/errors#internal_error",
    }  # fmt: skip
    [record] = caplog.records
    line = JsonFormatter().format(record)
    assert {"level": "error", "event": "the request failed", "request_id": "id-1", "error": "RuntimeError"}.items() <= (
        json.loads(line).items()
    )
    assert "secret" not in line


@pytest.mark.parametrize("path", ["/docs/api", "/docs/reference.js", "/openapi.json"])
def test_the_content_security_policy_allows_no_other_host(api: Client, path: str) -> None:
    headers = api.http.get(path).headers
    policy = {name: rest for name, *rest in (part.split() for part in headers["content-security-policy"].split(";"))}
    assert policy["default-src"] == ["'none'"]
    hosts = {source for sources in policy.values() for source in sources}
    assert hosts <= {"'self'", "'none'", "data:"}
    assert policy["script-src"] == policy["style-src"] == ["'self'"]
    assert headers["x-content-type-options"] == "nosniff"


PREFLIGHT = {
    "Origin": ORIGIN, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "authorization",
}  # fmt: skip


def cors_headers(response: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("access-control-")}


def test_other_origins_are_rejected_unless_configured(api: Client) -> None:
    assert cors_headers(api.request("GET", "/note-types", headers={"Origin": ORIGIN})) == {}
    asked = api.http.options(f"{PREFIX}/note-types", headers=PREFLIGHT)
    assert (asked.status_code, cors_headers(asked), asked.json()) == (200, {}, {})


@pytest.fixture
def cors_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    running = RunningServer(cluster.dsn, cors_origins=(ORIGIN,)).start()
    yield running
    running.stop()


def test_only_a_configured_origin_may_read_and_write(
    cors_server: RunningServer, new_plan_manager: Callable[[], UUID], new_key: Callable[..., str]
) -> None:
    owner = new_plan_manager()
    api = Client(cors_server.url, new_key(owner), owner)
    asked = api.http.options(f"{PREFIX}/note-types", headers=PREFLIGHT)
    check_response(asked)
    assert (asked.status_code, asked.json()) == (200, {})
    assert asked.headers["access-control-allow-origin"] == ORIGIN
    assert "authorization" in asked.headers["access-control-allow-headers"]
    assert {"GET", "POST", "PUT", "DELETE"} <= set(asked.headers["access-control-allow-methods"].split(", "))
    for response in (
        api.request("GET", "/note-types", headers={"Origin": ORIGIN}),
        api.send("GET", "/note-types", headers={"Origin": ORIGIN}),
    ):
        assert response.headers["access-control-allow-origin"] == ORIGIN
        assert {"X-Request-Id", "RateLimit", "ETag"} <= set(
            response.headers["access-control-expose-headers"].split(", ")
        )
        assert "access-control-allow-credentials" not in response.headers
    outsider = {"Origin": "https://evil.example"}
    assert "access-control-allow-origin" not in api.request("GET", "/note-types", headers=outsider).headers
    closed = api.http.options(f"{PREFIX}/note-types", headers=PREFLIGHT | outsider | {"X-Request-Id": "mine"})
    assert "access-control-allow-origin" not in closed.headers
    assert (closed.headers["x-request-id"], closed.json()) == ("mine", {})
    api.http.close()
