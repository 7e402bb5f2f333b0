"""One's own account: password, two-factor authentication, recovery codes, sessions."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest
from pyotp.totp import TOTP

from plankeeper.access.tokens import hash_token
from plankeeper.console.account.pages import describe_browser
from support.cluster import SharedCluster
from support.console import PASSWORD, Account, Browser, csrf_tokens
from support.quotas import hold_minute
from support.server import RunningServer

ACCOUNT = "/console/account"
NEW_PASSWORD = "seven-quiet-lanterns-4"


@pytest.fixture
def account(new_account: Callable[..., Account]) -> Account:
    return new_account("viewer")


@pytest.fixture
def signed_in(new_browser: Callable[..., Browser], account: Account) -> Browser:
    return new_browser(account)


@pytest.fixture
def recorded_events(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[str]]:
    statement = "select type from events where plan_manager_id = $1 and type like 'account.%' order by created_at, id"
    return lambda: server.run(server.db.rows(str, statement, plan_manager_id))


def secret_in(response: httpx.Response) -> str:
    match = re.search(r'name="secret" value="([A-Z2-7]{32})"', response.text)
    assert match, response.text
    return match[1]


def totp_code(secret: str, drift: int = 0) -> str:
    return TOTP(secret).generate_otp(int(time.time()) // 30 + drift)


def recovery_codes_in(response: httpx.Response) -> list[str]:
    match = re.search(r'<pre id="codes"[^>]*>([^<]+)</pre>', response.text)
    assert (response.status_code, bool(match)) == (200, True), response.text
    assert match
    return match[1].split()


def enable_two_factor(signed_in: Browser) -> tuple[str, list[str]]:
    """The secret and the recovery codes of two-factor authentication that is on now."""
    secret = secret_in(signed_in.get(f"{ACCOUNT}/two-factor"))
    return secret, recovery_codes_in(
        signed_in.submit(f"{ACCOUNT}/two-factor", {"secret": secret, "code": totp_code(secret), "password": PASSWORD})
    )


def test_the_page_names_its_account_and_every_page_links_to_it(signed_in: Browser, account: Account) -> None:
    page = signed_in.get(ACCOUNT).text
    assert (account.email in page, "Robin Hale" in page, "current session" in page) == (True, True, True)
    assert f'<a href="{ACCOUNT}"' in signed_in.get("/console/activity").text


def test_a_name_is_changed_and_recorded_with_the_name_before(
    signed_in: Browser, server: RunningServer, plan_manager_id: UUID
) -> None:
    changed = "concat(previous->>'name', ' to ', data->>'name')"
    statement = f"select {changed} from events where plan_manager_id = $1 and type = $2"
    for name in ("Robin Vale", "Robin Vale"):  # the second time, nothing changes: there is no event
        response = signed_in.submit(f"{ACCOUNT}/name", {"name": name})
        assert (response.status_code, response.headers["location"]) == (303, ACCOUNT)
        page = signed_in.get(ACCOUNT).text
        assert ("Name changed." in page, "Robin Vale" in page, "Robin Hale" in page) == (True, True, False)
        changes = server.run(server.db.rows(str, statement, plan_manager_id, "account.renamed"))
        assert changes == ["Robin Hale to Robin Vale"]


@pytest.mark.parametrize("name", ["", "x" * 256, "Robin\nHale"])
def test_an_invalid_name_is_rejected(signed_in: Browser, name: str) -> None:
    response = signed_in.submit(f"{ACCOUNT}/name", {"name": name})
    assert response.status_code == 422
    assert "must be one line of 1 to 255 characters" in response.text
    assert "Robin Hale" in signed_in.get(ACCOUNT).text


def test_a_password_change_ends_other_sessions_and_is_recorded(
    signed_in: Browser, account: Account, new_browser: Callable[..., Browser], recorded_events: Callable[[], list[str]]
) -> None:
    other = new_browser(account)
    response = signed_in.submit(f"{ACCOUNT}/password", {"password": PASSWORD, "new_password": NEW_PASSWORD})
    assert (response.status_code, response.headers["location"]) == (303, ACCOUNT)
    assert "Password changed." in signed_in.get(ACCOUNT).text
    assert other.get(ACCOUNT).headers["location"].startswith("/console/sign-in")
    assert new_browser().sign_in(account).status_code == 401
    assert new_browser().sign_in(account, password=NEW_PASSWORD).status_code == 303
    assert recorded_events().count("account.password_changed") == 1


def test_an_invalid_password_is_rejected_and_never_shown_again(
    signed_in: Browser, account: Account, new_browser: Callable[..., Browser], recorded_events: Callable[[], list[str]]
) -> None:
    for form, problem in (
        ({"password": "wrong-wrong-wrong", "new_password": NEW_PASSWORD}, "Password is incorrect"),
        ({"password": PASSWORD, "new_password": "short"}, "New password must be 12"),
        ({"password": PASSWORD, "new_password": account.email}, "New password must not be the email"),
        ({}, "Password is incorrect"),
    ):
        response = signed_in.submit(f"{ACCOUNT}/password", form)
        assert (response.status_code, problem in response.text, NEW_PASSWORD in response.text) == (422, True, False)
        assert PASSWORD not in response.text
    assert "account.password_changed" not in recorded_events()
    assert new_browser().sign_in(account).status_code == 303


@pytest.mark.parametrize("path", ["password", "two-factor/off", "recovery-codes"])
@pytest.mark.usefixtures("long_login_delays")
def test_wrong_passwords_are_throttled_like_sign_ins(
    signed_in: Browser,
    account: Account,
    new_browser: Callable[..., Browser],
    recorded_events: Callable[[], list[str]],
    path: str,
) -> None:
    responses = [
        signed_in.submit(f"{ACCOUNT}/{path}", {"password": "wrong", "new_password": NEW_PASSWORD}) for _ in range(3)
    ]
    # The last two pages are shown again; without two-factor authentication theirs leads back, and counts as much.
    assert {response.status_code for response in responses} <= {422, 303}
    assert recorded_events().count("account.sign_in_failed") == 3
    rejected = signed_in.submit(f"{ACCOUNT}/password", {"password": PASSWORD, "new_password": NEW_PASSWORD})
    assert (rejected.status_code, "you tried too soon: wait" in rejected.text) == (422, True)
    # The failures are the session's: somebody who found it open locks nobody out.
    assert new_browser().sign_in(account).status_code == 303
    assert "account.password_changed" not in recorded_events()


def test_two_factor_is_enabled_with_a_code_for_the_shown_secret(
    signed_in: Browser, account: Account, new_browser: Callable[..., Browser], recorded_events: Callable[[], list[str]]
) -> None:
    other, page = new_browser(account), signed_in.get(f"{ACCOUNT}/two-factor")
    secret = secret_in(page)
    assert " ".join(re.findall("....", secret)) in page.text
    assert 'src="data:image/svg+xml' in page.text
    wrong = signed_in.submit(f"{ACCOUNT}/two-factor", {"secret": secret, "code": "000000", "password": PASSWORD})
    assert (wrong.status_code, "Code is not the current code of the app" in wrong.text) == (422, True)
    assert secret_in(wrong) == secret
    assert signed_in.submit(f"{ACCOUNT}/two-factor", {"secret": "'><b>", "code": "1"}).status_code == 422
    without = signed_in.submit(
        f"{ACCOUNT}/two-factor", {"secret": secret, "code": totp_code(secret), "password": "wrong"}
    )
    assert (without.status_code, "Password is incorrect" in without.text) == (422, True)
    codes = recovery_codes_in(
        signed_in.submit(f"{ACCOUNT}/two-factor", {"secret": secret, "code": totp_code(secret), "password": PASSWORD})
    )
    assert len(set(codes)) == 10
    shown = signed_in.get(ACCOUNT).text
    assert ("Recovery codes left" in shown, ">10<" in shown, codes[0] in shown, secret in shown) == (
        True, True, False, False,
    )  # fmt: skip
    assert other.get(ACCOUNT).status_code == 303
    assert signed_in.get(f"{ACCOUNT}/two-factor").headers["location"] == ACCOUNT
    again = new_browser()
    assert again.sign_in(account).headers["location"] == "/console/two-factor"
    assert again.get(ACCOUNT).headers["location"] == "/console/two-factor"
    response = again.submit("/console/two-factor", {"code": totp_code(secret, 1)}, "/console/two-factor")
    assert response.headers["location"] == "/console"
    assert recorded_events().count("account.totp_enabled") == 1


def test_new_recovery_codes_need_the_password_and_replace_the_old(
    signed_in: Browser, account: Account, new_browser: Callable[..., Browser], recorded_events: Callable[[], list[str]]
) -> None:
    assert signed_in.get(f"{ACCOUNT}/recovery-codes").headers["location"] == ACCOUNT
    secret, old = enable_two_factor(signed_in)
    right = {"password": PASSWORD, "code": totp_code(secret, 1)}
    assert signed_in.submit(f"{ACCOUNT}/recovery-codes", right | {"password": "wrong"}).status_code == 422
    assert signed_in.submit(f"{ACCOUNT}/recovery-codes", right | {"code": "000000"}).status_code == 422
    new = recovery_codes_in(signed_in.submit(f"{ACCOUNT}/recovery-codes", right))
    assert (len(set(new)), set(old) & set(new)) == (10, set())
    for code, status in ((old[0], 401), (new[0], 303)):
        browser = new_browser()
        browser.sign_in(account)
        assert browser.submit("/console/two-factor", {"code": code}, "/console/two-factor").status_code == status
    assert recorded_events().count("account.recovery_codes_renewed") == 1


def test_two_factor_is_disabled_with_the_password_and_a_code(
    signed_in: Browser, account: Account, new_browser: Callable[..., Browser], recorded_events: Callable[[], list[str]]
) -> None:
    assert signed_in.get(f"{ACCOUNT}/two-factor/off").headers["location"] == ACCOUNT
    _, codes = enable_two_factor(signed_in)
    off, right = f"{ACCOUNT}/two-factor/off", {"password": PASSWORD, "code": codes[0]}
    assert signed_in.submit(off, right | {"password": "wrong"}).status_code == 422
    wrong = signed_in.submit(off, right | {"code": "000000"})
    assert (wrong.status_code, "Code is incorrect, or was used before." in wrong.text) == (422, True)
    assert recorded_events()[-1] == "account.sign_in_failed"
    assert signed_in.submit(off, right).headers["location"] == ACCOUNT
    assert new_browser().sign_in(account).headers["location"] == "/console"
    assert recorded_events().count("account.totp_disabled") == 1


def test_sensitive_changes_give_the_session_a_new_token(
    signed_in: Browser, new_browser: Callable[..., Browser]
) -> None:
    def stolen() -> Browser:
        copy = new_browser()
        copy.http.cookies.set("plankeeper", signed_in.http.cookies["plankeeper"])
        assert copy.get(ACCOUNT).status_code == 200
        return copy

    copies = [stolen()]
    form = {"password": PASSWORD, "new_password": NEW_PASSWORD}
    assert signed_in.submit(f"{ACCOUNT}/password", form).status_code == 303
    copies.append(stolen())
    secret = secret_in(signed_in.get(f"{ACCOUNT}/two-factor"))
    form = {"secret": secret, "code": totp_code(secret), "password": NEW_PASSWORD}
    page = signed_in.submit(f"{ACCOUNT}/two-factor", form)
    copies.append(stolen())
    # The page with the codes has the token of the new session's forms.
    [token] = csrf_tokens(page.text)
    form = {"csrf": token, "password": NEW_PASSWORD, "code": recovery_codes_in(page)[0]}
    assert signed_in.submit(f"{ACCOUNT}/two-factor/off", form).status_code == 303
    assert [each.get(ACCOUNT).status_code for each in copies] == [303, 303, 303]
    assert signed_in.get(ACCOUNT).status_code == 200


@pytest.mark.usefixtures("long_login_delays")
def test_a_new_password_forgets_other_devices(
    signed_in: Browser, account: Account, new_browser: Callable[..., Browser]
) -> None:
    other = new_browser(account)
    form = {"password": PASSWORD, "new_password": NEW_PASSWORD}
    assert signed_in.submit(f"{ACCOUNT}/password", form).status_code == 303
    attacker = new_browser()
    for _ in range(3):
        attacker.sign_in(account, password="wrong-wrong-wrong")
    assert other.sign_in(account, password=NEW_PASSWORD).status_code == 401
    signed_in.submit("/console/sign-out")
    assert signed_in.sign_in(account, password=NEW_PASSWORD).status_code == 303


def test_one_or_all_other_sessions_can_be_ended_but_not_those_of_others(
    signed_in: Browser, account: Account, new_browser: Callable[..., Browser], new_account: Callable[..., Account],
    recorded_events: Callable[[], list[str]],
) -> None:  # fmt: skip
    lost, second, third, outsider = (new_browser(each) for each in (account, account, account, new_account("owner")))
    tokens = {each: hash_token(each.http.cookies["plankeeper"]).hex() for each in (signed_in, lost, outsider)}
    page = signed_in.get(ACCOUNT).text
    assert (tokens[lost] in page, tokens[signed_in] in page, tokens[outsider] in page) == (True, False, False)
    assert signed_in.submit(f"{ACCOUNT}/sessions/end", {"session": tokens[lost]}).headers["location"] == ACCOUNT
    assert (lost.get(ACCOUNT).status_code, second.get(ACCOUNT).status_code) == (303, 200)
    for wrong in (tokens[lost], tokens[signed_in], tokens[outsider], "x", ""):
        assert signed_in.submit(f"{ACCOUNT}/sessions/end", {"session": wrong}).status_code == 404
    assert signed_in.submit(f"{ACCOUNT}/sessions/end-others").headers["location"] == ACCOUNT
    assert "2 other sessions signed out." in signed_in.get(ACCOUNT).text
    states = [each.get(ACCOUNT).status_code for each in (signed_in, second, third, outsider)]
    assert states == [200, 303, 303, 200]
    assert recorded_events().count("account.session_revoked") == 3


def test_the_user_agent_is_shown_as_text(
    account: Account, signed_in: Browser, new_browser: Callable[..., Browser]
) -> None:
    odd = new_browser()
    odd.http.headers["User-Agent"] = "<script>alert(1)</script>"
    assert odd.sign_in(account).status_code == 303
    page = signed_in.get(ACCOUNT).text
    assert ("<script>alert" in page, "Unknown browser" in page) == (False, True)


WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    "agent, words",
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox on Linux"),
        (f"Mozilla/5.0 (Windows NT 10.0) {WEBKIT} Chrome/130.0.0.0 Safari/537.36 Edg/130.0.0.0", "Edge on Windows"),
        (f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) {WEBKIT} Safari/604.1", "Safari on iPhone"),
        (f"Mozilla/5.0 (Linux; Android 10; K) {WEBKIT} Chrome/130.0.0.0 Safari/537.36", "Chrome on Android"),
        ("curl/8.5", "Unknown browser"),
        ("", "Unknown browser"),
    ],
)
def test_a_browser_is_described_in_words(agent: str, words: str) -> None:
    assert describe_browser(agent) == words


@pytest.fixture(scope="module")
def throttled_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    """A server on which an address may guess four times a minute."""
    running = RunningServer(cluster.dsn, auth_failure_rate_limit=4).start()
    yield running
    running.stop()


def test_password_attempts_per_address_are_limited(
    throttled_server: RunningServer, server: RunningServer, account: Account, signed_in: Browser
) -> None:
    """At sign-in, two-factor authentication and invitations together, whatever the email; what is signed in goes on."""
    throttled_server.run(hold_minute(throttled_server.db, "guess:127.0.0.1"))
    before = Browser(throttled_server.url)
    before.http.cookies = signed_in.http.cookies
    browser = Browser(throttled_server.url)
    tried: list[Any] = []
    for number in range(8):
        wrong = Account(f"nobody{number}@example.com", account.account_id)
        tried.append(
            browser.sign_in(wrong, password="wrong-wrong-wrong") if number % 2 else _accept_invitation(browser)
        )
    statuses = [each.status_code for each in tried]
    first = statuses.index(429)
    assert first == 4
    assert set(statuses[:first]) == {401, 404}
    page = tried[first]
    assert ("Too many attempts" in page.text, int(page.headers["retry-after"]) in range(1, 61)) == (True, True)
    assert browser.sign_in(account).status_code == 429
    assert before.get(ACCOUNT).status_code == 200
    # A session doesn't help to guess the passwords of others.
    form = {"email": "nobody@example.com", "password": "wrong-wrong-wrong"}
    assert before.submit("/console/sign-in", form, ACCOUNT).status_code == 429
    browser.http.close()
    before.http.close()


def _accept_invitation(browser: Browser) -> Any:
    return browser.submit("/console/invitations/nobodys", {"name": "x", "password": PASSWORD}, "/console/sign-in")
