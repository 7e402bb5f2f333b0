"""Schemas of team members."""

from typing import Annotated, Literal, cast
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType, field

from plankeeper.core.fields import (
    EXTENSION,
    STATE,
    AwareDatetime,
    Email,
    ExternalId,
    ExternalIdText,
    LongText,
    NewId,
    StateText,
    Text20,
    Text50,
    Text254,
    Text255,
    Text500,
    UpdatedAt,
    UuidText,
    component,
)
from plankeeper.core.lists import (
    DefaultSort,
    ExternalIdFilter,
    OpaqueListQuery,
    ResourceListQuery,
)
from plankeeper.resources.team_members.rules import NO_ACCESS, PermissionSlug

UpperState = Annotated[Literal["ACT", "NSW", "NT", "QLD", "SA", "TAS", "VIC", "WA"], STATE]
Priority = Annotated[
    Literal[1, 2], component("ContactPriority", "`1` is the primary contact of a participant, `2` the secondary one.")
]
PermissionName = Annotated[
    PermissionSlug, component("PermissionName", "What a team member can see and do. `no_access` excludes the others.")
]


def _default_permissions() -> list[PermissionSlug]:
    return [NO_ACCESS]


class Permission(Struct):
    """Something that a team member can see or do."""

    id: Annotated[UUID, Meta(description="UUID, the same on every server.")]
    name: Annotated[
        PermissionName,
        Meta(
            description="The name to use in requests: `view_budget`, `view_invoices`, `approve_invoices`,"
            " `email_statements`, `view_documents` or `no_access`."
        ),
    ]
    label: Annotated[str, Meta(description="The name to display.")]
    order: Annotated[int, Meta(description="Permissions are displayed and returned in ascending order of this number.")]


class TeamMember(Struct):
    """A contact of a participant."""

    id: Annotated[
        UUID, Meta(description="`user_id` for a member with an email, `pm_profile_id` for a member without one.")
    ]
    user_id: Annotated[
        UUID,
        Meta(description="The user's UUID. A person with an email is the same user on all teams of a plan manager."),
    ]
    pm_profile_id: Annotated[
        UUID | None,
        Meta(
            description="The UUID of the profile of a member without an email. Otherwise null, unless an import set it."
        ),
    ]
    participant_id: Annotated[UUID, Meta(description="The participant's UUID.")]
    first_name: Annotated[str | None, Meta(description="Given name, or null.")]
    last_name: Annotated[str | None, Meta(description="Family name, or null.")]
    email: Annotated[
        str | None,
        Meta(description="Null for a member without an email. It can only be set when the member is created."),
    ]
    role: Annotated[str | None, Meta(description="Any text, such as `Parent`, or null.")]
    phone_number: Annotated[str | None, Meta(description="Any text, or null.")]
    note: Annotated[str | None, Meta(description="Free text, or null.")]
    secondary_email: Annotated[str | None, Meta(description="Any text, or null.")]
    secondary_phone_number: Annotated[str | None, Meta(description="Any text, or null.")]
    address_line_1: Annotated[str | None, Meta(description="Street address, or null.")]
    city: Annotated[str | None, Meta(description="Suburb, town or city, or null.")]
    state: Annotated[
        StateText | None,
        Meta(description="`ACT`, `NSW`, `NT`, `QLD`, `SA`, `TAS`, `VIC`, `WA` or null. Accepted in upper case only."),
    ]
    postcode: Annotated[str | None, Meta(description="Any text, usually 4 digits, or null.")]
    contact_priority: Annotated[
        Priority | None,
        Meta(
            description="`1` for the primary contact, `2` for the secondary contact, otherwise null. Only one member"
            " of a team can have each."
        ),
    ]
    permissions: Annotated[
        list[Permission],
        Meta(description="At least one. An update replaces all of them; an empty list means `no_access`."),
    ]
    external_id: ExternalId
    updated_at: UpdatedAt


class PermissionByName(Struct, kw_only=True):
    """A permission as responses have it. Only its name counts."""

    name: PermissionName


class TeamMemberChange(Struct, forbid_unknown_fields=True, kw_only=True):
    """The fields that can change. Omitted fields keep their values; null clears a value."""

    first_name: Text255 | None | UnsetType = UNSET
    last_name: Text255 | None | UnsetType = UNSET
    role: Text255 | None | UnsetType = UNSET
    permissions: list[PermissionName | PermissionByName] | UnsetType = UNSET
    phone_number: Text50 | None | UnsetType = UNSET
    note: LongText | None | UnsetType = UNSET
    secondary_email: Text255 | None | UnsetType = UNSET
    secondary_phone_number: Text50 | None | UnsetType = UNSET
    address_line_1: Text500 | None | UnsetType = UNSET
    city: Text255 | None | UnsetType = UNSET
    postcode: Text20 | None | UnsetType = UNSET
    state: UpperState | None | UnsetType = UNSET
    contact_priority: Priority | None | UnsetType = UNSET
    external_id: Annotated[ExternalIdText | None | UnsetType, EXTENSION] = UNSET

    def __post_init__(self) -> None:
        if self.permissions is not UNSET:
            self.permissions = [each.name if isinstance(each, PermissionByName) else each for each in self.permissions]  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def permission_names(self) -> list[PermissionSlug] | UnsetType:
        """The permissions by name, also those that the client has sent as objects."""
        return cast("list[PermissionSlug] | UnsetType", self.permissions)


# The same in both bodies, so that they share a schema.
_EMAIL = Meta(
    description="Null for a member without an email. It can only be set when the member is created. An update can"
    " contain it if it is the member's own, in either case."
)


class TeamMemberUpdate(TeamMemberChange):
    """The changes of a team member. Omitted fields keep their values; null clears a value."""

    email: Annotated[
        Annotated[str, Meta(extra_json_schema={"format": "email", "maxLength": 254})] | None | UnsetType,
        EXTENSION,
        _EMAIL,
    ] = UNSET


class TeamMemberCreate(TeamMemberChange):
    """A new team member. At least one of `first_name`, `last_name` and `email` is required."""

    email: Annotated[Email | None | UnsetType, EXTENSION, _EMAIL] = UNSET


class TeamMemberRow(Struct, kw_only=True):
    """A row of the table with the email and the names of the permissions; also the format of exports."""

    participant_id: UUID
    id: UUID
    user_id: UUID
    pm_profile_id: UUID | None = None
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
    external_id: str | None = None


class TeamMemberVersion(TeamMemberRow, kw_only=True):
    """A row with the time of its last change."""

    updated_at: AwareDatetime


class TeamMemberImport(TeamMemberCreate):
    """A record of an import. It identifies the participant by id or by number."""

    participant_id: UuidText | UnsetType = UNSET
    participant_number: Text50 | UnsetType = UNSET
    id: NewId | UnsetType = UNSET
    user_id: NewId | UnsetType = UNSET
    pm_profile_id: NewId | None | UnsetType = UNSET


class AllTeamMembersQuery(OpaqueListQuery, frozen=True):
    """Filters of the list of all teams, combined with AND."""

    participant_id: Annotated[
        Annotated[list[UuidText], Meta(max_length=100)] | UnsetType,
        EXTENSION,
        Meta(description="Returns items of these participants: up to 100 ids, separated by commas."),
    ] = UNSET
    email: Annotated[
        Text254 | UnsetType, EXTENSION, Meta(description="Returns items with this email, ignoring case.")
    ] = UNSET
    external_id: ExternalIdFilter = UNSET


class TeamMemberListQuery(ResourceListQuery, frozen=True):
    """The query of the list."""

    sort: DefaultSort = UNSET
    external_id: ExternalIdFilter = UNSET
