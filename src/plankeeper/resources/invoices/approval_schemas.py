"""Schemas of the approval of invoices: bodies of requests, and rows of requests and links."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import UuidText
from plankeeper.resources.invoices.action_schemas import ReasonText
from plankeeper.resources.invoices.warnings import CodeLevel

RevocationCause = Literal["changed", "decided", "replaced", "staff", "unavailable"]


class Approval(Struct, forbid_unknown_fields=True, kw_only=True):
    """The approval of an invoice on behalf of the participant or of a team member."""

    team_member_id: Annotated[
        UuidText | None | UnsetType,
        Meta(description="The team member who approves it, with `approve_invoices`. Omitted or null: the participant."),
    ] = UNSET
    reason: Annotated[
        ReasonText | None | UnsetType, Meta(description="How the answer came, such as a phone call, or null.")
    ] = UNSET


class Rejection(Struct, forbid_unknown_fields=True, kw_only=True):
    """The rejection of an invoice on behalf of the participant or of a team member."""

    team_member_id: Annotated[
        UuidText | None | UnsetType,
        Meta(description="The team member who rejects it, with `approve_invoices`. Omitted or null: the participant."),
    ] = UNSET
    reason: Annotated[ReasonText, Meta(description="Why they reject it, and how the answer came.")]


class Approver(Struct):
    """A person who may approve the invoices of a participant, and has an email. Without an id, the participant."""

    team_member_id: UUID | None
    name: str | None


class RequestState(Struct):
    """A pending or decided invoice with its request. `requested_at` is null without one."""

    invoice_id: UUID
    participant_id: UUID | None
    requested_at: datetime | None
    content_hash: str | None
    asked_at: datetime | None
    reminded_at: datetime | None
    has_open_links: bool
    recent_requests: int  # how often people were asked within a day
    last_asked_at: datetime | None  # the last of these times
    levels: list[CodeLevel]
    approvers: list[Approver]


class RequestRow(Struct):
    """The stored request of an invoice."""

    invoice_id: UUID
    requested_at: datetime
    content_hash: str | None = None
    asked_at: datetime | None = None
    reminded_at: datetime | None = None


class NewLink(Struct):
    """A link whose mail is not written yet."""

    invoice_id: UUID
    id: UUID
    participant_id: UUID
    team_member_id: UUID | None
    content_hash: str
    is_reminder: bool
    created_at: datetime


class SentLink(Struct):
    """A link as staff see it."""

    id: UUID
    team_member_id: UUID | None
    is_reminder: bool
    created_at: datetime
    sent_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_because: RevocationCause | None
    used_at: datetime | None
    name: str | None  # of a person who may still approve
    email: str | None
    has_other_email: bool  # whether it was sent to an earlier email of that person, and no longer works


class LinkRecipient(Struct):
    """What the mail of a link says about its recipient and the office."""

    email: str
    name: str | None
    is_reminder: bool
    plan_manager_name: str


class OpenedLink(Struct):
    """A link that somebody has opened, with the person that it was mailed to."""

    id: UUID
    invoice_id: UUID
    participant_id: UUID
    team_member_id: UUID | None
    content_hash: str
    expires_at: datetime
    revoked_at: datetime | None
    revoked_because: RevocationCause | None
    used_at: datetime | None
    name: str | None
    plan_manager_name: str


class DueRequest(Struct):
    """A request without an answer: `asked_at` is when people were asked."""

    invoice_id: UUID
    asked_at: datetime
