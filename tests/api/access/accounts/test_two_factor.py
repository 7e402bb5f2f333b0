"""Two-factor authentication: authenticator apps, recovery codes, and a session that waits for it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyotp.totp import TOTP

from plankeeper.access.accounts import self_service, store, totp
from plankeeper.access.accounts.credentials import VerifiedCredentials
from plankeeper.access.accounts.schemas import LoginResult
from plankeeper.access.tokens import hash_token
from plankeeper.core.errors import ValidationError
from support.accounts import PASSWORD, AccountDriver, recorded_account_events
from support.logins import FailedLogin
from support.metrics import current_value


class AuthenticatorApp:
    """An authenticator app; it never shows a code twice."""

    def __init__(self, secret: str) -> None:
        self.totp = TOTP(secret)

    def code(self, drift: int = 0) -> str:
        return self.totp.generate_otp(int(time.time()) // 30 + drift)


@pytest.fixture
def authenticator(ada: AccountDriver) -> AuthenticatorApp:
    """Ada's, who has turned two-factor authentication on and used no code of the present and the next moment."""
    secret, token = totp.new_secret(), ada.token()
    found = AuthenticatorApp(secret)
    enable_two_factor(ada, token, secret, found.code())
    ada.server.run(ada.server.db.execute("update accounts set totp_counter = 0 where id = $1", ada.id))
    return found


def password_verified_token(ada: AccountDriver) -> str:
    found = ada.sign_in()
    assert isinstance(found, LoginResult)
    assert found.two_factor_pending
    return found.token


def verified_credentials(ada: AccountDriver, token: str, password: str = PASSWORD) -> VerifiedCredentials:
    """That who is signed in gave the password again; raises Invalid."""
    session = ada.session(token)
    assert session
    return ada.server.run(
        self_service.reauthenticate(ada.server.db, ada.server.settings, session, password, "192.0.2.7", "Browser 1")
    )


def enable_two_factor(ada: AccountDriver, token: str, secret: str, code: str) -> Any:
    """The recovery codes of who turns two-factor authentication on, and the session's new token; raises Invalid."""
    proof = verified_credentials(ada, token)
    return ada.run_as_session(
        lambda tx, session: self_service.enable_totp(tx, ada.server.settings, session, proof, secret, code), token
    )


def event_types(ada: AccountDriver) -> list[str]:
    return [each.type.removeprefix("account.") for each in recorded_account_events(ada.server, ada.plan_manager_id)]


def test_a_password_alone_grants_no_role(ada: AccountDriver, authenticator: AuthenticatorApp) -> None:
    token = password_verified_token(ada)
    session = ada.session(token)
    assert session
    assert (session.two_factor_pending, session.roles, session.plan_manager_id) == (True, {}, None)
    assert session.plan_manager_names == {}
    assert event_types(ada) == ["joined", "signed_in", "totp_enabled"]


def test_a_code_completes_the_session_with_a_new_token(ada: AccountDriver, authenticator: AuthenticatorApp) -> None:
    token = password_verified_token(ada)
    found = ada.verify_two_factor(token, authenticator.code())
    assert isinstance(found, LoginResult)
    assert not found.two_factor_pending
    assert found.token != token
    assert ada.session(token) is None
    session = ada.session(found.token)
    assert session
    assert session.roles == {ada.plan_manager_id: "owner"}
    assert event_types(ada)[-1] == "signed_in"


def test_a_code_is_used_once(ada: AccountDriver, authenticator: AuthenticatorApp) -> None:
    code = authenticator.code()
    first, second = password_verified_token(ada), password_verified_token(ada)
    assert isinstance(ada.verify_two_factor(first, code), LoginResult)
    assert ada.verify_two_factor(second, code) == FailedLogin(0)
    assert ada.session(second)
    assert event_types(ada)[-1] == "sign_in_failed"


def test_codes_of_the_adjacent_time_steps_are_accepted_and_no_others() -> None:
    secret, now = totp.new_secret(), datetime(2026, 11, 21, 4, 5, 6, tzinfo=UTC)
    present = int(now.timestamp()) // 30
    codes = TOTP(secret)
    found = {drift: totp.verify_code(secret, codes.generate_otp(present + drift), 0, now) for drift in range(-3, 4)}
    assert found == {-3: None, -2: None, -1: present - 1, 0: present, 1: present + 1, 2: None, 3: None}
    assert totp.verify_code(secret, codes.generate_otp(present), present, now) is None
    assert totp.verify_code(secret, codes.generate_otp(present + 1), present, now) == present + 1


