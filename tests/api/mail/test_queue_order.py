"""Nobody can flood a person or the queue: limits of invitations, and links to reset a password come first."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import invitations, password_reset
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.errors import ValidationError
from plankeeper.database.client import Transaction
from plankeeper.mail import store
from plankeeper.mail.retry_policy import LEASE
from support.outbox import Outbox

JUST_INVITED = "email: was sent an invitation a moment ago: try again in {}."
TOO_MANY = "email: can't be invited yet, because many other people were invited: try again in {}."


def invite(outbox: Outbox, plan_manager_id: UUID, email: str) -> None:
    async def create() -> None:
        async with outbox.server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, outbox.settings, SYSTEM)
            assert await invitations.invite(ctx, email, "viewer") is None

    outbox.server.run(create())
    outbox.catch_up()


def rejection(outbox: Outbox, plan_manager_id: UUID, email: str) -> str:
    with pytest.raises(ValidationError) as error:
        invite(outbox, plan_manager_id, email)
    return error.value.detail


def pass_time(outbox: Outbox, delay: timedelta) -> None:
    """Let the delays of all counters pass, as far as they are this long."""
    statement = "update account_failures set locked_until = locked_until - $1::interval"
    outbox.server.run(outbox.server.db.execute(statement, delay))


def fresh_email() -> str:
    return f"{uuid7().hex}@example.com"


def test_further_invitations_of_a_person_are_delayed(outbox: Outbox, new_plan_manager: Callable[[], UUID]) -> None:
    plan_manager_id, email = new_plan_manager(), fresh_email()
    for _ in range(2):
        invite(outbox, plan_manager_id, email)
    for same in (email, email.upper(), f" {email} "):
        assert rejection(outbox, plan_manager_id, same) == JUST_INVITED.format("1 minute")
    invite(outbox, plan_manager_id, fresh_email())
    invite(outbox, new_plan_manager(), email)
    for minutes in ("2 minutes", "4 minutes", "8 minutes", "15 minutes", "15 minutes"):
        pass_time(outbox, timedelta(minutes=15))
        invite(outbox, plan_manager_id, email)
        assert rejection(outbox, plan_manager_id, email) == JUST_INVITED.format(minutes)


def test_invitations_of_a_plan_manager_are_limited(outbox: Outbox, new_plan_manager: Callable[[], UUID]) -> None:
    plan_manager_id = new_plan_manager()
    for _ in range(51):
        invite(outbox, plan_manager_id, fresh_email())
    assert rejection(outbox, plan_manager_id, fresh_email()) == TOO_MANY.format("1 minute")
    assert len(outbox.rows()) == 51
    invite(outbox, new_plan_manager(), fresh_email())
    pass_time(outbox, timedelta(minutes=1))
    invite(outbox, plan_manager_id, fresh_email())
    assert rejection(outbox, plan_manager_id, fresh_email()) == TOO_MANY.format("2 minutes")


def test_without_a_mail_server_links_are_not_limited(outbox: Outbox, new_plan_manager: Callable[[], UUID]) -> None:
    plan_manager_id, email = new_plan_manager(), fresh_email()

    async def create() -> str | None:
        async with outbox.server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, outbox.server.settings, SYSTEM)
            return await invitations.invite(ctx, email, "viewer")

    assert len({outbox.server.run(create()) for _ in range(5)} - {None}) == 5


def test_an_invitation_has_one_waiting_mail(outbox: Outbox, new_plan_manager: Callable[[], UUID]) -> None:
    plan_manager_id, email = new_plan_manager(), fresh_email()
    for _ in range(2):
        invite(outbox, plan_manager_id, email)
    assert len(outbox.rows()) == 1
    assert outbox.send_due() == 1
    [mail] = outbox.mail.to(email)
    found = outbox.server.run(invitations.get_open(outbox.server.db, mail.links[0].rpartition("/")[2]))
    assert found
    assert found.invitation.email == email


def test_an_invitation_that_is_repeated_during_an_attempt_is_mailed_again(
    outbox: Outbox, new_plan_manager: Callable[[], UUID]
) -> None:
    """The mail in progress contains a link that the repetition has replaced."""
    plan_manager_id, email = new_plan_manager(), fresh_email()
    invite(outbox, plan_manager_id, email)
    assert outbox.server.run(store.claim_due(outbox.server.db, outbox.now))
    invite(outbox, plan_manager_id, email)
    assert outbox.send_due() == 1
    [mail] = outbox.mail.to(email)
    assert outbox.server.run(invitations.get_open(outbox.server.db, mail.links[0].rpartition("/")[2]))
    outbox.wait(LEASE)
    assert outbox.send_due() == 0


def test_links_to_reset_a_password_come_first(outbox: Outbox, new_plan_manager: Callable[[], UUID]) -> None:
    invited, requested = [fresh_email() for _ in range(3)], [fresh_email() for _ in range(2)]
    plan_manager_id = new_plan_manager()
    for email in invited:
        invite(outbox, plan_manager_id, email)
    for email in requested:
        outbox.server.run(password_reset.request_link(outbox.server.db, email))
    outbox.catch_up()
    contents = list[str]()
    while mail := outbox.server.run(store.claim_due(outbox.server.db, outbox.now)):
        contents.append(bytes(mail.content).decode())
    assert [email in content for email, content in zip(requested, contents[:2], strict=True)] == [True, True]
    assert ['"invitation"' in content for content in contents[2:]] == [True] * 3


async def plan(tx: Transaction) -> str:
    """How a mail is claimed from a queue with thousands."""
    fill = """
        insert into outgoing_mails (content, created_at, next_attempt_at, expires_at)
        select json_build_object('kind', case when n % 10 = 0 then 'password_reset' else 'new_device' end),
            now(), now() - n * interval '1 second', now() + interval '1 day'
        from generate_series(1, 5000) n
    """
    await tx.execute(fill)
    await tx.execute("analyze outgoing_mails")
    explain = f"explain (costs off) {store.CLAIM_DUE}"
    return "\n".join(await tx.rows(str, explain, datetime.now(UTC), LEASE))  # type: ignore[arg-type]


def test_an_index_serves_the_claim(outbox: Outbox) -> None:
    async def explain() -> str:
        async with outbox.server.db.transaction() as tx:
            return await plan(tx)

    found = outbox.server.run(explain())
    assert "Index Scan using outgoing_mails_by_turn" in found
    assert "Sort" not in found
