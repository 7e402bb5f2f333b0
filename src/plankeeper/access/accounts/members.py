"""The members of a plan manager, which are the accounts with a role for it: create, add, change, remove."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from msgspec.structs import asdict
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import member_store, passwords, store
from plankeeper.access.accounts.audit import member_event
from plankeeper.access.accounts.passwords import validate_password
from plankeeper.access.accounts.schemas import (
    NO_DETAILS,
    Account,
    AccountManagerLinkEvent,
    CreatedAccess,
    Member,
    Role,
    RoleDetails,
)
from plankeeper.access.api_keys import service as api_keys
from plankeeper.access.api_keys import store as api_key_store
from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.access.policy import (
    PERMISSIONS,
    ROLES,
    SCOPE_PERMISSIONS,
    has_permission,
    is_role_at_least,
    validate_name,
)
from plankeeper.access.saved_views import store as saved_views
from plankeeper.core.context import WriteContext
from plankeeper.core.errors import DomainError, ValidationError
from plankeeper.core.fields import Email, decode_custom_type
from plankeeper.database.client import Executor
from plankeeper.events.recorder import record_event


async def create(
    ctx: WriteContext, email: str, name: str, role: str, password: str, details: RoleDetails = NO_DETAILS
) -> UUID:
    """Create an account with a role for the context's plan manager and return its id. Raises ValidationError."""
    new_role = validate_role(role)
    granted = await validate_details(ctx, new_role, details)
    plan_manager = await plan_managers.get(ctx.tx, ctx.plan_manager_id)
    plan_manager_name = plan_manager.name if plan_manager else ""
    account = await build_account(validate_email(email), name, password, plan_manager_name)
    if await store.insert(ctx.tx, account) is None:
        raise ValidationError(email="has an account already: send an invitation instead of setting a password")
    await add(ctx, account, new_role, granted)
    return account.id


async def add(ctx: WriteContext, account: Account, role: Role, details: RoleDetails = NO_DETAILS) -> bool:
    """Give an account a role for the context's plan manager. False if it has one already."""
    if not await member_store.insert(ctx.tx, ctx.plan_manager_id, account.id, role, datetime.now(UTC), details):
        return False
    await record_event(ctx, "account.joined", None, member_event(account, role, details))
    return True


async def get(db: Executor, plan_manager_id: UUID, account_id: UUID) -> Member | None:
    members = await member_store.list_members(db, plan_manager_id)
    return next((member for member in members if member.id == account_id), None)


async def list_created_access(db: Executor, plan_manager_id: UUID, account_id: UUID) -> CreatedAccess:
    """The active API keys and open invitations that an account created for a plan manager."""
    keys = await api_key_store.list_by_plan_manager(db, plan_manager_id)
    invitations = await member_store.list_pending_invitations(db, plan_manager_id)
    return CreatedAccess(
        [key for key in keys if key.created_by_account_id == account_id and api_keys.key_state(key) == "active"],
        [invitation for invitation in invitations if invitation.invited_by_account_id == account_id],
    )


async def list_lost_access(
    db: Executor, plan_manager_id: UUID, member: Member, role: Role, details: RoleDetails
) -> CreatedAccess:
    """What a member created and may no longer have with another role or other details.

    With a lower role, this is everything; without a permission, the API keys with its scope.
    """
    created = await list_created_access(db, plan_manager_id, member.id)
    if not is_role_at_least(role, member.role):
        return created
    lost = {
        scope
        for scope, permission in SCOPE_PERMISSIONS.items()
        if has_permission(member.role, member.permissions, permission)
        and not has_permission(role, details.permissions, permission)
    }
    return CreatedAccess([key for key in created.keys if lost & set(key.scopes)], [])


async def change_role(
    ctx: WriteContext, account_id: UUID, role: str, details: RoleDetails | None = None, *, keep_keys: bool = False
) -> Member | None:
    """Change a member's role with its details, and return the member as it was; None if there is none.

    Without details, those stay that the new role can have. What the member created and loses by the change (see
    `list_lost_access`) is revoked, as by `remove`. Raises ValidationError.
    """
    new_role = validate_role(role)
    await require_owner(ctx)
    before = await get(ctx.tx, ctx.plan_manager_id, account_id)
    if before is None:
        return None
    kept = before.details if details is None else details
    granted = kept.for_role(new_role) if details is None else await validate_details(ctx, new_role, kept)
    if (before.role, before.details) == (new_role, granted):
        return before
    if before.role != new_role:
        await _require_other_owner(ctx, before)
    await member_store.update(ctx.tx, ctx.plan_manager_id, account_id, new_role, granted)
    changes = member_event(before, before.role, before.details), member_event(before, new_role, granted)
    await record_event(ctx, "account.role_changed", *changes)
    lost = await list_lost_access(ctx.tx, ctx.plan_manager_id, before, new_role, granted)
    await _revoke_access(ctx, lost, keep_keys=keep_keys)
    return before


