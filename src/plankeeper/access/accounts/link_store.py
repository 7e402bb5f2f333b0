"""SQL of mails about accounts and of their links: recipients, and tokens, of which only hashes are stored."""

from datetime import datetime
from uuid import UUID

from plankeeper.access.accounts.schemas import MailedInvitation
from plankeeper.database.client import Executor, Transaction

GET_EMAIL = "select email from accounts where id = $1"


async def get_email(db: Executor, account_id: UUID) -> str | None:
    return await db.one_or_none(str, GET_EMAIL, account_id)


RENEW_INVITATION_LINK = """
    update account_invitations invitation set token_hash = $3
    from plan_managers manager
    where invitation.plan_manager_id = $1 and invitation.id = $2 and invitation.accepted_at is null
        and invitation.expires_at > $4 and manager.id = invitation.plan_manager_id
    returning invitation.email, invitation.role, invitation.invited_by, invitation.expires_at,
        manager.name as plan_manager_name
"""


async def renew_invitation_link(
    db: Executor, plan_manager_id: UUID, invitation_id: UUID, token_hash: bytes, at: datetime
) -> MailedInvitation | None:
    """Give an open invitation a new token, and return what its mail says; None if it isn't open."""
    return await db.one_or_none(MailedInvitation, RENEW_INVITATION_LINK, plan_manager_id, invitation_id, token_hash, at)


UPSERT_RESET_LINK = """
    insert into account_password_resets (account_id, token_hash, expires_at)
    select id, $2, $3 from accounts where lower(email) = lower($1)
    on conflict (account_id) do update set token_hash = excluded.token_hash, expires_at = excluded.expires_at
    returning (select email from accounts where id = account_id)
"""


async def upsert_reset_link(db: Executor, email: str, token_hash: bytes, expires_at: datetime) -> str | None:
    """Give the account of an email a token, which replaces an earlier one, and return its email; None without one."""
    return await db.one_or_none(str, UPSERT_RESET_LINK, email, token_hash, expires_at)


GET_ACCOUNT_ID_OF_RESET_LINK = """
    select account_id from account_password_resets where token_hash = $1 and expires_at > $2
"""


async def get_account_id_of_reset_link(db: Executor, token_hash: bytes, at: datetime) -> UUID | None:
    """The account of an unexpired token."""
    return await db.one_or_none(UUID, GET_ACCOUNT_ID_OF_RESET_LINK, token_hash, at)


DELETE_RESET_LINK = "delete from account_password_resets where account_id = $1"


async def delete_reset_link(tx: Transaction, account_id: UUID) -> None:
    await tx.execute(DELETE_RESET_LINK, account_id)


DELETE_EXPIRED_RESET_LINKS = "delete from account_password_resets where expires_at <= $1"


async def delete_expired_reset_links(db: Executor, at: datetime) -> None:
    await db.execute(DELETE_EXPIRED_RESET_LINKS, at)


DELETE_ALL_RESET_LINKS = "delete from account_password_resets"


async def delete_all_reset_links(tx: Transaction) -> None:
    await tx.execute(DELETE_ALL_RESET_LINKS)
