"""Schemas of the reconciliation of the money that the office holds."""

from datetime import date
from decimal import Decimal
from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType, field

from plankeeper.core.fields import EXTENSION, Query


class ReconciliationQuery(Query, frozen=True):
    """The first and the last day."""

    first: Annotated[
        date | UnsetType,
        EXTENSION,
        Meta(description="The first day. The default is the first day of the month of `to`."),
    ] = field(default=UNSET, name="from")
    last: Annotated[date | UnsetType, EXTENSION, Meta(description="The last day. The default is today.")] = field(
        default=UNSET, name="to"
    )


class HeldLine(Struct, kw_only=True):
    """A line whose money the office holds, or money of a claim batch that belongs to no line yet."""

    invoice_id: Annotated[UUID | None, Meta(description="The invoice's UUID, or null.")]
    line_id: Annotated[UUID | None, Meta(description="The line's UUID, or null.")]
    claim_batch_id: Annotated[
        UUID | None,
        Meta(description="Only of receipts beyond the results of their claim batch: the batch's UUID, or null."),
    ]
    amount: Annotated[Decimal, Meta(description="In dollars; negative if more was paid out than received.")]


class Reconciliation(Struct, kw_only=True):
    """What the office held, received, paid out and holds, in dollars."""

    first: Annotated[date, Meta(description="The first day.")] = field(name="from")
    last: Annotated[date, Meta(description="The last day.")] = field(name="to")
    opening: Annotated[Decimal, Meta(description="What the office held before the first day.")]
    received: Annotated[
        Decimal,
        Meta(
            description="What the agency has paid: by receipts, if the office requires them, and otherwise by the dates"
            " of results."
        ),
    ]
    paid_out: Annotated[Decimal, Meta(description="The payments of runs, by the days on which the bank has paid.")]
    returned: Annotated[Decimal, Meta(description="The payments that the bank sent back.")]
    refunded: Annotated[Decimal, Meta(description="What payees have refunded.")]
    repaid: Annotated[Decimal, Meta(description="What was repaid to the agency.")]
    fees: Annotated[Decimal, Meta(description="The office's own fees that were taken.")]
    closing: Annotated[Decimal, Meta(description="What the office held at the end of the last day.")]
    lines: Annotated[
        list[HeldLine], Meta(description="The lines whose money the office held then; they add up to `closing`.")
    ]


class LineMoney(Struct, kw_only=True):
    """The money of a line, or of the receipts of a batch beyond its results, before and between the two days."""

    invoice_id: UUID | None
    line_id: UUID | None
    claim_batch_id: UUID | None
    opening: Decimal
    received: Decimal
    paid_out: Decimal
    returned: Decimal
    refunded: Decimal
    repaid: Decimal
    fees: Decimal

    @property
    def closing(self) -> Decimal:
        incoming = self.received + self.returned + self.refunded
        return self.opening + incoming - self.paid_out - self.repaid - self.fees
