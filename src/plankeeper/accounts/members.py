"""Who belongs to a plan manager: made, given another role, removed."""

from datetime import UTC, datetime
from uuid import UUID

from plankeeper.accounts import member_store, store
from plankeeper.accounts.schemas import Account, Invitation, Member, MemberEvent, Role
from plankeeper.accounts.sessions import build_account, require_owner, validate_email, validate_role
from plankeeper.events.recorder import record_event
from plankeeper.http.context import WriteContext, or_404
from plankeeper.http.errors import ValidationError


async def create(ctx: WriteContext, email: str, name: str, role: str, password: str) -> UUID:
    """A new account with a role for the call's plan manager: its id. Raises ValidationError."""
    new_role = validate_role(role)
    account = await build_account(validate_email(email), name, password)
    if await store.insert(ctx.tx, account) is None:
        raise ValidationError(email="has an account already: without a password it gets an invitation")
    await member_store.insert(ctx.tx, ctx.plan_manager_id, account.id, new_role, datetime.now(UTC))
    await record_event(ctx, "account.joined", None, _member_event(account, new_role))
    return account.id


async def change_role(ctx: WriteContext, account_id: UUID, role: str) -> Member | None:
    """Give a person another role; answers who it was. Null where there is none; raises ValidationError."""
    new_role = validate_role(role)
    await require_owner(ctx)
    before = await _get_member(ctx, account_id)
    if before is None or before.role == new_role:
        return before
    await _require_other_owner(ctx, before)
    await member_store.update(ctx.tx, ctx.plan_manager_id, account_id, new_role)
    await record_event(ctx, "account.role_changed", _member_event(before, before.role), _member_event(before, new_role))
    return before


async def remove(ctx: WriteContext, account_id: UUID) -> Member | None:
    """Take a person's role away; who has no role left has no account. Answers who it was; raises ValidationError."""
    # Locked first: a role that the account is being given is seen below.
    await store.select_for_update(ctx.tx, account_id)
    await require_owner(ctx)
    before = await _get_member(ctx, account_id)
    if before is None:
        return None
    await _require_other_owner(ctx, before)
    await member_store.delete(ctx.tx, ctx.plan_manager_id, account_id)
    await record_event(ctx, "account.removed", _member_event(before, before.role), None)
    if not await member_store.list_memberships(ctx.tx, account_id):
        await store.delete(ctx.tx, account_id)
    return before


async def revoke_invitation(ctx: WriteContext, invitation_id: UUID) -> Invitation:
    """Take back an invitation that nobody took up; raises NotFound."""
    await require_owner(ctx)
    before = or_404(await member_store.delete_invitation(ctx.tx, ctx.plan_manager_id, invitation_id))
    await record_event(ctx, "account.invitation_withdrawn", before, None)
    return before


async def _get_member(ctx: WriteContext, account_id: UUID) -> Member | None:
    members = await member_store.list_members(ctx.tx, ctx.plan_manager_id)
    return next((each for each in members if each.id == account_id), None)


async def _require_other_owner(ctx: WriteContext, member: Member) -> None:
    """Somebody must be able to invite others; the system itself can make an owner at any time."""
    holders = await member_store.select_role_holders_for_update(ctx.tx, ctx.plan_manager_id)
    other_owners = [each for each in holders if each.role == "owner" and each.account_id != member.id]
    if member.role == "owner" and not other_owners and ctx.actor.kind != "system":
        raise ValidationError(role="of the only owner stays: make somebody else an owner first")


def _member_event(account: Account | Member, role: Role) -> MemberEvent:
    return MemberEvent(account.id, account.email, account.name, role)
