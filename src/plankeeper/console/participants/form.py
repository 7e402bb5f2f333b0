"""The form of a participant, which is edited section by section."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from msgspec import UNSET

from plankeeper.console.components.edit_forms import form_from, new_implausible
from plankeeper.console.components.fields import (
    NOT_SET,
    STATE_OPTIONS,
    FormField,
    FormSection,
    ShownSection,
    show_section,
)
from plankeeper.console.components.labels import display_name
from plankeeper.console.components.record_picker import (
    MAX_CHOICES,
    MAX_OPTIONS,
    account_manager_picker,
    manager_choices,
)
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import FormRequest, PageRequest
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

STATUSES = ("Active", "Inactive", "Lead")


def _address(participant: Participant) -> list[str]:
    town = (participant.city, participant.state, participant.postcode)
    lines = (participant.address_line_1, participant.address_line_2, " ".join(each for each in town if each))
    return [each for each in lines if each]


def _exit_reason(participant: Participant) -> str | None:
    return None if participant.exit_reason_category is UNSET else participant.exit_reason_category.name


def _specific_exit_reason(participant: Participant) -> str | None:
    return None if participant.exit_reason_subcategory is UNSET else participant.exit_reason_subcategory.name


# The fields of the form and of the overview, by section. A new field needs one line here.
SECTIONS = {
    "person": FormSection(
        ParticipantUpdate,
        "Person",
        (
            (FormField("first_name"), FormField("middle_name"), FormField("last_name"), FormField("preferred_name")),
            FormField("participant_number", "ndis_number", hint="9 digits, for example 430 205 409", size="medium"),
            FormField("external_id", in_form=False),
            FormField("date_of_birth", "date"),
            (FormField("gender"), FormField("pronouns")),
        ),
    ),
    "contact": FormSection(
        ParticipantUpdate,
        "Contact",
        (
            FormField("email", "email", hint="For example, name@example.com"),
            FormField("phone_number", "phone", hint="With the area code, for example 0491 570 156", size="medium"),
            FormField("postal_statement", "checkbox"),
            FormField("participant_receives_statements", "checkbox"),
        ),
        first_shown=("phone_number", "email", "participant_receives_statements"),
    ),
    "address": FormSection(
        ParticipantUpdate,
        "Address",
        (
            FormField("address", "lines", read=_address, in_form=False),
            FormField("address_line_1", in_overview=False),
            FormField("address_line_2", in_overview=False),
            FormField("city", in_overview=False),
            FormField("state", "select", size="short", options=STATE_OPTIONS, in_overview=False),
            FormField("postcode", "digits", hint="4 digits", size="short", in_overview=False),
            FormField(
                "service_region_id",
                "select",
                size="medium",
                options=NOT_SET | {"remote": "Remote", "very_remote": "Very remote"},
            ),
        ),
    ),
    "plan": FormSection(
        ParticipantUpdate,
        "Plan",
        (
            FormField("plan_start_date", "date"),
            FormField("plan_end_date", "date"),
            FormField("onboard_date", "date"),
            FormField("managed_from", "date", hint="The first day on which you manage the plan"),
            FormField("managed_until", "date", hint="The last day on which you manage the plan"),
            FormField(
                "remoteness",
                "select",
                size="medium",
                options=NOT_SET | {"remote": "Remote", "very_remote": "Very remote"},
                hint="Which price limits of the support catalogue apply",
            ),
            FormField("is_pace_plan", "checkbox"),
            FormField("approval_required", "checkbox"),
        ),
        first_shown=("plan_start_date", "plan_end_date", "is_pace_plan", "approval_required"),
    ),
    "manager": FormSection(
        ParticipantUpdate,
        "Account manager",
        (FormField("account_manager_id", "select", size="medium", read=lambda each: each.account_manager.name),),
    ),
    "exit": FormSection(
        ParticipantUpdate,
        "Status and leaving",
        (
            FormField("status", "select", size="short", options={each: each for each in STATUSES}),
            FormField("date_ceased", "date"),
            FormField("exit_reason_category_id", "select", size="medium", read=_exit_reason),
            FormField(
                "exit_reason_subcategory_id", "select", size="medium", options=NOT_SET, read=_specific_exit_reason
            ),
            FormField("reason_for_leaving", "textarea"),
            FormField(
                "deceased_on",
                "date",
                hint="If the participant has died. Later services can’t be paid, and statements and mails to the"
                " participant stop.",
            ),
        ),
    ),
}
FIELDS = {field.name: field for section in SECTIONS.values() for field in section.all_fields}


def sections_of_new() -> dict[str, FormSection]:
    """The sections of the form of a new participant, which has the status with the plan."""
    plan, leaving = SECTIONS["plan"], SECTIONS["exit"]
    status, *others = leaving.rows
    return SECTIONS | {"plan": replace(plan, rows=(status, *plan.rows)), "exit": replace(leaving, rows=others)}


STATEMENT_FIELDS = ("participant_receives_statements", "postal_statement")
STOP_STATEMENTS = "stop_statements"  # the box of the exit's form that clears them


async def form_choices(request: PageRequest, participant: Participant | None) -> Mapping[str, object]:
    """The options that aren't in the table. The participant's current values are included even if not active."""
    choices = await manager_choices(request)
    picker = await account_manager_picker(request, participant) if len(choices) > MAX_OPTIONS else None
    manager = participant.account_manager if participant else None
    if manager and manager.id:
        choices.setdefault(str(manager.id), f"{manager.name or 'No name'} (no longer available)")
    categories, groups = await _exit_reason_choices(request, participant)
    return {
        "manager_picker": picker,
        "choices": {"account_manager_id": NOT_SET | choices, "exit_reason_category_id": categories},
        "groups": {"exit_reason_subcategory_id": groups},
    }


async def _exit_reason_choices(
    request: PageRequest, participant: Participant | None
) -> tuple[dict[str, str], list[tuple[str, dict[str, str]]]]:
    """The categories of exit reasons, and the subcategories of each."""
    reasons = await exit_reasons.list_all(request.db, request.plan_manager_id, MAX_CHOICES)
    names = {str(each.id): each.name for each in reasons}
    categories = NOT_SET | {str(each.id): each.name for each in reasons if each.parent_id is None}
    groups = dict[str, dict[str, str]]()
    for each in reasons:
        if each.parent_id:
            groups.setdefault(str(each.parent_id), {})[str(each.id)] = each.name
    category = participant.exit_reason_category if participant else UNSET
    subcategory = participant.exit_reason_subcategory if participant else UNSET
    if category is not UNSET:
        categories.setdefault(str(category.id), category.name)
    if subcategory is not UNSET and not any(str(subcategory.id) in subcategories for subcategories in groups.values()):
        groups[""] = {str(subcategory.id): subcategory.name}
    return categories, [(names.get(id_, "Other"), subcategories) for id_, subcategories in groups.items()]


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
    today = request.today
    old = [*find_value_warnings(before, today), *find_incomplete_exit(before)] if before else []
    found = new_implausible(old, [*find_value_warnings(after, today), *find_incomplete_exit(after)])
    if before is None or _exit_reason_ids(before) != _exit_reason_ids(after):
        found += find_contradictory_reason(after, await _load_exit_reasons(request, after))
    number = after.participant_number
    if number and (before is None or number != before.participant_number):
        found += await _find_number_holders(request, number, after.id)
    return found


async def _find_number_holders(request: FormRequest, number: str, own_id: UUID) -> list[ValueWarning]:
    """A warning about another participant with the same number, stored with or without spaces and hyphens."""
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


def participant_sections(participant: Participant) -> list[ShownSection]:
    """The sections in the order of the page. Missing values of the exit are listed only after the exit."""
    sections = [show_section(name, section, participant) for name, section in SECTIONS.items()]
    status = sections[-1]
    if participant.status != "Inactive" and len(status.values) == 1:
        status.missing.clear()
    return sections
