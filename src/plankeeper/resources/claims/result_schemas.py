"""Schemas of the agency's answers to claims: results of a batch, results and claims of single lines, receipts."""

import datetime as dt
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import EXTENSION, CreatedAt, Query, Text255, UpdatedAt, UuidText, component
from plankeeper.core.lists import DefaultSort, ResourceListQuery
from plankeeper.resources.claims.schemas import BatchState, ClaimBatch
from plankeeper.resources.invoices.action_schemas import ReasonText

Money = Annotated[Decimal, Meta(extra_json_schema={"type": "number"})]
Reference = Annotated[str, Meta(min_length=1, max_length=255)]
MAX_LINE_IDS = 500


class ResultsQuery(Query, frozen=True):
    """Whether the results are applied, or only what they would change is returned."""

    dry_run: Annotated[
        bool | UnsetType,
        EXTENSION,
        Meta(description="`true`: nothing is stored, and the response says what the file would change."),
    ] = UNSET


class UnmatchedRow(Struct, frozen=True):
    """A row of a results file that changes nothing."""

    row: Annotated[int, Meta(description="The row of the file, from 1, with the header.")]
    message: Annotated[str, Meta(description="Why it changes nothing. Its text can change.")]


class ClaimResults(Struct, frozen=True):
    """What the rows of a results file say. Lines whose result was applied before are counted, too."""

    state: Annotated[BatchState, Meta(description="The state of the batch, in a dry run the one it would have.")]
    paid: Annotated[int, Meta(description="The number of lines that the agency has paid in full.")]
    partially_paid: Annotated[int, Meta(description="The number of lines that it has paid in part.")]
    rejected: Annotated[int, Meta(description="The number of lines that it has rejected.")]
    unmatched: Annotated[list[UnmatchedRow], Meta(description="The rows that change nothing, in their order.")]


class AppliedResults(Struct, frozen=True):
    """What has changed with a results file, for its event."""

    paid: Annotated[int, Meta(description="The number of lines that are now paid in full.")]
    partially_paid: Annotated[int, Meta(description="The number of lines that are now paid in part.")]
    rejected: Annotated[int, Meta(description="The number of lines that are now rejected.")]
    held: Annotated[int, Meta(description="The number of invoices that are now on hold: a cancelled claim was paid.")]
    unmatched: Annotated[int, Meta(description="The number of rows that changed nothing.")]


class NewReceipt(Struct, forbid_unknown_fields=True, kw_only=True):
    """Money from the agency that has arrived."""

    date: Annotated[dt.date, Meta(description="The day on which the money arrived.")]
    amount: Annotated[Money, Meta(description="In dollars. A correction of earlier receipts is below zero.")]
    reference: Annotated[Text255 | None | UnsetType, Meta(description="The bank's reference.")] = UNSET


class Receipt(Struct, kw_only=True):
    """Money from the agency that has arrived for the claims of a batch."""

    id: Annotated[UUID, Meta(description="The receipt's UUID.")]
    batch_id: Annotated[UUID, Meta(description="The claim batch's UUID.")]
    date: Annotated[dt.date, Meta(description="The day on which the money arrived.")]
    amount: Annotated[Decimal, Meta(description="In dollars; below zero for a correction.")]
    reference: Annotated[str | None, Meta(description="The bank's reference, or null.")]
    created_at: CreatedAt
    created_by: Annotated[str | None, Meta(description="The account or the API key that recorded it.")]
    updated_at: UpdatedAt


class ReceiptListQuery(ResourceListQuery, frozen=True):
    """The query of the list."""

    sort: DefaultSort = UNSET


class ClaimBatchEvent(ClaimBatch, kw_only=True):
    """A claim batch with what has happened to it, for its events."""

    results: Annotated[
        AppliedResults | UnsetType, Meta(description="In `claim_batch.results_applied`: what has changed.")
    ] = UNSET
    receipt: Annotated[
        Receipt | UnsetType, Meta(description="In `claim_batch.receipt_recorded`: the money that has arrived.")
    ] = UNSET


ResultOutcome = Annotated[
    Literal["paid", "rejected", "cancelled"],
    component(
        "ClaimResultOutcome",
        "`paid`: in full or in part. `cancelled`: the claim was cancelled in the agency's portal.",
    ),
]


class LineClaimResult(Struct, forbid_unknown_fields=True, kw_only=True):
    """The agency's answer to the claim of a line, recorded by hand."""

    outcome: Annotated[ResultOutcome, Meta(description="`paid`, `rejected` or `cancelled`.")]
    amount: Annotated[
        Money | None | UnsetType,
        Meta(
            description="With `paid`: what the agency has paid, in dollars, at most the claimed amount.",
            extra_json_schema={"type": ["number", "null"]},
        ),
    ] = UNSET
    reason: Annotated[
        ReasonText | None | UnsetType, Meta(description="Why it was rejected, cancelled or paid in part.")
    ] = UNSET
    date: Annotated[
        dt.date | UnsetType, Meta(description="The day of the result, not in the future. Default: today.")
    ] = UNSET
    reference: Annotated[Text255 | None | UnsetType, Meta(description="The agency's number of the claim.")] = UNSET
    replaces_result: Annotated[
        bool | UnsetType,
        Meta(
            description="`true`: the recorded result of the line's last claim is wrong, and this one replaces it. Its"
            " money must not have been paid out, adjusted, or put into a payment run."
        ),
    ] = UNSET


class ClaimedElsewhere(Struct, forbid_unknown_fields=True, kw_only=True):
    """Lines that were claimed outside of Plankeeper."""

    reference: Annotated[Reference, Meta(description="The reference of the claim.")]
    line_ids: Annotated[
        Annotated[list[UuidText], Meta(min_length=1, max_length=MAX_LINE_IDS)] | UnsetType,
        Meta(description="The lines. Default: all new and flagged lines."),
    ] = UNSET
