"""Schemas of team members."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType, field

from plankeeper.http.pagination import UuidListQuery
from plankeeper.http.schemas import (
    STATE,
    Email,
    LongText,
    NewId,
    StateText,
    Text20,
    Text50,
    Text255,
    Text500,
    UuidText,
    component,
)
from plankeeper.team_members.rules import NO_ACCESS, PermissionSlug

UpperState = Annotated[Literal["ACT", "NSW", "NT", "QLD", "SA", "TAS", "VIC", "WA"], STATE]
Priority = Annotated[
    Literal[1, 2], component("ContactPriority", "`1` is the primary contact of a participant, `2` the secondary one.")
]
PermissionName = Annotated[
    PermissionSlug, component("PermissionName", "What a team member can see and do. `no_access` excludes the others.")
]
PriorityField = Annotated[
    Priority | None | UnsetType, Meta(description="1: primary contact, 2: secondary contact; null clears.")
]


def _default_permissions() -> list[PermissionSlug]:
    return [NO_ACCESS]


class Permission(Struct):
    """A permission of a team member."""

    id: UUID
    name: PermissionName
    label: str
    order: int


class TeamMember(Struct):
    """A contact on a participant's team."""

    id: Annotated[UUID, Meta(description="Equals user_id for a member with an email, pm_profile_id for one without.")]
    user_id: UUID
    pm_profile_id: UUID | None
    participant_id: UUID
    first_name: str | None
    last_name: str | None
    email: str | None
    role: str | None
    phone_number: str | None
    note: str | None
    secondary_email: str | None
    secondary_phone_number: str | None
    address_line_1: str | None
    city: str | None
    state: StateText | None
    postcode: str | None
    contact_priority: Priority | None
    permissions: list[Permission]


class TeamMemberUpdate(Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of an update. Omitted members keep their values; null clears a value. The email cannot be changed."""

    first_name: Text255 | None | UnsetType = UNSET
    last_name: Text255 | None | UnsetType = UNSET
    role: Text255 | None | UnsetType = UNSET
    permissions: Annotated[
        list[PermissionName] | UnsetType, Meta(description="Replaces all permissions; an empty list means no access.")
    ] = UNSET
    phone_number: Text50 | None | UnsetType = UNSET
    note: LongText | None | UnsetType = UNSET
    secondary_email: Text255 | None | UnsetType = UNSET
    secondary_phone_number: Text50 | None | UnsetType = UNSET
    address_line_1: Text500 | None | UnsetType = UNSET
    city: Text255 | None | UnsetType = UNSET
    postcode: Text20 | None | UnsetType = UNSET
    state: UpperState | None | UnsetType = UNSET
    contact_priority: PriorityField = UNSET


class TeamMemberCreate(TeamMemberUpdate):
    """The body of a create: at least one of first_name, last_name and email."""

    email: Email | None | UnsetType = UNSET


class TeamMemberRow(Struct, kw_only=True):
    """A row of the table with the email and the names of the permissions; also the format of exports."""

    participant_id: UUID | str
    id: UUID | str
    user_id: UUID | str
    pm_profile_id: UUID | str | None = None
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    role: str | None = None
    phone_number: str | None = None
    note: str | None = None
    secondary_email: str | None = None
    secondary_phone_number: str | None = None
    address_line_1: str | None = None
    city: str | None = None
    state: str | None = None
    postcode: str | None = None
    contact_priority: int | None = None
    permissions: list[PermissionSlug] = field(default_factory=_default_permissions)


class TeamMemberImport(TeamMemberCreate):
    """A record of an import. It identifies the participant by id or by number."""

    participant_id: UuidText | UnsetType = UNSET
    participant_number: Text50 | UnsetType = UNSET
    id: NewId | UnsetType = UNSET
    user_id: NewId | UnsetType = UNSET
    pm_profile_id: NewId | None | UnsetType = UNSET


class TeamMemberListQuery(UuidListQuery):
    """The query of the list, which has no filters."""
