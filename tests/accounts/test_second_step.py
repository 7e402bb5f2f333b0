"""The second step: authenticator apps, recovery codes, and a session that waits for it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyotp.totp import TOTP

from accounts.conftest import PASSWORD, Someone, told
from plankeeper.accounts import self_service, store, totp
from plankeeper.accounts.credentials import VerifiedCredentials
from plankeeper.accounts.policy import hash_token
from plankeeper.accounts.schemas import LoginError, LoginResult
from plankeeper.http.errors import ValidationError


class Phone:
    """An authenticator app; it never shows a code twice."""

    def __init__(self, secret: str) -> None:
        self.codes = TOTP(secret)

    def code(self, drift: int = 0) -> str:
        return self.codes.generate_otp(int(time.time()) // 30 + drift)


@pytest.fixture
def phone(ada: Someone) -> Phone:
    """Ada's, who has turned the second step on and used no code of the present and the next moment."""
    secret, token = totp.new_secret(), ada.token()
    found = Phone(secret)
    turned_on(ada, token, secret, found.code())
    ada.write(lambda call: store.set_totp(call.tx, ada.id, secret, 0))
    return found


def half(ada: Someone) -> str:
    found = ada.sign_in()
    assert isinstance(found, LoginResult)
    assert found.two_factor_pending
    return found.token


def proven(ada: Someone, token: str, password: str = PASSWORD) -> VerifiedCredentials:
    """That who is signed in gave the password again; raises Invalid."""
    session = ada.session(token)
    assert session
    return ada.server.run(
        self_service.reauthenticate(ada.server.db, ada.server.settings, session, password, "192.0.2.7", "Browser 1")
    )


def turned_on(ada: Someone, token: str, secret: str, code: str) -> Any:
    """The recovery codes of who turns the second step on; raises Invalid."""
    proof = proven(ada, token)
    return ada.own(
        lambda tx, session: self_service.enable_totp(tx, ada.server.settings, session, proof, secret, code), token
    )


def types(ada: Someone) -> list[str]:
    return [each.type.removeprefix("account.") for each in told(ada.server, ada.plan_manager_id)]


def test_a_password_alone_opens_no_role(ada: Someone, phone: Phone) -> None:
    token = half(ada)
    session = ada.session(token)
    assert session
    assert (session.two_factor_pending, session.roles, session.plan_manager_id) == (True, {}, None)
    assert session.plan_manager_names == {}
    assert types(ada) == ["joined", "signed_in", "totp_enabled"]


def test_a_code_completes_the_session_with_another_token(ada: Someone, phone: Phone) -> None:
    token = half(ada)
    found = ada.second_step(token, phone.code())
    assert isinstance(found, LoginResult)
    assert not found.two_factor_pending
    assert found.token != token
    assert ada.session(token) is None
    session = ada.session(found.token)
    assert session
    assert session.roles == {ada.plan_manager_id: "owner"}
    assert types(ada)[-1] == "signed_in"


def test_a_code_is_used_once(ada: Someone, phone: Phone) -> None:
    code = phone.code()
    first, second = half(ada), half(ada)
    assert isinstance(ada.second_step(first, code), LoginResult)
    assert ada.second_step(second, code) == LoginError(0)
    assert ada.session(second)
    assert types(ada)[-1] == "sign_in_failed"


def test_a_code_of_the_moment_before_or_after_counts_and_no_other() -> None:
    secret, now = totp.new_secret(), datetime(2026, 11, 21, 4, 5, 6, tzinfo=UTC)
    present = int(now.timestamp()) // 30
    codes = TOTP(secret)
    found = {drift: totp.verify_code(secret, codes.generate_otp(present + drift), 0, now) for drift in range(-3, 4)}
    assert found == {-3: None, -2: None, -1: present - 1, 0: present, 1: present + 1, 2: None, 3: None}
    assert totp.verify_code(secret, codes.generate_otp(present), present, now) is None
    assert totp.verify_code(secret, codes.generate_otp(present + 1), present, now) == present + 1


@pytest.mark.parametrize("code", ["", "000000", "12345", "1234567", "abcdef", "١٢٣٤٥٦", "\0", "\ud800", "x" * 10_000])
def test_a_wrong_code_opens_nothing(ada: Someone, phone: Phone, code: str) -> None:
    token = half(ada)
    assert ada.second_step(token, code) == LoginError(0)
    session = ada.session(token)
    assert session
    assert session.two_factor_pending


def test_codes_can_not_be_tried_without_end(ada: Someone, phone: Phone) -> None:
    waits = []
    for _ in range(5):
        # The password between two codes must not make them free again.
        found = ada.second_step(half(ada), "000000")
        assert isinstance(found, LoginError)
        waits.append(found.retry_after)
        ada.let_wait_pass()
    assert waits == [0, 0, 1, 2, 4]
    assert ada.second_step(half(ada), "000000") == LoginError(8)
    token_refused = ada.sign_in()
    assert isinstance(token_refused, LoginError)
    assert token_refused.retry_after > 0


def test_a_code_for_a_session_that_is_complete_or_none_opens_nothing(ada: Someone, phone: Phone) -> None:
    complete = ada.second_step(half(ada), phone.code())
    assert isinstance(complete, LoginResult)
    assert ada.second_step(complete.token, phone.code(1)) == LoginError(0)
    assert ada.second_step("nobody's", phone.code(1)) == LoginError(0)


