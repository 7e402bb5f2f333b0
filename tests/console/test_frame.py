"""What holds for every page: who may see it, whose form it takes, its cookies and its headers."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from console.people import PASSWORD, Browser, Person
from plankeeper.accounts.policy import ROLES
from plankeeper.console.application import page_routes
from plankeeper.console.cookies import Cookies
from plankeeper.console.routing import PageRoute
from plankeeper.console.templating import STATIC_DIR, static_url
from support.server import RunningServer

ENTRIES = {f"{each.method} {each.path}": each for each in page_routes()}
CLOSED = {name: each for name, each in ENTRIES.items() if each.role != "anyone"}
# Pages that need no session.
OPEN = {
    "GET /console/sign-in",
    "POST /console/sign-in",
    "GET /console/invitations/{token}",
    "POST /console/invitations/{token}",
}
HALF = {"GET /console/second-step", "POST /console/second-step", "POST /console/sign-out"}
# Pages that somebody with a session needs no role for.
ACCOUNT = {"GET /console", "GET /console/plan-managers", "POST /console/plan-managers"} | {
    name for name in ENTRIES if name.endswith("/console/account") or "/console/account/" in name
}
VIEWED = {
    "GET /console/account-managers",
    "GET /console/activity",
    "GET /console/activity.csv",
    "GET /console/activity/{event_id}",
    "GET /console/invoices",
    "GET /console/invoices/{invoice_id}",
    "GET /console/note-types",
    "GET /console/participants",
    "GET /console/participants/{participant_id}",
    "GET /console/participants/{participant_id}/team-members/{team_member_id}",
    "GET /console/providers",
    "GET /console/providers/{provider_id}",
    "GET /console/requests",
    "GET /console/settings/people",
    "GET /console/settings/webhooks",
    "GET /console/settings/webhooks/{endpoint_id}",
    # What the page of an invoice tells of who looks at it.
    "POST /console/invoices/{invoice_id}/view-session",
    "POST /console/view-sessions/{session_id}/end",
    "POST /console/view-sessions/{session_id}/heartbeat",
}
OWNED = {name for name in ENTRIES if "/settings/people" in name} - VIEWED
# What takes a password or a code from who is not signed in yet.
GUESSED = {"POST /console/sign-in", "POST /console/second-step", "POST /console/invitations/{token}"}

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


def sent(browser: Browser, entry: PageRoute, **more: Any) -> Any:
    """A request for a page, with ids that nothing has."""
    path = entry.path.format(**dict.fromkeys(entry.path_params, uuid7()))
    return browser.get(path) if entry.method == "GET" else browser.send(path, **more)


def test_every_page_says_what_it_needs() -> None:
    assert {name for name, each in ENTRIES.items() if each.role == "anyone"} == OPEN
    assert {name for name, each in ENTRIES.items() if each.role == "password_verified"} == HALF
    assert {name for name, each in ENTRIES.items() if each.role == "viewer"} == VIEWED
    assert {name for name, each in ENTRIES.items() if each.role == "owner"} == OWNED
    assert {name for name, each in ENTRIES.items() if each.rate_limited} == GUESSED
    managed = {name for name, each in ENTRIES.items() if each.role in ("manager", "owner")}
    assert set(ENTRIES) - OPEN - HALF - ACCOUNT - VIEWED == managed


@pytest.mark.parametrize("name", CLOSED)
def test_who_is_not_signed_in_is_sent_to_sign_in(new_browser: Callable[..., Browser], name: str) -> None:
    answer = sent(new_browser(), CLOSED[name], page="/console/sign-in")
    assert answer.status_code == 303
    assert re.fullmatch(r"/console/sign-in(\?next=/console/.+)?", answer.headers["location"])


@pytest.mark.parametrize("role", ROLES)
def test_a_page_is_for_who_has_its_role(
    new_browser: Callable[..., Browser], new_person: Callable[..., Person], role: str
) -> None:
    browser = new_browser(new_person(role))
    needing = {name: each for name, each in ENTRIES.items() if each.role in ROLES}
    denied = {name for name, each in needing.items() if sent(browser, each).status_code == 403}
    assert denied == {name for name, each in needing.items() if ROLES.index(each.role) > ROLES.index(role)}


def test_before_signing_in_a_form_needs_its_cookie_too(
    server: RunningServer, new_browser: Callable[..., Browser], new_person: Callable[..., Person]
) -> None:
    person, browser = new_person(), new_browser()
    token = browser.csrf("/console/sign-in")
    form = {"csrf": token, "email": person.email, "password": PASSWORD}
    stranger = new_browser()
    assert stranger.http.post("/console/sign-in", data=form, headers={"Origin": server.url}).status_code == 403
    assert browser.http.post("/console/sign-in", data=form, headers={"Origin": server.url}).status_code == 303


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_what_is_no_form_or_too_long_is_refused(owner: Browser, server: RunningServer) -> None:
    answer = owner.http.post("/console/sign-out", json={}, headers={"Origin": server.url})
    assert answer.status_code == 415
    answer = owner.http.post("/console/sign-out", data={"a": "x" * 300_000}, headers={"Origin": server.url})
    assert answer.status_code == 413
    for odd in (b"a=%00", b"a=%ff"):
        answer = owner.http.post("/console/sign-out", content=odd, headers={"Origin": server.url} | FORM)
        assert answer.status_code == 400
    assert owner.get("/console/activity").status_code == 200


class Inline(HTMLParser):
    """What the policy of the pages forbids."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        if tag == "style" or (tag == "script" and "src" not in names):
            self.found.append(tag)
        self.found += [name for name in names if name == "style" or name.startswith("on")]


