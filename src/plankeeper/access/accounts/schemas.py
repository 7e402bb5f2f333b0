"""Accounts, members, sessions and invitations: database rows, events and results."""

from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType

from plankeeper.access.api_keys.schemas import ApiKey
from plankeeper.access.policy import Permission
from plankeeper.core.fields import AwareDatetime

Role = Literal["owner", "manager", "viewer"]
SignInMethod = Literal["password", "single_sign_on"]


class SessionMethods(NamedTuple):
    """The methods with which a session was signed in: the account's password, and the providers with these ids."""

    with_password: bool = True
    provider_ids: tuple[UUID, ...] = ()


class RoleDetails(Struct, frozen=True):
    """What a role allows beyond its name: the permissions of a manager, and the limits of a viewer.

    A limited viewer sees only the participants of the account manager `participants_of`, and what belongs to them.
    """

    permissions: list[Permission] = []
    participants_of: UUID | None = None
    can_download: bool = True  # CSV files

    def for_role(self, role: Role) -> "RoleDetails":
        """The details that a role can have."""
        if role == "manager":
            return RoleDetails(self.permissions)
        return RoleDetails([], self.participants_of, self.can_download) if role == "viewer" else RoleDetails()


NO_DETAILS = RoleDetails()


class LoginResult(Struct, frozen=True):
    """A new session. While `two_factor_pending` is true, it gives access to two-factor authentication only.

    A complete session comes with the new token of the device.
    """

    token: str
    two_factor_pending: bool
    device_token: str | None = None
    two_factor_required: bool = False  # whether a plan manager requires two-factor authentication, which is off


class Session(Struct, kw_only=True):
    """The session of a request. It has no roles while `two_factor_pending` is true.

    The last three fields are names of plan managers by id. They are not among the roles until the person meets the
    requirement.
    """

    account_id: UUID
    email: str
    name: str
    two_factor_pending: bool
    plan_manager_id: UUID | None  # the current one
    roles: dict[UUID, str]  # by plan manager id
    role_details: dict[UUID, RoleDetails]  # by plan manager id
    csrf: str
    plan_manager_names: dict[UUID, str]
    token_hash: bytes
    totp: bool
    has_password: bool
    with_password: bool  # whether the session was signed in with the account's password
    single_sign_on_ids: list[UUID]  # the plan managers whose provider the person signed in at
    two_factor_required_by: dict[UUID, str]  # while two-factor authentication is off
    single_sign_on_required_by: dict[UUID, str]
    password_required_by: dict[UUID, str]  # a provider signs in only to its own plan manager

    @property
    def reaches_whole_account(self) -> bool:
        """Whether the session may see the account's other sessions and plan managers.

        A session of only a provider may not, unless the account has no other sign-in method.
        """
        has_others = self.has_password or self.single_sign_on_required_by or self.password_required_by
        return self.with_password or not has_others


class WithRoleDetails(Struct, kw_only=True):
    """A role with what it allows beyond its name: the fields of RoleDetails, after those of the struct."""

    permissions: list[Permission] = []
    participants_of: UUID | None = None
    can_download: bool = True

    @property
    def details(self) -> RoleDetails:
        return RoleDetails(self.permissions, self.participants_of, self.can_download)


class Membership(WithRoleDetails):
    """A role for a plan manager."""

    plan_manager_id: UUID
    name: str
    role: Role
    requires_two_factor: bool = False
    last_seen_at: datetime | None = None  # when the account last used the console for the plan manager


class SessionMembership(WithRoleDetails):
    """A role for a plan manager, with the plan manager's requirements for sessions."""

    plan_manager_id: UUID
    name: str
    role: Role
    requires_two_factor: bool
    requires_single_sign_on: bool
    has_single_sign_on: bool  # whether the session was signed in at the plan manager's provider
    last_seen_at: datetime | None


class Account(Struct, kw_only=True):
    """A row of `accounts`."""

    id: UUID
    email: str
    name: str
    password_hash: str
    totp_secret: str | None = None  # encrypted, with the id as the associated data
    totp_counter: int = 0  # counter of the last used code
    created_at: AwareDatetime


class SessionRow(Struct):
    """A session with its account and the account's roles."""

    account_id: UUID
    email: str
    name: str
    totp: bool
    has_password: bool
    two_factor_pending: bool
    with_password: bool  # whether the session was signed in with the account's password
    chosen_plan_manager_id: UUID | None
    last_seen_at: datetime
    memberships: list[SessionMembership]


class SessionClient(Struct):
    """The client of a session, and how it was signed in to a plan manager."""

    address: str
    user_agent: str
    method: SignInMethod


class NewSession(Struct, kw_only=True):
    """A session to insert."""

    token_hash: bytes
    account_id: UUID
    chosen_plan_manager_id: UUID | None
    created_at: datetime
    expires_at: datetime
    address: str
    user_agent: str
    two_factor_pending: bool
    with_password: bool = True
    provider_ids: list[UUID] = []


class OpenSession(Struct):
    """A session in the list that its account sees."""

    token_hash: bytes
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    address: str
    user_agent: str


class LoginThrottle(Struct):
    """Recent failures of a counter, and the time from which the next attempt is allowed."""

    failures: int
    failed_at: datetime
    locked_until: datetime


class Member(WithRoleDetails):
    """An account with a role for a plan manager."""

    id: UUID
    email: str
    name: str
    role: Role
    totp: bool
    last_seen_at: datetime | None
    created_at: datetime


class AccountWithRoles(Struct):
    """An account with all its roles."""

    id: UUID
    email: str
    name: str
    totp: bool
    created_at: datetime
    memberships: list[Membership]


class HeldRole(Struct):
    """A plan manager's id and an account's role for it."""

    plan_manager_id: UUID
    role: Role
    permissions: list[Permission] = []


class RoleHolder(Struct):
    """An account id and its role for a plan manager."""

    account_id: UUID
    role: Role


class MemberEvent(WithRoleDetails):
    """The data of an event about a member."""

    id: UUID
    email: str
    name: str
    role: Role


class LinkedAccountManager(Struct):
    """The account manager of an account. `is_chosen`: an owner chose it, otherwise it has the account's email."""

    account_id: UUID
    id: UUID
    name: str
    is_chosen: bool


class AccountManagerLinkEvent(MemberEvent, kw_only=True):
    """The data of an event about the account manager that a member is linked to; null for the one with its email."""

    account_manager_id: UUID | None = None


class LoginEvent(Struct):
    """The data of an event about a sign-in."""

    id: UUID
    email: str
    name: str
    role: Role
    address: str
    user_agent: str
    method: SignInMethod | UnsetType = UNSET  # of `account.signed_in`


class Invitation(WithRoleDetails):
    """An invitation, without its token. Also the data of its events."""

    id: UUID
    email: str
    name: str | None
    role: Role
    invited_by: str
    invited_by_account_id: UUID | None  # None: invited by the operator
    created_at: AwareDatetime
    expires_at: AwareDatetime


class OpenInvitation(Struct):
    """An open invitation. `has_account` says whether the email has an account."""

    plan_manager_id: UUID
    plan_manager_name: str
    has_account: bool
    invitation: Invitation


class CreatedAccess(Struct):
    """The active API keys and open invitations that a member created for a plan manager."""

    keys: list[ApiKey]
    invitations: list[Invitation]


class MailedInvitation(Struct):
    """An invitation as its mail describes it."""

    email: str
    role: str
    invited_by: str
    expires_at: datetime
    plan_manager_name: str