async def remove(ctx: WriteContext, account_id: UUID, *, keep_keys: bool = False) -> Member | None:
    """Remove a member and return it; None if there is none. Raises ValidationError.

    The open invitations that the member created are withdrawn. Unless `keep_keys` is set, the API keys that the member
    created lose access to this plan manager. An account without any role is deleted.
    """
    # Lock the account first: a role that another transaction is adding becomes visible below.
    await store.select_for_update(ctx.tx, account_id)
    await require_owner(ctx)
    before = await get(ctx.tx, ctx.plan_manager_id, account_id)
    if before is None:
        return None
    await _require_other_owner(ctx, before)
    await member_store.delete(ctx.tx, ctx.plan_manager_id, account_id)
    await member_store.delete_link(ctx.tx, ctx.plan_manager_id, account_id)
    await saved_views.delete_own(ctx.tx, ctx.plan_manager_id, account_id)
    await saved_views.delete_own_settings(ctx.tx, ctx.plan_manager_id, account_id)
    await record_event(ctx, "account.removed", member_event(before, before.role, before.details), None)
    created = await list_created_access(ctx.tx, ctx.plan_manager_id, account_id)
    await _revoke_access(ctx, created, keep_keys=keep_keys)
    if not await member_store.list_memberships(ctx.tx, account_id):
        await store.delete(ctx.tx, account_id)
    return before


async def link_account_manager(ctx: WriteContext, account_id: UUID, account_manager_id: UUID | None) -> Member | None:
    """Link a member to an account manager, or with null to the one with its email; None if there is no such member.

    Raises ValidationError for an unknown account manager.
    """
    await require_owner(ctx)
    member = await get(ctx.tx, ctx.plan_manager_id, account_id)
    if member is None:
        return None
    linked = await member_store.list_linked(ctx.tx, ctx.plan_manager_id, [member.id], [member.email])
    chosen = next((each.id for each in linked if each.is_chosen), None)
    if account_manager_id is None:
        await member_store.delete_link(ctx.tx, ctx.plan_manager_id, account_id)
    elif not await member_store.upsert_link(ctx.tx, ctx.plan_manager_id, account_id, account_manager_id):
        raise ValidationError(account_manager="must be an account manager of this plan manager")
    before, after = (
        AccountManagerLinkEvent(
            member.id, member.email, member.name, member.role, **asdict(member.details), account_manager_id=each
        )
        for each in (chosen, account_manager_id)
    )
    await record_event(ctx, "account.account_manager_changed", before, after)
    return member


async def set_requires_two_factor(ctx: WriteContext, required: bool) -> None:
    """Set whether all members must use two-factor authentication. Raises ValidationError."""
    # The account is locked before the roles, as by a sign-in.
    account = await store.select_for_update(ctx.tx, ctx.actor.account_id) if ctx.actor.account_id else None
    await require_owner(ctx)
    if required and account and account.totp_secret is None:
        raise ValidationError(form="Turn on two-factor authentication for your own account first.")
    before = await plan_managers.select_policy_for_update(ctx.tx, ctx.plan_manager_id)
    await plan_managers.set_requires_two_factor(ctx.tx, ctx.plan_manager_id, required)
    after = msgspec.structs.replace(before, requires_two_factor=required)
    await record_event(ctx, "plan_manager.updated", before, after)


async def set_requires_single_sign_on(ctx: WriteContext, required: bool, *, has_single_sign_on: bool) -> None:
    """Set whether all sessions must use single sign-on. Raises ValidationError.

    `has_single_sign_on` says whether the actor's session was signed in at the plan manager's provider. Otherwise, an
    owner could lock out all members.
    """
    await require_owner(ctx)
    if required and not has_single_sign_on:
        raise ValidationError(form="Sign in with single sign-on yourself first.")
    before = await plan_managers.select_policy_for_update(ctx.tx, ctx.plan_manager_id)
    after = await plan_managers.set_requires_single_sign_on(ctx.tx, ctx.plan_manager_id, required)
    if before != after:
        await record_event(ctx, "plan_manager.updated", before, after)


async def require_owner(ctx: WriteContext) -> None:
    """Raise DomainError if the acting account is no longer an owner, and lock the roles until the transaction ends."""
    holders = await member_store.select_role_holders_for_update(ctx.tx, ctx.plan_manager_id)
    owner_ids = [str(holder.account_id) for holder in holders if holder.role == "owner"]
    if ctx.actor.kind == "user" and ctx.actor.id not in owner_ids:
        raise DomainError("plan_manager_not_allowed", "Your role has changed: only owners can do this.")


