"""SQL for roles and invitations."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from msgspec.structs import astuple

from plankeeper.access.accounts.schemas import (
    NO_DETAILS,
    AccountWithRoles,
    HeldRole,
    Invitation,
    LinkedAccountManager,
    Member,
    Membership,
    OpenInvitation,
    Role,
    RoleDetails,
    RoleHolder,
)
from plankeeper.access.policy import Permission
from plankeeper.database.client import Executor, Transaction

LIST_MEMBERSHIPS = """
    select role.plan_manager_id, manager.name, role.role, manager.requires_two_factor, role.last_seen_at,
        role.permissions, role.participants_of, role.can_download
    from account_roles role join plan_managers manager on manager.id = role.plan_manager_id
    where role.account_id = $1
    order by manager.name, manager.id
"""


async def list_memberships(db: Executor, account_id: UUID) -> list[Membership]:
    """All roles of an account, ordered by the plan managers' names."""
    return await db.rows(Membership, LIST_MEMBERSHIPS, account_id)


LIST_ACCOUNTS = """
    select id, email, name, totp_secret is not null as totp, created_at,
        coalesce((
            select json_agg(json_build_object('plan_manager_id', manager.id, 'name', manager.name,
                'role', role.role, 'permissions', role.permissions, 'participants_of', role.participants_of,
                'can_download', role.can_download) order by manager.name, manager.id)
            from account_roles role join plan_managers manager on manager.id = role.plan_manager_id
            where role.account_id = accounts.id
        ), '[]') as memberships
    from accounts
    order by id
"""


async def list_accounts(db: Executor) -> list[AccountWithRoles]:
    """All accounts with their roles, oldest first."""
    return await db.rows(AccountWithRoles, LIST_ACCOUNTS)


LIST_MEMBERS = """
    select account.id, account.email, account.name, role.role, account.totp_secret is not null as totp,
        role.last_seen_at, role.created_at, role.permissions, role.participants_of, role.can_download
    from account_roles role join accounts account on account.id = role.account_id
    where role.plan_manager_id = $1
    order by lower(account.name), account.id
"""


async def list_members(db: Executor, plan_manager_id: UUID) -> list[Member]:
    """The members of a plan manager, ordered by name."""
    return await db.rows(Member, LIST_MEMBERS, plan_manager_id)


COUNT_WITH_PERMISSION = """
    select count(*) from account_roles
    where plan_manager_id = $1 and (role = 'owner' or role = 'manager' and $2 = any (permissions))
"""


async def count_with_permission(db: Executor, plan_manager_id: UUID, permission: Permission) -> int:
    """The number of accounts that have a permission: see `policy.has_permission`."""
    return await db.one(int, COUNT_WITH_PERMISSION, plan_manager_id, permission)


COUNT_OWNERS = """
    select count(*) from account_roles
    where plan_manager_id = $1 and role = 'owner' and account_id is distinct from $2::uuid
"""


async def count_owners(db: Executor, plan_manager_id: UUID, *, other_than: UUID | None) -> int:
    """The number of owners, without an account."""
    return await db.one(int, COUNT_OWNERS, plan_manager_id, other_than)


IS_OWNER = """
    select exists (select from account_roles where plan_manager_id = $1 and account_id = $2 and role = 'owner')
"""


async def is_owner(db: Executor, plan_manager_id: UUID, account_id: UUID) -> bool:
    return await db.one(bool, IS_OWNER, plan_manager_id, account_id)


SELECT_ROLE_HOLDERS_FOR_UPDATE = """
    select account_id, role from account_roles
    where plan_manager_id = $1
    order by account_id
    for update
"""


async def select_role_holders_for_update(tx: Transaction, plan_manager_id: UUID) -> list[RoleHolder]:
    """The roles of a plan manager, locked in a fixed order, so that concurrent changes of roles wait for each other."""
    return await tx.rows(RoleHolder, SELECT_ROLE_HOLDERS_FOR_UPDATE, plan_manager_id)


SELECT_ROLES_FOR_SHARE = """
    select plan_manager_id, role, permissions from account_roles
    where account_id = $1
    order by plan_manager_id
    for share
"""


async def select_roles_for_share(tx: Transaction, account_id: UUID) -> list[HeldRole]:
    """The roles of an account, locked: they can't change before the transaction ends."""
    return await tx.rows(HeldRole, SELECT_ROLES_FOR_SHARE, account_id)


