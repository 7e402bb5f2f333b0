"""Signing in and out, failures and their waits, and what a session may do."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from argon2 import PasswordHasher
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import (
    credentials,
    member_store,
    members,
    passwords,
    sessions,
    store,
)
from plankeeper.access.accounts.schemas import LoginResult
from plankeeper.access.tokens import hash_token
from plankeeper.core.errors import NotFound
from support.accounts import PASSWORD, AccountDriver, recorded_account_events
from support.logins import FailedLogin, login_outcome
from support.server import RunningServer


def test_an_email_and_its_password_open_a_session(ada: AccountDriver) -> None:
    found = ada.sign_in()
    assert isinstance(found, LoginResult)
    assert not found.two_factor_pending
    session = ada.session(found.token)
    assert session
    assert (session.account_id, session.email, session.name) == (ada.id, ada.email, "Ada")
    assert session.roles == {ada.plan_manager_id: "owner"}
    assert session.plan_manager_id == ada.plan_manager_id
    assert session.plan_manager_names == {ada.plan_manager_id: "Test plan manager"}
    assert not session.two_factor_pending


def test_the_email_is_accepted_in_any_case_and_with_surrounding_spaces(ada: AccountDriver) -> None:
    assert isinstance(ada.sign_in(email=f"  {ada.email.upper()} "), LoginResult)


def test_each_sign_in_creates_a_separate_session(ada: AccountDriver) -> None:
    first, second = ada.token(), ada.token()
    assert first != second
    ada.server.run(sessions.sign_out(ada.server.db, first))
    assert ada.session(first) is None
    assert ada.session(second)


@pytest.mark.parametrize("token", ["", "x", "a" * 43, "\ud800", "\0"])
def test_an_unknown_token_is_rejected(ada: AccountDriver, token: str) -> None:
    assert ada.session(token) is None


def test_a_session_expires(ada: AccountDriver) -> None:
    token = ada.token()
    statement = "update account_sessions set expires_at = now() where token_hash = $1"
    ada.server.run(ada.server.db.execute(statement, hash_token(token)))
    assert ada.session(token) is None
    ada.token()
    gone = "select count(*) from account_sessions where token_hash = $1"
    assert ada.server.run(ada.server.db.one(int, gone, hash_token(token))) == 0


@pytest.mark.parametrize("password", ["", "wrong", PASSWORD + " ", PASSWORD.upper(), "x" * 100_000, "\0", "\ud800"])
def test_a_wrong_password_is_rejected(ada: AccountDriver, password: str) -> None:
    assert ada.sign_in(password) == FailedLogin(0)
    assert [each.type for each in recorded_account_events(ada.server, ada.plan_manager_id)] == [
        "account.joined",
        "account.sign_in_failed",
    ]


@pytest.mark.parametrize("email", ["", "\0", "\ud800", "nobody", "x" * 10_000, "'; drop table accounts; --"])
def test_an_invalid_email_is_rejected(ada: AccountDriver, email: str) -> None:
    ada.server.run(ada.server.db.execute("delete from account_failures"))
    assert ada.sign_in(email=email or " ") == FailedLogin(0)


def test_failures_are_recorded_and_delay_sign_in_until_a_success_resets_them(ada: AccountDriver) -> None:
    waits = []
    for _ in range(6):
        found = ada.sign_in("wrong")
        assert isinstance(found, FailedLogin)
        waits.append(found.retry_after)
        ada.clear_login_delay()
    assert waits == [0, 0, 1, 2, 4, 8]
    ada.token()
    assert ada.sign_in("wrong") == FailedLogin(0)
    failed = [
        each
        for each in recorded_account_events(ada.server, ada.plan_manager_id)
        if each.type == "account.sign_in_failed"
    ]
    assert len(failed) == 7
    assert failed[0].data == {
        "id": str(ada.id), "email": ada.email, "name": "Ada", "role": "owner", "address": "192.0.2.7",
        "user_agent": "Browser 1",
    }  # fmt: skip
    assert failed[0].actor == str(ada.id)


def test_the_right_password_is_rejected_during_the_login_delay(ada: AccountDriver) -> None:
    for _ in range(6):
        ada.sign_in("wrong")
        ada.clear_login_delay()
    ada.sign_in("wrong")
    for password in (PASSWORD, "wrong"):
        found = ada.sign_in(password)
        assert isinstance(found, FailedLogin)
        assert 0 < found.retry_after <= 16
    ada.clear_login_delay()
    ada.token()


def test_an_account_is_locked_for_at_most_15_minutes(ada: AccountDriver) -> None:
    statement = "update account_failures set failures = 12 where email_hash = $1"
    ada.sign_in("wrong")
    ada.server.run(ada.server.db.execute(statement, hash_token(ada.email)))
    assert ada.sign_in("wrong") == FailedLogin(900)
    assert [each.type for each in recorded_account_events(ada.server, ada.plan_manager_id)][-2:] == [
        "account.sign_in_failed",
        "account.locked",
    ]
    assert isinstance(ada.sign_in(), FailedLogin)


def test_old_failures_are_forgotten(ada: AccountDriver) -> None:
    ada.sign_in("wrong")
    statement = """
        update account_failures set failures = 50, failed_at = now() - interval '25 hours',
            locked_until = now() - interval '24 hours'
        where email_hash = $1
    """
    ada.server.run(ada.server.db.execute(statement, hash_token(ada.email)))
    assert ada.sign_in("wrong") == FailedLogin(0)


def test_old_failures_are_ignored_before_they_are_deleted(ada: AccountDriver) -> None:
    older = """
        insert into account_failures (subject, email_hash, failures, failed_at, locked_until)
        select sha256(convert_to($1 || each::text, 'UTF8')), '', 1, now() - interval '50 hours', now()
        from generate_series(1, 20) each
    """
    ada.sign_in("wrong")
    ada.server.run(ada.server.db.execute(older, ada.email))
    statement = """
        update account_failures set failures = 50, failed_at = now() - interval '25 hours',
            locked_until = now() - interval '24 hours'
        where email_hash = $1
    """
    ada.server.run(ada.server.db.execute(statement, hash_token(ada.email)))
    assert ada.sign_in("wrong") == FailedLogin(0)
    left = "select count(*) from account_failures where failed_at < now() - interval '1 day'"
    assert 0 < ada.server.run(ada.server.db.one(int, left)) <= 10


@pytest.mark.usefixtures("long_login_delays")
def test_concurrent_attempts_are_all_counted(ada: AccountDriver) -> None:
    async def attempt_concurrently() -> list[Any]:
        db, settings = ada.server.db, ada.server.settings
        return await asyncio.gather(
            *(login_outcome(sessions.sign_in(db, settings, ada.email, f"guess {each}", "", "")) for each in range(20))
        )

    found = ada.server.run(attempt_concurrently())
    failed = [
        each
        for each in recorded_account_events(ada.server, ada.plan_manager_id)
        if each.type == "account.sign_in_failed"
    ]
    assert len(failed) == 3
    assert [each.retry_after > 0 for each in found].count(True) == 18


@pytest.mark.usefixtures("slow_passwords")
def test_an_unknown_email_is_rejected_like_a_known_one(ada: AccountDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    original = PasswordHasher.verify

    def verify(self: PasswordHasher, password_hash: str, password: bytes) -> bool:
        hashed.append(password_hash)
        return original(self, password_hash, password)

    monkeypatch.setattr(PasswordHasher, "verify", verify)
    unknown = f"{uuid7().hex}@example.com"
    later = "update account_failures set locked_until = now() + interval '1 minute' where email_hash = $1"
    for email in (ada.email, unknown):
        took: list[float] = []
        for expected in (0, 0, 1):
            began = time.monotonic()
            assert ada.sign_in("nobody's", email) == FailedLogin(expected)
            took.append(time.monotonic() - began)
        assert min(took) >= credentials.MIN_FAILURE_SECONDS - 0.001  # timers of uvloop count milliseconds
        ada.server.run(ada.server.db.execute(later, hash_token(email)))  # a slow machine must not outlast the wait
        again = ada.sign_in("nobody's", email)
        assert isinstance(again, FailedLogin)
        assert again.retry_after > 0
    # As many hashes, with the same parameters.
    assert [each.rsplit("$", 2)[0] for each in hashed] == [hashed[0].rsplit("$", 2)[0]] * 6
    assert len(set(hashed)) == 2
    assert len(recorded_account_events(ada.server, ada.plan_manager_id)) == 4


def test_a_sign_in_is_recorded_for_the_plan_managers_that_the_session_acts_for(
    ada: AccountDriver, new_plan_manager: Callable[[], UUID], server: RunningServer
) -> None:
    other = new_plan_manager()
    token = ada.token()
    ada.write(lambda ctx: member_store.insert(ctx.tx, other, ada.id, "viewer", datetime.now(UTC)))
    ada.server.run(sessions.sign_out(ada.server.db, token))
    token = ada.token()
    assert recorded_account_events(server, other) == []
    for plan_manager_id in (other, ada.plan_manager_id, other):
        ada.run_as_session(
            lambda tx, session, chosen=plan_manager_id: sessions.switch_plan_manager(
                tx, server.settings, session, chosen
            ),
            token,
        )
    assert [(each.type, (each.data or {}).get("role")) for each in recorded_account_events(server, other)] == [
        ("account.signed_in", "viewer")
    ]
    assert [each.type for each in recorded_account_events(server, ada.plan_manager_id)] == [
        "account.joined",
        *["account.signed_in"] * 2,
    ]
    assert str(other) not in str(recorded_account_events(server, ada.plan_manager_id))


def test_the_last_activity_is_that_for_the_plan_manager(
    ada: AccountDriver, new_plan_manager: Callable[[], UUID], server: RunningServer
) -> None:
    other = new_plan_manager()
    ada.write(lambda ctx: member_store.insert(ctx.tx, other, ada.id, "viewer", datetime.now(UTC)))
    token = ada.token()
    assert ada.session(token)

    def last_seen(plan_manager_id: UUID) -> datetime | None:
        return server.run(member_store.list_members(server.db, plan_manager_id))[0].last_seen_at

    assert (last_seen(ada.plan_manager_id) is not None, last_seen(other)) == (True, None)
    ada.run_as_session(lambda tx, session: sessions.switch_plan_manager(tx, server.settings, session, other), token)
    assert ada.session(token)
    assert last_seen(other) is not None


def test_a_session_ends_after_an_hour_without_use(ada: AccountDriver, server: RunningServer) -> None:
    statement = "update account_sessions set last_seen_at = now() - $2::int * interval '1 minute' where token_hash = $1"

    def unused_for(minutes: int, token: str) -> None:
        server.run(server.db.execute(statement, hash_token(token), minutes))

    used, unused = ada.token(), ada.token()
    unused_for(58, used)
    unused_for(61, unused)
    assert ada.session(unused) is None
    # What a page sends by itself is no use.
    assert server.run(sessions.verify_session(server.db, used, is_use=False))
    unused_for(61, used)
    assert ada.session(used) is None
    unused_for(58, used)
    assert ada.session(used)
    listed = server.run(store.list_sessions(server.db, ada.id, datetime.now(UTC)))
    assert [each.token_hash for each in listed] == [hash_token(used)]
    assert datetime.now(UTC) - listed[0].last_seen_at < timedelta(minutes=1)


def test_an_account_with_two_plan_managers_chooses_one_until_its_role_ends(
    ada: AccountDriver, new_plan_manager: Callable[[], UUID]
) -> None:
    other, foreign = new_plan_manager(), new_plan_manager()
    ada.write(lambda ctx: member_store.insert(ctx.tx, other, ada.id, "viewer", datetime.now(UTC)))
    token = ada.token()
    ada.run_as_session(lambda tx, session: sessions.switch_plan_manager(tx, ada.server.settings, session, other), token)
    session = ada.session(token)
    assert session
    assert (session.plan_manager_id, session.roles) == (other, {ada.plan_manager_id: "owner", other: "viewer"})
    with pytest.raises(NotFound):
        ada.run_as_session(
            lambda tx, found: sessions.switch_plan_manager(tx, ada.server.settings, found, foreign), token
        )
    ada.write(lambda ctx: member_store.delete(ctx.tx, other, ada.id))
    session = ada.session(token)
    assert session
    assert (session.plan_manager_id, set(session.roles)) == (ada.plan_manager_id, {ada.plan_manager_id})


def test_a_removed_member_loses_access_immediately(
    ada: AccountDriver, new_account: Callable[..., AccountDriver]
) -> None:
    leaving = new_account(ada.plan_manager_id, role="viewer")
    token = leaving.token()
    ada.write(lambda ctx: members.remove(ctx, leaving.id), as_self=True)
    assert leaving.session(token) is None
    assert leaving.sign_in() == FailedLogin(0)


@pytest.mark.usefixtures("slow_passwords")
def test_an_account_signs_in_with_production_parameters(ada: AccountDriver) -> None:
    assert isinstance(ada.sign_in("wrong"), FailedLogin)
    token = ada.token()
    stored = ada.server.run(store.get_by_email(ada.server.db, ada.email))
    assert stored
    assert stored.password_hash.startswith("$argon2id$v=19$m=19456,t=3,p=1$")
    assert ada.session(token)


@pytest.mark.usefixtures("slow_passwords")
def test_a_hash_with_old_parameters_is_rehashed_at_the_next_sign_in(ada: AccountDriver) -> None:
    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    ada.write(lambda ctx: store.set_password(ctx.tx, ada.id, weak))
    ada.token()
    stored = ada.server.run(store.get_by_email(ada.server.db, ada.email))
    assert stored
    assert not passwords.is_outdated(stored.password_hash)
    assert stored.password_hash.startswith("$argon2id$")
    ada.token()


def test_no_secret_is_stored_in_plain_text_or_recorded(ada: AccountDriver) -> None:
    token = ada.token()
    every = """
        select coalesce(string_agg(t, ' '), '') from (
            select accounts::text as t from accounts union all select account_sessions::text from account_sessions
            union all select events::text from events union all select account_failures::text from account_failures
        ) as all_of_it
    """
    stored = ada.server.run(ada.server.db.one(str, every))
    assert hash_token(token).hex() in stored
    for secret in (token, PASSWORD, token.encode().hex(), PASSWORD.encode().hex()):
        assert secret not in stored


def test_another_spelling_of_an_email_is_delayed_too(ada: AccountDriver) -> None:
    ada.server.run(ada.server.db.execute("update accounts set email = $2 where id = $1", ada.id, "v" + ada.email + "i"))
    email = "v" + ada.email + "i"
    for _ in range(4):
        assert isinstance(ada.sign_in("wrong", email), FailedLogin)
    found = ada.sign_in(PASSWORD, email[:-1] + "\u0130")  # what the database takes for an i, where it does
    assert isinstance(found, FailedLogin)
