"""The results of searches."""

from datetime import date, datetime
from decimal import Decimal
from typing import Literal, NamedTuple
from uuid import UUID

from msgspec import Struct

Kind = Literal["participant", "team_member", "provider", "invoice", "note"]
KINDS: tuple[Kind, ...] = ("participant", "team_member", "provider", "invoice", "note")


class ParticipantMatch(Struct):
    """A participant; `text` is its text in the index."""

    id: UUID
    first_name: str | None
    last_name: str | None
    preferred_name: str | None
    participant_number: str | None
    email: str | None
    phone_number: str | None
    status: str
    text: str


class ParticipantDetailMatch(ParticipantMatch):
    """A participant who was found by the date of birth or by the address, which is then set."""

    date_of_birth: date | None
    address: str | None


class TeamMemberMatch(Struct):
    """A team member with the names of its participant."""

    id: UUID
    participant_id: UUID
    first_name: str | None
    last_name: str | None
    role: str | None
    email: str | None
    phone_number: str | None
    participant_first_name: str | None
    participant_last_name: str | None
    text: str


class ProviderMatch(Struct):
    """A provider."""

    id: UUID
    entity_name: str | None
    abn: str | None
    email: str | None
    active: bool
    text: str


class InvoiceMatch(Struct):
    """An invoice with the names of its participant and its provider."""

    id: UUID
    invoice_number: str | None
    invoice_date: date | None
    total: Decimal | None
    claim_status: str
    created_at: datetime
    participant_id: UUID | None
    participant_first_name: str | None
    participant_last_name: str | None
    entity_name: str | None
    text: str


class NoteMatch(Struct):
    """A note with its type, and the record that it is about; `resource_name` is null if the record has no name."""

    id: UUID
    resource_kind: Literal["participant", "provider", "invoice"]
    resource_id: UUID
    content: str
    note_type: str
    badge_color: str | None
    created_at: datetime
    resource_name: str | None
    text: str


Match = ParticipantMatch | TeamMemberMatch | ProviderMatch | InvoiceMatch | NoteMatch


class KindResults(Struct):
    """The best matches of one kind.

    `count` is exact unless `has_more`: then there are more than that. `similar` have a typo in a word. `is_listed` says
    whether the list of the kind finds all of them by the same text.
    """

    kind: Kind
    matches: list[Match]
    count: int
    has_more: bool
    similar: list[Match]
    is_listed: bool = True


class Values(NamedTuple):
    """Values other than names and numbers that a text can stand for."""

    amount: Decimal | None
    date: date | None


class SearchResults(Struct):
    """The results of each kind, and corrected texts that have results."""

    kinds: list[KindResults]
    corrections: list[str]

    @property
    def is_empty(self) -> bool:
        return not any(each.matches or each.similar for each in self.kinds)
