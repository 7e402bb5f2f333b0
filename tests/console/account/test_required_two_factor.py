"""An owner can require two-factor authentication: a person without it reaches only the page that turns it on."""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from html import unescape
from uuid import UUID

import pytest
from pyotp import TOTP

from plankeeper.access.accounts import member_store
from support.console import PASSWORD, Account, Browser
from support.server import RunningServer

PEOPLE, ENABLE = "/console/settings/people", "/console/account/two-factor"


def enable_two_factor(browser: Browser) -> str:
    """Turn it on, and return the secret."""
    match = re.search(r'name="secret" value="([A-Z2-7]+)"', browser.get(ENABLE).text)
    assert match
    secret = unescape(match[1])
    response = browser.submit(ENABLE, {"secret": secret, "code": TOTP(secret).now(), "password": PASSWORD})
    assert response.status_code == 200, response.text
    return secret


@pytest.fixture
def requiring_owner(owner: Browser) -> Browser:
    enable_two_factor(owner)
    assert owner.submit(f"{PEOPLE}/two-factor", {"required": "yes"}).headers["location"] == PEOPLE
    assert "Two-factor authentication is now required." in owner.get(PEOPLE).text
    return owner


def test_an_owner_turns_it_on_for_themselves_first(owner: Browser) -> None:
    response = owner.submit(f"{PEOPLE}/two-factor", {"required": "yes"})
    assert (response.status_code, "for your own account first." in response.text) == (422, True)
    assert "Optional: each member decides." in owner.get(PEOPLE).text


def test_a_member_without_it_reaches_only_the_page_that_turns_it_on(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], owner: Browser
) -> None:
    person = new_account("manager")
    before = new_browser(person)
    enable_two_factor(owner)
    owner.submit(f"{PEOPLE}/two-factor", {"required": "yes"})
    # An open session too, from the next request on.
    for path in ("/console/participants", "/console/activity.csv", "/console/settings/keys", "/console/imports"):
        assert before.get(path).headers["location"] == ENABLE
    assert before.submit("/console/note-types", {"note_type": "x"}).headers["location"] == ENABLE
    after = new_browser()
    assert after.sign_in(person).headers["location"] == ENABLE
    assert "requires two-factor authentication." in after.get(ENABLE).text
    secret = enable_two_factor(after)
    assert after.get("/console/participants").status_code == 200
    code = TOTP(secret).generate_otp(int(time.time()) // 30 + 1)
    page = after.submit(f"{ENABLE}/off", {"password": PASSWORD, "code": code})
    assert (page.status_code, "so you can’t turn it off." in page.text) == (422, True)


def test_other_plan_managers_stay_reachable_and_give_no_way_in(
    server: RunningServer, new_browser: Callable[..., Browser], new_account: Callable[..., Account],
    requiring_owner: Browser, new_plan_manager: Callable[[], UUID], plan_manager_id: UUID,
) -> None:  # fmt: skip
    person, second = new_account("owner"), new_plan_manager()

    async def join() -> None:
        async with server.db.transaction() as tx:
            await member_store.insert(tx, second, person.account_id, "owner", datetime.now(UTC))

    server.run(join())
    browser = new_browser(person)
    assert browser.get("/console/participants").status_code == 200
    chooser = browser.get("/console/plan-managers").text
    assert (str(second) in chooser, str(plan_manager_id) in chooser, "Turn it on" in chooser) == (True, False, True)
    assert browser.submit("/console/plan-managers", {"plan_manager_id": str(plan_manager_id)}).status_code == 422
    form = {"name": "k", "scope": ["read"], "lasts": "30", "plan_manager_id": [str(plan_manager_id)]}
    assert browser.submit("/console/settings/keys", form).status_code == 422
    requiring_owner.submit(f"{PEOPLE}/two-factor", {"required": "no"})
    assert browser.submit("/console/plan-managers", {"plan_manager_id": str(plan_manager_id)}).status_code == 303
