"""The common behaviour of all pages: roles, origins of forms, cookies and headers."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from uuid_utils.compat import uuid7

from plankeeper.access.policy import PERMISSIONS, ROLES
from plankeeper.console.application import page_routes
from plankeeper.console.shell.cookies import Cookies
from plankeeper.console.shell.responses import Origin
from plankeeper.console.shell.routing import PageRoute
from plankeeper.console.shell.static_files import STATIC_DIR, read_content, static_url
from support.console import PASSWORD, Account, Browser, give_permissions
from support.server import RunningServer
from support.sweeps import sweep

ROUTES = {f"{each.method} {each.path}": each for each in page_routes()}
PROTECTED = {name: each for name, each in ROUTES.items() if each.role != "anyone"}
# Pages that need no session.
PUBLIC = {
    "GET /console/sign-in",
    "POST /console/sign-in",
    "GET /console/invitations/{token}",
    "POST /console/invitations/{token}",
    "GET /console/approvals/{approval_token}",
    "GET /console/approvals/{approval_token}/pages/{number}",
    "POST /console/approvals/{approval_token}/approve",
    "POST /console/approvals/{approval_token}/reject",
    "GET /console/single-sign-on",
    "POST /console/single-sign-on",
    "GET /console/single-sign-on/{plan_manager_id}/start",
    "GET /console/single-sign-on/{plan_manager_id}/callback",
    "GET /console/single-sign-on/failed",
    "GET /console/single-sign-on/link",
    "POST /console/single-sign-on/link",
    "GET /console/forgot-password",
    "POST /console/forgot-password",
    "GET /console/reset-password/{reset_token}",
    "POST /console/reset-password/{reset_token}",
}
PASSWORD_VERIFIED = {"GET /console/two-factor", "POST /console/two-factor", "POST /console/sign-out"}
# Pages that somebody with a session needs no role for.
SIGNED_IN = {"GET /console/plan-managers", "POST /console/plan-managers"} | {
    name for name in ROUTES if name.endswith("/console/account") or "/console/account/" in name
}
VIEWER_PAGES = {
    "GET /console",
    "GET /console/account-managers",
    "GET /console/activity",
    "GET /console/activity/{event_id}/request",
    "GET /console/activity/{event_id}",
    "GET /console/checks",
    "GET /console/trash",
    "GET /console/trash/{entry_id}",
    "GET /console/invoices",
    "GET /console/invoices.csv",
    "GET /console/invoices.xlsx",
    "GET /console/invoices/selected.csv",
    "GET /console/invoices/selected.xlsx",
    "GET /console/invoices/{invoice_id}",
    "GET /console/invoices/{invoice_id}/notes",
    "GET /console/invoices/{invoice_id}/document",
    "GET /console/invoices/{invoice_id}/document/pages/{number}",
    "GET /console/list-settings",
    "GET /console/note-types",
    "GET /console/participants",
    "GET /console/plans",
    "GET /console/plans.csv",
    "GET /console/plans.xlsx",
    "GET /console/plans/budgets",
    "GET /console/plans/components",
    "GET /console/plans/components.csv",
    "GET /console/plans/components.xlsx",
    "GET /console/reports/service-standard",
    "GET /console/reports/service-standard.csv",
    "GET /console/reports/service-standard.xlsx",
    "GET /console/participants.csv",
    "GET /console/participants.xlsx",
    "GET /console/participants/selected.csv",
    "GET /console/participants/selected.xlsx",
    "GET /console/participants/{participant_id}",
    "GET /console/participants/{participant_id}/invoices",
    "GET /console/participants/{participant_id}/plans",
    "GET /console/participants/{participant_id}/statements",
    "GET /console/participants/{participant_id}/statements/{statement_id}",
    "GET /console/participants/{participant_id}/statements/{statement_id}/pdf",
    "GET /console/participants/{participant_id}/team",
    "GET /console/participants/{participant_id}/team-members/{team_member_id}",
    "GET /console/participants/{participant_id}/timeline",
    "GET /console/participants/{participant_id}/notes",
    "GET /console/providers",
    "GET /console/providers.csv",
    "GET /console/providers.xlsx",
    "GET /console/providers/selected.csv",
    "GET /console/providers/selected.xlsx",
    "GET /console/providers/{provider_id}",
    "GET /console/providers/{provider_id}/notes",
    "GET /console/review",
    "GET /console/review/{invoice_id}",
    "GET /console/requests",
    "GET /console/requests.csv",
    "GET /console/requests.xlsx",
    "GET /console/requests/{logged_request_id}",
    "GET /console/search",
    "GET /console/search/suggest",
    "GET /console/settings",
    "GET /console/settings/people",
    "GET /console/settings/webhooks",
    "GET /console/settings/webhooks/{endpoint_id}",
    "GET /console/settings/webhooks/{endpoint_id}/deliveries",
    "GET /console/settings/webhooks/{endpoint_id}/deliveries.csv",
    "GET /console/settings/webhooks/{endpoint_id}/deliveries.xlsx",
    "GET /console/settings/webhooks/{endpoint_id}/deliveries/{delivery_id}",
    "GET /console/statements",
    "GET /console/statements/{statement_run_id}",
    "GET /console/views",
    "GET /console/views/new",
    "GET /console/views/{view_id}/edit",
    # What the page of an invoice tells of who looks at it.
    "POST /console/invoices/{invoice_id}/view-session",
    "POST /console/list-settings",
    "POST /console/view-sessions/{session_id}/end",
    "POST /console/view-sessions/{session_id}/heartbeat",
    "POST /console/views",
    "POST /console/views/{view_id}/edit",
    "POST /console/views/{view_id}/delete",
}
OWNER_PAGES = (
    {name for name in ROUTES if "/settings/people" in name} - VIEWER_PAGES
    | {
        name
        for name in ROUTES
        if re.search(
            r"/settings/(access|after-restore|approval|claims-and-payments|fees|legal-holds|service-standard"
            r"|statements)"
            r"|/participants/\{participant_id\}/(data|erase|hold)\b|/trash/\{entry_id\}/delete",
            name,
        )
    }
    | {"POST /console/checks", "POST /console/checks/levels"}
)
# What takes a password or a code.
CREDENTIAL_CHECKS = {
    "POST /console/sign-in", "POST /console/two-factor", "POST /console/invitations/{token}",
    "POST /console/account/password", "POST /console/account/two-factor", "POST /console/account/two-factor/off",
    "POST /console/account/recovery-codes", "POST /console/single-sign-on/link", "POST /console/forgot-password",
    "POST /console/reset-password/{reset_token}",
}  # fmt: skip
# What calls a sign-in provider.
PROVIDER_CALLS = {f"GET /console/single-sign-on/{{plan_manager_id}}/{name}" for name in ("start", "callback")}

FILE_HEADERS = {"content-security-policy": "sandbox; default-src 'none'"}  # of downloads
HEADERS = {
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cross-origin-opener-policy": "same-origin",
}


def send_request(browser: Browser, entry: PageRoute, **more: Any) -> Any:
    """A request for a page, with ids that nothing has."""
    path = entry.path.format(**dict.fromkeys(entry.path_params, uuid7()))
    return browser.get(path) if entry.method == "GET" else browser.submit(path, **more)


def test_every_page_declares_its_required_role() -> None:
    assert {name for name, each in ROUTES.items() if each.role == "anyone"} == PUBLIC
    assert {name for name, each in ROUTES.items() if each.role == "password_verified"} == PASSWORD_VERIFIED
    assert {name for name, each in ROUTES.items() if each.role == "viewer"} == VIEWER_PAGES
    assert {name for name, each in ROUTES.items() if each.role == "owner"} == OWNER_PAGES
    assert {name for name, each in ROUTES.items() if each.checks_credentials} == CREDENTIAL_CHECKS
    assert {name for name, each in ROUTES.items() if each.calls_provider} == PROVIDER_CALLS
    managed = {name for name, each in ROUTES.items() if each.role in ("manager", "owner")}
    assert set(ROUTES) - PUBLIC - PASSWORD_VERIFIED - SIGNED_IN - VIEWER_PAGES == managed


@sweep("name", PROTECTED)
def test_unauthenticated_users_are_redirected_to_sign_in(visitor: Browser, name: str) -> None:
    if not visitor.http.cookies:  # with the token of its forms
        visitor.csrf("/console/sign-in")
    response = send_request(visitor, PROTECTED[name])
    assert response.status_code == 303
    assert re.fullmatch(r"/console/sign-in(\?next=/console/.+)?", response.headers["location"])


# That every page opens for an owner is seen in `test_every_response_has_security_headers_and_no_inline_code`.
@pytest.mark.parametrize("role", [each for each in ROLES if each != "owner"])
def test_a_page_requires_its_role(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], role: str
) -> None:
    browser = new_browser(new_account(role))
    needing = {name: each for name, each in ROUTES.items() if each.role in ROLES}
    denied = {name for name, each in needing.items() if send_request(browser, each).status_code == 403}
    # A new manager has no permissions.
    is_denied = {
        name: ROLES.index(each.role) > ROLES.index(role) or each.permission is not None
        for name, each in needing.items()
    }
    assert denied == {name for name in needing if is_denied[name]}


@pytest.mark.parametrize("permission", PERMISSIONS)
def test_a_page_requires_its_permission(
    server: RunningServer, new_browser: Callable[..., Browser], new_account: Callable[..., Account], permission: str
) -> None:
    """Every page that needs a permission opens with it, and not with the others."""
    needing = {name: each for name, each in ROUTES.items() if each.permission}
    account = new_account("manager")
    server.run(give_permissions(server, account, [permission]))
    browser = new_browser(account)
    denied = {name for name, each in needing.items() if send_request(browser, each).status_code == 403}
    assert denied == {name for name, each in needing.items() if each.permission != permission or each.role == "owner"}


def test_before_signing_in_a_form_needs_its_cookie_too(
    server: RunningServer, new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    person, browser = new_account(), new_browser()
    token = browser.csrf("/console/sign-in")
    form = {"csrf": token, "email": person.email, "password": PASSWORD}
    outsider = new_browser()
    assert outsider.http.post("/console/sign-in", data=form, headers={"Origin": server.url}).status_code == 403
    assert browser.http.post("/console/sign-in", data=form, headers={"Origin": server.url}).status_code == 303


FORM_HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}


def test_invalid_and_oversized_forms_are_rejected(owner: Browser, server: RunningServer) -> None:
    response = owner.http.post("/console/sign-out", json={}, headers={"Origin": server.url})
    assert response.status_code == 415
    response = owner.http.post("/console/sign-out", data={"a": "x" * 300_000}, headers={"Origin": server.url})
    assert response.status_code == 413
    for odd in (b"a=%00", b"a=%ff"):
        response = owner.http.post("/console/sign-out", content=odd, headers={"Origin": server.url} | FORM_HEADERS)
        assert response.status_code == 400
    assert owner.get("/console/activity").status_code == 200


class InlineCodeParser(HTMLParser):
    """The violations of the content security policy."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        if tag == "style" or (tag == "script" and "src" not in names):
            self.found.append(tag)
        self.found += [name for name in names if name == "style" or name.startswith("on")]