@pytest.mark.parametrize("code", ["", "000000", "12345", "1234567", "abcdef", "١٢٣٤٥٦", "\0", "\ud800", "x" * 10_000])
def test_a_wrong_code_is_rejected(ada: AccountDriver, authenticator: AuthenticatorApp, code: str) -> None:
    token = password_verified_token(ada)
    assert ada.verify_two_factor(token, code) == FailedLogin(0)
    session = ada.session(token)
    assert session
    assert session.two_factor_pending


def test_code_attempts_are_throttled(ada: AccountDriver, authenticator: AuthenticatorApp) -> None:
    waits = []
    for _ in range(5):
        # The password between two codes must not make them free again.
        found = ada.verify_two_factor(password_verified_token(ada), "000000")
        assert isinstance(found, FailedLogin)
        waits.append(found.retry_after)
        ada.clear_login_delay()
    assert waits == [0, 0, 1, 2, 4]
    assert ada.verify_two_factor(password_verified_token(ada), "000000") == FailedLogin(8)
    token_refused = ada.sign_in()
    assert isinstance(token_refused, FailedLogin)
    assert token_refused.retry_after > 0


def failure_counts() -> dict[str, float]:
    """The failed sign-ins that the metrics have counted, by reason."""
    return {
        reason: current_value("plankeeper_sign_in_failures_total", reason=reason)
        for reason in ("password", "code", "too_soon")
    }


@pytest.mark.usefixtures("long_login_delays")
def test_metrics_count_failures_by_reason(ada: AccountDriver, authenticator: AuthenticatorApp) -> None:
    before = failure_counts()
    ada.sign_in("wrong")
    ada.verify_two_factor(password_verified_token(ada), "000000")
    ada.verify_two_factor(password_verified_token(ada), "000000")
    ada.sign_in()  # too soon
    changes = {reason: count - before[reason] for reason, count in failure_counts().items()}
    assert changes == {"password": 1, "code": 2, "too_soon": 1}


def test_a_code_is_rejected_for_a_complete_or_unknown_session(
    ada: AccountDriver, authenticator: AuthenticatorApp
) -> None:
    complete = ada.verify_two_factor(password_verified_token(ada), authenticator.code())
    assert isinstance(complete, LoginResult)
    assert ada.verify_two_factor(complete.token, authenticator.code(1)) == FailedLogin(0)
    assert ada.verify_two_factor("nobody's", authenticator.code(1)) == FailedLogin(0)


def test_a_recovery_code_works_once_and_a_new_set_replaces_the_old(ada: AccountDriver) -> None:
    secret = totp.new_secret()
    token = ada.token()
    codes, token = enable_two_factor(ada, token, secret, AuthenticatorApp(secret).code())
    assert len(codes) == 10
    assert isinstance(ada.verify_two_factor(password_verified_token(ada), codes[0].upper()), LoginResult)
    assert ada.verify_two_factor(password_verified_token(ada), codes[0]) == FailedLogin(0)
    assert ada.server.run(store.count_unused_recovery_codes(ada.server.db, ada.id)) == 9
    settings, proof = ada.server.settings, verified_credentials(ada, token)
    newer = ada.run_as_session(lambda tx, _: self_service.renew_recovery_codes(tx, settings, proof), token)
    assert event_types(ada)[-1] == "recovery_codes_renewed"
    assert not set(newer) & set(codes)
    assert ada.verify_two_factor(password_verified_token(ada), codes[1]) == FailedLogin(0)
    ada.clear_login_delay()
    assert isinstance(ada.verify_two_factor(password_verified_token(ada), newer[1]), LoginResult)


def test_enabling_two_factor_needs_a_code_and_ends_other_sessions(ada: AccountDriver) -> None:
    secret, token, other = totp.new_secret(), ada.token(), ada.token()
    for bad_secret, code in ((secret, "000000"), ("short", "000000"), ("", "")):
        with pytest.raises(ValidationError):
            enable_two_factor(ada, token, bad_secret, code)
    _, new_token = enable_two_factor(ada, token, secret, AuthenticatorApp(secret).code())
    assert ada.session(token) is None
    token = new_token
    session = ada.session(token)
    assert session
    assert session.totp
    assert ada.session(other) is None
    with pytest.raises(ValidationError):
        enable_two_factor(ada, token, secret, AuthenticatorApp(secret).code(1))


