"""A form whose session has ended is kept until the same person has signed in again, and then shown, not sent."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from pyotp import TOTP

from plankeeper.access.accounts import member_store, totp
from plankeeper.access.tokens import hash_token
from plankeeper.console import draft_store, drafts
from plankeeper.core.encryption.cipher import secret_cipher
from support.client import Client
from support.console import PASSWORD, Account, Browser, csrf_tokens
from support.ended_sessions import (
    NEW,
    PARTICIPANTS,
    TYPED,
    end_sessions,
    kept_count,
    next_path,
    require_resumed,
    send_after_the_end,
)
from support.form_helpers import form_fields
from support.server import RunningServer

SIGNED_OUT = "You were signed out before this was saved."
NewBrowser = Callable[..., Browser]


@pytest.fixture
def person(new_account: Callable[..., Account]) -> Account:
    return new_account("manager")


@pytest.fixture
def browser(new_browser: NewBrowser, person: Account) -> Browser:
    return new_browser(person)


def stored_names(client: Client) -> list[str]:
    return [each["first_name"] for each in client.get("/participants").json()["data"]]


def require_tokens_of_session(browser: Browser, page: str, old: str) -> None:
    """The forms of the page have a token, which the session takes, and nothing of the token of an earlier one."""
    tokens, path = csrf_tokens(page), f"{PARTICIPANTS}/{uuid4()}/delete"
    sent = {
        each: browser.http.post(path, data={"csrf": each}, headers={"Origin": browser.url}) for each in (*tokens, old)
    }
    # With a token of the session, the participant isn't found; without one, nothing is looked for.
    assert {each: response.status_code for each, response in sent.items()} == dict.fromkeys(tokens, 404) | {old: 403}
    assert len(tokens) == 1


def test_a_form_is_shown_again_after_the_sign_in_and_sent_by_the_user(
    server: RunningServer, client: Client, browser: Browser, person: Account
) -> None:
    location = send_after_the_end(server, browser, person.account_id)
    page = browser.get(location).text
    assert (location.startswith("/console/sign-in?next="), "What you typed is kept for an hour" in page) == (True, True)
    assert TYPED["email"] not in page
    path = next_path(location)
    response = browser.sign_in(person, next=path)
    assert response.headers["location"] == path
    require_resumed(browser.get(path).text, SIGNED_OUT)
    assert stored_names(client) == []  # only shown
    form = form_fields(browser, path)
    assert browser.submit(PARTICIPANTS, form).status_code == 303
    assert stored_names(client) == [TYPED["first_name"]]


def test_a_form_is_kept_through_two_factor_authentication(
    server: RunningServer, browser: Browser, person: Account
) -> None:
    location = send_after_the_end(server, browser, person.account_id)
    secret = totp.new_secret()
    statement = "update accounts set totp_secret = $2, totp_counter = 0 where id = $1"
    encrypted = secret_cipher(server.settings).encrypt(secret, person.account_id.bytes)
    server.run(server.db.execute(statement, person.account_id, encrypted))
    path = next_path(location)
    two_factor = browser.sign_in(person, next=path).headers["location"]
    assert next_path(two_factor) == path
    assert browser.get(path).headers["location"] == "/console/two-factor"  # not before the code
    form = {"code": TOTP(secret).now(), "next": path}
    assert browser.submit("/console/two-factor", form, two_factor).headers["location"] == path
    require_resumed(browser.get(path).text, SIGNED_OUT)


def test_a_form_is_kept_when_the_session_waits_for_a_code(
    server: RunningServer, browser: Browser, person: Account
) -> None:
    csrf = browser.csrf()
    statement = "update accounts set totp_secret = $2, totp_counter = 0 where id = $1"
    server.run(server.db.execute(statement, person.account_id, totp.new_secret()))
    end_sessions(server, person.account_id)
    browser.sign_in(person)
    response = browser.http.post(PARTICIPANTS, data={"csrf": csrf, **TYPED}, headers={"Origin": browser.url})
    assert response.headers["location"].startswith("/console/two-factor?next=")
    assert kept_count(server, person.account_id) == 1


def test_a_form_is_kept_after_a_sign_out_elsewhere_in_the_browser(
    server: RunningServer, browser: Browser, person: Account
) -> None:
    csrf = browser.csrf()
    assert browser.submit("/console/sign-out").status_code == 303
    response = browser.http.post(PARTICIPANTS, data={"csrf": csrf, **TYPED}, headers={"Origin": browser.url})
    path = next_path(response.headers["location"])
    browser.sign_in(person, next=path)
    require_resumed(browser.get(path).text, SIGNED_OUT)


def test_another_account_does_not_see_the_form(
    server: RunningServer, new_account: Callable[..., Account], browser: Browser, person: Account
) -> None:
    path = next_path(send_after_the_end(server, browser, person.account_id))
    other = new_account("owner")
    assert browser.sign_in(other, next=path).headers["location"] == path
    page = browser.get(path).text
    assert ("Ann" in page, TYPED["email"] in page, SIGNED_OUT in page) == (False, False, False)
    assert kept_count(server, other.account_id) == 0


def test_the_form_of_another_plan_manager_is_shown_only_there(
    server: RunningServer, new_plan_manager: Callable[[], UUID], new_account: Callable[..., Account],
    new_browser: NewBrowser, plan_manager_id: UUID,
) -> None:  # fmt: skip
    person, second = new_account("owner"), new_plan_manager()

    async def join() -> None:
        async with server.db.transaction() as tx:
            joined = await tx.one(Any, "select now()")
            await member_store.insert(tx, second, person.account_id, "owner", joined)

    server.run(join())
    browser = new_browser(person)
    assert browser.submit("/console/plan-managers", {"plan_manager_id": str(second)}).status_code == 303
    path = next_path(send_after_the_end(server, browser, person.account_id))
    browser.sign_in(person, next=path)
    selected = "update account_sessions set chosen_plan_manager_id = $2 where account_id = $1"
    server.run(server.db.execute(selected, person.account_id, plan_manager_id))
    choose = browser.get(path)
    assert (choose.status_code, next_path(choose.headers["location"])) == (303, path)
    page = browser.get(choose.headers["location"]).text
    assert page.count(f'name="next" value="{path}"') == 2
    chosen = browser.submit("/console/plan-managers", {"plan_manager_id": str(second), "next": path})
    assert chosen.headers["location"] == path
    require_resumed(browser.get(path).text, SIGNED_OUT)


def test_a_form_of_an_earlier_session_is_shown_and_not_sent(
    server: RunningServer, client: Client, browser: Browser, person: Account
) -> None:
    csrf = browser.csrf()
    end_sessions(server, person.account_id)
    browser.sign_in(person)
    response = browser.http.post(PARTICIPANTS, data={"csrf": csrf, **TYPED}, headers={"Origin": browser.url})
    assert response.status_code == 403
    require_resumed(response.text, "You signed in again after you opened this form.")
    assert stored_names(client) == []
    require_tokens_of_session(browser, response.text, csrf)


def test_changes_by_others_in_the_meantime_are_shown(
    server: RunningServer, client: Client, browser: Browser, person: Account
) -> None:
    made = client.create("/participants", {"first_name": "Ann", "city": "Hobart"})["id"]
    path, csrf = f"{PARTICIPANTS}/{made}/edit/address", browser.csrf()
    form = form_fields(browser, path) | {"city": "Burnie"}
    end_sessions(server, person.account_id)
    client.put(f"/participants/{made}", {"city": "Queenstown"})
    response = browser.http.post(path, data={"csrf": csrf, **form}, headers={"Origin": browser.url})
    resumed = next_path(response.headers["location"])
    browser.sign_in(person, next=resumed)
    page = browser.get(resumed).text
    assert ('value="Burnie"' in page, "Suburb: Queenstown" in page, SIGNED_OUT in page) == (True, True, True)


@pytest.mark.parametrize("path", ["/console/account/password", "/console/settings/people/invite"])
def test_passwords_are_never_kept(server: RunningServer, owner: Browser, path: str) -> None:
    account_id = server.run(server.db.rows(UUID, "select account_id from account_sessions order by created_at desc"))[0]
    csrf = owner.csrf()
    end_sessions(server, account_id)
    form = {"password": PASSWORD, "new_password": PASSWORD * 2, "email": "kept@example.com", "csrf": csrf}
    target = "/console/settings/people" if path.endswith("invite") else path
    response = owner.http.post(target, data=form, headers={"Origin": owner.url})
    assert next_path(response.headers["location"]).partition("?")[0] == path
    expected = [("email", "kept@example.com")] if path.endswith("invite") else None
    assert kept_fields(server, response.headers["location"], account_id) == expected


def kept_fields(server: RunningServer, location: str, account_id: UUID) -> list[tuple[str, str]] | None:
    path, _, token = next_path(location).partition("?draft=")
    draft = server.run(drafts.get(server.db, token, account_id, path))
    return draft.fields if draft else None


def test_a_button_leads_back_to_its_page(
    server: RunningServer, client: Client, browser: Browser, person: Account
) -> None:
    made = client.create("/participants", {"first_name": "Ann"})["id"]
    page, csrf = f"{PARTICIPANTS}/{made}/delete", browser.csrf()
    end_sessions(server, person.account_id)
    headers = {"Origin": browser.url, "Referer": f"{browser.url}{page}?list=q"}
    response = browser.http.post(page, data={"csrf": csrf}, headers=headers)
    assert next_path(response.headers["location"]) == f"{page}?list=q"
    for referer in ("https://evil.example/console\\evil", "https://evil.example/elsewhere", ""):
        headers = {"Origin": browser.url, "Referer": referer}
        assert browser.http.post(page, data={"csrf": csrf}, headers=headers).status_code == 403
    assert stored_names(client) == ["Ann"]


@pytest.mark.parametrize("origin", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {}])
def test_another_site_cannot_keep_a_form(
    server: RunningServer, browser: Browser, person: Account, origin: dict[str, str]
) -> None:
    csrf = browser.csrf()
    end_sessions(server, person.account_id)
    response = browser.http.post(PARTICIPANTS, data={"csrf": csrf, **TYPED}, headers=origin)
    assert (response.status_code, kept_count(server, person.account_id)) == (403, 0)


def test_an_unknown_browser_cannot_keep_a_form(server: RunningServer, new_browser: NewBrowser) -> None:
    count = "select count(*) from form_drafts"
    before = server.run(server.db.one(int, count))
    stranger = new_browser()
    for cookies in ({}, {"plankeeper": "x" * 43, "plankeeper-device": "y" * 43}):
        stranger.http.cookies.update(cookies)
        response = stranger.http.post(PARTICIPANTS, data=TYPED, headers={"Origin": stranger.url})
        assert response.status_code == 403
    assert server.run(server.db.one(int, count)) == before


def test_a_kept_form_is_unreadable_in_the_database_and_on_other_pages(
    server: RunningServer, client: Client, browser: Browser, person: Account
) -> None:
    path = next_path(send_after_the_end(server, browser, person.account_id))
    token = path.rpartition("=")[2]
    sealed = server.run(
        draft_store.get(server.db, hash_token(token), person.account_id, datetime.now(UTC) - drafts.LIFETIME)
    )
    assert sealed
    assert not any(text.encode() in sealed for text in (*TYPED, *TYPED.values(), token))
    browser.sign_in(person)
    made = client.create("/participants", {"first_name": "Bo"})["id"]
    for other in (f"{PARTICIPANTS}/{made}/edit/person", "/console/providers/new", "/console/participants"):
        page = browser.get(f"{other}?draft={token}").text
        assert ("Ann &lt;b&gt;" in page, SIGNED_OUT in page) == (False, False)
    for wrong in (str(uuid4()), token[:-1], token + "A", ""):
        assert SIGNED_OUT not in browser.get(f"{NEW}?draft={wrong}").text


def test_a_kept_form_expires_after_an_hour(server: RunningServer, browser: Browser, person: Account) -> None:
    path = next_path(send_after_the_end(server, browser, person.account_id))
    browser.sign_in(person)
    assert SIGNED_OUT in browser.get(path).text
    token_hash, an_hour_ago = hash_token(path.rpartition("=")[2]), datetime.now(UTC) - drafts.LIFETIME
    sealed = server.run(draft_store.get(server.db, token_hash, person.account_id, an_hour_ago))
    assert sealed
    server.run(server.db.execute("delete from form_drafts where token_hash = $1", token_hash))
    server.run(draft_store.insert(server.db, token_hash, [person.account_id], sealed, an_hour_ago))
    assert SIGNED_OUT not in browser.get(path).text
    server.run(drafts.purge(server.db))
    assert kept_count(server, person.account_id) == 0


def test_an_account_has_at_most_ten_kept_forms(server: RunningServer, browser: Browser, person: Account) -> None:
    locations = [send_after_the_end(server, browser, person.account_id, first_name=f"N{n}") for n in range(12)]
    assert kept_count(server, person.account_id) == drafts.MAX_DRAFTS
    newest = kept_fields(server, locations[-1], person.account_id)
    assert (newest, kept_fields(server, locations[0], person.account_id)) == ([("first_name", "N11")], None)


def test_a_kept_form_does_not_open_pages_that_the_role_does_not(
    server: RunningServer, browser: Browser, person: Account
) -> None:
    path = next_path(send_after_the_end(server, browser, person.account_id))
    browser.sign_in(person)
    server.run(server.db.execute("update account_roles set role = 'viewer' where account_id = $1", person.account_id))
    assert browser.get(path).status_code == 403


def test_the_cookies_of_a_sign_in_are_new(server: RunningServer, browser: Browser, person: Account) -> None:
    """A resumed form works only with the token of the new session."""
    old_csrf, old_session = browser.csrf(), browser.http.cookies["plankeeper"]
    path = next_path(send_after_the_end(server, browser, person.account_id))
    browser.sign_in(person, next=path)
    page = browser.get(path).text
    assert browser.http.cookies["plankeeper"] != old_session
    require_tokens_of_session(browser, page, old_csrf)