def test_every_response_has_security_headers_and_no_inline_code(owner: Browser) -> None:
    for name, entry in sorted(ROUTES.items(), key=lambda each: each[0] == "POST /console/sign-out"):
        response = send_request(owner, entry)
        expected = HEADERS | FILE_HEADERS if "content-disposition" in response.headers else HEADERS
        assert {each: response.headers.get(each) for each in HEADERS} == expected, name
        assert response.headers["cache-control"] == "no-store", name
        assert response.headers["x-request-id"], name
        assert response.status_code < 500, name
        assert response.status_code != 403 or entry.role not in ROLES, name
        page = InlineCodeParser()
        page.feed(response.text)
        assert page.found == [], name


def test_not_found_is_a_page_with_security_headers(owner: Browser, new_browser: Callable[..., Browser]) -> None:
    for browser in (owner, new_browser()):
        for path in ("/console/nothing", "/console/settings%2Fkeys", "/console/settings/keys/1/revoke"):
            response = browser.get(path)
            assert response.status_code in (404, 303)
            assert {each: response.headers.get(each) for each in HEADERS} == HEADERS
        response = browser.http.put("/console/activity")
        assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")
    assert "Page not found" in owner.get("/console/settings/keys/1/revoke").text


def test_head_responds_like_get_without_a_body(owner: Browser) -> None:
    response = owner.http.head("/console/activity")
    assert (response.status_code, response.content) == (200, b"")
    assert int(response.headers["content-length"]) > 0


