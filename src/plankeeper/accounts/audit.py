"""The events of accounts: each stands under every plan manager that the account has a role for, and names no other."""

from typing import NamedTuple

from plankeeper.accounts import member_store
from plankeeper.accounts.schemas import Account, AccountShown, AccountVisit, Membership
from plankeeper.database.client import Transaction
from plankeeper.events.recorder import record
from plankeeper.http.context import Actor, Write
from plankeeper.settings import Settings


class Origin(NamedTuple):
    """Where somebody signs in from."""

    address: str
    user_agent: str


def actor_of(account: Account) -> Actor:
    return Actor("user", str(account.id), account.name)


def shown(account: Account, held: Membership) -> AccountShown:
    return AccountShown(account.id, account.email, account.name, held.role)


async def tell(tx: Transaction, settings: Settings, account: Account, type_: str, origin: Origin | None = None) -> None:
    """Record what an account did, with where from where that is known."""
    for held in await member_store.of_account(tx, account.id):
        after = AccountVisit(account.id, account.email, account.name, held.role, *origin) if origin else None
        call = Write(tx, held.plan_manager_id, settings, actor_of(account))
        await record(call, type_, None, after or shown(account, held))


async def tell_by_system(tx: Transaction, settings: Settings, account: Account, type_: str, command: str) -> None:
    """Record what the operator did with an account."""
    for held in await member_store.of_account(tx, account.id):
        call = Write(tx, held.plan_manager_id, settings, Actor("system", None, f"plankeeper {command}"))
        await record(call, type_, None, shown(account, held))
