"""Schemas of claim batches and claims."""

from datetime import date
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import EXTENSION, AwareDatetime, CreatedAt, Query, UpdatedAt, UuidText, component
from plankeeper.core.lists import DefaultSort, ResourceListQuery, StatesFilter
from plankeeper.resources.claims.batch_file import FileRow
from plankeeper.resources.claims.eligibility import LeftOutReason, WarnedCode
from plankeeper.resources.invoices.action_schemas import ReasonText

MAX_LINES = 5000  # of a batch

BatchState = Annotated[
    Literal["draft", "submitted", "part_processed", "processed", "cancelled"],
    component(
        "ClaimBatchState",
        "`draft`: made, and not yet submitted. `submitted`: without a result. `part_processed`: some lines have a"
        " result. `processed`: no line is pending.",
    ),
]
ClaimSource = Annotated[
    Literal["batch", "elsewhere", "imported"],
    component(
        "ClaimSource",
        "`batch`: in a claim batch. `elsewhere`: made outside of Plankeeper. `imported`: the confirmed amount of an"
        " imported line.",
    ),
]
ClaimState = Annotated[
    Literal["draft", "submitted", "paid", "partially_paid", "rejected", "cancelled"],
    component("ClaimState", "`draft`: its batch is a draft. `submitted`: without a result."),
]


class WarnedLine(Struct, kw_only=True):
    """A line that is in the batch although its invoice has a warning about it."""

    invoice_id: Annotated[UUID, Meta(description="The invoice's UUID.")]
    line_id: Annotated[UUID, Meta(description="The line's UUID.")]
    codes: Annotated[list[WarnedCode], Meta(description="The codes of the open warnings.")]


class LeftOutLine(Struct, kw_only=True):
    """A line that isn't in the batch."""

    invoice_id: Annotated[UUID, Meta(description="The invoice's UUID.")]
    line_id: Annotated[UUID, Meta(description="The line's UUID.")]
    reason: Annotated[LeftOutReason, Meta(description="Why the line is left out.")]
    message: Annotated[str, Meta(description="A sentence for people. Its text can change.")]


class ClaimBatch(Struct, kw_only=True):
    """Lines that are claimed from the agency with one file."""

    id: Annotated[UUID | None, Meta(description="The batch's UUID; null in a dry run.")]
    number: Annotated[str | None, Meta(description="The number of the batch, such as `B000001`; null in a dry run.")]
    state: Annotated[BatchState, Meta(description="`draft`, `submitted`, `part_processed`, `processed`, `cancelled`.")]
    total: Annotated[Decimal, Meta(description="The sum of the claimed amounts, in dollars.")]
    lines: Annotated[int, Meta(description="The number of lines, at most 5,000.")]
    warned: Annotated[
        list[WarnedLine] | UnsetType,
        Meta(description="Lines with an open warning that doesn't keep them out. Not in lists and events."),
    ] = UNSET
    left_out: Annotated[
        list[LeftOutLine] | UnsetType,
        Meta(description="Lines that are left out, at most 5,000. Not in lists and events."),
    ] = UNSET
    left_out_count: Annotated[int, Meta(description="The number of all lines that are left out.")]
    created_at: CreatedAt
    created_by: Annotated[str | None, Meta(description="The account or the API key that made the batch.")]
    downloaded_at: Annotated[AwareDatetime | None, Meta(description="When the file was first downloaded, or null.")]
    downloaded_by: Annotated[str | None, Meta(description="Who downloaded it first, or null.")]
    submitted_at: Annotated[AwareDatetime | None, Meta(description="When the batch was submitted, or null.")]
    submitted_by: Annotated[str | None, Meta(description="The account or the API key that submitted it, or null.")]
    cancelled_at: Annotated[AwareDatetime | None, Meta(description="When the batch was cancelled, or null.")]
    cancelled_by: Annotated[str | None, Meta(description="The account or the API key that cancelled it, or null.")]
    cancel_reason: Annotated[str | None, Meta(description="Why the batch was cancelled, or null.")]
    updated_at: UpdatedAt


