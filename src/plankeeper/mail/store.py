"""SQL for outgoing mails. They are inserted in the transaction of the change they report, and deleted once sent."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from msgspec import Raw, Struct

from plankeeper.core.json import to_json
from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor, Transaction
from plankeeper.mail.messages import AddressedText
from plankeeper.mail.retry_policy import LEASE, MAIL_LIFETIME

# Writes a mail when it is sent, from its stored subject and the time. None if its recipient or its subject no longer
# exists. A stored mail has no link: its token is created when the mail is written. Raises MailError if it can't be
# written, or not yet.
MailWriter = Callable[[Executor, Settings, Any, datetime], Awaitable[AddressedText | None]]
# The writer of each kind of mail, by the struct of its subject, which has a tag.
MailWriters = Mapping[type[Struct], MailWriter]


class MailResult(NamedTuple):
    """The end of a mail: its recipient if it was sent, or why it can't be. Neither, if its writer returned None."""

    at: datetime
    recipient: str | None = None
    error: str | None = None


# Records the end of a mail in the transaction that deletes it. Not called for mails that expire.
MailOutcome = Callable[[Transaction, Settings, Any, MailResult], Awaitable[None]]
MailOutcomes = Mapping[type[Struct], MailOutcome]


class OwnerMail(Protocol):
    """The subject of a mail to each owner of a plan manager."""

    plan_manager_id: UUID
    account_id: UUID | None  # the owner, in the mail of each


class OutgoingMail(Struct):
    """A row of `outgoing_mails` that was claimed."""

    id: UUID
    content: Raw
    attempt_count: int


class OwnerRecipient(Struct):
    """The email of an owner, and the name of the plan manager."""

    email: str
    plan_manager_name: str


INSERT = """
    insert into outgoing_mails (content, created_at, next_attempt_at, expires_at) values ($1, $2, $2, $3)
"""


async def insert(tx: Transaction, content: Struct, at: datetime, lifetime: timedelta = MAIL_LIFETIME) -> None:
    """Insert a mail, which is due immediately. It is deleted at the end of its lifetime, sent or not."""
    await tx.execute(INSERT, to_json(content), at, at + lifetime)


REPLACE_INVITATION = """
    with replaced as (delete from outgoing_mails where content ->> 'invitation_id' = $1)
    insert into outgoing_mails (content, created_at, next_attempt_at, expires_at) values ($2, $3, $3, $4)
"""


async def replace_invitation(tx: Transaction, invitation_id: UUID, content: Struct, at: datetime) -> None:
    """Insert the mail of an invitation instead of one that is still waiting, whose link would no longer work."""
    await tx.execute(REPLACE_INVITATION, str(invitation_id), to_json(content), at, at + MAIL_LIFETIME)


INSERT_FOR_OWNERS = """
    insert into outgoing_mails (content, created_at, next_attempt_at, expires_at)
    select ($2::jsonb || jsonb_build_object('account_id', account_id))::json, $3, $3, $4
    from account_roles
    where plan_manager_id = $1 and role = 'owner'
"""


async def insert_for_owners(tx: Transaction, content: OwnerMail, at: datetime) -> None:
    """Insert a mail for each owner of the plan manager."""
    await tx.execute(INSERT_FOR_OWNERS, content.plan_manager_id, to_json(content), at, at + MAIL_LIFETIME)


DELETE_APPROVALS = """
    delete from outgoing_mails
    where content ->> 'kind' = 'approval' and content ->> 'invoice_id' = any ($2::text[])
        and (content ->> 'plan_manager_id')::uuid = $1
"""


async def delete_approvals(tx: Transaction, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> None:
    """Delete the waiting mails with links to approve invoices."""
    await tx.execute(DELETE_APPROVALS, plan_manager_id, [str(each) for each in invoice_ids])


TAKE_STATEMENTS = """
    delete from outgoing_mails
    where content ->> 'kind' = 'statement' and (content ->> 'plan_manager_id')::uuid = $1
    returning (content ->> 'recipient_id')::uuid
"""


async def take_statements(tx: Transaction, plan_manager_id: UUID) -> list[UUID]:
    """Delete the mails of a plan manager's statements, which nobody then sends. Returns the ids of their recipients."""
    return await tx.rows(UUID, TAKE_STATEMENTS, plan_manager_id)


CLAIM_DUE = """
    with due as materialized (
        select id from outgoing_mails
        where next_attempt_at <= $1 and expires_at > $1
        order by content ->> 'kind' <> 'password_reset', next_attempt_at
        limit 1
        for update skip locked
    )
    update outgoing_mails mail set attempt_count = attempt_count + 1, next_attempt_at = $1 + $2::interval
    from due where mail.id = due.id
    returning mail.id, mail.content, mail.attempt_count
"""


async def claim_due(db: Executor, at: datetime) -> OutgoingMail | None:
    """Claim the mail that has been due for the longest time. When the lease ends, another worker claims it again.

    Links to reset a password don't wait for other mails.
    """
    return await db.one_or_none(OutgoingMail, CLAIM_DUE, at, LEASE)


GET_OWNER_RECIPIENT = """
    select account.email, manager.name as plan_manager_name
    from account_roles role
    join accounts account on account.id = role.account_id
    join plan_managers manager on manager.id = role.plan_manager_id
    where role.plan_manager_id = $1 and role.account_id = $2 and role.role = 'owner'
"""


async def get_owner_recipient(db: Executor, content: OwnerMail) -> OwnerRecipient | None:
    """The owner that a mail is for; None for an account that isn't an owner any more."""
    return await db.one_or_none(OwnerRecipient, GET_OWNER_RECIPIENT, content.plan_manager_id, content.account_id)


POSTPONE = "update outgoing_mails set next_attempt_at = $2 where id = $1 and attempt_count = $3"


async def postpone(db: Executor, mail: OutgoingMail, until: datetime) -> None:
    """Set the next attempt, unless another worker has claimed the mail since."""
    await db.execute(POSTPONE, mail.id, until, mail.attempt_count)


DELETE = "delete from outgoing_mails where id = $1"


async def delete(db: Executor, mail_id: UUID) -> None:
    await db.execute(DELETE, mail_id)


PURGE = """
    with expired as (delete from outgoing_mails where expires_at <= $1 returning attempt_count)
    select count(*) from expired where attempt_count > 0
"""


async def purge(db: Executor, at: datetime) -> int:
    """Delete expired mails, and return how many of them had failed attempts."""
    return await db.one(int, PURGE, at)


DELETE_ALL = "delete from outgoing_mails"


async def delete_all(tx: Transaction) -> None:
    await tx.execute(DELETE_ALL)
