"""A form whose session has ended isn't saved: the sign-in page says so, and leads back to the form."""

import re
from collections.abc import Callable
from html import unescape
from uuid import uuid4

import pytest

from plankeeper.access.accounts import totp
from support.client import Client
from support.console import PASSWORD, Account, Browser, csrf_tokens
from support.ended_sessions import end_sessions, next_path
from support.server import RunningServer

PARTICIPANTS = "/console/participants"
NEW = f"{PARTICIPANTS}/new"
TYPED = {"first_name": "Ann <b>", "city": "Hobart", "date_of_birth": "3/2/1990", "email": "ann@example.com"}
UNSAVED = "You were signed out before your changes were saved."
NewBrowser = Callable[..., Browser]


@pytest.fixture
def person(new_account: Callable[..., Account]) -> Account:
    return new_account("manager")


@pytest.fixture
def browser(new_browser: NewBrowser, person: Account) -> Browser:
    return new_browser(person)


def stored_names(client: Client) -> list[str]:
    return [each["first_name"] for each in client.get("/participants").json()["data"]]


def send(browser: Browser, csrf: str, path: str = PARTICIPANTS, **headers: str) -> str:
    """Send a form: the page that the sign-in leads to afterwards."""
    data = {"csrf": csrf, "password": PASSWORD, **TYPED}
    response = browser.http.post(path, data=data, headers={"Origin": browser.url, **headers})
    assert response.status_code == 303, response.text
    page = browser.get(response.headers["location"]).text
    assert (UNSAVED in page, TYPED["email"] in page) == (True, False)
    return next_path(response.headers["location"])


def require_tokens_of_session(browser: Browser, page: str, old: str) -> None:
    """The forms of the page have a token, which the session takes, and nothing of the token of an earlier one."""
    tokens, path = csrf_tokens(page), f"{PARTICIPANTS}/{uuid4()}/delete"
    sent = {
        each: browser.http.post(path, data={"csrf": each}, headers={"Origin": browser.url}) for each in (*tokens, old)
    }
    # With a token of the session, the participant isn't found; without one, nothing is looked for.
    assert {each: response.status_code for each, response in sent.items()} == dict.fromkeys(tokens, 404) | {old: 403}
    assert len(tokens) == 1


def test_the_sign_in_leads_back_to_the_form(
    server: RunningServer, client: Client, browser: Browser, person: Account
) -> None:
    csrf = browser.csrf()
    end_sessions(server, person.account_id)
    path = send(browser, csrf)
    assert (path, stored_names(client)) == (NEW, [])
    assert browser.sign_in(person, next=path).headers["location"] == NEW
    page = browser.get(NEW).text
    assert (UNSAVED in page, f'data-account="{person.account_id}"' in page) == (False, True)


def test_the_page_for_the_code_leads_back_to_the_form(server: RunningServer, browser: Browser, person: Account) -> None:
    csrf = browser.csrf()
    statement = "update accounts set totp_secret = $2, totp_counter = 0 where id = $1"
    server.run(server.db.execute(statement, person.account_id, totp.new_secret()))
    end_sessions(server, person.account_id)
    browser.sign_in(person)
    assert send(browser, csrf) == NEW


def test_a_form_of_an_earlier_session_is_shown_and_not_sent(
    server: RunningServer, client: Client, browser: Browser, person: Account
) -> None:
    csrf = browser.csrf()
    end_sessions(server, person.account_id)
    browser.sign_in(person)
    response = browser.http.post(PARTICIPANTS, data={"csrf": csrf, **TYPED}, headers={"Origin": browser.url})
    assert response.status_code == 403
    assert "You signed in again after you opened this form." in response.text
    assert re.search('role="alert" tabindex="-1" autofocus>', response.text)
    fields = re.findall(r'name="(\w+)" [^>]*?value="([^"]*)"', response.text)
    shown = {unescape(name): unescape(value) for name, value in fields}
    assert {name: shown[name] for name in TYPED} == TYPED | {"date_of_birth": "3 Feb 1990"}
    assert stored_names(client) == []
    require_tokens_of_session(browser, response.text, csrf)


@pytest.mark.parametrize(
    "target, form_path",
    [
        ("/console/account/password", "/console/account/password"),
        ("/console/settings/people", "/console/settings/people/invite"),
    ],
)
def test_a_form_with_a_password_leads_to_its_empty_page(
    server: RunningServer, new_browser: NewBrowser, new_account: Callable[..., Account], target: str, form_path: str
) -> None:
    owner = new_account("owner")
    browser = new_browser(owner)
    csrf = browser.csrf()
    end_sessions(server, owner.account_id)
    assert send(browser, csrf, target) == form_path


def test_a_button_leads_back_to_its_page(
    server: RunningServer, client: Client, browser: Browser, person: Account
) -> None:
    made = client.create("/participants", {"first_name": "Ann"})["id"]
    page, csrf = f"{PARTICIPANTS}/{made}/delete", browser.csrf()
    end_sessions(server, person.account_id)
    assert send(browser, csrf, page, Referer=f"{browser.url}{page}?list=q") == f"{page}?list=q"
    for referer in ("https://evil.example/console\\evil", "https://evil.example/elsewhere", ""):
        headers = {"Origin": browser.url, "Referer": referer}
        assert browser.http.post(page, data={"csrf": csrf}, headers=headers).status_code == 403
    assert stored_names(client) == ["Ann"]


@pytest.mark.parametrize("origin", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {}])
def test_a_form_of_another_site_is_rejected(
    server: RunningServer, browser: Browser, person: Account, origin: dict[str, str]
) -> None:
    csrf = browser.csrf()
    end_sessions(server, person.account_id)
    response = browser.http.post(PARTICIPANTS, data={"csrf": csrf, **TYPED}, headers=origin)
    assert response.status_code == 403
