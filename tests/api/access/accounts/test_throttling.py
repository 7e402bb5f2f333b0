"""Failures are counted by account and network, by known device, and by session: nobody can lock out another person."""

from collections.abc import Callable

import pytest

from plankeeper.access.accounts import (
    credentials,
    password_reset,
    self_service,
    store,
)
from plankeeper.access.accounts.schemas import LoginResult, Session
from plankeeper.access.policy import ACCOUNT_MAX_DELAY, MAX_DEVICES
from plankeeper.core.errors import ValidationError
from plankeeper.database.client import Transaction
from support.accounts import PASSWORD, AccountDriver
from support.logins import FailedLogin

ATTACKER = "203.0.113.66"


def lock(ada: AccountDriver, network: str = ATTACKER) -> None:
    """Fail until the network has to wait."""
    for _ in range(3):
        assert isinstance(ada.sign_in("wrong", network=network), FailedLogin)
    found = ada.sign_in(network=network)
    assert isinstance(found, FailedLogin)
    assert found.retry_after > 0


def device_of(ada: AccountDriver, device: str = "") -> str:
    """Sign in, and return the token of the device."""
    found = ada.sign_in(device=device)
    assert isinstance(found, LoginResult)
    assert found.device_token
    return found.device_token


def fail_on_all_networks(ada: AccountDriver, failures: int) -> None:
    """As if the account had failed so often on many networks."""
    ada.sign_in("wrong", network="198.51.100.1")
    statement = "update account_failures set failures = $2 where subject = sha256(convert_to($1, 'UTF8'))"
    ada.server.run(ada.server.db.execute(statement, ada.email, failures))


@pytest.mark.usefixtures("long_login_delays")
def test_failures_on_one_network_do_not_delay_another(ada: AccountDriver) -> None:
    lock(ada)
    assert isinstance(ada.sign_in(network="192.0.2.7"), LoginResult)
    assert isinstance(ada.sign_in(network=ATTACKER), FailedLogin)


def test_an_account_is_slowed_down_after_many_failures_on_all_networks(ada: AccountDriver) -> None:
    fail_on_all_networks(ada, 99)
    assert ada.sign_in("wrong", network="198.51.100.2") == FailedLogin(0)
    assert ada.sign_in("wrong", network="198.51.100.3") == FailedLogin(1)
    fail_on_all_networks(ada, 10_000)
    ada.clear_login_delay()
    assert ada.sign_in("wrong", network="198.51.100.4") == FailedLogin(ACCOUNT_MAX_DELAY)
    found = ada.sign_in(network="192.0.2.7")
    assert isinstance(found, FailedLogin)
    assert 0 < found.retry_after <= ACCOUNT_MAX_DELAY


@pytest.mark.usefixtures("long_login_delays")
def test_a_known_device_signs_in_whatever_happens_elsewhere(ada: AccountDriver) -> None:
    device = device_of(ada)
    lock(ada)
    lock(ada, network="192.0.2.7")  # also on the network of the device
    fail_on_all_networks(ada, 10_000)
    ada.sign_in("wrong", network="198.51.100.9")
    assert isinstance(ada.sign_in(), FailedLogin)
    assert isinstance(ada.sign_in(device=device), LoginResult)


def test_a_known_device_has_its_own_delays(ada: AccountDriver) -> None:
    device = device_of(ada)
    for expected in (0, 0, 1):
        assert ada.sign_in("wrong", device=device) == FailedLogin(expected)
    assert isinstance(ada.sign_in(device=device), FailedLogin)
    assert isinstance(ada.sign_in(), LoginResult)


@pytest.mark.usefixtures("long_login_delays")
def test_a_device_is_known_only_to_accounts_that_signed_in_there(
    ada: AccountDriver, new_account: Callable[..., AccountDriver]
) -> None:
    mallory = new_account()
    device = device_of(mallory)
    lock(ada, network="192.0.2.7")
    assert isinstance(ada.sign_in(device=device), FailedLogin)
    ada.clear_login_delay()
    shared = device_of(ada, device)
    # The token changed, for both accounts: the one that Mallory knew is worth nothing.
    for account in (ada, mallory):
        assert ada.server.run(credentials.is_known(ada.server.db, account.email, shared))
        assert not ada.server.run(credentials.is_known(ada.server.db, account.email, device))


@pytest.mark.parametrize("token", ["", "x", "\0", "\ud800", "a" * 10_000])
@pytest.mark.usefixtures("long_login_delays")
def test_an_unknown_device_token_counts_by_network(ada: AccountDriver, token: str) -> None:
    lock(ada, network="192.0.2.7")
    assert isinstance(ada.sign_in(device=token), FailedLogin)


def test_an_account_has_a_limited_number_of_devices(ada: AccountDriver) -> None:
    tokens = [device_of(ada) for _ in range(MAX_DEVICES + 2)]
    known = [ada.server.run(credentials.is_known(ada.server.db, ada.email, token)) for token in tokens]
    assert known == [False, False] + [True] * MAX_DEVICES


@pytest.mark.usefixtures("long_login_delays")
def test_a_reset_forgets_devices_and_delays(ada: AccountDriver) -> None:
    device = device_of(ada)
    lock(ada)

    async def reset(ctx: object) -> None:
        tx = ctx.tx  # type: ignore[attr-defined]
        account = await store.get_by_email(tx, ada.email)
        assert account
        await password_reset.reset(tx, ada.server.settings, account, "another long passphrase", "accounts reset")

    ada.write(reset)
    assert not ada.server.run(credentials.is_known(ada.server.db, ada.email, device))
    assert isinstance(ada.sign_in("another long passphrase", network=ATTACKER), LoginResult)


def reauthenticate(ada: AccountDriver, token: str, password: str) -> str | None:
    """The error message, or None."""

    async def work(_tx: Transaction, session: Session) -> None:
        await self_service.reauthenticate(ada.server.db, ada.server.settings, session, password, "192.0.2.7", "x")

    try:
        ada.run_as_session(work, token)
    except ValidationError as error:
        return (error.errors or [])[0].message
    return None


@pytest.mark.usefixtures("long_login_delays")
def test_a_session_checks_the_password_whatever_happens_elsewhere(ada: AccountDriver) -> None:
    first, second = ada.token(), ada.token()
    lock(ada, network="192.0.2.7")
    fail_on_all_networks(ada, 10_000)
    assert reauthenticate(ada, first, PASSWORD) is None
    assert [reauthenticate(ada, first, "wrong") for _ in range(3)][:2] == ["is incorrect"] * 2
    assert "you tried too soon" in (reauthenticate(ada, first, PASSWORD) or "")
    assert reauthenticate(ada, second, PASSWORD) is None
