"""A form whose session has ended is shown again after single sign-on."""

from collections.abc import Callable
from uuid import UUID

from support.console import Account
from support.ended_sessions import next_path, require_resumed, send_after_the_end
from support.openid_provider import OpenIdProvider
from support.server import RunningServer
from support.single_sign_on import PublicBrowser, link


def test_a_form_is_kept_through_single_sign_on(
    server: RunningServer, provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser],
    plan_manager_id: UUID, person: Account,
) -> None:  # fmt: skip
    browser = new_browser()
    link(browser, provider, plan_manager_id, person)
    location = send_after_the_end(server, browser, person.account_id)
    path = next_path(location)
    assert f"/console/single-sign-on?next={path.replace('?', '%3F').replace('=', '%3D')}" in browser.get(location).text
    back = browser.come_back(provider.authorize(browser.start(plan_manager_id, next=path), person.email))
    assert back == path
    require_resumed(browser.get(path).text, "You were signed out before this was saved.")
