"""Single sign-on in Chromium: from the sign-in page to a provider and back, under the pages' own security policy."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from support.chromium import ACTION_TIMEOUT
from support.cluster import SharedCluster
from support.console import PASSWORD, create_account, sign_out
from support.openid_provider import OpenIdProvider
from support.server import RunningServer
from support.single_sign_on import public_server, set_up_provider
from support.tls_front import PUBLIC_URL, TlsFront

AXE = Path(__file__).parent / "axe/axe.min.js"


@pytest.fixture(scope="module")
def public(cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = public_server(cluster, tmp_path_factory.mktemp("keys"))
    yield running
    running.stop()


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    with OpenIdProvider() as running:
        yield running


@pytest.fixture
def page(chromium: Any, public_front: TlsFront, public: RunningServer) -> Iterator[Any]:
    """A page that finds the public host at the server."""
    public_front.lead_to(public.url)
    context = chromium.new_context(base_url=PUBLIC_URL, ignore_https_errors=True, reduced_motion="reduce")
    opened = context.new_page()
    opened.set_default_timeout(ACTION_TIMEOUT)
    errors: list[str] = []
    opened.on("console", lambda message: errors.append(message.text) if "Security Policy" in message.text else None)
    yield opened
    context.close()
    assert errors == []


def test_a_person_signs_in_at_the_provider_of_their_domain(
    page: Any, public: RunningServer, provider: OpenIdProvider, plan_manager_id: UUID, new_plan_manager: Any
) -> None:
    person, domain = public.run(create_account(public, plan_manager_id, "owner")), f"{plan_manager_id}.example"
    provider.person = f"robin@{domain}"
    statement = "update accounts set email = $2 where id = $1"
    public.run(public.db.execute(statement, person.account_id, provider.person))
    set_up_provider(public, plan_manager_id, provider.issuer, domain)
    set_up_provider(public, new_plan_manager(), "https://login.example.com", f"second.{domain}")
    page.goto("/console/activity")
    page.get_by_role("link", name="Sign in with single sign-on").click()
    page.get_by_label("Work email").fill(provider.person)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", name="Link your account").wait_for()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Link and sign in").click()
    page.wait_for_url(f"{PUBLIC_URL}/console/activity")
    page.goto("/console/settings/people")
    page.get_by_role("button", name="Require single sign-on").click()
    page.get_by_role("button", name="Make single sign-on optional").wait_for()
    sign_out(page)
    # With only a password, single sign-on is the next step, which needs no form.
    page.get_by_label("Email").fill(provider.person)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("link", name="Sign in with single sign-on").click()
    page.wait_for_url(f"{PUBLIC_URL}/console")


def test_the_pages_of_single_sign_on_have_no_axe_violations(
    page: Any, public: RunningServer, provider: OpenIdProvider, plan_manager_id: UUID, new_plan_manager: Any
) -> None:
    domain = f"{plan_manager_id}.example"
    provider.person = f"robin@{domain}"
    set_up_provider(public, plan_manager_id, provider.issuer, domain)
    set_up_provider(public, new_plan_manager(), "https://login.example.com", f"second.{domain}")
    found: list[str] = []
    for path in (
        "/console/sign-in",
        "/console/single-sign-on",
        f"/console/single-sign-on/{plan_manager_id}/start",
        "/console/single-sign-on/failed?reason=email",
    ):
        page.goto(path)
        found += violations(page)
    assert found == []


def violations(page: Any) -> list[str]:
    """The findings of axe-core. It runs in an isolated world, because the policy of the pages blocks other scripts."""
    page.context.new_cdp_session(page).send("Page.setBypassCSP", {"enabled": True})
    page.reload()
    page.add_script_tag(path=str(AXE))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]
