"""A password reset with a link: how long and how often it works, what it ends, and that a code is still needed."""

import asyncio
import time
from collections.abc import Iterator
from contextvars import Context, ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyotp.totp import TOTP
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import (
    credentials,
    password_reset,
    self_service,
    store,
    totp,
)
from plankeeper.access.accounts.audit import ClientInfo
from plankeeper.access.accounts.credentials import LoginError, VerifiedCredentials
from plankeeper.access.accounts.schemas import LoginResult
from plankeeper.access.policy import PASSWORD_RESET_LIFETIME
from plankeeper.core.encryption.cipher import secret_cipher
from plankeeper.core.errors import ValidationError
from plankeeper.database.client import Executor, Transaction
from support.accounts import AccountDriver, recorded_account_events
from support.logins import FailedLogin
from support.mail import PUBLIC_URL, MailServer
from support.outbox import Outbox

NEW_PASSWORD = "eleven amber lighthouses"
CLIENT = ClientInfo("192.0.2.9", "Browser 9")
SECOND = timedelta(seconds=1)


@pytest.fixture
def outbox(ada: AccountDriver) -> Iterator[Outbox]:
    ada.server.run(ada.server.db.execute("delete from outgoing_mails"))
    with MailServer() as mail:
        yield Outbox(ada.server, mail)


def mailed_token(ada: AccountDriver, outbox: Outbox) -> str:
    """The token of a link that Ada requests and gets."""
    ada.clear_login_delay()
    ada.server.run(password_reset.request_link(ada.server.db, ada.email))
    outbox.catch_up()
    assert outbox.send_due() == 1
    [link] = outbox.mail.to(ada.email)[-1].links
    assert link.startswith(f"{PUBLIC_URL}/console/reset-password/")
    return link.rpartition("/")[2]


def use_link(ada: AccountDriver, token: str, password: str = NEW_PASSWORD, at: datetime | None = None) -> bool:
    return ada.write(
        lambda ctx: password_reset.use_link(ctx.tx, ctx.settings, token, password, CLIENT, at or datetime.now(UTC))
    )


def test_a_link_sets_a_new_password_once(ada: AccountDriver, outbox: Outbox) -> None:
    token = mailed_token(ada, outbox)
    assert use_link(ada, token)
    assert not use_link(ada, token, "twelve amber lighthouses")
    assert isinstance(ada.sign_in(NEW_PASSWORD), LoginResult)
    assert ada.sign_in() == FailedLogin(0)


def test_of_concurrent_uses_one_succeeds(ada: AccountDriver, outbox: Outbox) -> None:
    token = mailed_token(ada, outbox)

    async def use(password: str) -> bool:
        async with ada.server.db.transaction() as tx:
            return await password_reset.use_link(tx, ada.server.settings, token, password, CLIENT, datetime.now(UTC))

    async def use_concurrently() -> list[bool]:
        return await asyncio.gather(*(use(f"{NEW_PASSWORD} {number}") for number in range(4)))

    assert sorted(ada.server.run(use_concurrently())) == [False, False, False, True]


def test_a_link_lasts_30_minutes_from_the_mail(ada: AccountDriver, outbox: Outbox) -> None:
    outbox.mail.stop()
    ada.server.run(password_reset.request_link(ada.server.db, ada.email))
    outbox.catch_up()
    assert outbox.send_due() == 1
    outbox.mail.start()
    outbox.wait(timedelta(minutes=10))
    assert outbox.send_due() == 1
    token = outbox.mail.to(ada.email)[0].links[0].rpartition("/")[2]
    end = outbox.now + timedelta(minutes=30)
    assert timedelta(minutes=30) == PASSWORD_RESET_LIFETIME
    is_open = [
        ada.server.run(password_reset.is_open(ada.server.db, token, at)) for at in (end - SECOND, end, end + SECOND)
    ]
    assert is_open == [True, False, False]
    assert not use_link(ada, token, at=end)
    assert isinstance(ada.sign_in(), LoginResult)
    assert use_link(ada, token, at=end - SECOND)


def test_a_new_link_replaces_the_old_one(ada: AccountDriver, outbox: Outbox) -> None:
    first, second = mailed_token(ada, outbox), mailed_token(ada, outbox)
    assert [use_link(ada, first), use_link(ada, second)] == [False, True]


def test_a_rejected_password_leaves_the_link_open(ada: AccountDriver, outbox: Outbox) -> None:
    token = mailed_token(ada, outbox)
    for password in ("short", "password1234", f"{ada.email.partition('@')[0]}"[:12]):
        with pytest.raises(ValidationError):
            use_link(ada, token, password)
    assert use_link(ada, token)


def test_a_reset_by_the_operator_ends_the_link(ada: AccountDriver, outbox: Outbox) -> None:
    token = mailed_token(ada, outbox)

    async def reset(tx: Transaction) -> None:
        account = await store.get_by_email(tx, ada.email)
        assert account
        await password_reset.reset(tx, ada.server.settings, account, NEW_PASSWORD, "accounts reset")

    ada.write(lambda ctx: reset(ctx.tx))
    assert not use_link(ada, token)


