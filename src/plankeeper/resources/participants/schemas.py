"""Schemas of participants: responses, request bodies, queries."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType, field

from plankeeper.core.bulk import ITEMS, MATCH, ItemId
from plankeeper.core.fields import (
    EXTENSION,
    UUID_PATTERN,
    AwareDatetime,
    CreatedAt,
    Email,
    EmailText,
    ExternalId,
    ExternalIdText,
    LongText,
    NewId,
    Query,
    SearchText,
    StateCode,
    StateFilter,
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
    MAX_ENUM_VALUES,
    SORT,
    ExternalIdFilter,
    ResourceListQuery,
)
from plankeeper.database.lists.statements import Filter, enum_filter, number_filter
from plankeeper.resources.resource import Reference

Status = Annotated[
    Literal["Active", "Inactive", "Lead"],
    component("ParticipantStatus", "`Lead` before the plan manager manages the funding, `Inactive` afterwards."),
]
Remoteness = Annotated[
    Literal["remote", "very_remote"],
    component("Remoteness", "An area for which the support catalogue has price limits of its own."),
]


class ExitReasonRef(Struct):
    """A reason for leaving."""

    id: Annotated[UUID, Meta(description="The exit reason's UUID.")]
    name: Annotated[str, Meta(description="The name to display.")]


class AccountManagerRef(Struct):
    """The account manager of a participant; both fields are null if there is none."""

    id: Annotated[UUID | None, Meta(description="The account manager's UUID, or null.")]
    name: Annotated[str | None, Meta(description="First and last name, or null.")]


class Participant(Struct):
    """A person whose funding the plan manager manages."""

    id: Annotated[UUID, Meta(description="The participant's UUID.")]
    first_name: Annotated[str | None, Meta(description="Given name, or null.")]
    middle_name: Annotated[str | None, Meta(description="One or more middle names, or null.")]
    last_name: Annotated[str | None, Meta(description="Family name, or null.")]
    preferred_name: Annotated[
        str | None, Meta(description="The name that the participant wants to be called by, or null.")
    ]
    participant_number: Annotated[
        str | None, Meta(description="The NDIS number: 9 digits, but any text is accepted. Null if it isn't known.")
    ]
    email: Annotated[EmailText | None, Meta(description="A valid email address, or null.")]
    phone_number: Annotated[str | None, Meta(description="Any text, or null.")]
    date_of_birth: Annotated[date | None, Meta(description="Date, or null.")]
    gender: Annotated[str | None, Meta(description="Any text, or null.")]
    pronouns: Annotated[str | None, Meta(description="Any text, such as `she/her`, or null.")]
    state: Annotated[
        StateText | None,
        Meta(
            description="`ACT`, `NSW`, `NT`, `QLD`, `SA`, `TAS`, `VIC`, `WA` or null. Accepted in either case,"
            " stored in upper case."
        ),
    ]
    postcode: Annotated[str | None, Meta(description="Any text, usually 4 digits, or null.")]
    address_line_1: Annotated[str | None, Meta(description="Street address, or null.")]
    address_line_2: Annotated[str | None, Meta(description="Second line of the address, or null.")]
    city: Annotated[str | None, Meta(description="Suburb, town or city, or null.")]
    service_region_id: Annotated[
        str | None,
        Meta(
            description="Any text, such as `remote` or `very_remote`, or null. It has no effect: `remoteness` selects"
            " the price limits."
        ),
    ]
    status: Annotated[Status, Meta(description="`Active` (the default), `Inactive` or `Lead`.")]
    approval_required: Annotated[bool, Meta(description="Whether this participant's invoices require approval.")]
    onboard_date: Annotated[
        date | None, Meta(description="The date on which the participant joined the plan manager, or null.")
    ]
    created_at: CreatedAt
    date_ceased: Annotated[
        date | None, Meta(description="The date on which the participant left the plan manager, or null.")
    ]
    reason_for_leaving: Annotated[str | None, Meta(description="Free text, or null.")]
    is_pace_plan: Annotated[bool, Meta(description="Whether the current plan is a PACE plan.")]
    plan_start_date: Annotated[date | None, Meta(description="The first day of the current plan, or null.")]
    plan_end_date: Annotated[date | None, Meta(description="The last day of the current plan, or null.")]
    managed_from: Annotated[
        date | None, EXTENSION, Meta(description="The first day on which the plan manager manages the plan, or null.")
    ]
    managed_until: Annotated[
        date | None,
        EXTENSION,
        Meta(
            description="The last day on which the plan manager manages the plan, or null. Not before `managed_from`."
        ),
    ]
    deceased_on: Annotated[date | None, EXTENSION, Meta(description="The date of death, or null. Not in the future.")]
    remoteness: Annotated[
        Remoteness | None,
        EXTENSION,
        Meta(
            description="Which price limits of the support catalogue apply: those for `remote` or `very_remote` areas,"
            " or null for all other areas."
        ),
    ]
    postal_statement: Annotated[bool, Meta(description="Whether statements are sent by post.")]
    participant_receives_statements: Annotated[
        bool, Meta(description="Whether statements are emailed to the participant.")
    ]
    external_id: ExternalId
    exit_reason_category: Annotated[
        ExitReasonRef | UnsetType,
        Meta(description="`id` and `name` of the reason for leaving. Absent if it isn't set."),
    ]
    exit_reason_subcategory: Annotated[
        ExitReasonRef | UnsetType,
        Meta(description="`id` and `name` of a reason within the category. Absent if it isn't set."),
    ]
    account_manager: Annotated[
        AccountManagerRef,
        Meta(
            description="`id` and `name` of the account manager who looks after the participant; both are null if"
            " there is none."
        ),
    ]
    updated_at: UpdatedAt


class ParticipantUpdate(Struct, forbid_unknown_fields=True, kw_only=True):
    """A new participant, or the changes of one. Omitted fields keep their values; null clears a value."""

    first_name: Text255 | None | UnsetType = UNSET
    last_name: Text255 | None | UnsetType = UNSET
    participant_number: Text50 | None | UnsetType = UNSET
    email: Email | None | UnsetType = UNSET
    state: StateCode | None | UnsetType = UNSET
    middle_name: Annotated[Text255 | None | UnsetType, EXTENSION] = UNSET
    preferred_name: Annotated[Text255 | None | UnsetType, EXTENSION] = UNSET
    phone_number: Annotated[Text50 | None | UnsetType, EXTENSION] = UNSET
    date_of_birth: Annotated[date | None | UnsetType, EXTENSION] = UNSET
    gender: Annotated[Text255 | None | UnsetType, EXTENSION] = UNSET
    pronouns: Annotated[Text255 | None | UnsetType, EXTENSION] = UNSET
    postcode: Annotated[Text20 | None | UnsetType, EXTENSION] = UNSET
    address_line_1: Annotated[Text500 | None | UnsetType, EXTENSION] = UNSET
    address_line_2: Annotated[Text500 | None | UnsetType, EXTENSION] = UNSET
    city: Annotated[Text255 | None | UnsetType, EXTENSION] = UNSET
    service_region_id: Annotated[Text255 | None | UnsetType, EXTENSION] = UNSET
    status: Annotated[Status | UnsetType, EXTENSION] = UNSET
    approval_required: Annotated[bool | UnsetType, EXTENSION] = UNSET
    onboard_date: Annotated[date | None | UnsetType, EXTENSION] = UNSET
    date_ceased: Annotated[date | None | UnsetType, EXTENSION] = UNSET
    reason_for_leaving: Annotated[LongText | None | UnsetType, EXTENSION] = UNSET
    exit_reason_category_id: Annotated[
        UuidText | None | UnsetType,
        EXTENSION,
        Meta(description="The id of one of the plan manager's exit reasons, or null."),
    ] = UNSET
    exit_reason_subcategory_id: Annotated[
        UuidText | None | UnsetType,
        EXTENSION,
        Meta(description="The id of an exit reason within the category, or null."),
    ] = UNSET
    account_manager_id: Annotated[
        UuidText | None | UnsetType,
        EXTENSION,
        Meta(description="The id of an account manager of `GET /account-managers`, or null."),
    ] = UNSET
    is_pace_plan: Annotated[bool | UnsetType, EXTENSION] = UNSET
    plan_start_date: Annotated[date | None | UnsetType, EXTENSION] = UNSET
    plan_end_date: Annotated[date | None | UnsetType, EXTENSION] = UNSET
    managed_from: Annotated[date | None | UnsetType, EXTENSION] = UNSET
    managed_until: Annotated[date | None | UnsetType, EXTENSION] = UNSET
    deceased_on: Annotated[date | None | UnsetType, EXTENSION] = UNSET
    remoteness: Annotated[Remoteness | None | UnsetType, EXTENSION] = UNSET
    postal_statement: Annotated[bool | UnsetType, EXTENSION] = UNSET
    participant_receives_statements: Annotated[bool | UnsetType, EXTENSION] = UNSET
    external_id: Annotated[ExternalIdText | None | UnsetType, EXTENSION] = UNSET


class ParticipantBulkItem(ParticipantUpdate):
    """A participant to create or, with an id, to update."""

    id: ItemId = UNSET


class ParticipantBulk(Struct, forbid_unknown_fields=True, kw_only=True):
    """The participants to create and to update."""

    items: Annotated[list[ParticipantBulkItem], ITEMS]


ParticipantMatch = Annotated[
    Literal["external_id", "participant_number"],
    component("ParticipantMatch", "The fields by which participants can be found."),
]


class ParticipantBulkQuery(Query, frozen=True):
    """How the items find their participants."""

    match: Annotated[ParticipantMatch | UnsetType, EXTENSION, MATCH] = UNSET


class ParticipantImport(ParticipantUpdate):
    """A record of an import."""

    id: NewId | UnsetType = UNSET
    created_at: AwareDatetime | UnsetType = UNSET


ParticipantSort = Annotated[
    Literal["id", "-id", "updated_at", "-updated_at", "last_name", "-last_name", "plan_end_date", "-plan_end_date"],
    component("ParticipantSort", "The order of the list of participants; `-` reverses it."),
]


NO_ACCOUNT_MANAGER = "none"
_AccountManagerFilter = Annotated[
    str,
    Meta(
        pattern=f"^({NO_ACCOUNT_MANAGER}|{UUID_PATTERN})$",
        extra={"message": f"must be a UUID with hyphens, or {NO_ACCOUNT_MANAGER}"},
    ),
]


class ParticipantListQuery(ResourceListQuery, frozen=True):
    """Filters of the list, combined with AND."""

    sort: Annotated[ParticipantSort | UnsetType, EXTENSION, SORT] = UNSET
    q: Annotated[
        SearchText | UnsetType,
        EXTENSION,
        Meta(
            description="Returns items with this text in a name, the participant number or the phone number, or at the"
            " beginning of the email, ignoring accents, case and punctuation."
        ),
    ] = UNSET
    status: Annotated[
        Annotated[list[Status], Meta(max_length=MAX_ENUM_VALUES)] | UnsetType,
        Meta(
            description="Returns items with one of these statuses, separated by commas: `Active`, `Inactive` or `Lead`."
        ),
        enum_filter("status", label="Status"),
    ] = UNSET
    state: Annotated[
        Annotated[list[StateFilter], Meta(max_length=MAX_ENUM_VALUES)] | UnsetType,
        Meta(
            description="Returns items in one of these states, separated by commas: `nsw`, `qld`, `vic`, `sa`, `wa`,"
            " `tas`, `act`, `nt`, in lower or upper case."
        ),
        enum_filter("state", label="State"),
    ] = UNSET
    account_manager: Annotated[
        Annotated[list[_AccountManagerFilter], Meta(max_length=100)] | UnsetType,
        Meta(
            description="Returns items of any of these account managers: up to 100 ids, separated by commas; `none`"
            " stands for those without an account manager."
        ),
        enum_filter("account_manager_id", "uuid", label="Account manager"),
    ] = UNSET
    participant_number: Annotated[
        Text255 | UnsetType,
        Meta(description="Returns items with this number; 9 digits match with and without spaces and hyphens."),
        number_filter("participant_number", "9"),
    ] = UNSET
    email: Annotated[
        Text254 | UnsetType,
        EXTENSION,
        Meta(description="Returns items with this email, ignoring case."),
        Filter("lower(email) = lower({})"),
    ] = UNSET
    external_id: ExternalIdFilter = UNSET
    plan_end_date_from: Annotated[
        date | UnsetType,
        EXTENSION,
        Meta(description="Returns items whose current plan ends on this date or later."),
        Filter("plan_end_date >= {}", label="Plan ends"),
    ] = UNSET
    plan_end_date_to: Annotated[
        date | UnsetType,
        EXTENSION,
        Meta(description="Returns items whose current plan ends on this date or earlier."),
        Filter("plan_end_date <= {}", label="Plan ends"),
    ] = UNSET


class ParticipantRow(Struct):
    """A stored participant, with references as ids. Import and export use the same shape."""

    id: UUID
    first_name: str | None = None
    middle_name: str | None = None
    last_name: str | None = None
    preferred_name: str | None = None
    participant_number: str | None = None
    email: str | None = None
    phone_number: str | None = None
    date_of_birth: date | None = None
    gender: str | None = None
    pronouns: str | None = None
    state: str | None = None
    postcode: str | None = None
    address_line_1: str | None = None
    address_line_2: str | None = None
    city: str | None = None
    service_region_id: str | None = None
    status: Status = "Active"
    approval_required: bool = False
    onboard_date: date | None = None
    created_at: AwareDatetime = field(default_factory=lambda: datetime.now(UTC))
    date_ceased: date | None = None
    reason_for_leaving: str | None = None
    exit_reason_category_id: UUID | None = None
    exit_reason_subcategory_id: UUID | None = None
    account_manager_id: UUID | None = None
    is_pace_plan: bool = False
    plan_start_date: date | None = None
    plan_end_date: date | None = None
    managed_from: date | None = None
    managed_until: date | None = None
    deceased_on: date | None = None
    remoteness: Remoteness | None = None
    postal_statement: bool = False
    participant_receives_statements: bool = False
    external_id: str | None = None


class StoredParticipant(ParticipantRow):
    """A row with the time of its last change."""

    updated_at: AwareDatetime = field(default_factory=lambda: datetime.now(UTC))


class DuePlanChange(Struct):
    """A participant whose next plan has become the current one."""

    plan_manager_id: UUID
    id: UUID


def with_references(row: StoredParticipant, names: Mapping[str, str]) -> Participant:
    """A row as the API returns it; `names` maps the ids of its references to their names.

    The name of an unknown reference is empty: the foreign key rejects the row.
    """
    values = {name: getattr(row, name) for name in ParticipantRow.__struct_fields__ if name not in _COLUMNS}
    manager, category, subcategory = (getattr(row, name) for name in _COLUMNS)
    return Participant(
        **values,
        account_manager=AccountManagerRef(manager, names.get(str(manager))),
        exit_reason_category=ExitReasonRef(category, names.get(str(category), "")) if category else UNSET,
        exit_reason_subcategory=ExitReasonRef(subcategory, names.get(str(subcategory), "")) if subcategory else UNSET,
        updated_at=row.updated_at,
    )


# The fields of a participant that refer to other records, with those of its row.
REFERENCES = {
    "account_manager": Reference("account_manager_id", "account manager"),
    "exit_reason_category": Reference("exit_reason_category_id", "exit reason"),
    "exit_reason_subcategory": Reference("exit_reason_subcategory_id", "specific exit reason"),
}
_COLUMNS = tuple(each.column for each in REFERENCES.values())


def without_references(participant: Participant) -> StoredParticipant:
    """The row of a participant, with its references as ids."""
    names = (name for name in StoredParticipant.__struct_fields__ if name not in _COLUMNS)
    values: dict[str, Any] = {name: getattr(participant, name) for name in names}
    for name, reference in zip(_COLUMNS, _references(participant), strict=True):
        values[name] = reference.id if reference else None
    return StoredParticipant(**values)


def reference_names(participant: Participant) -> dict[str, str]:
    """The names of a participant's references, by id."""
    return {str(each.id): each.name for each in _references(participant) if each and each.name is not None}


def _references(participant: Participant) -> tuple[AccountManagerRef | ExitReasonRef | None, ...]:
    reasons = (participant.exit_reason_category, participant.exit_reason_subcategory)
    return participant.account_manager, *(each or None for each in reasons)


def reference_ids(*rows: ParticipantRow) -> list[UUID]:
    """The ids of all references of the rows."""
    ids: set[UUID | None] = {getattr(row, name) for row in rows for name in _COLUMNS}
    return [each for each in ids if each]


class NamedReference(Struct):
    """An id and its name."""

    id: UUID
    name: str
