"""Account managers as people write them in the console; the API reads them alone."""

from uuid import UUID

import asyncpg
from uuid_utils.compat import uuid7

from plankeeper.account_managers import store
from plankeeper.account_managers.schemas import AccountManagerCreate, AccountManagerRow
from plankeeper.database.client import constraint_violation
from plankeeper.events.recorder import record_event
from plankeeper.http.context import WriteContext, or_404
from plankeeper.http.errors import ValidationError
from plankeeper.http.json import to_json
from plankeeper.http.schemas import apply_patch, unset_to_none
from plankeeper.users import store as users


async def create(ctx: WriteContext, new: AccountManagerCreate) -> AccountManagerRow:
    """A new account manager: the user with the email, or a new one."""
    if not (unset_to_none(new.first_name) or unset_to_none(new.last_name) or unset_to_none(new.email)):
        raise ValidationError(first_name="or a last name or an email is required")
    user_id = await users.get_or_create(ctx.tx, ctx.plan_manager_id, uuid7(), unset_to_none(new.email))
    row = apply_patch(new, AccountManagerRow(id=user_id))
    if not await store.insert(ctx.tx, ctx.plan_manager_id, to_json([row])):
        raise ValidationError(email="is another account manager's; who is deleted or internal has one too")
    await _require_visible(ctx, user_id)
    after = or_404(await get_for_update(ctx, user_id))
    await record_event(ctx, "account_manager.created", None, after)
    return after


async def update(ctx: WriteContext, account_manager_id: UUID, change: AccountManagerCreate) -> AccountManagerRow:
    """Absent members stay as they are, null clears; an email, once known, cannot be cleared."""
    before = or_404(await get_for_update(ctx, account_manager_id))
    row = apply_patch(change, before)
    if before.email and not row.email:
        raise ValidationError(email="cannot be cleared")
    if not (row.first_name or row.last_name or row.email):
        raise ValidationError(first_name="or a last name or an email is required")
    try:
        async with ctx.tx.savepoint():
            await users.upsert(ctx.tx, ctx.plan_manager_id, to_json([row]))
    except asyncpg.UniqueViolationError as error:
        if constraint_violation(error).constraint != "users_email_key":
            raise
        raise ValidationError(email="is another user's of this plan manager") from None
    await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([row]))
    await _require_visible(ctx, account_manager_id)
    after = or_404(await get_for_update(ctx, account_manager_id))
    await record_event(ctx, "account_manager.updated", before, after)
    return after


async def get_for_update(ctx: WriteContext, account_manager_id: UUID) -> AccountManagerRow | None:
    """An account manager that the list would show, locked; null for any other."""
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [account_manager_id])
    visible = await store.get_visible(ctx.tx, ctx.plan_manager_id, account_manager_id, ctx.settings.operator_name)
    return rows[0] if rows and visible else None


async def _require_visible(ctx: WriteContext, account_manager_id: UUID) -> None:
    """Who would not be shown once written is not written: nobody could mend it."""
    if await store.get_visible(ctx.tx, ctx.plan_manager_id, account_manager_id, ctx.settings.operator_name) is None:
        raise ValidationError(email="is of the operator's own people, who are not shown as account managers")