def test_disabling_two_factor_needs_the_password(ada: AccountDriver, authenticator: AuthenticatorApp) -> None:
    complete = ada.verify_two_factor(password_verified_token(ada), authenticator.code())
    assert isinstance(complete, LoginResult)
    settings = ada.server.settings
    with pytest.raises(ValidationError):
        verified_credentials(ada, complete.token, "wrong")
    assert event_types(ada)[-1] == "sign_in_failed"
    proof = verified_credentials(ada, complete.token)
    renewed = ada.run_as_session(
        lambda tx, session: self_service.disable_totp(tx, settings, session, proof), complete.token
    )
    assert (ada.session(complete.token), ada.session(renewed) is None) == (None, False)
    assert event_types(ada)[-1] == "totp_disabled"
    found = ada.sign_in()
    assert isinstance(found, LoginResult)
    assert not found.two_factor_pending
    assert ada.server.run(store.count_unused_recovery_codes(ada.server.db, ada.id)) == 0


def test_a_new_password_ends_the_other_sessions(ada: AccountDriver) -> None:
    token, other = ada.token(), ada.token()
    settings, proof = ada.server.settings, verified_credentials(ada, token)
    with pytest.raises(ValidationError):
        ada.run_as_session(
            lambda tx, session: self_service.change_password(tx, settings, session, proof, "short"), token
        )
    new = "seven quiet lanterns"
    old_token, token = (
        token,
        ada.run_as_session(lambda tx, session: self_service.change_password(tx, settings, session, proof, new), token),
    )
    assert ada.session(old_token) is None
    assert event_types(ada)[-1] == "password_changed"
    with pytest.raises(ValidationError):  # what was proven before is not enough for another password
        ada.run_as_session(
            lambda tx, session: self_service.change_password(tx, settings, session, proof, "eight loud lanterns"), token
        )
    assert ada.session(token)
    assert ada.session(other) is None
    assert ada.sign_in() == FailedLogin(0)
    assert isinstance(ada.sign_in("seven quiet lanterns"), LoginResult)


def test_wrong_passwords_of_a_session_are_counted_and_recorded(ada: AccountDriver) -> None:
    token = ada.token()
    waits = []
    for _ in range(4):
        with pytest.raises(ValidationError) as rejected:
            verified_credentials(ada, token, "wrong")
        waits.append(str(rejected.value.errors[0].message))
        ada.clear_login_delay()
    assert waits == [
        "is incorrect", "is incorrect", "is incorrect, or you tried too soon: wait 1 second and try again",
        "is incorrect, or you tried too soon: wait 2 seconds and try again",
    ]  # fmt: skip
    # What is right is no failure: neither does it wait, nor is the count forgotten.
    assert verified_credentials(ada, token).account.id == ada.id
    with pytest.raises(ValidationError) as rejected:
        verified_credentials(ada, token, "wrong")
    assert "wait 4 seconds" in rejected.value.errors[0].message
    # The count delays the right password of this session too, and no sign-in.
    assert isinstance(ada.sign_in(), LoginResult)
    with pytest.raises(ValidationError):
        verified_credentials(ada, token)
    assert event_types(ada).count("sign_in_failed") == 5


def test_ending_other_sessions_keeps_the_current_one(
    ada: AccountDriver, new_account: Callable[..., AccountDriver]
) -> None:
    token, others, sam = ada.token(), [ada.token(), ada.token()], new_account()
    foreign, settings = sam.token(), ada.server.settings
    assert ada.run_as_session(lambda tx, session: self_service.revoke_other_sessions(tx, settings, session), token) == 2
    assert [ada.session(each) for each in others] == [None, None]
    assert ada.session(token)
    assert sam.session(foreign)
    assert event_types(ada)[-2:] == ["session_revoked"] * 2
    assert ada.run_as_session(lambda tx, session: self_service.revoke_other_sessions(tx, settings, session), token) == 0


def test_only_ones_own_sessions_can_be_revoked(ada: AccountDriver, new_account: Callable[..., AccountDriver]) -> None:
    token, lost, sam = ada.token(), ada.token(), new_account()
    foreign = sam.token()
    settings = ada.server.settings
    listed = ada.server.run(store.list_sessions(ada.server.db, ada.id, datetime.now(UTC)))
    assert {each.token_hash for each in listed} == {hash_token(token), hash_token(lost)}
    assert {(each.address, each.user_agent) for each in listed} == {("192.0.2.7", "Browser 1")}
    assert (
        ada.run_as_session(
            lambda tx, session: self_service.revoke_session(tx, settings, session, hash_token(lost)), token
        )
        is True
    )
    assert ada.session(lost) is None
    assert event_types(ada)[-1] == "session_revoked"
    assert (
        ada.run_as_session(
            lambda tx, session: self_service.revoke_session(tx, settings, session, hash_token(foreign)), token
        )
        is False
    )
    assert sam.session(foreign)