def test_every_answer_has_its_headers_and_nothing_inline(owner: Browser) -> None:
    for name, entry in sorted(ENTRIES.items(), key=lambda each: each[0] == "POST /console/sign-out"):
        answer = sent(owner, entry)
        assert {each: answer.headers.get(each) for each in HEADERS} == HEADERS, name
        assert answer.headers["cache-control"] == "no-store", name
        assert answer.headers["x-request-id"], name
        assert answer.status_code < 500, name
        page = Inline()
        page.feed(answer.text)
        assert page.found == [], name


def test_what_is_not_there_is_a_page_with_its_headers(owner: Browser, new_browser: Callable[..., Browser]) -> None:
    for browser in (owner, new_browser()):
        for path in ("/console/nothing", "/console/settings%2Fkeys", "/console/settings/keys/1/revoke"):
            answer = browser.get(path)
            assert answer.status_code in (404, 303)
            assert {each: answer.headers.get(each) for each in HEADERS} == HEADERS
        answer = browser.http.put("/console/activity")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert "There is no such page" in owner.get("/console/settings/keys/1/revoke").text


def test_head_answers_as_get_without_a_body(owner: Browser) -> None:
    answer = owner.http.head("/console/activity")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 0


def test_files_are_served_from_the_package_and_none_besides(owner: Browser) -> None:
    for each in STATIC_DIR.iterdir():
        answer = owner.get(static_url(each.name))
        assert (answer.status_code, answer.content) == (200, each.read_bytes())
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert {each: answer.headers.get(each) for each in HEADERS} == HEADERS
    for path in ("..%2Fframe.py", "%2e%2e/frame.py", "frame.py", "../frame.py", "console.css%00", ""):
        assert owner.get(f"/console/assets/{path}").status_code == 404


def test_the_session_cookie_is_for_the_server_alone(
    new_browser: Callable[..., Browser], new_person: Callable[..., Person]
) -> None:
    answer = new_browser().sign_in(new_person())
    cookies = {each.partition("=")[0]: each for each in answer.headers.get_list("set-cookie")}
    assert set(cookies) == {"plankeeper", "plankeeper-form"}
    _, *attributes = cookies["plankeeper"].split("; ")
    assert attributes == ["Path=/", "HttpOnly", "SameSite=Lax"]


def test_over_tls_a_cookie_is_bound_to_its_host() -> None:
    over_tls = Cookies.parse(b"plankeeper=planted; __Host-plankeeper=real", secure=True)
    assert over_tls.get("plankeeper") == "real"
    assert over_tls.set("plankeeper", "t") == b"__Host-plankeeper=t; Path=/; HttpOnly; SameSite=Lax; Secure"
    assert Cookies.parse(b"plankeeper=planted", secure=True).get("plankeeper") == ""
