"""Operations on account managers of the console. The API only reads account managers."""

from uuid import UUID

import asyncpg
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.errors import ValidationError
from plankeeper.core.fields import apply_patch, unset_to_none
from plankeeper.core.json import to_json
from plankeeper.core.settings import Settings
from plankeeper.database.errors import constraint_violation
from plankeeper.events.recorder import is_changed, record_event
from plankeeper.resources.account_managers import store
from plankeeper.resources.account_managers.schemas import AccountManagerCreate, AccountManagerRow
from plankeeper.resources.users import store as users


async def create(ctx: WriteContext, new: AccountManagerCreate) -> AccountManagerRow:
    """Create an account manager: for the user with the email, or for a new user."""
    if not (unset_to_none(new.first_name) or unset_to_none(new.last_name) or unset_to_none(new.email)):
        raise ValidationError(first_name="at least one of first name, last name and email is required")
    user_id = await users.get_or_create(ctx.tx, ctx.plan_manager_id, uuid7(), unset_to_none(new.email))
    row = apply_patch(new, AccountManagerRow(id=user_id))
    if not await store.insert(ctx.tx, ctx.plan_manager_id, to_json([row])):
        raise ValidationError(email="belongs to another account manager, who may be deleted or internal")
    await _require_visible(ctx, user_id)
    [after] = await store.get_rows(ctx.tx, ctx.plan_manager_id, [user_id])
    await record_event(ctx, "account_manager.created", None, after)
    return after


async def update(ctx: WriteContext, account_manager_id: UUID, change: AccountManagerCreate) -> AccountManagerRow:
    """Apply the fields that are set; raises NotFound. An email cannot be cleared."""
    old = or_404(await select_for_update(ctx, account_manager_id))
    row = apply_patch(change, old)
    [before] = await store.get_rows(ctx.tx, ctx.plan_manager_id, [account_manager_id])
    if not is_changed(old, row):
        return before
    if before.email and not row.email:
        raise ValidationError(email="cannot be cleared")
    if not (row.first_name or row.last_name or row.email):
        raise ValidationError(first_name="at least one of first name, last name and email is required")
    try:
        async with ctx.tx.savepoint():
            await users.upsert(ctx.tx, ctx.plan_manager_id, to_json([row]))
    except asyncpg.UniqueViolationError as error:
        if constraint_violation(error).constraint != "users_email_key":
            raise
        raise ValidationError(email="belongs to another user of this plan manager") from None
    await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([row]))
    await _require_visible(ctx, account_manager_id)
    [after] = await store.get_rows(ctx.tx, ctx.plan_manager_id, [account_manager_id])
    await record_event(ctx, "account_manager.updated", before, after)
    return after


async def select_for_update(ctx: WriteContext, account_manager_id: UUID) -> AccountManagerRow | None:
    """Lock an account manager that the API shows; None for a hidden one."""
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [account_manager_id])
    visible = await store.get_visible(ctx.tx, ctx.plan_manager_id, account_manager_id, ctx.settings.operator_name)
    return rows[0] if rows and visible else None


def is_hidden(row: AccountManagerRow, settings: Settings) -> bool:
    """Whether the API hides an account manager: the same rule as that of the store's statements."""
    operator, domain = settings.operator_name.lower(), (row.email or "").rpartition("@")[2].lower()
    return row.deleted or row.is_internal or (operator != "" and operator in domain)


async def _require_visible(ctx: WriteContext, account_manager_id: UUID) -> None:
    """Reject a write that would hide the account manager, because it couldn't be corrected afterwards."""
    if await store.get_visible(ctx.tx, ctx.plan_manager_id, account_manager_id, ctx.settings.operator_name) is None:
        raise ValidationError(email="belongs to the operator's own staff, who are not shown as account managers")
