"""A response of the provider, and a link, that arrive twice at the same moment: one signs in, the others fail."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import httpx

from support.console import PASSWORD, Account
from support.openid_provider import OpenIdProvider
from support.server import RunningServer
from support.single_sign_on import LINK, START, PublicBrowser, link

HOME = "/console"
COPIES = 8


def send_copies(
    server: RunningServer, browser: PublicBrowser, send: Callable[[PublicBrowser], httpx.Response]
) -> Counter[str]:
    """Where a request leads to that copies of a browser, with the same cookies, send at the same moment."""
    copies = [PublicBrowser(server) for _ in range(COPIES)]
    for each in copies:
        each.http.cookies.update(browser.http.cookies)
    with ThreadPoolExecutor(COPIES) as threads:
        responses = list(threads.map(send, copies))
    for each in copies:
        each.http.close()
    assert {each.status_code for each in responses} == {303}
    return Counter(each.headers["location"] for each in responses)


def count_sessions(server: RunningServer, account: Account) -> int:
    statement = "select count(*) from account_sessions where account_id = $1"
    return server.run(server.db.one(int, statement, account.account_id))


def test_a_response_signs_in_once(
    server: RunningServer, provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    plan_manager_id: UUID, person: Account,
) -> None:  # fmt: skip
    link(new_browser(), provider, plan_manager_id, person)
    before, browser = count_sessions(server, person), new_browser()
    url = provider.authorize(browser.start(plan_manager_id), person.email)
    outcome = send_copies(server, browser, lambda copy: copy.get(url))
    assert outcome == {HOME: 1, f"{START}/failed?reason=expired": COPIES - 1}
    assert count_sessions(server, person) == before + 1


def test_an_identity_is_linked_once(
    server: RunningServer, provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    plan_manager_id: UUID, person: Account,
) -> None:  # fmt: skip
    browser = new_browser()
    assert browser.come_back(provider.authorize(browser.start(plan_manager_id), person.email)) == LINK
    form = {"csrf": browser.csrf(LINK), "password": PASSWORD}
    headers = {"Origin": browser.url}
    outcome = send_copies(server, browser, lambda copy: copy.http.post(LINK, data=form, headers=headers))
    assert outcome[HOME] == 1
    assert set(outcome) <= {HOME, f"{START}/failed?reason=expired"}
    statement = "select count(*) from account_identities where account_id = $1"
    assert server.run(server.db.one(int, statement, person.account_id)) == 1
    assert count_sessions(server, person) == 1
