"""Account managers as people write them in the console; the API reads them alone."""

from uuid import UUID

import asyncpg
from uuid_utils.compat import uuid7

from plankeeper.account_managers import store
from plankeeper.account_managers.schemas import AccountManagerCreate, AccountManagerRecord
from plankeeper.database.client import broken
from plankeeper.events.recorder import record
from plankeeper.http.context import Write, found
from plankeeper.http.errors import Invalid
from plankeeper.http.schemas import applied, given, json_text
from plankeeper.users import store as users


async def create(call: Write, new: AccountManagerCreate) -> AccountManagerRecord:
    """A new account manager: the user with the email, or a new one."""
    if not (given(new.first_name) or given(new.last_name) or given(new.email)):
        raise Invalid(first_name="or a last name or an email is required")
    user_id = await users.insert(call.tx, call.plan_manager_id, uuid7(), given(new.email))
    made = applied(new, AccountManagerRecord(id=user_id))
    if not await store.insert(call.tx, call.plan_manager_id, json_text([made])):
        raise Invalid(email="is another account manager's; who is deleted or internal has one too")
    await _require_shown(call, user_id)
    after = found(await fetch_for_update(call, user_id))
    await record(call, "account_manager.created", None, after)
    return after


async def update(call: Write, account_manager_id: UUID, change: AccountManagerCreate) -> AccountManagerRecord:
    """Absent members stay as they are, null clears; an email, once known, cannot be cleared."""
    before = found(await fetch_for_update(call, account_manager_id))
    changed = applied(change, before)
    if before.email and not changed.email:
        raise Invalid(email="cannot be cleared")
    if not (changed.first_name or changed.last_name or changed.email):
        raise Invalid(first_name="or a last name or an email is required")
    try:
        async with call.tx.savepoint():
            await users.put(call.tx, call.plan_manager_id, json_text([changed]))
    except asyncpg.UniqueViolationError as error:
        if broken(error).constraint != "users_email_key":
            raise
        raise Invalid(email="is another user's of this plan manager") from None
    await store.put(call.tx, call.plan_manager_id, json_text([changed]))
    await _require_shown(call, account_manager_id)
    after = found(await fetch_for_update(call, account_manager_id))
    await record(call, "account_manager.updated", before, after)
    return after


async def fetch_for_update(call: Write, account_manager_id: UUID) -> AccountManagerRecord | None:
    """An account manager that the list would show, locked; null for any other."""
    rows = await store.records_for_update(call.tx, call.plan_manager_id, [account_manager_id])
    shown = await store.visible(call.tx, call.plan_manager_id, account_manager_id, call.settings.operator_name)
    return rows[0] if rows and shown else None


async def _require_shown(call: Write, account_manager_id: UUID) -> None:
    """Who would not be shown once written is not written: nobody could mend it."""
    if await store.visible(call.tx, call.plan_manager_id, account_manager_id, call.settings.operator_name) is None:
        raise Invalid(email="is of the operator's own people, who are not shown as account managers")