class Claim(Struct, kw_only=True):
    """A claim of a line of an invoice."""

    id: Annotated[UUID, Meta(description="The claim's UUID.")]
    invoice_id: Annotated[UUID, Meta(description="The invoice's UUID.")]
    line_id: Annotated[UUID, Meta(description="The line's UUID.")]
    source: Annotated[ClaimSource, Meta(description="`batch`, `elsewhere` or `imported`.")]
    batch_id: Annotated[UUID | None, Meta(description="The id of its claim batch, or null.")]
    position: Annotated[int | None, Meta(description="The row in the file of the batch, from 1, or null.")]
    reference: Annotated[str, Meta(description="The claim's reference, by which a result finds it.")]
    is_rest: Annotated[bool, Meta(description="Whether it claims the rest of a line that was paid in part.")]
    amount: Annotated[Decimal, Meta(description="The claimed amount, in dollars.")]
    paid: Annotated[
        Decimal | None,
        Meta(
            description="What the agency has paid for it, in dollars, or null before a result.",
            extra_json_schema={"type": ["number", "null"]},
        ),
    ] = None
    state: Annotated[
        ClaimState, Meta(description="`draft`, `submitted`, `paid`, `partially_paid`, `rejected` or `cancelled`.")
    ]
    reason: Annotated[str | None, Meta(description="Why it was rejected or cancelled, or null.")] = None
    agency_number: Annotated[str | None, Meta(description="The agency's number of the claim, or null.")] = None
    result_date: Annotated[date | None, Meta(description="The day of its result, or null.")] = None
    result_at: Annotated[AwareDatetime | None, Meta(description="When the result was recorded, or null.")] = None
    result_by: Annotated[str | None, Meta(description="The account or the API key that recorded it, or null.")] = None
    created_at: CreatedAt
    created_by: Annotated[str | None, Meta(description="The account or the API key that made it.")]
    updated_at: UpdatedAt


class NewClaim(Struct, kw_only=True):
    """A claim to insert. `fields` are those of the file."""

    id: UUID
    invoice_id: UUID
    line_id: UUID
    source: ClaimSource
    batch_id: UUID | None = None
    position: int | None = None
    reference: str
    is_rest: bool = False
    amount: Decimal
    fields: FileRow | None = None
    state: ClaimState
    paid: Decimal | None = None
    agency_number: str | None = None
    reason: str | None = None
    result_date: date | None = None
    result_at: AwareDatetime | None = None
    result_by: str | None = None
    created_at: AwareDatetime
    created_by: str | None


InvoiceIds = Annotated[list[UuidText], Meta(min_length=1, max_length=MAX_LINES)]


class NewClaimBatch(Struct, forbid_unknown_fields=True, kw_only=True):
    """The invoices whose lines are claimed: those with the ids, or all that can be claimed."""

    invoice_ids: Annotated[
        InvoiceIds | UnsetType, Meta(description="The invoices whose lines are claimed. Not allowed with `all`.")
    ] = UNSET
    all: Annotated[
        bool | UnsetType, Meta(description="`true`: claims the lines of all invoices, the first received first.")
    ] = UNSET


class ClaimBatchCreateQuery(Query, frozen=True):
    """Whether the batch is made, or only what it would contain is returned."""

    dry_run: Annotated[
        bool | UnsetType,
        EXTENSION,
        Meta(description="`true`: nothing is stored, and the response (200) says what the batch would contain."),
    ] = UNSET


class ClaimBatchCancel(Struct, forbid_unknown_fields=True, kw_only=True):
    """A batch can be cancelled only if its file hasn't been uploaded.

    A draft whose file was never downloaded needs neither field. For other batches, both are required.
    """

    uploaded: Annotated[
        bool | UnsetType, Meta(description="`false`: the file hasn't been uploaded to the agency's portal.")
    ] = UNSET
    reason: Annotated[ReasonText | UnsetType, Meta(description="Why the batch is cancelled.")] = UNSET


class ClaimBatchListQuery(ResourceListQuery, frozen=True):
    """Filters of the list, combined with AND."""

    sort: DefaultSort = UNSET
    state: StatesFilter[BatchState] = UNSET


class ClaimListQuery(ResourceListQuery, frozen=True):
    """Filters of the list, combined with AND."""

    sort: DefaultSort = UNSET
    state: StatesFilter[ClaimState] = UNSET
