"""The queue of mails: retries, expiry, several senders, and what neither the queue nor the log contains."""

import asyncio
import json
import logging
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import invitations, members, password_reset
from plankeeper.access.accounts.mails import NewDeviceMail
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.logs import JsonFormatter
from plankeeper.mail import sender, store
from plankeeper.mail.retry_policy import LEASE, MAIL_LIFETIME, RESET_REQUEST_LIFETIME
from plankeeper.server.mails import WRITERS
from support.accounts import AccountDriver
from support.outbox import Outbox

SECOND = timedelta(seconds=1)


def request_reset(outbox: Outbox, email: str) -> None:
    outbox.server.run(password_reset.request_link(outbox.server.db, email))
    outbox.catch_up()


def add_notice(outbox: Outbox, account_id: UUID, user_agent: str = "Browser 1") -> None:
    async def add() -> None:
        async with outbox.server.db.transaction() as tx:
            content = NewDeviceMail(account_id, outbox.now, "192.0.2.7", user_agent)
            await store.insert(tx, content, outbox.now)

    outbox.server.run(add())


def invite(outbox: Outbox, plan_manager_id: UUID, email: str) -> None:
    async def create() -> None:
        async with outbox.server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, outbox.settings, SYSTEM)
            assert await invitations.invite(ctx, email, "viewer") is None

    outbox.server.run(create())
    outbox.catch_up()


def test_a_mail_is_sent_once_and_then_deleted(outbox: Outbox, ada: AccountDriver) -> None:
    add_notice(outbox, ada.id)
    assert (outbox.send_due(), outbox.send_due()) == (1, 0)
    [received] = outbox.mail.received
    assert received.recipients == [ada.email]
    assert outbox.rows() == []


