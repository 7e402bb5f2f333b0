"""Stored participants: rows with references as ids, and participants with the names of the references."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from uuid import UUID

from msgspec import UNSET, Struct, field

from plankeeper.core.fields import AwareDatetime
from plankeeper.participants.schemas import AccountManagerRef, ExitReasonRef, Participant, Status


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
    postal_statement: bool = False
    participant_receives_statements: bool = False
    external_id: str | None = None


class ParticipantVersion(ParticipantRow):
    """A row with the time of its last change."""

    updated_at: AwareDatetime = field(default_factory=lambda: datetime.now(UTC))


class UnlockedParticipant(ParticipantVersion):
    """A row as read without a lock, with the names of its references.

    `xmin` is the number of the transaction that wrote the row.
    """

    exit_reason_category_name: str | None = None
    exit_reason_subcategory_name: str | None = None
    account_manager_name: str | None = None
    xmin: int = 0

    @property
    def reference_names(self) -> dict[str, str]:
        """The names by id, for a participant that is as it was read."""
        names = {
            self.exit_reason_category_id: self.exit_reason_category_name,
            self.exit_reason_subcategory_id: self.exit_reason_subcategory_name,
            self.account_manager_id: self.account_manager_name,
        }
        return {str(id_): name for id_, name in names.items() if name is not None}


def with_references(row: ParticipantVersion, names: Mapping[str, str]) -> Participant:
    """A row as the API returns it; `names` maps the ids of its references to their names.

    The name of an unknown reference is empty: the foreign key rejects the row.
    """
    values = {name: getattr(row, name) for name in ParticipantRow.__struct_fields__ if name not in _REFERENCES}
    manager, category, subcategory = (getattr(row, name) for name in _REFERENCES)
    return Participant(
        **values,
        account_manager=AccountManagerRef(manager, names.get(str(manager))),
        exit_reason_category=ExitReasonRef(category, names.get(str(category), "")) if category else UNSET,
        exit_reason_subcategory=ExitReasonRef(subcategory, names.get(str(subcategory), "")) if subcategory else UNSET,
        updated_at=row.updated_at,
    )


_REFERENCES = ("account_manager_id", "exit_reason_category_id", "exit_reason_subcategory_id")


def reference_ids(*rows: ParticipantRow) -> list[UUID]:
    """The ids of all references of the rows."""
    ids: set[UUID | None] = {getattr(row, name) for row in rows for name in _REFERENCES}
    return [each for each in ids if each]


class NamedReference(Struct):
    """An id and its name."""

    id: UUID
    name: str


class ParticipantIdentifier(Struct):
    """The number and the id of a participant."""

    participant_number: str
    id: UUID
