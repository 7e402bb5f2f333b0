"""Accounts, sessions and invitations as they are kept, and as events and the console tell of them."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import Struct

from plankeeper.http.schemas import AwareDatetime

Role = Literal["owner", "manager", "viewer"]


class LoginResult(Struct, frozen=True):
    """A session was opened; `token` is its secret. With `two_factor_pending` it opens nothing but two-factor authentication."""

    token: str
    two_factor_pending: bool


class LoginError(Struct, frozen=True):
    """Nobody was signed in: wrong, or too soon. The next attempt counts after so many seconds."""

    retry_after: float = 0


class Session(Struct, kw_only=True):
    """Who a request comes from. While two-factor authentication is due there are no roles."""

    account_id: UUID
    email: str
    name: str
    two_factor_pending: bool
    plan_manager_id: UUID | None  # the one chosen now
    roles: dict[UUID, str]  # by plan manager
    csrf: str
    plan_manager_names: dict[UUID, str]
    token_hash: bytes
    totp: bool


class Membership(Struct):
    """A role for a plan manager."""

    plan_manager_id: UUID
    name: str
    role: Role


class Account(Struct, kw_only=True):
    """An account as it is kept."""

    id: UUID
    email: str
    name: str
    password_hash: str
    totp_secret: str | None = None
    totp_counter: int = 0  # of the last code that was used
    created_at: AwareDatetime


class SessionRow(Struct):
    """What is kept of a session and its account."""

    account_id: UUID
    email: str
    name: str
    totp: bool
    two_factor_pending: bool
    chosen_plan_manager_id: UUID | None
    memberships: list[Membership]


class NewSession(Struct, kw_only=True):
    """A session to keep."""

    token_hash: bytes
    account_id: UUID
    chosen_plan_manager_id: UUID | None
    created_at: datetime
    expires_at: datetime
    address: str
    user_agent: str
    two_factor_pending: bool


class OpenSession(Struct):
    """A session in a list of one's own."""

    token_hash: bytes
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    address: str
    user_agent: str


class LoginThrottle(Struct):
    """How often signing in failed of late, when last, and from when on it may be tried again."""

    failures: int
    failed_at: datetime
    locked_until: datetime


class Member(Struct):
    """Who has a role for a plan manager."""

    id: UUID
    email: str
    name: str
    role: Role
    totp: bool
    last_seen_at: datetime | None
    created_at: datetime


class AccountWithRoles(Struct):
    """An account with its roles."""

    id: UUID
    email: str
    name: str
    totp: bool
    created_at: datetime
    memberships: list[Membership]


class RoleHolder(Struct):
    """Who holds which role."""

    account_id: UUID
    role: Role


class MemberEvent(Struct):
    """What an event tells of an account, under one plan manager."""

    id: UUID
    email: str
    name: str
    role: Role


class LoginEvent(Struct):
    """What an event tells of signing in."""

    id: UUID
    email: str
    name: str
    role: Role
    address: str
    user_agent: str


class Invitation(Struct):
    """An invitation; its token is not kept. This is what its event tells."""

    id: UUID
    email: str
    name: str | None
    role: Role
    invited_by: str
    created_at: AwareDatetime
    expires_at: AwareDatetime


class OpenInvitation(Struct):
    """An open invitation as it is found by its token; `has_account`: there is an account with the email."""

    plan_manager_id: UUID
    plan_manager_name: str
    has_account: bool
    invitation: Invitation
