"""Schemas of the office's own fees and of their takings: requests, responses, queries and stored rows."""

import datetime as dt
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import EXTENSION, CreatedAt, MonthText, Query, UpdatedAt, UuidText, component
from plankeeper.core.lists import DefaultSort, ResourceListQuery
from plankeeper.database.lists.statements import Filter
from plankeeper.resources.invoices.schemas import Amount, ClaimStatus
from plankeeper.resources.payments.schemas import MAX_INVOICES, UnpaidLine

MAX_FEES = 500  # that a request makes
MAX_LEFT_OUT = 5000  # that a response names
MAX_TAKEN_LINES = 5000  # of a taking

FeeReason = Annotated[
    Literal[
        "already_made",
        "no_plan",
        "deceased",
        "not_managed",
        "inactive",
        "not_in_catalogue",
        "no_price",
        "batch_full",
    ],
    component("FeeLeftOutReason", "Why a participant gets no fee."),
]


class NewFees(Struct, forbid_unknown_fields=True, kw_only=True):
    """The month whose fees are made."""

    month: Annotated[MonthText, Meta(description="A month that has ended, such as `2026-11`.")]


class NewFeesQuery(Query, frozen=True):
    """Whether the fees are made, or only what would be made is returned."""

    dry_run: Annotated[
        bool | UnsetType,
        EXTENSION,
        Meta(description="`true`: nothing is stored, and the response (200) says who would get a fee."),
    ] = UNSET


class NewFee(Struct, kw_only=True):
    """A fee that a request makes, or would make."""

    id: Annotated[UUID | None, Meta(description="The UUID of its invoice; null in a dry run.")]
    participant_id: Annotated[UUID, Meta(description="The participant's UUID.")]
    service_date: Annotated[
        dt.date, Meta(description="The last day of the month on which the office managed a plan in force.")
    ]
    amount: Annotated[Decimal, Meta(description="The price of the item on that day, in dollars.")]


class LeftOutParticipant(Struct, kw_only=True):
    """A participant who gets no fee."""

    participant_id: Annotated[UUID, Meta(description="The participant's UUID.")]
    reason: Annotated[FeeReason, Meta(description="Why the participant gets no fee.")]
    message: Annotated[str, Meta(description="A sentence for people. Its text can change.")]


class MonthFees(Struct, kw_only=True):
    """The fees that a request has made, or would make."""

    month: Annotated[str, Meta(description="The month, such as `2026-11`.")]
    count: Annotated[int, Meta(description=f"The number of fees, at most {MAX_FEES}.")]
    total: Annotated[Decimal, Meta(description="The sum of the fees, in dollars.")]
    fees: Annotated[list[NewFee], Meta(description="The fees, in the order of participants.")]
    left_out: Annotated[
        list[LeftOutParticipant], Meta(description=f"Participants without a fee, at most {MAX_LEFT_OUT:,}.")
    ]
    left_out_count: Annotated[int, Meta(description="The number of all participants without a fee.")]


class Fee(Struct, kw_only=True):
    """A fee that was made, with the state of its invoice."""

    id: Annotated[UUID, Meta(description="The UUID of its invoice.")]
    month: Annotated[str, Meta(description="The month, such as `2026-11`.")]
    participant_id: Annotated[UUID, Meta(description="The participant's UUID.")]
    invoice_number: Annotated[str | None, Meta(description="The number of the invoice, or null.")]
    total: Annotated[Amount, Meta(description="The total of the invoice, in dollars, or null.")]
    claim_status: Annotated[ClaimStatus, Meta(description="As on the invoice.")]
    taken: Annotated[Decimal, Meta(description="What the office has taken of it, in dollars.")]
    created_at: CreatedAt
    updated_at: UpdatedAt


class FeeListQuery(ResourceListQuery, frozen=True):
    """The query of the list."""

    sort: DefaultSort = UNSET
    month: Annotated[
        MonthText | UnsetType,
        EXTENSION,
        Meta(description="Returns items of this month, such as `2026-11`."),
        Filter("month = {}"),
    ] = UNSET


class NewFeeTaking(Struct, forbid_unknown_fields=True, kw_only=True):
    """The fees that are taken: those of the invoices with the ids, or all that can be taken."""

    invoice_ids: Annotated[
        Annotated[list[UuidText], Meta(min_length=1, max_length=MAX_INVOICES)] | UnsetType,
        Meta(description="The invoices whose lines are taken. Not allowed with `all`."),
    ] = UNSET
    all: Annotated[bool | UnsetType, Meta(description="`true`: takes all fees that the agency has paid.")] = UNSET
    taken_on: Annotated[
        dt.date | UnsetType, Meta(description="The day of the transfer, not in the future. The default is today.")
    ] = UNSET


class NewFeeTakingQuery(Query, frozen=True):
    """Whether the fees are taken, or only what would be taken is returned."""

    dry_run: Annotated[
        bool | UnsetType,
        EXTENSION,
        Meta(description="`true`: nothing is stored, and the response (200) says what would be taken."),
    ] = UNSET


class FeeTaking(Struct, kw_only=True):
    """Fees that the office has taken together, with one reference and one total."""

    id: Annotated[UUID | None, Meta(description="The taking's UUID; null in a dry run.")]
    number: Annotated[
        str | None,
        Meta(description="The reference, such as `F000001`, which its lines have as `payment_ref`; null in a dry run."),
    ]
    taken_on: Annotated[dt.date, Meta(description="The day of the transfer.")]
    total: Annotated[Decimal, Meta(description="What is taken, in dollars.")]
    lines: Annotated[int, Meta(description="The number of lines.")]
    left_out: Annotated[
        list[UnpaidLine] | UnsetType,
        Meta(description="Lines of fees that aren't taken. Only in the response that makes the taking."),
    ] = UNSET
    created_at: CreatedAt
    created_by: Annotated[str | None, Meta(description="The account or the API key that took the fees.")]
    updated_at: UpdatedAt


class FeeTakingListQuery(ResourceListQuery, frozen=True):
    """The query of the list."""

    sort: DefaultSort = UNSET


class TakenLine(Struct, kw_only=True):
    """What is taken of a line."""

    id: Annotated[UUID, Meta(description="The UUID of this record.")]
    invoice_id: Annotated[UUID, Meta(description="The invoice's UUID.")]
    line_id: Annotated[UUID, Meta(description="The line's UUID.")]
    claim_id: Annotated[UUID, Meta(description="The UUID of the claim that the agency has paid.")]
    amount: Annotated[Decimal, Meta(description="In dollars.")]
    updated_at: UpdatedAt


class TakenLineListQuery(ResourceListQuery, frozen=True):
    """The query of the list."""

    sort: DefaultSort = UNSET


class PlanDays(Struct):
    """The days on which a plan is in force."""

    start: dt.date
    end: dt.date


class Candidate(Struct, kw_only=True):
    """A participant with what decides about the fee of a month. `plans` are those in force on a day of it."""

    id: UUID
    status: str
    state: str | None
    remoteness: Literal["remote", "very_remote"] | None
    managed_from: dt.date | None
    managed_until: dt.date | None
    deceased_on: dt.date | None
    date_ceased: dt.date | None
    has_fee: bool
    plans: list[PlanDays]
