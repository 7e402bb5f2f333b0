"""Under a flood, known devices have their own share of the sign-ins at providers too."""

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from support.cluster import SharedCluster
from support.console import Account
from support.openid_provider import OpenIdProvider
from support.quotas import hold_minute
from support.server import RunningServer
from support.single_sign_on import LINK, START, PublicBrowser, link

HOME = "/console"


@pytest.fixture
def limited_server(cluster: SharedCluster, server: RunningServer) -> Iterator[RunningServer]:
    """In a minute, it allows six attempts on unknown devices and two on known devices."""
    running = RunningServer(
        cluster.dsn, public_url=server.settings.public_url, secret_key_file=server.settings.secret_key_file,
        sign_in_rate_limit=8, auth_failure_rate_limit=0,
    ).start()  # fmt: skip
    hold_minutes(running)
    yield running
    running.stop()


def hold_minutes(limited_server: RunningServer) -> None:
    for subject in ("guesses:unknown devices", "guesses:known devices"):
        limited_server.run(hold_minute(limited_server.db, subject))


@pytest.fixture
def new_limited_browser(limited_server: RunningServer) -> Iterator[Callable[[], PublicBrowser]]:
    opened: list[PublicBrowser] = []

    def make() -> PublicBrowser:
        opened.append(PublicBrowser(limited_server))
        return opened[-1]

    yield make
    for each in opened:
        each.http.close()


def use_up_share_of_unknown_devices(
    limited_server: RunningServer, flooding: PublicBrowser, plan_manager_id: UUID
) -> None:
    hold_minutes(limited_server)  # again: what came before can take a minute
    statuses = [flooding.get(f"{START}/{plan_manager_id}/start").status_code for _ in range(7)]
    assert statuses[-1] == 429


def test_known_devices_sign_in_during_a_flood_and_each_sign_in_counts_once(
    new_browser: Callable[[], PublicBrowser], new_limited_browser: Callable[[], PublicBrowser],
    limited_server: RunningServer, provider: OpenIdProvider, plan_manager_id: UUID, person: Account,
) -> None:  # fmt: skip
    linking, known = new_browser(), new_limited_browser()
    link(linking, provider, plan_manager_id, person)
    known.http.cookies.set(
        "__Host-plankeeper-device", linking.http.cookies["__Host-plankeeper-device"], domain="plans.example.com"
    )
    use_up_share_of_unknown_devices(limited_server, new_limited_browser(), plan_manager_id)
    for _ in range(2):
        assert known.sign_in_at(provider, plan_manager_id, person.email) == HOME
    assert known.get(f"{START}/{plan_manager_id}/start").status_code == 429


def test_the_email_of_a_form_makes_no_device_known_except_on_the_sign_in_page(
    new_browser: Callable[[], PublicBrowser], new_limited_browser: Callable[[], PublicBrowser],
    limited_server: RunningServer, new_account: Callable[..., Account], provider: OpenIdProvider,
    plan_manager_id: UUID, person: Account,
) -> None:  # fmt: skip
    """An attacker sends the email of an account of their own with guesses for another account."""
    own, attacker = new_account("viewer"), new_browser()
    assert attacker.sign_in(own).status_code == 303
    device, limited = attacker.http.cookies["__Host-plankeeper-device"], new_limited_browser()
    assert limited.sign_in_at(provider, plan_manager_id, person.email) == LINK
    csrf = limited.csrf(LINK)
    limited.http.cookies.set("__Host-plankeeper-device", device, domain="plans.example.com")
    use_up_share_of_unknown_devices(limited_server, new_limited_browser(), plan_manager_id)
    form = {"csrf": csrf, "email": own.email, "password": "wrong-wrong-wrong"}
    for path in (LINK, "/console/reset-password/token"):
        response = limited.http.post(path, data=form, headers={"Origin": limited.url})
        assert response.status_code == 429