def test_a_changed_password_ends_the_link(ada: AccountDriver, outbox: Outbox) -> None:
    session_token, token = ada.token(), mailed_token(ada, outbox)
    account = ada.server.run(store.get_by_email(ada.server.db, ada.email))
    assert account
    verified = VerifiedCredentials(account, None)
    ada.run_as_session(
        lambda tx, session: self_service.change_password(tx, ada.server.settings, session, verified, NEW_PASSWORD),
        session_token,
    )
    assert not use_link(ada, token)


def test_sessions_devices_and_failures_end_with_the_old_password(ada: AccountDriver, outbox: Outbox) -> None:
    signed_in = ada.sign_in()
    assert isinstance(signed_in, LoginResult)
    for _ in range(4):
        ada.sign_in("wrong")
    assert isinstance(ada.sign_in(), FailedLogin)
    token = mailed_token(ada, outbox)
    assert use_link(ada, token)
    assert ada.session(signed_in.token) is None
    assert signed_in.device_token
    assert not ada.server.run(credentials.is_known(ada.server.db, ada.email, signed_in.device_token))
    assert isinstance(ada.sign_in(NEW_PASSWORD), LoginResult)


def test_a_reset_is_recorded_with_its_client_and_signs_nobody_in(ada: AccountDriver, outbox: Outbox) -> None:
    assert use_link(ada, mailed_token(ada, outbox))
    [joined, reset] = recorded_account_events(ada.server, ada.plan_manager_id)
    assert (joined.type, reset.type, reset.actor) == ("account.joined", "account.password_reset", str(ada.id))
    assert reset.data == {
        "id": str(ada.id), "email": ada.email, "name": "Ada", "role": "owner", "address": "192.0.2.9",
        "user_agent": "Browser 9",
    }  # fmt: skip
    assert ada.server.run(store.list_sessions(ada.server.db, ada.id, datetime.now(UTC))) == []


def test_two_factor_authentication_is_still_required(ada: AccountDriver, outbox: Outbox) -> None:
    secret = totp.new_secret()
    stored = secret_cipher(ada.server.settings).encrypt(secret, ada.id.bytes)
    ada.write(lambda ctx: store.set_totp(ctx.tx, ada.id, stored, 0))
    assert use_link(ada, mailed_token(ada, outbox))
    found = ada.sign_in(NEW_PASSWORD)
    assert isinstance(found, LoginResult)
    session = ada.session(found.token)
    assert session
    assert (found.two_factor_pending, session.roles) == (True, {})
    completed = ada.verify_two_factor(found.token, TOTP(secret).generate_otp(int(time.time()) // 30))
    assert isinstance(completed, LoginResult)


@pytest.mark.parametrize("token", ["", "x", "a" * 43, "\ud800", "\0"])
def test_an_unknown_token_is_rejected(ada: AccountDriver, token: str) -> None:
    assert not use_link(ada, token)
    assert isinstance(ada.sign_in(), LoginResult)


def test_requests_do_the_same_work_for_known_and_unknown_emails(
    ada: AccountDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only of the request's own task: the server's periodic tasks delete expired mails and links at any time.
    is_request, statements = ContextVar("is_request", default=False), list[str]()
    for name in ("rows", "one_or_none", "one", "execute"):
        original = getattr(Executor, name)

        async def record(self: Any, *arguments: Any, _original: Any = original) -> Any:
            if is_request.get():
                statements.append(next(each for each in arguments if isinstance(each, str)))
            return await _original(self, *arguments)

        monkeypatch.setattr(Executor, name, record)

    async def request(email: str) -> None:
        is_request.set(True)
        await password_reset.request_link(ada.server.db, email)
        if email == ada.email:
            await asyncio.get_running_loop().create_task(password_reset.purge(ada.server.db), context=Context())

    work = list[list[str]]()
    for email in (ada.email, f"{uuid7().hex}@example.com"):
        statements.clear()
        ada.server.run(request(email))
        work.append([each for each in statements if "outgoing_mails" in each or "account" in each])
    assert len(work[0]) >= 4
    assert work[0] == work[1]
    assert not [each for each in work[0] if " accounts" in each]


def test_further_requests_for_an_email_are_delayed_whether_or_not_it_has_an_account(ada: AccountDriver) -> None:
    unknown = f"{uuid7().hex}@example.com"
    for email in (ada.email, unknown):
        for _ in range(2):
            ada.server.run(password_reset.request_link(ada.server.db, email))
        with pytest.raises(LoginError) as error:
            ada.server.run(password_reset.request_link(ada.server.db, email.upper()))
        assert 50 < error.value.retry_after <= 60
    # A request delays no sign-in.
    assert isinstance(ada.sign_in(), LoginResult)


def test_the_delay_grows_to_15_minutes(ada: AccountDriver) -> None:
    delays = list[float]()
    for _ in range(8):
        ada.server.run(password_reset.request_link(ada.server.db, ada.email))
        with_delay = "select max(extract(epoch from locked_until - failed_at))::float8 from account_failures"
        delays.append(
            ada.server.run(
                ada.server.db.one(float, f"{with_delay} where email_hash = sha256(convert_to($1, 'UTF8'))", ada.email)
            )
        )
        ada.clear_login_delay()
    assert delays == [0, 60, 120, 240, 480, 900, 900, 900]
