"""One's own account: password, second step, recovery codes, sessions."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest
from pyotp.totp import TOTP

from console.people import PASSWORD, Browser, Person
from plankeeper.accounts.policy import hash_token
from plankeeper.console.pages.account import describe_browser
from plankeeper.embedded_postgres.cluster import Cluster
from support.server import RunningServer

ACCOUNT = "/console/account"
NEW = "seven-quiet-lanterns-4"


@pytest.fixture
def person(new_person: Callable[..., Person]) -> Person:
    return new_person("viewer")


@pytest.fixture
def own(new_browser: Callable[..., Browser], person: Person) -> Browser:
    return new_browser(person)


@pytest.fixture
def told(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[str]]:
    statement = "select type from events where plan_manager_id = $1 and type like 'account.%' order by created_at, id"
    return lambda: server.run(server.db.rows(str, statement, plan_manager_id))


def secret_on(answer: httpx.Response) -> str:
    found = re.search(r'name="secret" value="([A-Z2-7]{32})"', answer.text)
    assert found, answer.text
    return found[1]


def code_of(secret: str, drift: int = 0) -> str:
    return TOTP(secret).generate_otp(int(time.time()) // 30 + drift)


def codes_on(answer: httpx.Response) -> list[str]:
    found = re.search(r'<pre id="codes"[^>]*>([^<]+)</pre>', answer.text)
    assert (answer.status_code, bool(found)) == (200, True), answer.text
    assert found
    return found[1].split()


def turned_on(own: Browser) -> tuple[str, list[str]]:
    """The secret and the recovery codes of a second step that is on now."""
    secret = secret_on(own.get(f"{ACCOUNT}/second-step"))
    return secret, codes_on(
        own.send(f"{ACCOUNT}/second-step", {"secret": secret, "code": code_of(secret), "password": PASSWORD})
    )


def test_the_page_says_whose_account_it_is_and_every_page_leads_there(own: Browser, person: Person) -> None:
    page = own.get(ACCOUNT).text
    assert (person.email in page, "Robin Hale" in page, "this one" in page) == (True, True, True)
    assert f'<a href="{ACCOUNT}"' in own.get("/console/activity").text


def test_a_changed_password_ends_the_other_sessions_and_is_told_of(
    own: Browser, person: Person, new_browser: Callable[..., Browser], told: Callable[[], list[str]]
) -> None:
    other = new_browser(person)
    answer = own.send(f"{ACCOUNT}/password", {"password": PASSWORD, "new_password": NEW})
    assert (answer.status_code, answer.headers["location"]) == (303, ACCOUNT)
    assert "Your password is changed." in own.get(ACCOUNT).text
    assert other.get(ACCOUNT).headers["location"].startswith("/console/sign-in")
    assert new_browser().sign_in(person).status_code == 401
    assert new_browser().sign_in(person, password=NEW).status_code == 303
    assert told().count("account.password_changed") == 1


def test_a_password_that_will_not_do_is_refused_and_none_is_shown_again(
    own: Browser, person: Person, new_browser: Callable[..., Browser], told: Callable[[], list[str]]
) -> None:
    for form, fault in (
        ({"password": "wrong-wrong-wrong", "new_password": NEW}, "Password: is wrong"),
        ({"password": PASSWORD, "new_password": "short"}, "New password: must be 12"),
        ({"password": PASSWORD, "new_password": person.email}, "New password: must not be the email"),
        ({}, "Password: is wrong"),
    ):
        answer = own.send(f"{ACCOUNT}/password", form)
        assert (answer.status_code, fault in answer.text, NEW in answer.text) == (422, True, False)
        assert PASSWORD not in answer.text
    assert "account.password_changed" not in told()
    assert new_browser().sign_in(person).status_code == 303


@pytest.mark.parametrize("path", ["password", "second-step/off", "recovery-codes"])
def test_guesses_of_the_password_are_slowed_down_like_those_of_signing_in(
    own: Browser, person: Person, new_browser: Callable[..., Browser], told: Callable[[], list[str]], path: str
) -> None:
    answers = [own.send(f"{ACCOUNT}/{path}", {"password": "wrong", "new_password": NEW}) for _ in range(3)]
    # The last two pages are shown again; without a second step theirs leads back, and counts as much.
    assert {answer.status_code for answer in answers} <= {422, 303}
    assert told().count("account.sign_in_failed") == 3
    refused = own.send(f"{ACCOUNT}/password", {"password": PASSWORD, "new_password": NEW})
    assert (refused.status_code, "came too soon: wait" in refused.text) == (422, True)
    assert new_browser().sign_in(person).status_code == 401
    assert "account.password_changed" not in told()


def test_a_second_step_is_turned_on_with_a_code_of_the_secret_that_is_shown(
    own: Browser, person: Person, new_browser: Callable[..., Browser], told: Callable[[], list[str]]
) -> None:
    other, page = new_browser(person), own.get(f"{ACCOUNT}/second-step")
    secret = secret_on(page)
    assert " ".join(re.findall("....", secret)) in page.text
    assert 'src="data:image/svg+xml' in page.text
    wrong = own.send(f"{ACCOUNT}/second-step", {"secret": secret, "code": "000000", "password": PASSWORD})
    assert (wrong.status_code, "Code: is not what the app should show now" in wrong.text) == (422, True)
    assert secret_on(wrong) == secret
    assert own.send(f"{ACCOUNT}/second-step", {"secret": "'><b>", "code": "1"}).status_code == 422
    without = own.send(f"{ACCOUNT}/second-step", {"secret": secret, "code": code_of(secret), "password": "wrong"})
    assert (without.status_code, "Password: is wrong" in without.text) == (422, True)
    codes = codes_on(
        own.send(f"{ACCOUNT}/second-step", {"secret": secret, "code": code_of(secret), "password": PASSWORD})
    )
    assert len(set(codes)) == 10
    shown = own.get(ACCOUNT).text
    assert ("Recovery codes left" in shown, ">10<" in shown, codes[0] in shown, secret in shown) == (
        True, True, False, False,
    )  # fmt: skip
    assert other.get(ACCOUNT).status_code == 303
    assert own.get(f"{ACCOUNT}/second-step").headers["location"] == ACCOUNT
    again = new_browser()
    assert again.sign_in(person).headers["location"] == "/console/second-step"
    assert again.get(ACCOUNT).headers["location"] == "/console/second-step"
    answer = again.send("/console/second-step", {"code": code_of(secret, 1)}, "/console/second-step")
    assert answer.headers["location"] == "/console/participants"
    assert told().count("account.totp_enabled") == 1


def test_new_recovery_codes_need_the_password_and_end_the_old(
    own: Browser, person: Person, new_browser: Callable[..., Browser], told: Callable[[], list[str]]
) -> None:
    assert own.get(f"{ACCOUNT}/recovery-codes").headers["location"] == ACCOUNT
    _, old = turned_on(own)
    assert own.send(f"{ACCOUNT}/recovery-codes", {"password": "wrong"}).status_code == 422
    new = codes_on(own.send(f"{ACCOUNT}/recovery-codes", {"password": PASSWORD}))
    assert (len(set(new)), set(old) & set(new)) == (10, set())
    for code, status in ((old[0], 401), (new[0], 303)):
        browser = new_browser()
        browser.sign_in(person)
        assert browser.send("/console/second-step", {"code": code}, "/console/second-step").status_code == status
    assert told().count("account.recovery_codes_renewed") == 1


def test_the_second_step_is_turned_off_with_the_password(
    own: Browser, person: Person, new_browser: Callable[..., Browser], told: Callable[[], list[str]]
) -> None:
    assert own.get(f"{ACCOUNT}/second-step/off").headers["location"] == ACCOUNT
    turned_on(own)
    assert own.send(f"{ACCOUNT}/second-step/off", {"password": "wrong"}).status_code == 422
    assert own.send(f"{ACCOUNT}/second-step/off", {"password": PASSWORD}).headers["location"] == ACCOUNT
    assert new_browser().sign_in(person).headers["location"] == "/console/participants"
    assert told().count("account.totp_disabled") == 1


def test_a_session_is_ended_and_all_others_are_and_nobody_elses(
    own: Browser, person: Person, new_browser: Callable[..., Browser], new_person: Callable[..., Person],
    told: Callable[[], list[str]],
) -> None:  # fmt: skip
    lost, second, third, stranger = (new_browser(each) for each in (person, person, person, new_person("owner")))
    tokens = {each: hash_token(each.http.cookies["plankeeper"]).hex() for each in (own, lost, stranger)}
    page = own.get(ACCOUNT).text
    assert (tokens[lost] in page, tokens[own] in page, tokens[stranger] in page) == (True, False, False)
    assert own.send(f"{ACCOUNT}/sessions/end", {"session": tokens[lost]}).headers["location"] == ACCOUNT
    assert (lost.get(ACCOUNT).status_code, second.get(ACCOUNT).status_code) == (303, 200)
    for wrong in (tokens[lost], tokens[own], tokens[stranger], "x", ""):
        assert own.send(f"{ACCOUNT}/sessions/end", {"session": wrong}).status_code == 404
    assert own.send(f"{ACCOUNT}/sessions/end-others").headers["location"] == ACCOUNT
    assert "2 other sessions have ended." in own.get(ACCOUNT).text
    states = [each.get(ACCOUNT).status_code for each in (own, second, third, stranger)]
    assert states == [200, 303, 303, 200]
    assert told().count("account.session_revoked") == 3


def test_what_a_browser_says_of_itself_is_text(
    person: Person, own: Browser, new_browser: Callable[..., Browser]
) -> None:
    odd = new_browser()
    odd.http.headers["User-Agent"] = "<script>alert(1)</script>"
    assert odd.sign_in(person).status_code == 303
    page = own.get(ACCOUNT).text
    assert ("<script>alert" in page, "another program" in page) == (False, True)


WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    "agent, words",
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox on Linux"),
        (f"Mozilla/5.0 (Windows NT 10.0) {WEBKIT} Chrome/130.0.0.0 Safari/537.36 Edg/130.0.0.0", "Edge on Windows"),
        (f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) {WEBKIT} Safari/604.1", "Safari on iPhone"),
        (f"Mozilla/5.0 (Linux; Android 10; K) {WEBKIT} Chrome/130.0.0.0 Safari/537.36", "Chrome on Android"),
        ("curl/8.5", "another program"),
        ("", "another program"),
    ],
)
def test_a_browser_is_told_in_words(agent: str, words: str) -> None:
    assert describe_browser(agent) == words


@pytest.fixture(scope="module")
def strict(cluster: Cluster) -> Iterator[RunningServer]:
    """A server on which an address may guess four times a minute."""
    running = RunningServer(cluster.dsn, auth_failure_limit=4).start()
    yield running
    running.stop()


def test_an_address_may_guess_only_so_often_in_a_minute(
    strict: RunningServer, server: RunningServer, person: Person, own: Browser
) -> None:
    """At sign-in, the second step and invitations together, whatever the email; what is signed in goes on."""
    before = Browser(strict.url)
    before.http.cookies = own.http.cookies
    browser = Browser(strict.url)
    tried: list[Any] = []
    for number in range(8):
        wrong = Person(f"nobody{number}@example.com", person.account_id)
        tried.append(browser.sign_in(wrong, password="wrong-wrong-wrong") if number % 2 else _accepting(browser))
    statuses = [each.status_code for each in tried]
    first = statuses.index(429)
    assert first >= 4  # a minute may have begun in between
    assert set(statuses[:first]) == {401, 404}
    page = tried[first]
    assert ("Too many attempts" in page.text, int(page.headers["retry-after"]) in range(1, 61)) == (True, True)
    assert browser.sign_in(person).status_code in (429, 303)
    assert before.get(ACCOUNT).status_code == 200
    browser.http.close()
    before.http.close()


def _accepting(browser: Browser) -> Any:
    return browser.send("/console/invitations/nobodys", {"name": "x", "password": PASSWORD}, "/console/sign-in")
