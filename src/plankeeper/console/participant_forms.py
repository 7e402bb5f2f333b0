"""The form of a participant, which is edited section by section."""

from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from msgspec import UNSET

from plankeeper.console.confirmations import new_implausible
from plankeeper.console.edit_forms import form_from
from plankeeper.console.forms import Form
from plankeeper.console.labels import display_name
from plankeeper.console.participant_choices import MAX_CHOICES
from plankeeper.console.routing import FormRequest
from plankeeper.core.errors import FieldError
from plankeeper.core.soft_validation import ValueWarning
from plankeeper.resources.exit_reasons import store as exit_reasons
from plankeeper.resources.exit_reasons.schemas import ExitReason
from plankeeper.resources.participants import queries
from plankeeper.resources.participants.rules import (
    find_contradictory_reason,
    find_incomplete_exit,
    find_value_warnings,
    has_name,
)
from plankeeper.resources.participants.schemas import (
    Participant,
    ParticipantListQuery,
    ParticipantRow,
    ParticipantUpdate,
)


class FormSection(NamedTuple):
    """A part of the form: its title, and the fields that it has."""

    title: str
    fields: tuple[str, ...]


SECTIONS = {
    "person": FormSection(
        "Person",
        (
            "first_name",
            "middle_name",
            "last_name",
            "preferred_name",
            "participant_number",
            "date_of_birth",
            "gender",
            "pronouns",
        ),
    ),
    "contact": FormSection("Contact", ("phone_number", "email", "participant_receives_statements", "postal_statement")),
    "address": FormSection(
        "Address", ("address_line_1", "address_line_2", "city", "state", "postcode", "service_region_id")
    ),
    "plan": FormSection(
        "Plan", ("plan_start_date", "plan_end_date", "is_pace_plan", "approval_required", "onboard_date")
    ),
    "manager": FormSection("Account manager", ("account_manager_id",)),
    "exit": FormSection(
        "Status and leaving",
        ("status", "date_ceased", "exit_reason_category_id", "exit_reason_subcategory_id", "reason_for_leaving"),
    ),
}

STATEMENT_FIELDS = ("participant_receives_statements", "postal_statement")
STOP_STATEMENTS = "stop_statements"  # the box of the exit's form that clears them


def empty_row() -> ParticipantRow:
    return ParticipantRow(id=UUID(int=0), created_at=datetime.now(UTC))


def empty_form(**values: str) -> Form:
    """The form of a new participant with the default values, and others that are given."""
    return form_from(ParticipantUpdate, empty_row(), **values)


def participant_form(participant: Participant) -> Form:
    """The form that edits a participant, filled with the current values."""
    category, subcategory = participant.exit_reason_category, participant.exit_reason_subcategory
    return form_from(
        ParticipantUpdate,
        participant,
        account_manager_id=participant.account_manager.id,
        exit_reason_category_id=None if category is UNSET else category.id,
        exit_reason_subcategory_id=None if subcategory is UNSET else subcategory.id,
    )


def fields_to_save(section: str, form: Form) -> tuple[str, ...]:
    """The fields that saving a section sets. With "Stop statements", the exit clears boxes that its form lacks."""
    fields = SECTIONS[section].fields
    return (*fields, *STATEMENT_FIELDS) if section == "exit" and form.text(STOP_STATEMENTS) else fields


def find_missing_identity(participant: ParticipantRow) -> list[FieldError]:
    """The error of a participant without a name or number to find them by."""
    if has_name(participant) or participant.participant_number:
        return []
    return [FieldError("first_name", "Enter a name or an NDIS number")]


async def find_implausible_changes(
    request: FormRequest, before: ParticipantRow | None, after: ParticipantRow
) -> list[ValueWarning]:
    """The warnings that a change causes, also because of other records."""
    today = datetime.now(request.settings.time_zone).date()
    old = [*find_value_warnings(before, today), *find_incomplete_exit(before)] if before else []
    found = new_implausible(old, [*find_value_warnings(after, today), *find_incomplete_exit(after)])
    if before is None or _exit_reason_ids(before) != _exit_reason_ids(after):
        found += find_contradictory_reason(after, await _load_exit_reasons(request, after))
    number = after.participant_number
    if number and (before is None or number != before.participant_number):
        found += await _find_number_holders(request, number, after.id)
    return found


async def _find_number_holders(request: FormRequest, number: str, own_id: UUID) -> list[ValueWarning]:
    """A warning about another participant with the same number, stored with or without spaces."""
    query = ParticipantListQuery(limit=2, participant_number=number)
    for other in await queries.list_page(request.tx.reader, request.plan_manager_id, query):
        if other.id != own_id:
            message = f"is already the number of {display_name(other)}"
            return [ValueWarning("participant_number", message, other.id)]
    return []


def _exit_reason_ids(participant: ParticipantRow) -> list[UUID | None]:
    return [participant.exit_reason_category_id, participant.exit_reason_subcategory_id]


async def _load_exit_reasons(request: FormRequest, participant: ParticipantRow) -> dict[UUID, ExitReason]:
    """The exit reasons that the form offers, and the participant's."""
    if participant.exit_reason_subcategory_id is None:
        return {}
    place, ids = (request.tx.reader, request.plan_manager_id), [each for each in _exit_reason_ids(participant) if each]
    reasons = [*await exit_reasons.list_all(*place, MAX_CHOICES), *await exit_reasons.get_many(*place, ids)]
    return {each.id: each for each in reasons}