def test_while_the_mail_server_is_down_mails_wait_longer_and_longer(
    outbox: Outbox, ada: AccountDriver, caplog: pytest.LogCaptureFixture
) -> None:
    outbox.mail.stop()
    add_notice(outbox, ada.id)
    delays = [15, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    for delay in delays:
        assert (outbox.send_due(), outbox.send_due()) == (1, 0)
        outbox.wait(timedelta(seconds=delay) - SECOND)
        assert outbox.send_due() == 0
        outbox.wait(SECOND)
    first = json.loads(JsonFormatter().format(caplog.records[0]))
    assert {name: first[name] for name in ("event", "mail", "attempt", "error", "reason")} == {
        "event": "cannot send a mail yet", "mail": "new_device", "attempt": 1, "error": "MailError",
        "reason": "ConnectionRefusedError: Connection refused",
    }  # fmt: skip
    outbox.mail.start()
    assert outbox.send_due() == 1
    assert len(outbox.mail.to(ada.email)) == 1
    assert outbox.rows() == []


def test_a_mail_that_cannot_be_sent_expires(
    outbox: Outbox, ada: AccountDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "utc_now", lambda: outbox.now)
    outbox.mail.stop()
    request_reset(outbox, ada.email)
    add_notice(outbox, ada.id)
    assert outbox.send_due() == 2
    for lifetime, left in ((RESET_REQUEST_LIFETIME, 1), (MAIL_LIFETIME - RESET_REQUEST_LIFETIME, 0)):
        outbox.wait(lifetime + SECOND)
        outbox.server.run(sender.purge(outbox.server.db))
        assert len(outbox.rows()) == left
    outbox.mail.start()
    assert (outbox.send_due(), outbox.mail.received) == (0, [])


@pytest.mark.parametrize("reply, kept", [("550 5.1.1 <{}> unknown", 0), ("451 4.3.0 <{}> try again", 1)])
def test_only_a_permanent_rejection_gives_up_and_no_address_is_logged(
    outbox: Outbox, ada: AccountDriver, caplog: pytest.LogCaptureFixture, reply: str, kept: int
) -> None:
    outbox.mail.replies[ada.email] = reply.format(ada.email)
    with caplog.at_level(logging.DEBUG, "plankeeper"):
        add_notice(outbox, ada.id)
        assert outbox.send_due() == 1
    assert len(outbox.rows()) == kept
    [line] = [JsonFormatter().format(each) for each in caplog.records if each.name == "plankeeper"]
    assert json.loads(line)["reason"] == f"the recipient was rejected ({reply[:3]})"
    assert ada.email not in line


def test_several_senders_send_each_mail_once(outbox: Outbox, ada: AccountDriver) -> None:
    for number in range(20):
        add_notice(outbox, ada.id, f"Browser {number}")

    async def send_all() -> None:
        async def work(one: sender.MailSender) -> None:
            while await one.send_next():
                pass

        await asyncio.gather(*(work(outbox.sender()) for _ in range(4)))

    outbox.server.run(send_all())
    assert sorted(each.text.partition("Browser:  ")[2].splitlines()[0] for each in outbox.mail.received) == sorted(
        f"Browser {number}" for number in range(20)
    )


def test_another_sender_takes_over_after_the_lease(outbox: Outbox, ada: AccountDriver) -> None:
    add_notice(outbox, ada.id)
    assert outbox.server.run(store.claim_due(outbox.server.db, outbox.now))  # by a worker that is killed
    outbox.wait(LEASE - SECOND)
    assert outbox.send_due() == 0
    outbox.wait(SECOND)
    assert outbox.send_due() == 1
    assert len(outbox.mail.to(ada.email)) == 1


def test_the_result_of_an_attempt_after_its_lease_changes_nothing(outbox: Outbox, ada: AccountDriver) -> None:
    add_notice(outbox, ada.id)
    late = outbox.server.run(store.claim_due(outbox.server.db, outbox.now))
    outbox.wait(LEASE)
    current = outbox.server.run(store.claim_due(outbox.server.db, outbox.now))
    assert late
    assert current
    before = outbox.rows()
    outbox.server.run(store.postpone(outbox.server.db, late, outbox.now))
    assert outbox.rows() == before


def test_a_mail_about_something_that_is_gone_is_not_sent(
    outbox: Outbox, ada: AccountDriver, new_account: Callable[..., AccountDriver]
) -> None:
    leaving = new_account(ada.plan_manager_id, role="viewer")
    add_notice(outbox, leaving.id)
    ada.write(lambda ctx: members.remove(ctx, leaving.id))
    invite(outbox, ada.plan_manager_id, "sam@example.com")
    outbox.server.run(outbox.server.db.execute("delete from account_invitations"))
    assert outbox.send_due() == 2
    assert (outbox.mail.received, outbox.rows()) == ([], [])


def test_no_link_is_stored(outbox: Outbox, ada: AccountDriver) -> None:
    email = f"{uuid7().hex}@example.com"
    outbox.mail.replies |= dict.fromkeys((ada.email, email), "450 later")
    request_reset(outbox, ada.email)
    invite(outbox, ada.plan_manager_id, email)
    assert outbox.send_due() == 2
    outbox.mail.replies.clear()
    before = outbox.rows()
    outbox.wait(timedelta(minutes=1))
    assert outbox.send_due() == 2
    tokens = [each.links[0].rpartition("/")[2] for each in outbox.mail.received]
    assert [len(token) for token in tokens] == [43, 43]
    everything = """
        select coalesce(string_agg(t, ' '), '') from (
            select outgoing_mails::text as t from outgoing_mails
            union all select account_password_resets::text from account_password_resets
            union all select account_invitations::text from account_invitations
            union all select events::text from events
        ) as all_of_it
    """
    stored = outbox.server.run(outbox.server.db.one(str, everything))
    for token in tokens:
        assert token not in stored
        assert token not in str(before)
    assert "token" not in str(before)


def test_only_the_newest_link_of_an_invitation_works(outbox: Outbox, ada: AccountDriver) -> None:
    email = f"{uuid7().hex}@example.com"
    for _ in range(2):
        invite(outbox, ada.plan_manager_id, email)
        assert outbox.send_due() == 1
    tokens = [each.links[0].rpartition("/")[2] for each in outbox.mail.to(email)]
    found = [outbox.server.run(invitations.get_open(outbox.server.db, token)) for token in tokens]
    assert [each and each.invitation.email for each in found] == [None, email]


async def test_a_stopping_sender_finishes_the_mail_in_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    started, finished = asyncio.Event(), list[bool]()

    async def send_next(_self: sender.MailSender) -> bool:
        started.set()
        await asyncio.sleep(0.05)
        finished.append(True)
        return False

    monkeypatch.setattr(sender.MailSender, "send_next", send_next)
    running = asyncio.create_task(sender.MailSender(*[None] * 3, WRITERS).run())  # type: ignore[arg-type]
    await started.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (finished, running.cancelled()) == ([True], True)