def test_only_packaged_static_files_are_served(owner: Browser) -> None:
    for each in STATIC_DIR.iterdir():
        response = owner.get(static_url(each.name))
        assert (response.status_code, response.content) == (200, read_content(each.name))
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert {each: response.headers.get(each) for each in HEADERS} == HEADERS
    script, style_sheet = read_content("drafts.js"), read_content("lists.css")
    assert (script.count(b"\n//"), style_sheet.count(b"/*"), b"\n  " in script + style_sheet) == (0, 0, False)
    assert b"'/console/sign-out'" in script
    for path in ("..%2Fframe.py", "%2e%2e/frame.py", "frame.py", "../frame.py", "console.css%00", ""):
        assert owner.get(f"/console/assets/{path}").status_code == 404


def test_the_session_cookie_is_http_only_and_same_site(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    response = new_browser().sign_in(new_account())
    cookies = {each.partition("=")[0]: each for each in response.headers.get_list("set-cookie")}
    assert set(cookies) == {"plankeeper", "plankeeper-form", "plankeeper-device"}
    _, *attributes = cookies["plankeeper"].split("; ")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=lax"]


def test_over_tls_cookies_have_the_host_prefix() -> None:
    def cookies(header: bytes) -> Cookies:
        request = Request({"type": "http", "scheme": "https", "headers": [(b"cookie", header)]})
        return Cookies(request, is_secure=Origin(request, None).is_secure)

    over_tls, response = cookies(b"plankeeper=planted; __Host-plankeeper=real"), Response()
    assert over_tls.get("plankeeper") == "real"
    over_tls.set(response, "plankeeper", "t")
    value, *attributes = response.headers["set-cookie"].split("; ")
    assert value == "__Host-plankeeper=t"
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=lax", "Secure"]
    assert cookies(b"plankeeper=planted").get("plankeeper") == ""