INSERT = """
    insert into account_roles (
        plan_manager_id, account_id, role, created_at, permissions, participants_of, can_download)
    values ($1, $2, $3, $4, $5, $6, $7)
    on conflict (plan_manager_id, account_id) do nothing
    returning true
"""


async def insert(
    tx: Transaction,
    plan_manager_id: UUID,
    account_id: UUID,
    role: Role,
    at: datetime,
    details: RoleDetails = NO_DETAILS,
) -> bool:
    """Insert a role. False if the account has one for the plan manager already."""
    values = (account_id, role, at, *astuple(details))
    return await tx.one_or_none(bool, INSERT, plan_manager_id, *values) is not None


UPDATE = """
    update account_roles set role = $3, permissions = $4, participants_of = $5, can_download = $6
    where plan_manager_id = $1 and account_id = $2
"""


async def update(tx: Transaction, plan_manager_id: UUID, account_id: UUID, role: Role, details: RoleDetails) -> None:
    await tx.execute(UPDATE, plan_manager_id, account_id, role, *astuple(details))


HAS_ACCOUNT_MANAGER = """
    select exists (select from account_managers where plan_manager_id = $1 and id = $2 and not deleted)
"""


async def has_account_manager(db: Executor, plan_manager_id: UUID, account_manager_id: UUID) -> bool:
    """Whether a plan manager has an account manager with an id."""
    return await db.one(bool, HAS_ACCOUNT_MANAGER, plan_manager_id, account_manager_id)


SET_LAST_SEEN = """
    update account_roles set last_seen_at = $3
    where plan_manager_id = $1 and account_id = $2 and (last_seen_at is null or last_seen_at < $3)
"""


async def set_last_seen(db: Executor, plan_manager_id: UUID, account_id: UUID, at: datetime) -> None:
    await db.execute(SET_LAST_SEEN, plan_manager_id, account_id, at)


DELETE = "delete from account_roles where plan_manager_id = $1 and account_id = $2"


async def delete(tx: Transaction, plan_manager_id: UUID, account_id: UUID) -> None:
    await tx.execute(DELETE, plan_manager_id, account_id)


HAS_ROLE = """
    select exists (
        select from account_roles role join accounts account on account.id = role.account_id
        where role.plan_manager_id = $1 and lower(account.email) = lower($2)
    )
"""


async def has_role(db: Executor, plan_manager_id: UUID, email: str) -> bool:
    """Whether the account with an email has a role for a plan manager."""
    return await db.one(bool, HAS_ROLE, plan_manager_id, email)


INVITATION_COLUMNS: LiteralString = """
    id, email, name, role, invited_by, invited_by_account_id, created_at, expires_at, permissions, participants_of,
    can_download
"""

UPSERT_INVITATION = f"""
    insert into account_invitations (plan_manager_id, token_hash, {INVITATION_COLUMNS})
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    on conflict (plan_manager_id, lower(email)) where accepted_at is null do update set
        email = excluded.email, name = excluded.name, role = excluded.role, token_hash = excluded.token_hash,
        invited_by = excluded.invited_by, invited_by_account_id = excluded.invited_by_account_id,
        created_at = excluded.created_at, expires_at = excluded.expires_at,
        permissions = excluded.permissions, participants_of = excluded.participants_of,
        can_download = excluded.can_download
    returning {INVITATION_COLUMNS}
"""


async def upsert_invitation(
    tx: Transaction, plan_manager_id: UUID, invitation: Invitation, token_hash: bytes
) -> Invitation:
    """Insert an invitation, or replace the open one for the same email, which keeps its id."""
    return await tx.one(Invitation, UPSERT_INVITATION, plan_manager_id, token_hash, *astuple(invitation))


GET_OPEN_INVITATION = """
    select invitation.plan_manager_id, manager.name as plan_manager_name,
        exists (select from accounts where lower(accounts.email) = lower(invitation.email)) as has_account,
        invitation.id as invitation_id, invitation.email as invitation_email, invitation.name as invitation_name,
        invitation.role as invitation_role, invitation.invited_by as invitation_invited_by,
        invitation.invited_by_account_id as invitation_invited_by_account_id,
        invitation.created_at as invitation_created_at, invitation.expires_at as invitation_expires_at,
        invitation.permissions as invitation_permissions, invitation.participants_of as invitation_participants_of,
        invitation.can_download as invitation_can_download
    from account_invitations invitation join plan_managers manager on manager.id = invitation.plan_manager_id
    where invitation.token_hash = $1 and invitation.accepted_at is null and invitation.expires_at > $2
"""


