"""Schemas of the requests that create and update invoices, and of their responses."""

from datetime import date
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.bulk import ITEMS, MATCH, ItemId
from plankeeper.core.fields import (
    EXTENSION,
    AwareDatetime,
    ExternalIdText,
    LongText,
    Query,
    Text50,
    Text255,
    UuidText,
    component,
)
from plankeeper.resources.invoices.schemas import (
    Amount,
    CancellationReason,
    ClaimType,
    GstCode,
    Invoice,
    Payee,
)

MAX_LINES = 1000  # of an invoice in a request

ReferenceMatch = Annotated[
    Literal["id", "number", "none", "several"],
    component(
        "ReferenceMatch",
        "How a participant or a provider was found. `id`: by its id, `number`: by its number, `none`: no record has"
        " the number, or nothing was sent, `several`: more than one record has the number.",
    ),
]


class Matched(Struct):
    """How the participant and the provider of an invoice were found."""

    participant: Annotated[ReferenceMatch, Meta(description="How the participant was found.")]
    provider: Annotated[ReferenceMatch, Meta(description="How the provider was found.")]


class SavedInvoice(Invoice, kw_only=True):
    """A created or updated invoice."""

    matched: Annotated[Matched, Meta(description="How the participant and the provider were found.")]


_IGNORED = Meta(
    description="Ignored in requests.", extra_json_schema={"readOnly": True, "x-plankeeper-extension": True}
)
Ignored = Annotated[Any, _IGNORED]


class LineItemUpdate(Struct, forbid_unknown_fields=True, kw_only=True):
    """A line of an invoice. With the id of a line it is that line, and omitted fields keep their values."""

    id: Annotated[UuidText | UnsetType, Meta(description="The line to update. Without an id, a line is created.")] = (
        UNSET
    )
    description: LongText | None | UnsetType = UNSET
    service_item_number: Text255 | None | UnsetType = UNSET
    service_date_from: date | None | UnsetType = UNSET
    service_date_to: date | None | UnsetType = UNSET
    quantity: Amount | UnsetType = UNSET
    unit_price: Amount | UnsetType = UNSET
    total_price: Amount | UnsetType = UNSET
    gst_code: GstCode | UnsetType = UNSET
    claim_type: ClaimType | None | UnsetType = UNSET
    cancellation_reason: CancellationReason | None | UnsetType = UNSET
    component_id: UuidText | None | UnsetType = UNSET
    # The other fields of a line in a response.
    invoice: Ignored = UNSET
    claim_status: Ignored = UNSET
    claim_batch_ref: Ignored = UNSET
    claim_number: Ignored = UNSET
    paid_amount: Ignored = UNSET
    rejection_reason: Ignored = UNSET
    payment_ref: Ignored = UNSET
    is_deleted: Ignored = UNSET
    created_at: Ignored = UNSET


class InvoiceUpdate(Struct, forbid_unknown_fields=True, kw_only=True):
    """A new invoice, or the changes of one. Omitted fields keep their values; null clears a value."""

    invoice_number: Text255 | None | UnsetType = UNSET
    invoice_date: date | None | UnsetType = UNSET
    received_at: AwareDatetime | UnsetType = UNSET
    due_date: date | None | UnsetType = UNSET
    participant_id: Annotated[
        UuidText | None | UnsetType, Meta(description="The participant. Not allowed with `participant_number`.")
    ] = UNSET
    participant_number: Annotated[
        Text50 | None | UnsetType,
        Meta(description="The number of the participant. If it isn't that of exactly one, the invoice has none."),
    ] = UNSET
    pm_provider_id: Annotated[
        UuidText | None | UnsetType, Meta(description="The provider. Not allowed with `provider_abn`.")
    ] = UNSET
    provider_abn: Annotated[
        Text50 | None | UnsetType,
        Meta(description="The ABN of the provider. If it isn't that of exactly one, the invoice has none."),
    ] = UNSET
    subtotal: Amount | UnsetType = UNSET
    tax: Amount | UnsetType = UNSET
    total: Amount | UnsetType = UNSET
    payee: Payee | UnsetType = UNSET
    assigned_to: Annotated[
        UuidText | None | UnsetType, Meta(description="An account with access to the plan manager, or null.")
    ] = UNSET
    external_id: ExternalIdText | None | UnsetType = UNSET
    line_items: Annotated[
        Annotated[list[LineItemUpdate], Meta(max_length=MAX_LINES)] | UnsetType,
        Meta(
            description="All lines of the invoice: existing lines that aren't in the list are deleted. A line without"
            " an id that equals an existing one in every field that it gives is that line."
        ),
    ] = UNSET


class InvoiceBulkItem(InvoiceUpdate):
    """An invoice to create or, with an id, to update."""

    id: ItemId = UNSET


class InvoiceBulk(Struct, forbid_unknown_fields=True, kw_only=True):
    """The invoices to create and to update."""

    items: Annotated[list[InvoiceBulkItem], ITEMS]


IncludeWarnings = Annotated[
    Annotated[list[Literal["warnings"]], Meta(max_length=10)] | UnsetType,
    EXTENSION,
    Meta(description="`warnings`: the invoice comes with the facts of its warnings."),
]


class InvoiceQuery(Query, frozen=True):
    """The parts of an invoice in a response."""

    include: IncludeWarnings = UNSET


InvoiceMatch = Annotated[
    Literal["external_id"], component("InvoiceMatch", "The fields by which invoices can be found.")
]


class InvoiceBulkQuery(Query, frozen=True):
    """How the items find their invoices, and the parts of an invoice in a response."""

    match: Annotated[InvoiceMatch | UnsetType, EXTENSION, MATCH] = UNSET
    include: IncludeWarnings = UNSET
