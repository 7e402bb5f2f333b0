"""Values of a participant that are accepted but probably wrong. The console and imports show them before saving."""

from collections.abc import Iterator
from datetime import date
from typing import Protocol

from plankeeper.participants.rules import is_scheme_number
from plankeeper.plausibility import Implausible, find_implausible_phone, find_implausible_postcode

NUMBER_START = "43"  # of the NDIS numbers of participants
FIRST_BIRTH_YEAR = 1900


class PlausibleFields(Protocol):
    """The fields of a participant that the rules look at, in any shape of a participant."""

    @property
    def first_name(self) -> str | None: ...
    @property
    def last_name(self) -> str | None: ...
    @property
    def preferred_name(self) -> str | None: ...
    @property
    def participant_number(self) -> str | None: ...
    @property
    def date_of_birth(self) -> date | None: ...
    @property
    def phone_number(self) -> str | None: ...
    @property
    def postcode(self) -> str | None: ...
    @property
    def state(self) -> str | None: ...
    @property
    def plan_start_date(self) -> date | None: ...
    @property
    def plan_end_date(self) -> date | None: ...
    @property
    def status(self) -> str: ...
    @property
    def date_ceased(self) -> date | None: ...


def has_name(participant: PlausibleFields) -> bool:
    names = (participant.first_name, participant.last_name, participant.preferred_name)
    return any(name and name.strip() for name in names)


def find_implausible(participant: PlausibleFields, today: date) -> list[Implausible]:
    """The values that are probably wrong, in the order of the form. Other records are not looked at."""
    return [
        *_find_implausible_person(participant, today),
        *find_implausible_phone("phone_number", participant.phone_number),
        *find_implausible_postcode("postcode", participant.postcode, participant.state),
        *_find_implausible_plan(participant),
    ]


def _find_implausible_person(participant: PlausibleFields, today: date) -> Iterator[Implausible]:
    if not has_name(participant):
        yield Implausible("first_name", "The participant has no name")
    number = participant.participant_number
    if number and not is_scheme_number(number):
        yield Implausible("participant_number", f"should have 9 digits, such as {NUMBER_START}0 205 409")
    elif number and not number.startswith(NUMBER_START):
        yield Implausible("participant_number", f"should begin with {NUMBER_START}")
    birth = participant.date_of_birth
    if birth and birth > today:
        yield Implausible("date_of_birth", "is in the future")
    elif birth and birth.year < FIRST_BIRTH_YEAR:
        yield Implausible("date_of_birth", f"is before {FIRST_BIRTH_YEAR}")


def _find_implausible_plan(participant: PlausibleFields) -> Iterator[Implausible]:
    start, end = participant.plan_start_date, participant.plan_end_date
    if start and end and end < start:
        yield Implausible("plan_end_date", f"is before the plan start date, {start.day} {start:%b %Y}")
    if participant.date_ceased and participant.status != "Inactive":
        message = f"is {participant.status}, although the participant has an exit date"
        yield Implausible("status", message)
