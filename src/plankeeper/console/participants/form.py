"""The form of a participant, which is edited section by section."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import UNSET

from plankeeper.console.components.edit_forms import form_from, new_implausible
from plankeeper.console.components.labels import display_name, field_label
from plankeeper.console.components.record_picker import (
    MAX_CHOICES,
    MAX_OPTIONS,
    account_manager_picker,
    manager_choices,
)
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import FormRequest, PageRequest
from plankeeper.core.errors import FieldError
from plankeeper.core.fields import STATE_CODES
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
REGIONS = {"": "Not set", "remote": "Remote", "very_remote": "Very remote"}


async def form_choices(request: PageRequest, participant: Participant | None) -> Mapping[str, object]:
    """The options of the form's selects. The participant's current values are included even if they are not active."""
    choices = await manager_choices(request)
    picker = await account_manager_picker(request, participant) if len(choices) > MAX_OPTIONS else None
    manager = participant.account_manager if participant else None
    if manager and manager.id:
        choices.setdefault(str(manager.id), f"{manager.name or 'No name'} (no longer available)")
    return {
        "manager_picker": picker,
        "managers": {"": "Not set", **choices},
        "states": {"": "Not set", **{each: each for each in STATE_CODES}},
        "statuses": {each: each for each in STATUSES},
        "regions": REGIONS,
        **await exit_reason_choices(request, participant),
    }


async def exit_reason_choices(request: PageRequest, participant: Participant | None) -> dict[str, Any]:
    """The categories of exit reasons, and the subcategories of each."""
    reasons = await exit_reasons.list_all(request.db, request.plan_manager_id, MAX_CHOICES)
    names = {str(each.id): each.name for each in reasons}
    categories = {"": "Not set", **{str(each.id): each.name for each in reasons if each.parent_id is None}}
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
    return {
        "categories": categories,
        "groups": [(names.get(id_, "Other"), subcategories) for id_, subcategories in groups.items()],
    }


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


REGION_NAMES = {"remote": "Remote", "very_remote": "Very remote"}


class SectionValue(NamedTuple):
    """A value with its label. `kind` decides how the page shows it; a list is shown line by line."""

    label: str
    kind: str
    value: object


class Section(NamedTuple):
    """A section: `name` is the part of the path of the form that changes it."""

    name: str
    title: str
    values: list[SectionValue]
    missing: list[str]  # the labels of values that aren't set, such as `preferred name`


def participant_sections(participant: Participant) -> list[Section]:
    """The sections in the order of the page. Missing values of the exit are listed only after the exit."""
    sections = [
        _section("person", "Person", _person(participant)),
        _section("contact", "Contact", _contact(participant)),
        _section("address", "Address", _address(participant)),
        _section("plan", "Plan", _plan(participant)),
        _section("manager", "Account manager", [("account_manager_id", "text", participant.account_manager.name)]),
    ]
    status = _section("exit", SECTIONS["exit"].title, _exit(participant))
    if participant.status != "Inactive" and len(status.values) == 1:
        status.missing.clear()
    return [*sections, status]


Field = tuple[str, str, object]


def _section(name: str, title: str, fields: list[Field]) -> Section:
    values = [SectionValue(field_label(field), kind, value) for field, kind, value in fields if _is_set(value)]
    missing = [_in_sentence(field_label(field)) for field, _, value in fields if not _is_set(value)]
    return Section(name, title, values, missing)


def _is_set(value: object) -> bool:
    return value is not None and value not in ("", [])


def _in_sentence(label: str) -> str:
    return label if label[1:2].isupper() else label[:1].lower() + label[1:]


def _person(participant: Participant) -> list[Field]:
    return [
        ("first_name", "text", participant.first_name),
        ("middle_name", "text", participant.middle_name),
        ("last_name", "text", participant.last_name),
        ("preferred_name", "text", participant.preferred_name),
        ("participant_number", "number", participant.participant_number),
        *([("external_id", "text", participant.external_id)] if participant.external_id else []),
        ("date_of_birth", "date", participant.date_of_birth),
        ("gender", "text", participant.gender),
        ("pronouns", "text", participant.pronouns),
    ]


def _contact(participant: Participant) -> list[Field]:
    return [
        ("phone_number", "phone", participant.phone_number),
        ("email", "email", participant.email),
        ("participant_receives_statements", "flag", participant.participant_receives_statements),
        ("postal_statement", "flag", participant.postal_statement),
    ]


def _address(participant: Participant) -> list[Field]:
    town = (participant.city, participant.state, participant.postcode)
    lines = (participant.address_line_1, participant.address_line_2, " ".join(each for each in town if each))
    region = participant.service_region_id
    return [
        ("address", "lines", [each for each in lines if each]),
        ("service_region_id", "text", REGION_NAMES.get(region, region) if region else None),
    ]


def _plan(participant: Participant) -> list[Field]:
    return [
        ("plan_start_date", "date", participant.plan_start_date),
        ("plan_end_date", "date", participant.plan_end_date),
        ("is_pace_plan", "flag", participant.is_pace_plan),
        ("approval_required", "flag", participant.approval_required),
        ("onboard_date", "date", participant.onboard_date),
    ]


def _exit(participant: Participant) -> list[Field]:
    category, subcategory = participant.exit_reason_category, participant.exit_reason_subcategory
    return [
        ("status", "text", participant.status),
        ("date_ceased", "date", participant.date_ceased),
        ("exit_reason_category_id", "text", None if category is UNSET else category.name),
        ("exit_reason_subcategory_id", "text", None if subcategory is UNSET else subcategory.name),
        ("reason_for_leaving", "lines", (participant.reason_for_leaving or "").splitlines()),
    ]
