"""The texts that identify a person, what stays of a record about a person, and a pattern that finds the texts."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast
from uuid import UUID

from plankeeper.personal_data.schemas import JsonObject

# What stays of the records about a person: ids, states, times, and references to records about others.
PARTICIPANT_MEMBERS = (
    "id",
    "status",
    "approval_required",
    "created_at",
    "is_pace_plan",
    "postal_statement",
    "participant_receives_statements",
    "exit_reason_category",
    "exit_reason_subcategory",
    "account_manager",
)
TEAM_MEMBER_MEMBERS = ("id", "user_id", "pm_profile_id", "participant_id", "contact_priority", "permissions")

_NAME_MEMBERS = ("first_name", "middle_name", "last_name", "preferred_name")
_IDENTIFIER_MEMBERS = (
    "participant_number",
    "email",
    "phone_number",
    "date_of_birth",
    "address_line_1",
    "address_line_2",
    "secondary_email",
    "secondary_phone_number",
)
_MIN_LENGTH = 2  # a single letter would be found in every text


class PersonTexts:
    """The names and identifiers of one person, or of several, with their earlier values."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.identifiers: set[str] = set()
        self._full_names: set[tuple[str, str]] = set()

    def add(self, record: Mapping[str, Any]) -> None:
        """Add the texts of a participant, of a team member, or of the earlier values of one."""
        self.names |= _texts(record, _NAME_MEMBERS)
        self.identifiers |= _texts(record, _IDENTIFIER_MEMBERS)
        first_names = _texts(record, ("first_name", "preferred_name"))
        self._full_names |= {(first, last) for first in first_names for last in _texts(record, ("last_name",))}

    @property
    def pattern(self) -> str | None:
        """Matches a text that contains one of the names or identifiers as words, for PostgreSQL and Python.

        None if there are none. Compare without regard to case.
        """
        # The longest first: a name can begin with another one.
        texts = sorted(self.names | self.identifiers, key=lambda each: (-len(each), each))
        return "|".join(map(_word, texts)) or None

    @property
    def folded(self) -> list[str]:
        """The texts in lower case with only their letters and digits, as the names of columns are remembered."""
        texts = {"".join(filter(str.isalnum, each.casefold())) for each in self.names | self.identifiers}
        return sorted(texts - {""})

    def file_pattern(self, participant_id: UUID) -> re.Pattern[str]:
        """Matches a file with the id or one of the identifiers, or with first and last name beside each other."""
        words = [_word(each) for each in (str(participant_id), *sorted(self.identifiers))]
        full_names = [rf"{_word(first)}\W+(?:\w+\W+)?{_word(last)}" for first, last in sorted(self._full_names)]
        full_names += [rf"{_word(last)}\W+{_word(first)}" for first, last in sorted(self._full_names)]
        return re.compile("|".join(words + full_names), re.IGNORECASE)


def _texts(record: Mapping[str, Any], members: Iterable[str]) -> set[str]:
    values = [record.get(name) for name in members]
    return {each.strip() for each in values if isinstance(each, str) and len(each.strip()) >= _MIN_LENGTH}


def _word(text: str) -> str:
    return rf"(?<!\w){re.escape(text)}(?!\w)"


def matches(pattern: str | None, text: str) -> bool:
    """Whether a text contains one of the texts of `PersonTexts.pattern`."""
    return pattern is not None and re.search(pattern, text, re.IGNORECASE) is not None


def erase_members(value: Any, participant_id: UUID) -> Any:
    """A copy of a response in which the participant and its team members consist only of what stays."""
    if isinstance(value, list):
        return [erase_members(each, participant_id) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    record = cast("JsonObject", value)
    if record.get("id") == str(participant_id):
        return _keep(record, PARTICIPANT_MEMBERS)
    if record.get("participant_id") == str(participant_id) and "user_id" in record:
        return _keep(record, TEAM_MEMBER_MEMBERS)
    return {name: erase_members(each, participant_id) for name, each in record.items()}


def _keep(record: JsonObject, members: Iterable[str]) -> JsonObject:
    return {name: value if name in members else None for name, value in record.items()}
