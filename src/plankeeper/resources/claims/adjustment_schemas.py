"""Schemas of adjustments and recoveries."""

import datetime as dt
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import CreatedAt, Text255, UpdatedAt, UuidText, component
from plankeeper.core.lists import DefaultSort, ResourceListQuery, UuidListQuery
from plankeeper.resources.claims.result_schemas import Money
from plankeeper.resources.invoices.action_schemas import ReasonText
from plankeeper.resources.invoices.schemas import Invoice, Payee

AdjustmentKind = Annotated[
    Literal["agency_reversal", "provider_refund", "repaid_to_agency"],
    component(
        "AdjustmentKind",
        "`agency_reversal`: the agency takes back what it has paid. `provider_refund`: the payee returns money to the"
        " office. `repaid_to_agency`: the office returns money to the agency.",
    ),
]


class NewAdjustment(Struct, forbid_unknown_fields=True, kw_only=True):
    """What has happened to the money of a line after its result."""

    line_id: Annotated[UuidText, Meta(description="The line of the invoice.")]
    kind: Annotated[
        AdjustmentKind,
        Meta(description="`agency_reversal` requires the scope `claims`, and the other kinds `payments`."),
    ]
    amount: Annotated[Money, Meta(description="In dollars, above zero.")]
    date: Annotated[dt.date, Meta(description="The day from which it counts, not in the future.")]
    reference: Annotated[Text255 | None | UnsetType, Meta(description="The reference of the agency or the bank.")] = (
        UNSET
    )
    reason: Annotated[ReasonText | None | UnsetType, Meta(description="The reason, for the people who read it.")] = (
        UNSET
    )


class Adjustment(Struct, kw_only=True):
    """What has happened to the money of a line after its result."""

    id: Annotated[UUID, Meta(description="The adjustment's UUID.")]
    invoice_id: Annotated[UUID, Meta(description="The invoice's UUID.")]
    line_id: Annotated[UUID, Meta(description="The line's UUID.")]
    kind: Annotated[AdjustmentKind, Meta(description="`agency_reversal`, `provider_refund` or `repaid_to_agency`.")]
    amount: Annotated[Decimal, Meta(description="In dollars, above zero.")]
    date: Annotated[dt.date, Meta(description="The day from which it counts.")]
    reference: Annotated[str | None, Meta(description="The reference of the agency or the bank, or null.")]
    reason: Annotated[str | None, Meta(description="The reason, or null.")]
    created_at: CreatedAt
    created_by: Annotated[str | None, Meta(description="The account or the API key that recorded it.")]
    updated_at: UpdatedAt


class AdjustedInvoice(Invoice, kw_only=True):
    """The invoice in the event of an adjustment."""

    adjustment: Annotated[Adjustment, Meta(description="In `invoice.adjusted`: what has happened.")]


class AdjustmentListQuery(ResourceListQuery, frozen=True):
    """The query of the list."""

    sort: DefaultSort = UNSET


class RecoveryListQuery(UuidListQuery, frozen=True):
    """The list has no filters: recoveries aren't stored."""


class Recovery(Struct, kw_only=True):
    """A line that was paid out, and whose money the agency has taken back since.

    It is listed until the payee has returned `to_recover`, and the office has returned `to_repay`.
    """

    id: Annotated[UUID, Meta(description="The UUID of the line's first reversal.")]
    invoice_id: Annotated[UUID, Meta(description="The invoice's UUID.")]
    line_id: Annotated[UUID, Meta(description="The line's UUID.")]
    invoice_number: Annotated[str | None, Meta(description="The invoice's number, or null.")]
    payee: Annotated[Payee, Meta(description="Who was paid: `provider` or `participant`.")]
    payee_id: Annotated[UUID | None, Meta(description="The id of the provider or the participant, or null.")]
    payee_name: Annotated[str | None, Meta(description="The payee's name, or null for one that was deleted.")]
    since: Annotated[dt.date, Meta(description="The day of the first reversal.")]
    reversed: Annotated[Decimal, Meta(description="What the agency has taken back, in dollars.")]
    refunded: Annotated[Decimal, Meta(description="What the payee has returned, in dollars.")]
    repaid: Annotated[Decimal, Meta(description="What the office has returned to the agency, in dollars.")]
    to_recover: Annotated[Decimal, Meta(description="What the payee still has to return, in dollars.")]
    to_repay: Annotated[
        Decimal,
        Meta(
            description="What the office still has to return to the agency, in dollars. A reversal of money that wasn't"
            " paid out isn't part of it."
        ),
    ]
