"""A participant's values by section for the overview: the set values, and the labels of the others."""

from typing import NamedTuple

from msgspec import UNSET

from plankeeper.console.labels import field_label
from plankeeper.console.participant_forms import SECTIONS
from plankeeper.resources.participants.schemas import Participant

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
