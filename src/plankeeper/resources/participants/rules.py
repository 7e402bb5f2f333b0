"""The rules of a participant's fields, and warnings about unusual values.

The console and imports show the warnings before saving.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Protocol
from uuid import UUID

from plankeeper.core.errors import FieldError
from plankeeper.core.formatting import format_date
from plankeeper.core.soft_validation import ValueWarning, find_implausible_phone, find_implausible_postcode
from plankeeper.resources.exit_reasons.schemas import ExitReason
from plankeeper.resources.participants.schemas import ParticipantRow


def is_ndis_number(text: str) -> bool:
    """Whether a text consists of the 9 digits of an NDIS number."""
    return len(text) == 9 and text.isascii() and text.isdecimal()


NUMBER_START = "43"  # of the NDIS numbers of participants
FIRST_BIRTH_YEAR = 1900
MAX_NAMED_REASONS = 5  # in the message about an exit reason


class PlausibleFields(Protocol):
    """The fields of a participant that the rules read, in any of its structs."""

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


def find_errors(participant: ParticipantRow, today: date) -> Iterator[FieldError]:
    """The errors of dates that contradict each other, or today."""
    first, last, death = participant.managed_from, participant.managed_until, participant.deceased_on
    if first and last and last < first:
        yield FieldError("managed_until", f"must be on or after the first managed day, {format_date(first)}")
    if death and death > today:
        yield FieldError("deceased_on", "must not be in the future")


def find_value_warnings(participant: PlausibleFields, today: date) -> list[ValueWarning]:
    """Warnings about unusual values, in the order of the form. Other records are not read."""
    return [
        *_find_implausible_person(participant, today),
        *find_implausible_phone("phone_number", participant.phone_number),
        *find_implausible_postcode(participant.postcode, participant.state),
        *_find_implausible_plan(participant),
    ]


def _find_implausible_person(participant: PlausibleFields, today: date) -> Iterator[ValueWarning]:
    if not has_name(participant):
        yield ValueWarning("first_name", "The participant has no name")
    number = participant.participant_number
    if number and not is_ndis_number(number):
        yield ValueWarning("participant_number", f"should have 9 digits, such as {NUMBER_START}0 205 409")
    elif number and not number.startswith(NUMBER_START):
        yield ValueWarning("participant_number", f"should begin with {NUMBER_START}")
    birth = participant.date_of_birth
    if birth and birth > today:
        yield ValueWarning("date_of_birth", "is in the future")
    elif birth and birth.year < FIRST_BIRTH_YEAR:
        yield ValueWarning("date_of_birth", f"is before {FIRST_BIRTH_YEAR}")


def _find_implausible_plan(participant: PlausibleFields) -> Iterator[ValueWarning]:
    start, end = participant.plan_start_date, participant.plan_end_date
    if start and end and end < start:
        yield ValueWarning("plan_end_date", f"is before the plan start date, {start.day} {start:%b %Y}")
    if participant.date_ceased and participant.status != "Inactive":
        message = f"is {participant.status}, although the participant has an exit date"
        yield ValueWarning("status", message)


def find_incomplete_exit(participant: ParticipantRow) -> Iterator[ValueWarning]:
    """The missing fields of a participant who has left. Imports accept this: other systems seldom have them."""
    if participant.status != "Inactive":
        return
    if participant.date_ceased is None:
        yield ValueWarning("date_ceased", "is missing, although the participant is Inactive")
    if participant.exit_reason_category_id is None and not (participant.reason_for_leaving or "").strip():
        yield ValueWarning("exit_reason_category_id", "is missing, although the participant is Inactive")


def find_contradictory_reason(
    participant: ParticipantRow, reasons: Mapping[UUID, ExitReason]
) -> Iterator[ValueWarning]:
    """A specific exit reason that doesn't belong to the participant's exit reason. The message suggests others."""
    category_id = participant.exit_reason_category_id
    specific = reasons.get(participant.exit_reason_subcategory_id or UUID(int=0))
    if specific is None or (specific.parent_id == category_id and category_id is not None):
        return
    parent, category = (reasons.get(each) if each else None for each in (specific.parent_id, category_id))
    message = f"“{specific.name}” belongs to “{parent.name}”" if parent else f"“{specific.name}” belongs elsewhere"
    if category:
        names = [f"“{each.name}”" for each in reasons.values() if each.parent_id == category.id]
        shown = ", ".join(names[:MAX_NAMED_REASONS]) + (" or another one" if len(names) > MAX_NAMED_REASONS else "")
        advice = f"choose {shown}, or leave it empty" if names else "leave it empty"
        message += f", not to “{category.name}”. For “{category.name}”, {advice}"
    else:
        message += ", but no exit reason is chosen"
    yield ValueWarning("exit_reason_subcategory_id", message)