async def get_open_invitation(db: Executor, token_hash: bytes, at: datetime) -> OpenInvitation | None:
    """The open invitation with a token."""
    return await db.one_or_none(OpenInvitation, GET_OPEN_INVITATION, token_hash, at)


ACCEPT_INVITATION = """
    update account_invitations set accepted_at = $3
    where plan_manager_id = $1 and token_hash = $2 and accepted_at is null and expires_at > $3
    returning true
"""


async def accept_invitation(tx: Transaction, plan_manager_id: UUID, token_hash: bytes, at: datetime) -> bool:
    """Mark an open invitation as accepted. Of two concurrent calls only one returns True."""
    return await tx.one_or_none(bool, ACCEPT_INVITATION, plan_manager_id, token_hash, at) is not None


LIST_PENDING_INVITATIONS = f"""
    select {INVITATION_COLUMNS}
    from account_invitations
    where plan_manager_id = $1 and accepted_at is null
    order by created_at desc, id
"""


async def list_pending_invitations(db: Executor, plan_manager_id: UUID) -> list[Invitation]:
    """The invitations that were not accepted, newest first. Some may have expired."""
    return await db.rows(Invitation, LIST_PENDING_INVITATIONS, plan_manager_id)


DELETE_INVITATION = f"""
    delete from account_invitations
    where plan_manager_id = $1 and id = $2 and accepted_at is null
    returning {INVITATION_COLUMNS}
"""


async def delete_invitation(tx: Transaction, plan_manager_id: UUID, invitation_id: UUID) -> Invitation | None:
    """Delete an invitation that was not accepted, and return it."""
    return await tx.one_or_none(Invitation, DELETE_INVITATION, plan_manager_id, invitation_id)


# Without a link, the account manager with the account's email. A deleted account manager doesn't count.
LIST_LINKED: LiteralString = """
    select member.account_id, manager.id, coalesce(manager.name, users.email, 'No name') as name,
        link.account_id is not null as is_chosen
    from unnest($2::uuid[], $3::text[]) member (account_id, email)
    left join account_manager_links link
        on link.plan_manager_id = $1 and link.account_id = member.account_id
    left join lateral (
        select id from users
        where plan_manager_id = $1 and lower(users.email) = lower(member.email)
    ) namesake on link.account_id is null
    join account_managers manager
        on manager.plan_manager_id = $1 and manager.id = coalesce(link.account_manager_id, namesake.id)
        and not manager.deleted
    join users on users.plan_manager_id = $1 and users.id = manager.id
"""


async def list_linked(
    db: Executor, plan_manager_id: UUID, account_ids: Sequence[UUID], emails: Sequence[str]
) -> list[LinkedAccountManager]:
    """The account managers that accounts are linked to, for pairs of an account's id and its email."""
    return await db.rows(LinkedAccountManager, LIST_LINKED, plan_manager_id, account_ids, emails)


UPSERT_LINK = """
    insert into account_manager_links (plan_manager_id, account_id, account_manager_id)
    select $1, $2, id from account_managers where plan_manager_id = $1 and id = $3 and not deleted
    on conflict (plan_manager_id, account_id) do update set account_manager_id = excluded.account_manager_id
    returning true
"""


async def upsert_link(tx: Transaction, plan_manager_id: UUID, account_id: UUID, account_manager_id: UUID) -> bool:
    """Link an account to an account manager; False if there is no such account manager."""
    return bool(await tx.one_or_none(bool, UPSERT_LINK, plan_manager_id, account_id, account_manager_id))


DELETE_LINK = "delete from account_manager_links where plan_manager_id = $1 and account_id = $2"


async def delete_link(tx: Transaction, plan_manager_id: UUID, account_id: UUID) -> None:
    """Remove an account's link, so that its email decides again."""
    await tx.execute(DELETE_LINK, plan_manager_id, account_id)
