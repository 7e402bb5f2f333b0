"""Events about accounts. Each is recorded once under every plan manager that the account has a role for.

A sign-in is recorded only for the plan managers that its session acts for.
"""

from typing import NamedTuple
from uuid import UUID

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from plankeeper.access.accounts import member_store
from plankeeper.access.accounts.schemas import (
    Account,
    LoginEvent,
    Member,
    MemberEvent,
    Role,
    RoleDetails,
    SignInMethod,
)
from plankeeper.core.context import Actor, WriteContext
from plankeeper.core.formatting import single_line
from plankeeper.core.settings import Settings
from plankeeper.database.client import Transaction
from plankeeper.events.recorder import record_event


class ClientInfo(NamedTuple):
    """The client that a sign-in comes from."""

    address: str
    user_agent: str

    @classmethod
    def from_request(cls, address: str, user_agent: str) -> "ClientInfo":
        """Both values come from headers and are untrusted."""
        return cls(single_line(address, 100), single_line(user_agent, 500))


def account_actor(account: Account) -> Actor:
    return Actor("user", str(account.id), account.name)


def member_event(account: Account | Member, role: Role, details: RoleDetails) -> MemberEvent:
    return MemberEvent(account.id, account.email, account.name, role, **asdict(details))


async def record_account_event(
    tx: Transaction,
    settings: Settings,
    account: Account,
    type_: str,
    client: ClientInfo | None = None,
    *,
    only_for: UUID | None = None,
    method: SignInMethod | UnsetType = UNSET,
) -> None:
    """Record an action of an account, with its client where that is known. `only_for` is one plan manager's id."""
    memberships = await member_store.list_memberships(tx, account.id)
    for membership in [each for each in memberships if only_for in (None, each.plan_manager_id)]:
        login = (
            LoginEvent(account.id, account.email, account.name, membership.role, *client, method) if client else None
        )
        ctx = WriteContext(tx, membership.plan_manager_id, settings, account_actor(account))
        await record_event(ctx, type_, None, login or member_event(account, membership.role, membership.details))


async def record_account_event_by_operator(
    tx: Transaction, settings: Settings, account: Account, type_: str, command: str
) -> None:
    """Record an operator's action on an account. `command` is the subcommand, such as `accounts reset`."""
    for membership in await member_store.list_memberships(tx, account.id):
        ctx = WriteContext(tx, membership.plan_manager_id, settings, Actor("system", None, f"plankeeper {command}"))
        await record_event(ctx, type_, None, member_event(account, membership.role, membership.details))