async def require_manager(ctx: WriteContext, plan_manager_ids: Iterable[UUID]) -> None:
    """Raise DomainError unless the acting account is a manager or an owner of each plan manager.

    The roles are locked until the transaction ends: a key that is created while its creator is removed is either
    rejected, or visible to the removal.
    """
    if ctx.actor.account_id is None:
        return
    held = {
        each.plan_manager_id: each.role
        for each in await member_store.select_roles_for_share(ctx.tx, ctx.actor.account_id)
    }
    if not all(is_role_at_least(held.get(each), "manager") for each in plan_manager_ids):
        raise DomainError("plan_manager_not_allowed", "Your role doesn’t allow this.")


async def require_scopes(ctx: WriteContext, plan_manager_ids: Iterable[UUID], scopes: Collection[str]) -> None:
    """Raise DomainError unless the acting account may create an API key with these scopes for each plan manager.

    Call `require_manager` before it, which locks the roles.
    """
    if ctx.actor.account_id is None:
        return
    held = {
        each.plan_manager_id: each for each in await member_store.select_roles_for_share(ctx.tx, ctx.actor.account_id)
    }
    for scope, permission in SCOPE_PERMISSIONS.items():
        roles = [held.get(each) for each in plan_manager_ids] if scope in scopes else []
        if not all(role and has_permission(role.role, role.permissions, permission) for role in roles):
            detail = f"The scope {scope} requires the permission {permission}, which an owner can give you."
            raise DomainError("plan_manager_not_allowed", detail)


async def build_account(email: str, name: str, password: str, plan_manager_name: str) -> Account:
    """A new account, not yet saved. Raises ValidationError."""
    validate_account(email, name, password, plan_manager_name)
    password_hash = await passwords.hash_password(password)
    return Account(id=uuid7(), email=email, name=name, password_hash=password_hash, created_at=datetime.now(UTC))


def validate_account(email: str, name: str, password: str, plan_manager_name: str) -> None:
    """Check the name and the password of a new account. Raises ValidationError."""
    found = {"name": validate_name(name), "password": validate_password(password, email, [name, plan_manager_name])}
    if errors := {field: error for field, error in found.items() if error}:
        raise ValidationError(**errors)


def validate_email(email: str) -> str:
    """The email of a new account without surrounding spaces, in ASCII. Raises ValidationError.

    Other letters can look like another person's email.
    """
    if not email.isascii():
        raise ValidationError(email="must contain only the letters a to z, digits and signs of ASCII")
    try:
        return str(decode_custom_type(Email, email.strip()))
    except ValueError as error:
        raise ValidationError(email=str(error)) from None


def validate_role(role: str) -> Role:
    """Raises ValidationError."""
    try:
        return msgspec.convert(role, Role)
    except msgspec.ValidationError:
        raise ValidationError(role=f"must be one of {', '.join(ROLES)}") from None


async def validate_details(ctx: WriteContext, role: Role, details: RoleDetails) -> RoleDetails:
    """The details that a role can have, with each permission once. Raises ValidationError."""
    granted = details.for_role(role)
    if unknown := set(granted.permissions) - set(PERMISSIONS):
        raise ValidationError(permissions=f"must be among {', '.join(PERMISSIONS)}, not {', '.join(sorted(unknown))}")
    manager_id = granted.participants_of
    if manager_id and not await member_store.has_account_manager(ctx.tx, ctx.plan_manager_id, manager_id):
        raise ValidationError(participants_of="must be an account manager of this plan manager")
    ordered = [each for each in PERMISSIONS if each in granted.permissions]
    return msgspec.structs.replace(granted, permissions=ordered)


async def _revoke_access(ctx: WriteContext, created: CreatedAccess, *, keep_keys: bool) -> None:
    """Withdraw open invitations and, unless they are kept, remove the plan manager from keys."""
    for invitation in created.invitations:
        await member_store.delete_invitation(ctx.tx, ctx.plan_manager_id, invitation.id)
        await record_event(ctx, "account.invitation_withdrawn", invitation, None)
    if not keep_keys:
        await api_keys.remove_plan_manager(ctx, [key.id for key in created.keys])


async def _require_other_owner(ctx: WriteContext, member: Member) -> None:
    """Raise ValidationError for the only owner, because nobody could then invite others. The operator can do it."""
    holders = await member_store.select_role_holders_for_update(ctx.tx, ctx.plan_manager_id)
    other_owners = [holder for holder in holders if holder.role == "owner" and holder.account_id != member.id]
    if member.role == "owner" and not other_owners and ctx.actor.kind != "system":
        raise ValidationError(role="can't change, because this is the only owner: make another person an owner first")
