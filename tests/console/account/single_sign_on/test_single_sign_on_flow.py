"""Signing in at a provider, linking an identity to an account, and responses that are the same for everybody."""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from pyotp import TOTP

from plankeeper.access.accounts import (
    invitations,
    member_store,
    members,
    totp,
)
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.encryption.cipher import secret_cipher
from support.accounts import recorded_account_events
from support.console import PASSWORD, Account
from support.openid_provider import OpenIdProvider
from support.server import RunningServer
from support.single_sign_on import LINK, START, PublicBrowser, link, set_up_provider

HOME = "/console"
INVITATION_REQUIRED = f"{START}/failed?reason=invitation"


def invite(server: RunningServer, plan_manager_id: UUID, email: str, name: str | None = None) -> str:
    async def run() -> str:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            return await invitations.invite(ctx, email, "viewer", name)

    return server.run(run())


def enable_totp(server: RunningServer, account: Account) -> TOTP:
    secret = totp.new_secret()
    statement = "update accounts set totp_secret = $2, totp_counter = 0 where id = $1"
    encrypted = secret_cipher(server.settings).encrypt(secret, account.account_id.bytes)
    server.run(server.db.execute(statement, account.account_id, encrypted))
    return TOTP(secret)


def add_role(server: RunningServer, plan_manager_id: UUID, account: Account) -> None:
    async def run() -> None:
        async with server.db.transaction() as tx:
            await member_store.insert(tx, plan_manager_id, account.account_id, "owner", datetime.now(UTC))

    server.run(run())


def test_an_identity_is_linked_with_the_password_once(
    server: RunningServer, provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    plan_manager_id: UUID, person: Account,
) -> None:  # fmt: skip
    assert link(new_browser(), provider, plan_manager_id, person) == HOME
    again = new_browser()
    assert again.sign_in_at(provider, plan_manager_id, person.email) == HOME
    assert again.get(HOME).status_code == 200
    recorded = [
        (each.type, each.actor, (each.data or {}).get("method"))
        for each in recorded_account_events(server, plan_manager_id)
        if each.type.startswith("account.si")
    ]
    actor = str(person.account_id)
    assert recorded == [
        ("account.single_sign_on_linked", actor, None),
        ("account.signed_in", actor, "single_sign_on"),
        ("account.signed_in", actor, "single_sign_on"),
    ]


def test_the_subject_identifies_the_person_and_not_the_email(
    provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    plan_manager_id: UUID, person: Account, domain: str,
) -> None:  # fmt: skip
    link(new_browser(), provider, plan_manager_id, person)
    renamed, successor = new_browser(), new_browser()
    subject = f"person-{person.email}"
    assert renamed.sign_in_at(provider, plan_manager_id, f"new@{domain}", sub=subject) == HOME
    assert successor.sign_in_at(provider, plan_manager_id, person.email, sub="another person") == LINK


@pytest.mark.usefixtures("long_login_delays")
def test_a_wrong_password_links_nothing_and_is_delayed(
    provider: OpenIdProvider, browser: PublicBrowser, plan_manager_id: UUID, person: Account
) -> None:
    assert browser.sign_in_at(provider, plan_manager_id, person.email) == LINK
    for _ in range(3):
        response = browser.submit(LINK, {"password": "wrong-wrong-wrong"}, LINK)
        assert (response.status_code, "Wrong password or code." in response.text) == (401, True)
    assert browser.submit(LINK, {"password": PASSWORD}, LINK).status_code == 401
    assert browser.get(HOME).headers["location"].startswith("/console/sign-in")


def test_the_responses_are_the_same_with_and_without_an_account(
    provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    plan_manager_id: UUID, person: Account, domain: str,
) -> None:  # fmt: skip
    pages: list[list[Any]] = []
    for email in (person.email, f"nobody@{domain}"):
        browser = new_browser()
        assert browser.sign_in_at(provider, plan_manager_id, email) == LINK
        form, wrong = browser.get(LINK), browser.submit(LINK, {"password": "wrong-wrong-wrong"}, LINK)
        texts = [re.sub(r'name="csrf" value="[^"]+"', "", each.text.replace(email, "")) for each in (form, wrong)]
        pages.append([form.status_code, wrong.status_code, *texts])
    assert pages[0] == pages[1]


