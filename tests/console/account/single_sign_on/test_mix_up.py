"""Two providers on one server: one must not receive the codes of the other (RFC 9700, section 4.4)."""

from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import httpx
import pytest

from support.console import Account
from support.openid_provider import Claims, OpenIdProvider
from support.server import RunningServer
from support.single_sign_on import START, PublicBrowser, link, set_up_provider

HOME = "/console"
INVALID = f"{START}/failed?reason=invalid"


def without_issuer(metadata: Claims) -> Claims:
    """The metadata of a provider that doesn't name itself in its responses, like many."""
    return {name: value for name, value in metadata.items() if not name.startswith("authorization_response")}


@pytest.fixture(autouse=True)
def honest(provider: OpenIdProvider) -> None:
    provider.change_metadata = without_issuer


@pytest.fixture
def hostile(server: RunningServer, other: UUID) -> Iterator[OpenIdProvider]:
    """The provider of another plan manager."""
    with OpenIdProvider() as running:
        running.change_metadata = without_issuer
        set_up_provider(server, other, running.issuer, f"{other}.example")
        yield running


@pytest.fixture
def other(new_plan_manager: Callable[[], UUID]) -> UUID:
    return new_plan_manager()


def parameters(url: str) -> Claims:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def without_iss(address: str) -> str:
    return str(httpx.URL(address).copy_remove_param("iss"))


def test_a_provider_that_sends_the_browser_on_to_another_does_not_receive_its_code(
    provider: OpenIdProvider, hostile: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    plan_manager_id: UUID, other: UUID, person: Account,
) -> None:  # fmt: skip
    link(new_browser(), provider, plan_manager_id, person)
    victim, attacker = new_browser(), new_browser()
    own, state = parameters(attacker.start(plan_manager_id)), parameters(victim.start(other))["state"]
    # The hostile provider redirects to the honest one, with the attacker's request and the victim's state.
    passed_on = str(httpx.URL(f"{provider.issuer}/authorize", params=own | {"state": state}))
    requests = len(provider.requests)
    assert victim.come_back(without_iss(provider.authorize(passed_on, person.email))) == INVALID
    assert (hostile.requests, provider.requests[requests:]) == (["/.well-known/openid-configuration"], [])
    assert victim.get(HOME).headers["location"].startswith("/console/sign-in")


def test_a_response_belongs_to_the_redirect_address_of_its_plan_manager(
    provider: OpenIdProvider, hostile: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    plan_manager_id: UUID, other: UUID, person: Account,
) -> None:  # fmt: skip
    link(new_browser(), provider, plan_manager_id, person)
    requests = len(provider.requests)
    for path in (str(other), str(person.account_id)):  # the second is no plan manager
        browser = new_browser()
        address = without_iss(provider.authorize(browser.start(plan_manager_id), person.email))
        assert browser.come_back(address.replace(str(plan_manager_id), path)) == INVALID
        assert browser.come_back(address) == f"{START}/failed?reason=expired"
    assert (hostile.requests, provider.requests[requests:]) == ([], [])
    browser = new_browser()
    assert browser.come_back(without_iss(provider.authorize(browser.start(plan_manager_id), person.email))) == HOME


def test_each_plan_manager_has_its_own_redirect_address(
    hostile: OpenIdProvider, browser: PublicBrowser, plan_manager_id: UUID, other: UUID, domain: str
) -> None:
    assert domain
    addresses = [parameters(browser.start(each))["redirect_uri"] for each in (plan_manager_id, other)]
    assert addresses == [f"https://plans.example.com{START}/{each}/callback" for each in (plan_manager_id, other)]
