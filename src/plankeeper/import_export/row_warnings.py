"""Warnings about the records of an import: values that are accepted but probably wrong."""

from collections.abc import Mapping
from datetime import date

import msgspec
from msgspec import Raw, Struct

from plankeeper.core.formatting import format_date
from plankeeper.core.soft_validation import Implausible
from plankeeper.imports.schemas import Problem
from plankeeper.participants import plausibility as participant_rules
from plankeeper.providers import plausibility as provider_rules


class ParticipantFacts(Struct):
    """What the rules look at, from the record of an event."""

    first_name: str | None = None
    last_name: str | None = None
    preferred_name: str | None = None
    participant_number: str | None = None
    date_of_birth: date | None = None
    phone_number: str | None = None
    postcode: str | None = None
    state: str | None = None
    plan_start_date: date | None = None
    plan_end_date: date | None = None
    status: str = ""
    date_ceased: date | None = None


class ProviderFacts(Struct):
    """Likewise of a provider."""

    entity_name: str | None = None
    abn: str | None = None
    primary_phone_number: str | None = None
    postcode: str | None = None
    state: str | None = None


_FACTS = {
    "participants": ParticipantFacts.__struct_fields__,
    "providers": ProviderFacts.__struct_fields__,
}


def find_warnings(resource: str, record: Raw, today: date) -> list[Problem]:
    """The warnings about a record as its event shows it."""
    if resource == "participants":
        participant = msgspec.json.decode(record, type=ParticipantFacts)
        return [_warning(each, participant) for each in participant_rules.find_implausible(participant, today)]
    if resource == "providers":
        provider = msgspec.json.decode(record, type=ProviderFacts)
        return [_warning(each, provider) for each in provider_rules.find_implausible(provider)]
    return []


def find_warnings_in_cells(resource: str, cells: Mapping[str, str], today: date) -> list[Problem]:
    """The warnings about a rejected row: those about the cells that could be read."""
    known = {name: cell for name, cell in cells.items() if name in _FACTS.get(resource, ())}
    found = find_warnings(resource, Raw(msgspec.json.encode(known)), today)
    return [each for each in found if each.field in known]


def _warning(implausible: Implausible, record: Struct) -> Problem:
    value = getattr(record, implausible.field)
    # A message in upper case stands alone.
    field = "" if implausible.message[:1].isupper() else implausible.field
    text = format_date(value) if isinstance(value, date) else str(value or "")
    return Problem(field, text if field else "", implausible.message, is_warning=True)
