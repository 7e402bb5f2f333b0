"""Signing in and out, where it leads, and changing between plan managers."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from plankeeper.access.accounts import invitations, member_store
from plankeeper.console.shell.cookies import sign
from plankeeper.core.context import SYSTEM, WriteContext
from support.console import PASSWORD, Account, Browser
from support.server import RunningServer

EXTERNAL_TARGETS = [
    "https://evil.example/", "//evil.example/console", "/\\evil.example", "/console\\@evil.example",
    "javascript:alert(1)", "/consoleevil", "/console.evil.example", "/api/public/v1/participants",
    "/console/\r\nset-cookie: a=b", "/console/sign-in", "console/activity", "/console/é",
]  # fmt: skip


def test_sign_in_redirects_home_and_sign_out_ends_the_session(
    server: RunningServer, new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    browser = new_browser()
    response = browser.sign_in(new_account())
    assert (response.status_code, response.headers["location"]) == (303, "/console")
    token = browser.http.cookies["plankeeper"]
    assert browser.get("/console").status_code == 200
    signed_out = browser.submit("/console/sign-out")
    assert signed_out.headers["location"] == "/console/sign-in"
    assert signed_out.headers["clear-site-data"] == '"cache", "storage"'
    assert "plankeeper" not in browser.http.cookies
    stolen = new_browser()
    stolen.http.cookies.set("plankeeper", token)
    assert stolen.get("/console/activity").headers["location"] == "/console/sign-in?next=/console/activity"


def test_a_planted_session_token_is_not_accepted(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    browser = new_browser()
    browser.http.cookies.set("plankeeper", "planted", domain="127.0.0.1", path="/")
    browser.sign_in(new_account())
    assert "planted" not in [each.value for each in browser.http.cookies.jar]


def test_a_failed_sign_in_does_not_say_what_was_wrong(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    person = new_account()
    reported: list[Any] = []
    for email in (person.email, "nobody@example.com"):
        response = new_browser().sign_in(Account(email, person.account_id), password="wrong-wrong-wrong")
        assert (response.status_code, "Wrong email or password." in response.text) == (401, True)
        assert "set-cookie" not in response.headers
        reported.append(response.text.replace(email, "").split("<form")[0])
    assert reported[0] == reported[1]


@pytest.mark.parametrize("next_url", EXTERNAL_TARGETS)
def test_sign_in_never_redirects_to_another_site(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], next_url: str
) -> None:
    browser = new_browser()
    response = browser.sign_in(new_account(), next=next_url)
    assert (response.status_code, response.headers["location"]) == (303, "/console")
    response = browser.get("/console/sign-in", params={"next": next_url})
    assert (response.status_code, response.headers["location"]) == (303, "/console")


def test_sign_in_redirects_back_to_the_requested_page(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    browser = new_browser()
    asked = browser.get("/console/activity?type=api_key.created")
    assert asked.headers["location"] == "/console/sign-in?next=/console/activity%3Ftype%3Dapi_key.created"
    assert 'name="next" value="/console/activity?type=api_key.created"' in browser.get(asked.headers["location"]).text
    response = browser.sign_in(new_account(), next="/console/activity?type=api_key.created")
    assert response.headers["location"] == "/console/activity?type=api_key.created"


def test_an_account_switches_between_its_plan_managers_only(
    server: RunningServer, new_browser: Callable[..., Browser], new_account: Callable[..., Account],
    new_plan_manager: Callable[[], UUID], plan_manager_id: UUID,
) -> None:  # fmt: skip
    person, second, foreign = new_account(), new_plan_manager(), new_plan_manager()

    async def join() -> None:
        async with server.db.transaction() as tx:
            await member_store.insert(tx, second, person.account_id, "viewer", datetime.now(UTC))

    server.run(join())
    browser = new_browser(person)
    page = browser.get("/console/plan-managers").text
    assert (str(plan_manager_id) in page, str(second) in page, str(foreign) in page) == (True, True, False)
    response = browser.submit("/console/plan-managers", {"plan_manager_id": str(second)})
    assert response.headers["location"] == "/console"
    shown = browser.get("/console/activity")
    assert "Switched to Test plan manager." in shown.text
    assert "Switched to" not in browser.get("/console/activity").text
    # A viewer there, whatever they are elsewhere.
    assert browser.get("/console/settings/keys").status_code == 403
    for wrong in (str(foreign), "", "x"):
        assert browser.submit("/console/plan-managers", {"plan_manager_id": wrong}).status_code == 422
    assert browser.get("/console/settings/keys").status_code == 403


def test_flash_messages_cannot_be_forged(owner: Browser) -> None:
    owner.http.cookies.set("plankeeper-flash", sign("another", "Call this number"), domain="127.0.0.1", path="/")
    assert "Call this number" not in owner.get("/console/activity").text


def test_an_invitation_is_accepted_once(
    server: RunningServer, new_browser: Callable[..., Browser], plan_manager_id: UUID
) -> None:
    async def invite() -> str:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            return await invitations.invite(ctx, f"{plan_manager_id}@example.com", "viewer")

    path, browser = f"/console/invitations/{server.run(invite())}", new_browser()
    assert f"{plan_manager_id}@example.com" in browser.get(path).text
    short = browser.submit(path, {"name": "Kim", "password": "short"}, path)
    assert (short.status_code, "Password must" in short.text) == (422, True)
    joined = browser.submit(path, {"name": "Kim", "password": PASSWORD}, path)
    assert (joined.status_code, joined.headers["location"]) == (303, "/console")
    assert "You joined Test plan manager." in browser.get("/console/activity").text
    assert browser.get(path).status_code == 404
    assert new_browser().get(path).status_code == 404


def test_the_page_of_an_invitation_is_the_same_with_and_without_an_account(
    server: RunningServer, new_browser: Callable[..., Browser], new_account: Callable[..., Account],
    new_plan_manager: Callable[[], UUID], plan_manager_id: UUID,
) -> None:  # fmt: skip
    person, pages = new_account("viewer", new_plan_manager()), list[str]()
    for email in (person.email, f"{plan_manager_id}@example.com"):

        async def invite(invited: str = email) -> str:
            async with server.db.transaction() as tx:
                ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
                return await invitations.invite(ctx, invited, "viewer")

        token = server.run(invite())
        page = new_browser().get(f"/console/invitations/{token}").text
        without_secrets = re.sub(r'name="csrf" value="[^"]+"', "", page.replace(token, "").replace(email, ""))
        pages.append(without_secrets)
    assert pages[0] == pages[1]


@pytest.mark.usefixtures("long_login_delays")
def test_a_complete_sign_in_makes_the_browser_a_known_device(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    person, browser, attacker = new_account(), new_browser(), new_browser()
    first = browser.sign_in(person)
    cookie = next(each for each in first.headers.get_list("set-cookie") if each.startswith("plankeeper-device="))
    assert ("HttpOnly" in cookie, "SameSite=lax" in cookie, "Max-Age=31536000" in cookie) == (True, True, True)
    for _ in range(3):
        assert attacker.sign_in(person, password="wrong-wrong-wrong").status_code == 401
    assert attacker.sign_in(person).status_code == 401
    browser.submit("/console/sign-out")
    assert browser.sign_in(person).status_code == 303


def test_without_a_mail_server_the_sign_in_page_says_who_resets_a_password(
    server: RunningServer, new_browser: Callable[..., Browser]
) -> None:
    mails = server.run(server.db.one(int, "select count(*) from outgoing_mails"))  # of other tests
    browser = new_browser()
    page = browser.get("/console/sign-in").text
    assert "Forgot your password? Ask your IT administrator to reset it." in page
    assert "/console/forgot-password" not in page
    assert "Ask your IT administrator" in browser.get("/console/forgot-password").text
    response = browser.submit("/console/forgot-password", {"email": "robin@example.com"}, "/console/sign-in")
    assert response.status_code == 404
    assert server.run(server.db.one(int, "select count(*) from outgoing_mails")) == mails
