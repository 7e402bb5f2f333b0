"""The limit of sign-in attempts of all addresses together, of which known devices have a share of their own."""

from collections.abc import Callable, Iterator

import pytest

from support.cluster import SharedCluster
from support.console import PASSWORD, Account, Browser
from support.quotas import hold_minute
from support.server import RunningServer


@pytest.fixture
def limited_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    """In a minute, it allows six attempts on unknown devices and two on known devices."""
    running = RunningServer(cluster.dsn, sign_in_rate_limit=8).start()
    for subject in ("guesses:unknown devices", "guesses:known devices"):
        running.run(hold_minute(running.db, subject))
    yield running
    running.stop()


@pytest.fixture
def new_device(limited_server: RunningServer) -> Iterator[Callable[[], Browser]]:
    opened: list[Browser] = []

    def make() -> Browser:
        opened.append(Browser(limited_server.url))
        return opened[-1]

    yield make
    for each in opened:
        each.http.close()


def test_all_attempts_together_are_limited_and_known_devices_have_their_own_share(
    new_device: Callable[[], Browser], new_account: Callable[..., Account]
) -> None:
    person = new_account("owner")
    known = new_device()
    assert known.sign_in(person).status_code == 303
    attempts = [
        new_device().sign_in(Account(f"nobody{number}@example.com", person.account_id), password="wrong-wrong-wrong")
        for number in range(7)
    ]
    assert [each.status_code for each in attempts] == [401] * 5 + [429] * 2
    assert int(attempts[-1].headers["retry-after"]) in range(1, 121)
    assert new_device().sign_in(person).status_code == 429
    # A signed-in person confirms the password without counting.
    form = {"password": PASSWORD, "new_password": PASSWORD}
    assert known.submit("/console/account/password", form).status_code == 303
    for expected in (303, 303, 429):
        known.http.cookies.delete("plankeeper")
        assert known.sign_in(person).status_code == expected
