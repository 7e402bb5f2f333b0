"""Schemas of bank details: the request, the response, events and stored rows."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from plankeeper.core.context import ActorKind
from plankeeper.core.fields import EXTENSION, AwareDatetime, Text50, Text255, component
from plankeeper.resources.bank_details.accounts import Payee, PayeeKind

Action = Literal["proposed", "approved", "rejected", "set", "closed", "confirmed"]
MAX_TEXT = 500  # characters of a call-back or a reason


class BankDetailsChange(Struct, forbid_unknown_fields=True, kw_only=True):
    """The account that is proposed for a payee."""

    bsb: Annotated[Text50, EXTENSION, Meta(description="Six digits, with or without a hyphen in the middle.")]
    account_number: Annotated[Text50, EXTENSION, Meta(description="One to nine digits.")]
    account_name: Annotated[
        Text255, EXTENSION, Meta(description="Up to 32 characters, after it has been converted to those of banks.")
    ]
    estate_payee: Annotated[
        Text255 | None,
        EXTENSION,
        Meta(
            description="The person or firm that gets the money for the estate. Required for a participant who has"
            " died, and null for all others."
        ),
    ] = None


class AccountSummary(Struct, kw_only=True):
    """A bank account without its number."""

    bsb: Annotated[str, Meta(description="Six digits.")]
    account_ending: Annotated[str, Meta(description="The last three digits of the account number.")]
    account_name: Annotated[str, Meta(description="The name of the account, in the characters that banks accept.")]
    estate_payee: Annotated[
        str | None, Meta(description="Who gets the money for the estate of a participant who has died, or null.")
    ]


class BankDetails(Struct, kw_only=True):
    """The bank details of a provider or a participant."""

    current: Annotated[AccountSummary | None, Meta(description="The account that payments go to, or null.")]
    proposed: Annotated[AccountSummary | None, Meta(description="The account that waits for approval, or null.")]
    updated_at: Annotated[
        AwareDatetime | None,
        EXTENSION,
        Meta(description="When the bank details were last changed, or null if there have never been any."),
    ]


class PayeeRef(Struct, frozen=True):
    """The provider or the participant of bank details."""

    kind: Annotated[
        Annotated[PayeeKind, component("PayeeKind", "Who gets a payment.")],
        Meta(description="`provider` or `participant`."),
    ]
    id: Annotated[UUID, Meta(description="The record's UUID.")]


class BankDetailsState(Struct, kw_only=True):
    """Bank details as events have them: only the endings of account numbers."""

    id: UUID  # the payee's
    payee: PayeeRef
    current_ending: str | None
    current_since: datetime | None  # when the account took effect: another one can have the same ending
    needs_approval: bool
    proposal_id: UUID | None
    proposed_ending: str | None
    proposed_by: str | None


class BankDetailsRow(Struct, kw_only=True):
    """A row of the table. The accounts are encrypted."""

    payee_kind: PayeeKind
    payee_id: UUID
    current_account: str | None = None
    current_ending: str | None = None
    current_hash: bytes | None = None
    current_estate_payee: str | None = None
    current_since: datetime | None = None
    needs_approval: bool = False
    proposal_id: UUID | None = None
    proposed_account: str | None = None
    proposed_ending: str | None = None
    proposed_hash: bytes | None = None
    proposed_estate_payee: str | None = None
    proposed_by: str | None = None
    proposed_by_account: UUID | None = None
    proposed_at: datetime | None = None
    proposed_phone: str | None = None
    updated_at: datetime

    @property
    def payee(self) -> Payee:
        return Payee(self.payee_kind, self.payee_id)


class BankDetailChange(Struct, kw_only=True):
    """An entry of the history of bank details. `note` is the call-back or the reason."""

    id: UUID
    payee_kind: PayeeKind
    payee_id: UUID
    proposal_id: UUID | None
    action: Action
    old_ending: str | None
    new_ending: str | None
    note: str | None
    actor_kind: ActorKind
    actor_id: str | None
    actor_name: str | None
    created_at: datetime


class PayeeContact(Struct):
    """A payee as the approver of its bank details sees it."""

    kind: PayeeKind
    id: UUID
    name: str | None
    phone: str | None
    is_deceased: bool
