"""Sign-ins have limits of their own: of all addresses together, and apart from the concurrency of the API."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from plankeeper.access.accounts import passwords
from plankeeper.console.shell import concurrency
from plankeeper.console.shell.concurrency import MAX_CREDENTIAL_CHECKS, CredentialCheckLimit
from plankeeper.http import admission
from support.client import Client
from support.cluster import SharedCluster
from support.console import PASSWORD, Account, Browser
from support.quotas import hold_minute
from support.server import RunningServer, wait_until


@pytest.fixture
def limited_server(cluster: SharedCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    """In a minute, it allows six attempts on unknown devices and two on known devices."""
    monkeypatch.setattr(admission, "REJECTION_DELAY", 0.0)
    running = RunningServer(cluster.dsn, sign_in_rate_limit=8).start()
    yield running
    running.stop()


def hold_minutes(limited_server: RunningServer) -> None:
    for subject in ("guesses:unknown devices", "guesses:known devices"):
        limited_server.run(hold_minute(limited_server.db, subject))


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
    limited_server: RunningServer, new_device: Callable[[], Browser], new_account: Callable[..., Account]
) -> None:
    person, known = new_account("owner"), new_device()
    hold_minutes(limited_server)
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


class HeldChecks:
    """Checks of passwords that last until they are released: how many were asked for, and how many have started."""

    def __init__(self) -> None:
        self.asked = self.started = 0
        self.released = asyncio.Event()
        self._slot = CredentialCheckLimit().slot

    def slot(self, **values: bool) -> Any:
        self.asked += 1
        return self._slot(**values)

    async def verify(self, *_: Any) -> bool:
        self.started += 1
        await self.released.wait()
        return True


def test_password_checks_take_no_capacity_from_the_api(
    cluster: SharedCluster, new_account: Callable[..., Account], new_key: Callable[..., str], plan_manager_id: UUID,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """More sign-ins are being checked, and waiting for it, than the server accepts requests."""
    running, account, checks = (
        RunningServer(cluster.dsn, max_concurrent_requests=1).start(),
        new_account(),
        HeldChecks(),
    )
    monkeypatch.setattr(passwords, "verify", checks.verify)
    monkeypatch.setattr(CredentialCheckLimit, "slot", checks.slot)
    monkeypatch.setattr(concurrency, "MIN_WAIT", 120.0)  # seconds: those that wait are not rejected on a slow machine
    monkeypatch.setattr(concurrency, "MAX_WAIT", 120.0)
    client = Client(running.url, new_key(plan_manager_id), plan_manager_id)
    browsers = [Browser(running.url) for _ in range(4)]
    for browser in browsers:
        browser.csrf("/console/sign-in")
    try:
        with ThreadPoolExecutor(len(browsers)) as threads:
            signing_in = [
                threads.submit(browser.sign_in, Account(f"nobody{number}@example.com", account.account_id))
                for number, browser in enumerate(browsers)
            ]
            try:
                wait_until(lambda: (checks.asked, checks.started) == (len(browsers), MAX_CREDENTIAL_CHECKS), 20)
                assert [client.get("/participants").status_code for _ in range(5)] == [200] * 5
                assert not any(each.done() for each in signing_in)
            finally:
                running.loop.call_soon_threadsafe(checks.released.set)
            assert {each.result().status_code for each in signing_in} == {401}
    finally:
        client.http.close()
        for browser in browsers:
            browser.http.close()
        running.stop()
