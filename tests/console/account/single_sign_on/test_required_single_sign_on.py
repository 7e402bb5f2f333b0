"""An owner can require single sign-on: while the plan manager is selected, a password is not enough."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

from plankeeper.access.accounts import member_store, members
from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.access.single_sign_on import providers
from plankeeper.core.context import SYSTEM, WriteContext
from support.console import Account
from support.openid_provider import OpenIdProvider
from support.server import RunningServer
from support.single_sign_on import PublicBrowser, link, set_up_provider

HOME, CHOOSER, PEOPLE = "/console", "/console/plan-managers", "/console/settings/people"


def require(browser: PublicBrowser, required: str = "yes") -> tuple[int, str]:
    response = browser.submit(f"{PEOPLE}/single-sign-on", {"required": required})
    return response.status_code, response.headers.get("location", "")


def test_an_owner_requires_it_from_a_session_of_the_provider(
    server: RunningServer, provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    plan_manager_id: UUID, person: Account,
) -> None:  # fmt: skip
    with_password, browser = new_browser(person), new_browser()
    assert "sign in with single sign-on</a> yourself first" in with_password.get(PEOPLE).text
    assert require(with_password) == (422, "")
    link(browser, provider, plan_manager_id, person)
    assert require(browser) == (303, PEOPLE)
    assert "Single sign-on is now required." in browser.get(PEOPLE).text
    policy = server.run(plan_managers.get_policy(server.db, plan_manager_id))
    assert (policy.requires_single_sign_on, policy.requires_two_factor) == (True, False)
    # An open session too, from the next request on.
    for path in (HOME, "/console/activity.csv", "/console/settings/keys", PEOPLE):
        assert with_password.get(path).headers["location"] == CHOOSER
    page = with_password.get(CHOOSER).text
    assert "Test plan manager requires single sign-on." in page
    assert f'href="/console/single-sign-on/{plan_manager_id}/start"' in page
    assert require(with_password, "no")[1] == CHOOSER
    assert "requires single sign-on" in browser.activity("?type=plan_manager.updated").lower()
    assert require(browser, "no") == (303, PEOPLE)
    assert with_password.get(HOME).status_code == 200


def test_signing_in_at_the_provider_adds_to_the_open_session(
    server: RunningServer, provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    new_plan_manager: Callable[[], UUID], plan_manager_id: UUID, person: Account,
) -> None:  # fmt: skip
    other, setup = new_plan_manager(), new_browser()

    async def join() -> None:
        async with server.db.transaction() as tx:
            await member_store.insert(tx, other, person.account_id, "owner", datetime.now(UTC))

    server.run(join())
    link(setup, provider, plan_manager_id, person)
    require(setup)
    browser = new_browser(person)
    token = browser.http.cookies["__Host-plankeeper"]
    assert browser.get(HOME).status_code == 200  # of the other plan manager, which is unaffected
    page = browser.get(CHOOSER).text
    assert (f'value="{other}"' in page, f'value="{plan_manager_id}"' in page) == (True, False)
    assert browser.sign_in_at(provider, plan_manager_id, person.email) == HOME
    assert browser.http.cookies["__Host-plankeeper"] != token
    assert browser.sign_in_at(provider, plan_manager_id, person.email) == HOME
    count = "select max(cardinality(provider_ids)) from account_sessions where account_id = $1"
    assert server.run(server.db.one(int, count, person.account_id)) == 1  # noted once
    page = browser.get(CHOOSER).text
    assert (f'value="{other}"' in page, f'value="{plan_manager_id}"' in page) == (True, True)
    stolen = new_browser()
    stolen.http.cookies.set("__Host-plankeeper", token, domain="plans.example.com")
    assert stolen.get(HOME).headers["location"].startswith("/console/sign-in")


def test_another_persons_session_ends_when_somebody_signs_in_at_the_provider(
    provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser], new_account: Callable[..., Account],
    plan_manager_id: UUID, person: Account,
) -> None:  # fmt: skip
    link(new_browser(), provider, plan_manager_id, person)
    browser, stolen = new_browser(new_account("viewer")), new_browser()
    stolen.http.cookies.set("__Host-plankeeper", browser.http.cookies["__Host-plankeeper"], domain="plans.example.com")
    assert stolen.get(HOME).status_code == 200
    assert browser.sign_in_at(provider, plan_manager_id, person.email) == HOME
    assert person.email in browser.get("/console/account").text
    assert stolen.get(HOME).headers["location"].startswith("/console/sign-in")


def test_sessions_of_a_provider_end_with_it(
    server: RunningServer, provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    plan_manager_id: UUID, person: Account, domain: str,
) -> None:  # fmt: skip
    link(new_browser(), provider, plan_manager_id, person)
    browser = new_browser()
    browser.sign_in_at(provider, plan_manager_id, person.email)
    require(browser)

    async def remove() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            await members.set_requires_single_sign_on(ctx, False, has_single_sign_on=False)
            await providers.remove(ctx)

    server.run(remove())
    assert browser.get(HOME).headers["location"] == CHOOSER
    assert new_browser(person).get(HOME).status_code == 200
    # Another provider is not the one that the session was signed in at.
    set_up_provider(server, plan_manager_id, provider.issuer, domain)
    assert browser.get(HOME).headers["location"] == CHOOSER


def test_it_cannot_be_required_without_a_provider(server: RunningServer, plan_manager_id: UUID) -> None:
    async def run() -> bool:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            await members.set_requires_single_sign_on(ctx, True, has_single_sign_on=True)
            return (await plan_managers.get_policy(tx, plan_manager_id)).requires_single_sign_on

    assert server.run(run()) is False


def test_the_provider_is_responsible_for_required_two_factor_authentication(
    server: RunningServer, provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    plan_manager_id: UUID, person: Account,
) -> None:  # fmt: skip
    link(new_browser(), provider, plan_manager_id, person)
    statement = "update plan_managers set requires_two_factor = true where id = $1"
    server.run(server.db.execute(statement, plan_manager_id))
    with_password, browser = new_browser(person), new_browser()
    assert with_password.get(HOME).headers["location"] == "/console/account/two-factor"
    assert browser.sign_in_at(provider, plan_manager_id, person.email) == HOME
    assert browser.get(HOME).status_code == 200
