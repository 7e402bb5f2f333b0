"""The events of accounts: each stands under every plan manager that the account has a role for, and names no other."""

from typing import NamedTuple

from plankeeper.accounts import member_store
from plankeeper.accounts.schemas import Account, LoginEvent, MemberEvent, Membership
from plankeeper.database.client import Transaction
from plankeeper.events.recorder import record_event
from plankeeper.http.context import Actor, WriteContext
from plankeeper.settings import Settings


class ClientInfo(NamedTuple):
    """Where somebody signs in from."""

    address: str
    user_agent: str


def account_actor(account: Account) -> Actor:
    return Actor("user", str(account.id), account.name)


def member_event(account: Account, membership: Membership) -> MemberEvent:
    return MemberEvent(account.id, account.email, account.name, membership.role)


async def record_account_event(
    tx: Transaction, settings: Settings, account: Account, type_: str, client: ClientInfo | None = None
) -> None:
    """Record what an account did, with where from where that is known."""
    for membership in await member_store.list_memberships(tx, account.id):
        login = LoginEvent(account.id, account.email, account.name, membership.role, *client) if client else None
        ctx = WriteContext(tx, membership.plan_manager_id, settings, account_actor(account))
        await record_event(ctx, type_, None, login or member_event(account, membership))


async def record_account_event_by_operator(
    tx: Transaction, settings: Settings, account: Account, type_: str, command: str
) -> None:
    """Record what the operator did with an account."""
    for membership in await member_store.list_memberships(tx, account.id):
        ctx = WriteContext(tx, membership.plan_manager_id, settings, Actor("system", None, f"plankeeper {command}"))
        await record_event(ctx, type_, None, member_event(account, membership))
