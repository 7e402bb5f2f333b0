"""Who belongs to a plan manager: made, given another role, removed."""

from datetime import UTC, datetime
from uuid import UUID

from plankeeper.accounts import member_store, store
from plankeeper.accounts.schemas import Account, AccountShown, Invitation, Person, Role
from plankeeper.accounts.sessions import good_email, good_role, new_account, require_still_owner
from plankeeper.events.recorder import record
from plankeeper.http.context import Write, found
from plankeeper.http.errors import Invalid


async def create(call: Write, email: str, name: str, role: str, password: str) -> UUID:
    """A new account with a role for the call's plan manager: its id. Raises Invalid."""
    wanted = good_role(role)
    account = await new_account(good_email(email), name, password)
    if await store.insert(call.tx, account) is None:
        raise Invalid(email="has an account already: without a password it gets an invitation")
    await member_store.insert(call.tx, call.plan_manager_id, account.id, wanted, datetime.now(UTC))
    await record(call, "account.joined", None, _shown(account, wanted))
    return account.id


async def change_role(call: Write, account_id: UUID, role: str) -> Person | None:
    """Give a person another role; answers who it was. Null where there is none; raises Invalid."""
    wanted = good_role(role)
    await require_still_owner(call)
    before = await _person(call, account_id)
    if before is None or before.role == wanted:
        return before
    await _require_other_owner(call, before)
    await member_store.update(call.tx, call.plan_manager_id, account_id, wanted)
    await record(call, "account.role_changed", _shown(before, before.role), _shown(before, wanted))
    return before


async def remove(call: Write, account_id: UUID) -> Person | None:
    """Take a person's role away; who has no role left has no account. Answers who it was; raises Invalid."""
    # Locked first: a role that the account is being given is seen below.
    await store.fetch_for_update(call.tx, account_id)
    await require_still_owner(call)
    before = await _person(call, account_id)
    if before is None:
        return None
    await _require_other_owner(call, before)
    await member_store.remove(call.tx, call.plan_manager_id, account_id)
    await record(call, "account.removed", _shown(before, before.role), None)
    if not await member_store.of_account(call.tx, account_id):
        await store.remove(call.tx, account_id)
    return before


async def withdraw(call: Write, invitation_id: UUID) -> Invitation:
    """Take back an invitation that nobody took up; raises NotFound."""
    await require_still_owner(call)
    before = found(await member_store.withdraw(call.tx, call.plan_manager_id, invitation_id))
    await record(call, "account.invitation_withdrawn", before, None)
    return before


async def _person(call: Write, account_id: UUID) -> Person | None:
    everybody = await member_store.people(call.tx, call.plan_manager_id)
    return next((each for each in everybody if each.id == account_id), None)


async def _require_other_owner(call: Write, leaving: Person) -> None:
    """Somebody must be able to invite others; the system itself can make an owner at any time."""
    holders = await member_store.holders_for_update(call.tx, call.plan_manager_id)
    others = [each for each in holders if each.role == "owner" and each.account_id != leaving.id]
    if leaving.role == "owner" and not others and call.actor.kind != "system":
        raise Invalid(role="of the only owner stays: make somebody else an owner first")


def _shown(who: Account | Person, role: Role) -> AccountShown:
    return AccountShown(who.id, who.email, who.name, role)