def test_the_second_factor_of_an_account_is_still_asked_for(
    server: RunningServer, provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    plan_manager_id: UUID, person: Account,
) -> None:  # fmt: skip
    codes, browser, again = enable_totp(server, person), new_browser(), new_browser()
    assert browser.sign_in_at(provider, plan_manager_id, person.email) == LINK
    for code in ("", "000000"):
        assert browser.submit(LINK, {"password": PASSWORD, "code": code}, LINK).status_code == 401
    linked = browser.submit(LINK, {"password": PASSWORD, "code": codes.now()}, LINK)
    assert (linked.status_code, linked.headers["location"]) == (303, HOME)
    assert again.sign_in_at(provider, plan_manager_id, person.email) == "/console/two-factor"
    assert again.get(HOME).headers["location"] == "/console/two-factor"
    later = codes.generate_otp(int(time.time()) // 30 + 1)
    assert again.submit("/console/two-factor", {"code": later}, "/console/two-factor").headers["location"] == HOME
    assert again.get(HOME).status_code == 200


def test_an_invitation_creates_an_account_without_a_password(
    server: RunningServer, provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    plan_manager_id: UUID, domain: str,
) -> None:  # fmt: skip
    email, browser = f"Kim@{domain}", new_browser()
    token = invite(server, plan_manager_id, email)
    assert f'{START}/{plan_manager_id}/start?invitation={token}"' in browser.get(f"/console/invitations/{token}").text
    url = browser.start(plan_manager_id, invitation=token)
    assert browser.come_back(provider.authorize(url, email.lower())) == HOME
    assert browser.get(HOME).status_code == 200
    account = browser.get("/console/account").text
    assert ("Robin Hale" in account, "Your account has no password." in account) == (True, True)
    assert browser.get(f"/console/invitations/{token}").status_code == 404
    for password in ("", PASSWORD):
        response = new_browser().sign_in(Account(email, plan_manager_id), password=password)
        assert response.status_code == 401
    assert new_browser().sign_in_at(provider, plan_manager_id, email.lower()) == HOME


def test_an_invitation_to_an_existing_account_requires_its_password(
    server: RunningServer, provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    new_account: Callable[..., Account], new_plan_manager: Callable[[], UUID], plan_manager_id: UUID, domain: str,
) -> None:  # fmt: skip
    other, email, browser = new_plan_manager(), f"sam@{domain}", new_browser()
    account = new_account("owner", other)._replace(email=email)
    server.run(server.db.execute("update accounts set email = $2 where id = $1", account.account_id, email))
    codes, token = enable_totp(server, account), invite(server, plan_manager_id, email)
    url = browser.start(plan_manager_id, invitation=token)
    assert browser.come_back(provider.authorize(url, email)) == LINK
    for form in ({"password": "wrong-wrong-wrong", "code": codes.now()}, {"password": PASSWORD, "code": "000000"}):
        assert browser.submit(LINK, form, LINK).status_code == 401
    assert server.run(invitations.get_open(server.db, token)) is not None
    assert server.run(member_store.list_members(server.db, plan_manager_id)) == []
    server.run(server.db.execute("delete from account_failures"))
    linked = browser.submit(LINK, {"password": PASSWORD, "code": codes.now()}, LINK)
    assert linked.headers["location"] == HOME
    assert server.run(invitations.get_open(server.db, token)) is None
    [member] = server.run(member_store.list_members(server.db, plan_manager_id))
    assert (member.id, member.role) == (account.account_id, "viewer")
    assert new_browser().sign_in_at(provider, plan_manager_id, email) == "/console/two-factor"


def test_whoever_took_an_email_first_does_not_reach_the_plan_manager_that_invites_it(
    server: RunningServer, provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    new_plan_manager: Callable[[], UUID], plan_manager_id: UUID, domain: str,
) -> None:  # fmt: skip
    attacker, victim, email = new_browser(), new_browser(), f"sam@{domain}"
    path = f"/console/invitations/{invite(server, new_plan_manager(), email)}"
    assert attacker.submit(path, {"name": "Sam", "password": PASSWORD}, path).status_code == 303
    url = victim.start(plan_manager_id, invitation=invite(server, plan_manager_id, email))
    assert victim.come_back(provider.authorize(url, email)) == LINK
    page = attacker.get("/console/plan-managers").text
    assert f'value="{plan_manager_id}"' not in page
    response = attacker.submit("/console/plan-managers", {"plan_manager_id": str(plan_manager_id)})
    assert response.status_code == 422


def test_a_session_of_a_provider_does_not_reach_the_rest_of_the_account(
    server: RunningServer, provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    new_plan_manager: Callable[[], UUID], plan_manager_id: UUID, person: Account,
) -> None:  # fmt: skip
    others = new_plan_manager(), new_plan_manager()
    for number, other in enumerate(others):
        statement = "update plan_managers set name = $2, requires_single_sign_on = $3 where id = $1"
        server.run(server.db.execute(statement, other, f"Confidential {number}", number == 1))
        add_role(server, other, person)
    with_password, browser = new_browser(person), new_browser()
    link(new_browser(), provider, plan_manager_id, person)
    assert browser.sign_in_at(provider, plan_manager_id, person.email) == HOME
    page = browser.get("/console/plan-managers").text
    assert "To use your other plan managers, sign out, and sign in with your password." in page
    assert ("Confidential" in page, [str(other) in page for other in others]) == (False, [False, False])
    assert browser.submit("/console/plan-managers", {"plan_manager_id": str(others[0])}).status_code == 422
    pages = [each.get("/console/account").text for each in (browser, with_password)]
    assert [text.count("Sign out the session of") for text in pages] == [0, 2]
    assert ["Sign out all other sessions" in text for text in pages] == [False, True]
    [session] = {re.findall(r'name="session" value="([0-9a-f]{64})"', pages[1])[0]}
    response = browser.submit("/console/account/name", {"name": "Robin Vale"})
    assert (response.status_code, "after you sign in with your password" in response.text) == (422, True)
    forms = {"end": {"session": session}, "end-others": {}}
    for action, form in forms.items():
        assert browser.submit(f"/console/account/sessions/{action}", form).status_code == 404
    assert with_password.get("/console/account").text.count("Sign out the session of") == 2
    for action, form in forms.items():
        assert with_password.submit(f"/console/account/sessions/{action}", form).status_code == 303


def test_an_invitation_is_only_for_its_email_and_its_plan_manager(
    server: RunningServer, provider: OpenIdProvider, browser: PublicBrowser, new_plan_manager: Callable[[], UUID],
    plan_manager_id: UUID, domain: str,
) -> None:  # fmt: skip
    token = invite(server, plan_manager_id, f"kim@{domain}")
    url = browser.start(plan_manager_id, invitation=token)
    assert browser.come_back(provider.authorize(url, f"thief@{domain}")) == LINK
    foreign = invite(server, new_plan_manager(), f"kim@{domain}")
    url = browser.start(plan_manager_id, invitation=foreign)
    assert browser.come_back(provider.authorize(url, f"kim@{domain}")) == LINK
    assert server.run(invitations.get_open(server.db, token)) is not None
    assert server.run(invitations.get_open(server.db, foreign)) is not None


def test_somebody_without_a_role_is_told_to_ask_for_an_invitation(
    server: RunningServer, provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    new_account: Callable[..., Account], new_plan_manager: Callable[[], UUID],
    plan_manager_id: UUID, person: Account, domain: str,
) -> None:  # fmt: skip
    stranger = new_account("owner", new_plan_manager())
    stranger = stranger._replace(email=f"stranger@{domain}")
    statement = "update accounts set email = $2 where id = $1"
    server.run(server.db.execute(statement, stranger.account_id, stranger.email))
    assert link(new_browser(), provider, plan_manager_id, stranger) == INVITATION_REQUIRED
    new_account("owner")
    link(new_browser(), provider, plan_manager_id, person)
    browser = new_browser()
    assert browser.sign_in_at(provider, plan_manager_id, person.email) == HOME

    async def remove() -> None:
        async with server.db.transaction() as tx:
            await member_store.insert(tx, stranger_home, person.account_id, "viewer", datetime.now(UTC))
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            await members.remove(ctx, person.account_id)

    stranger_home = new_plan_manager()
    server.run(remove())
    assert browser.get(HOME).headers["location"] == "/console/plan-managers"
    assert new_browser().sign_in_at(provider, plan_manager_id, person.email) == INVITATION_REQUIRED
    assert "Ask one of its owners for an invitation." in browser.get(INVITATION_REQUIRED).text


def test_the_domain_of_an_email_leads_to_its_provider(
    server: RunningServer, browser: PublicBrowser, plan_manager_id: UUID, domain: str,
    new_plan_manager: Callable[[], UUID],
) -> None:  # fmt: skip
    server.run(server.db.execute("delete from single_sign_on_providers where plan_manager_id <> $1", plan_manager_id))
    start = f"{START}/{plan_manager_id}/start?next=%2Fconsole%2Factivity"
    page = browser.get("/console/sign-in?next=/console/activity").text
    assert f'href="{START}?next=/console/activity">Sign in with single sign-on' in page
    # With one provider, there is nothing to ask.
    assert browser.get(f"{START}?next=/console/activity").headers["location"] == start
    second = new_plan_manager()
    set_up_provider(server, second, "https://login.example.com", f"{second}.example")
    page = browser.get(f"{START}?next=/console/activity").text
    assert ("Work email" in page, 'value="/console/activity"' in page) == (True, True)
    form = {"email": f"anybody@{domain.upper()}", "next": "/console/activity"}
    page = browser.submit(START, form, START).text
    assert f'<meta http-equiv="refresh" content="0; url={start}">' in page
    unknown = browser.submit(START, {"email": "somebody@example.org", "next": ""}, START)
    assert (unknown.status_code, "single sign-on isn’t set up" in unknown.text) == (422, True)
    server.run(server.db.execute("delete from single_sign_on_providers"))
    assert "single sign-on" not in browser.get("/console/sign-in").text
    assert browser.get(START).headers["location"] == "/console/sign-in"


@pytest.mark.parametrize(
    "target", ["/console/activity?type=x", "https://evil.example/", "//evil.example", "/console/é"]
)
def test_sign_in_leads_to_the_requested_page_of_the_console(
    provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    plan_manager_id: UUID, person: Account, target: str,
) -> None:  # fmt: skip
    expected = target if target == "/console/activity?type=x" else HOME
    browser, again = new_browser(), new_browser()
    assert browser.come_back(provider.authorize(browser.start(plan_manager_id, next=target), person.email)) == LINK
    linked = browser.submit(LINK, {"password": PASSWORD}, LINK)
    assert linked.headers["location"] == expected
    assert again.come_back(provider.authorize(again.start(plan_manager_id, next=target), person.email)) == expected
