"""Schemas of participants: basic and full responses, request bodies, queries and stored rows."""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.http.pagination import UuidListQuery
from plankeeper.http.schemas import (
    EXTENSION,
    AwareDatetime,
    Email,
    EmailText,
    LongText,
    NewId,
    Query,
    StateCode,
    StateFilter,
    StateText,
    Text20,
    Text50,
    Text254,
    Text255,
    Text500,
    UuidText,
    component,
)

Status = Annotated[
    Literal["Active", "Inactive", "Lead"],
    component("ParticipantStatus", "`Lead` before the plan manager manages the funding, `Inactive` afterwards."),
]
View = Annotated[Literal["full"], component("View", "A representation with more members than the default one.")]


class ParticipantSummary(Struct):
    """A participant in the basic shape of get, create and update."""

    id: UUID
    first_name: str | None
    last_name: str | None
    participant_number: str | None
    email: EmailText | None
    state: StateText | None


class ExitReasonRef(Struct):
    """A reason for leaving."""

    id: UUID
    name: str


class AccountManagerRef(Struct):
    """The account manager of a participant; both members are null if there is none."""

    id: UUID | None
    name: str | None


class Participant(Struct):
    """A participant in the full shape of the list."""

    id: UUID
    first_name: str | None
    middle_name: str | None
    last_name: str | None
    preferred_name: str | None
    participant_number: str | None
    email: EmailText | None
    phone_number: str | None
    date_of_birth: date | None
    gender: str | None
    pronouns: str | None
    state: StateText | None
    postcode: str | None
    address_line_1: str | None
    address_line_2: str | None
    city: str | None
    service_region_id: Annotated[str | None, Meta(description="`remote` or `very_remote`, if known.")]
    status: Status
    approval_required: bool
    onboard_date: date | None
    created_at: AwareDatetime
    date_ceased: date | None
    reason_for_leaving: str | None
    is_pace_plan: bool
    plan_start_date: date | None
    plan_end_date: date | None
    postal_statement: bool
    participant_receives_statements: bool
    exit_reason_category: ExitReasonRef | UnsetType
    exit_reason_subcategory: ExitReasonRef | UnsetType
    account_manager: AccountManagerRef


class ParticipantSummaryUpdate(Struct, forbid_unknown_fields=True, kw_only=True):
    """The writable members in the contract. Absent members keep their value; null clears."""

    first_name: Text255 | None | UnsetType = UNSET
    last_name: Text255 | None | UnsetType = UNSET
    participant_number: Annotated[
        Text50 | None | UnsetType, Meta(description="The participant's number in the scheme.")
    ] = UNSET
    email: Email | None | UnsetType = UNSET
    state: StateCode | None | UnsetType = UNSET


class ParticipantUpdate(ParticipantSummaryUpdate):
    """The body of a create or an update. Absent members keep their value; null clears."""

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
    exit_reason_category_id: Annotated[UuidText | None | UnsetType, EXTENSION] = UNSET
    exit_reason_subcategory_id: Annotated[UuidText | None | UnsetType, EXTENSION] = UNSET
    account_manager_id: Annotated[UuidText | None | UnsetType, EXTENSION] = UNSET
    is_pace_plan: Annotated[bool | UnsetType, EXTENSION] = UNSET
    plan_start_date: Annotated[date | None | UnsetType, EXTENSION] = UNSET
    plan_end_date: Annotated[date | None | UnsetType, EXTENSION] = UNSET
    postal_statement: Annotated[bool | UnsetType, EXTENSION] = UNSET
    participant_receives_statements: Annotated[bool | UnsetType, EXTENSION] = UNSET


class ParticipantRow(Struct, kw_only=True):
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
    created_at: AwareDatetime
    date_ceased: date | None = None
    reason_for_leaving: str | None = None
    exit_reason_category_id: UUID | str | None = None
    exit_reason_subcategory_id: UUID | str | None = None
    account_manager_id: UUID | str | None = None
    is_pace_plan: bool = False
    plan_start_date: date | None = None
    plan_end_date: date | None = None
    postal_statement: bool = False
    participant_receives_statements: bool = False


def with_references(row: ParticipantRow, names: Mapping[str, str]) -> Participant:
    """A row in the full shape; `names` maps the ids of its references to their names."""
    values = {name: getattr(row, name) for name in row.__struct_fields__ if name not in _REFERENCES}
    manager, category, subcategory = (_uuid(getattr(row, name)) for name in _REFERENCES)
    return Participant(
        **values,
        account_manager=AccountManagerRef(manager, names.get(str(manager))),
        exit_reason_category=ExitReasonRef(category, names[str(category)]) if category else UNSET,
        exit_reason_subcategory=ExitReasonRef(subcategory, names[str(subcategory)]) if subcategory else UNSET,
    )


_REFERENCES = ("account_manager_id", "exit_reason_category_id", "exit_reason_subcategory_id")


def reference_ids(*rows: ParticipantRow) -> list[UUID]:
    """The ids of all references of the rows."""
    ids = {_uuid(getattr(row, name)) for row in rows for name in _REFERENCES}
    return [each for each in ids if each]


def _uuid(value: UUID | str | None) -> UUID | None:
    return UUID(value) if isinstance(value, str) else value


class ParticipantImport(ParticipantUpdate):
    """A record of an import."""

    id: NewId | UnsetType = UNSET
    created_at: AwareDatetime | UnsetType = UNSET


class NamedReference(Struct):
    """An id and its name."""

    id: UUID
    name: str


class ParticipantIdentifier(Struct):
    """The number and the id of a participant."""

    participant_number: str
    id: UUID


class ViewQuery(Query):
    """Selects the shape of the response."""

    view: Annotated[View | UnsetType, EXTENSION, Meta(description="`full` returns the shape of the list.")] = UNSET


class ParticipantListQuery(UuidListQuery):
    """Filters of the list, combined with AND."""

    status: Status | UnsetType = UNSET
    state: Annotated[StateFilter | UnsetType, Meta(description="Upper case is accepted, too.")] = UNSET
    account_manager: Annotated[
        Annotated[list[UuidText], Meta(max_length=100)] | UnsetType,
        Meta(description="Ids of account managers, separated by commas; any of them matches."),
    ] = UNSET
    participant_number: Text255 | UnsetType = UNSET
    email: Annotated[Text254 | UnsetType, EXTENSION, Meta(description="Exact match, ignoring case.")] = UNSET
    updated_since: Annotated[
        AwareDatetime | UnsetType,
        EXTENSION,
        Meta(description="Changed at or after this time."),
    ] = UNSET