def test_a_recovery_code_is_used_once_and_a_new_set_ends_the_old(ada: Someone) -> None:
    secret = totp.new_secret()
    token = ada.token()
    codes = turned_on(ada, token, secret, Phone(secret).code())
    assert len(codes) == 10
    assert isinstance(ada.second_step(half(ada), codes[0].upper()), LoginResult)
    assert ada.second_step(half(ada), codes[0]) == LoginError(0)
    assert ada.server.run(store.count_unused_recovery_codes(ada.server.db, ada.id)) == 9
    settings, proof = ada.server.settings, proven(ada, token)
    newer = ada.own(lambda tx, _: self_service.renew_recovery_codes(tx, settings, proof), token)
    assert types(ada)[-1] == "recovery_codes_renewed"
    assert not set(newer) & set(codes)
    assert ada.second_step(half(ada), codes[1]) == LoginError(0)
    ada.let_wait_pass()
    assert isinstance(ada.second_step(half(ada), newer[1]), LoginResult)


def test_the_second_step_is_turned_on_by_a_code_and_ends_the_other_sessions(ada: Someone) -> None:
    secret, token, other = totp.new_secret(), ada.token(), ada.token()
    for bad_secret, code in ((secret, "000000"), ("short", "000000"), ("", "")):
        with pytest.raises(ValidationError):
            turned_on(ada, token, bad_secret, code)
    turned_on(ada, token, secret, Phone(secret).code())
    session = ada.session(token)
    assert session
    assert session.totp
    assert ada.session(other) is None
    with pytest.raises(ValidationError):
        turned_on(ada, token, secret, Phone(secret).code(1))


def test_the_second_step_is_turned_off_with_the_password(ada: Someone, phone: Phone) -> None:
    complete = ada.second_step(half(ada), phone.code())
    assert isinstance(complete, LoginResult)
    settings = ada.server.settings
    with pytest.raises(ValidationError):
        proven(ada, complete.token, "wrong")
    assert types(ada)[-1] == "sign_in_failed"
    proof = proven(ada, complete.token)
    ada.own(lambda tx, _: self_service.disable_totp(tx, settings, proof), complete.token)
    assert types(ada)[-1] == "totp_disabled"
    found = ada.sign_in()
    assert isinstance(found, LoginResult)
    assert not found.two_factor_pending
    assert ada.server.run(store.count_unused_recovery_codes(ada.server.db, ada.id)) == 0


def test_a_new_password_ends_the_other_sessions(ada: Someone) -> None:
    token, other = ada.token(), ada.token()
    settings, proof = ada.server.settings, proven(ada, token)
    with pytest.raises(ValidationError):
        ada.own(lambda tx, session: self_service.change_password(tx, settings, session, proof, "short"), token)
    new = "seven quiet lanterns"
    ada.own(lambda tx, session: self_service.change_password(tx, settings, session, proof, new), token)
    assert types(ada)[-1] == "password_changed"
    with pytest.raises(ValidationError):  # what was proven before is not enough for another password
        ada.own(
            lambda tx, session: self_service.change_password(tx, settings, session, proof, "eight loud lanterns"), token
        )
    assert ada.session(token)
    assert ada.session(other) is None
    assert ada.sign_in() == LoginError(0)
    assert isinstance(ada.sign_in("seven quiet lanterns"), LoginResult)


def test_guesses_of_the_password_count_like_those_of_signing_in(ada: Someone) -> None:
    token = ada.token()
    waits = []
    for _ in range(4):
        with pytest.raises(ValidationError) as refused:
            proven(ada, token, "wrong")
        waits.append(str(refused.value.errors[0].message))
        ada.let_wait_pass()
    assert waits == [
        "is wrong", "is wrong", "is wrong, or came too soon: wait 1 second and try again",
        "is wrong, or came too soon: wait 2 seconds and try again",
    ]  # fmt: skip
    # What is right is no failure: neither does it wait, nor is the count forgotten.
    assert proven(ada, token).account.id == ada.id
    with pytest.raises(ValidationError) as refused:
        proven(ada, token, "wrong")
    assert "wait 4 seconds" in refused.value.errors[0].message
    # The same count keeps out who signs in, and the right password too, until the wait is over.
    assert isinstance(ada.sign_in(), LoginError)
    with pytest.raises(ValidationError):
        proven(ada, token)
    assert types(ada).count("sign_in_failed") == 5


def test_all_other_sessions_end_and_this_one_stays(ada: Someone, new_person: Callable[..., Someone]) -> None:
    token, others, sam = ada.token(), [ada.token(), ada.token()], new_person()
    foreign, settings = sam.token(), ada.server.settings
    assert ada.own(lambda tx, session: self_service.revoke_other_sessions(tx, settings, session), token) == 2
    assert [ada.session(each) for each in others] == [None, None]
    assert ada.session(token)
    assert sam.session(foreign)
    assert types(ada)[-2:] == ["session_revoked"] * 2
    assert ada.own(lambda tx, session: self_service.revoke_other_sessions(tx, settings, session), token) == 0


def test_a_session_of_ones_own_can_be_revoked_and_nobody_elses(
    ada: Someone, new_person: Callable[..., Someone]
) -> None:
    token, lost, sam = ada.token(), ada.token(), new_person()
    foreign = sam.token()
    settings = ada.server.settings
    listed = ada.server.run(store.list_sessions(ada.server.db, ada.id, datetime.now(UTC)))
    assert {each.token_hash for each in listed} == {hash_token(token), hash_token(lost)}
    assert {(each.address, each.user_agent) for each in listed} == {("192.0.2.7", "Browser 1")}
    assert (
        ada.own(lambda tx, session: self_service.revoke_session(tx, settings, session, hash_token(lost)), token) is True
    )
    assert ada.session(lost) is None
    assert types(ada)[-1] == "session_revoked"
    assert (
        ada.own(lambda tx, session: self_service.revoke_session(tx, settings, session, hash_token(foreign)), token)
        is False
    )
    assert sam.session(foreign)
