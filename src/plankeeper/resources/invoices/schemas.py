"""Schemas of invoices: responses, request bodies, queries and stored rows."""

from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, LiteralString
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.bulk import ITEMS, MATCH, ItemId
from plankeeper.core.fields import (
    EXTENSION,
    AwareDatetime,
    CreatedAt,
    ExternalIdText,
    LongText,
    Query,
    Text50,
    Text254,
    Text255,
    UpdatedAt,
    UuidText,
    component,
)
from plankeeper.core.lists import MAX_ENUM_VALUES, SORT, ExternalIdFilter, ResourceListQuery
from plankeeper.database.lists.statements import Filter, enum_filter
from plankeeper.resources.documents.schemas import Document
from plankeeper.resources.invoices.warning_schemas import WarningDetails
from plankeeper.resources.invoices.warnings import WarningCode

ClaimStatus = Annotated[
    Literal[
        "new",
        "flagged",
        "pending",
        "payment_ready",
        "partially_ready",
        "partially_paid",
        "paid",
        "rejected",
        "on_hold",
        "cancelled",
    ],
    component("ClaimStatus", "How far the claim for an invoice or for one of its lines has come."),
]
ApprovalDecider = Annotated[
    Literal["participant", "team_member", "automatic"],
    component("ApprovalDecider", "Who has approved or rejected an invoice."),
]
ApprovalStatus = Annotated[
    Literal["not_required", "pending", "approved", "rejected"],
    component("ApprovalStatus", "Whether an invoice has been approved, if its participant requires approval."),
]

Payee = Annotated[
    Literal["provider", "participant"],
    component("Payee", "Who is paid: the provider, or the participant, who is reimbursed."),
]
GstCode = Annotated[
    Literal["P1", "P2", "P5"], component("GstCode", "`P1`: taxable at 10 %, `P2`: GST-free, `P5`: out of scope.")
]
ClaimType = Annotated[
    Literal["CANC", "REPW", "TRAN", "NF2F", "THLT", "IRSS"],
    component(
        "ClaimType",
        "What a line is claimed for, unless it is a direct service. `CANC`: a cancellation, `REPW`: a report, `TRAN`:"
        " the provider's travel, `NF2F`: support that isn't face to face, `THLT`: telehealth, `IRSS`: irregular"
        " supported independent living.",
    ),
]
CancellationReason = Annotated[
    Literal["NSDH", "NSDF", "NSDT", "NSDO"],
    component(
        "CancellationReason",
        "Why a service was cancelled at short notice. `NSDH`: health, `NSDF`: family, `NSDT`: transport, `NSDO`:"
        " another reason.",
    ),
]

MAX_LINES = 1000  # of an invoice in a request

# An exact JSON number: stored as `numeric`, never converted to floating point.
Amount = Annotated[Decimal | None, Meta(extra_json_schema={"type": ["number", "null"]})]


class StateManagement(Struct):
    """The results of the checks of an invoice."""

    errors: Annotated[list[str], Meta(description="The codes of all warnings, as of the last check.")]
    ignored_errors: Annotated[list[str], Meta(description="The codes that don't set the invoice's `errors`.")]


class InvoiceValues(Struct):
    """The fields that an invoice has in responses and in exports."""

    id: Annotated[UUID, Meta(description="The invoice's UUID.")]
    invoice_number: Annotated[
        str | None,
        Meta(description="The provider's number for the invoice, or null. Several invoices can have the same one."),
    ]
    invoice_date: Annotated[date | None, Meta(description="The date on the invoice, or null.")]
    total: Annotated[Amount, Meta(description="In dollars, including tax, or null.")]
    tax: Annotated[Amount, Meta(description="In dollars, or null.")]
    subtotal: Annotated[Amount, Meta(description="In dollars, excluding tax, or null.")]
    plan_manager: Annotated[UUID, Meta(description="The plan manager's id.")]
    participant_id: Annotated[
        UUID | None,
        Meta(description="The participant's UUID, or null. It stays the same when the participant is deleted."),
    ]
    claim_status: Annotated[
        ClaimStatus,
        Meta(
            description="`new` (the default), `flagged`, `pending`, `payment_ready`, `partially_ready`,"
            " `partially_paid`, `paid`, `rejected`, `on_hold` or `cancelled`."
        ),
    ]
    approval_status: Annotated[
        ApprovalStatus, Meta(description="`not_required` (the default), `pending`, `approved` or `rejected`.")
    ]
    created_at: CreatedAt
    pm_provider_id: Annotated[
        UUID | None, Meta(description="The provider's UUID, or null. It stays the same when the provider is deleted.")
    ]
    s3_key: Annotated[str | None, Meta(description="Where the document is stored, or null.")]
    email_message_id: Annotated[
        str | None, Meta(description="The id of the email that contained the invoice, or null.")
    ]
    errors: Annotated[bool, Meta(description="Whether the invoice has a warning that isn't ignored.")]
    state_management: Annotated[
        StateManagement,
        Meta(description="`errors`: the codes of all warnings. `ignored_errors`: the codes that don't set `errors`."),
    ]
    is_deleted: Annotated[
        bool, Meta(description="Whether the invoice has been deleted. Lists include deleted invoices.")
    ]
    wont_claim: Annotated[bool, Meta(description="Whether the plan manager has decided not to claim the invoice.")]
    is_reimbursement: Annotated[
        bool, Meta(description="Whether the participant has paid the invoice and is reimbursed.")
    ]
    is_duplicate: Annotated[bool, Meta(description="Whether `possible_duplicate` is among the warnings.")]
    payee: Annotated[
        Payee,
        Meta(description="`provider`, or `participant` for a reimbursement. `is_reimbursement` follows it."),
    ]
    received_at: Annotated[
        AwareDatetime, Meta(description="When the plan manager received the invoice. Default: `created_at`.")
    ]
    due_date: Annotated[date | None, Meta(description="The day by which the provider expects payment, or null.")]
    assigned_to: Annotated[UUID | None, Meta(description="The account that works on the invoice, or null.")]
    held_at: Annotated[AwareDatetime | None, Meta(description="Since when the invoice is on hold, or null.")]
    held_by: Annotated[str | None, Meta(description="The name of the account or the API key that put it on hold.")]
    hold_reason: Annotated[str | None, Meta(description="Why the invoice is on hold, or null.")]
    cancelled_at: Annotated[AwareDatetime | None, Meta(description="When the invoice was cancelled, or null.")]
    closing_reason: Annotated[
        str | None, Meta(description="Why the invoice was cancelled, or why it isn't claimed, or null.")
    ]
    approval_decided_at: Annotated[
        AwareDatetime | None, Meta(description="When the invoice was approved or rejected, or null.")
    ]
    approval_decided_by: Annotated[
        ApprovalDecider | None,
        Meta(description="`participant`, `team_member`, or `automatic` without an answer; null without a decision."),
    ]
    approval_team_member_id: Annotated[
        UUID | None, Meta(description="The id of the team member who has decided, or null.")
    ]
    approval_reason: Annotated[
        str | None, Meta(description="Why the invoice was approved or rejected, or how the answer came, or null.")
    ]
    external_id: Annotated[
        str | None, Meta(description="The invoice's id in another system, unique in the plan manager, or null.")
    ]
    ambiguous_participant_number: Annotated[
        str | None,
        Meta(description="The participant number that was sent if several participants have it, or null."),
    ]
    ambiguous_provider_abn: Annotated[
        str | None, Meta(description="The ABN that was sent if several providers have it, or null.")
    ]


class LineItem(Struct):
    """One line of an invoice."""

    id: Annotated[UUID, Meta(description="The line's UUID.")]
    invoice: Annotated[UUID, Meta(description="The invoice's id.")]
    description: Annotated[str | None, Meta(description="What was delivered, or null.")]
    service_item_number: Annotated[str | None, Meta(description="The support item number, or null.")]
    service_date_from: Annotated[date | None, Meta(description="The first day of the service, or null.")]
    service_date_to: Annotated[date | None, Meta(description="The last day of the service, or null.")]
    quantity: Annotated[Amount, Meta(description="Hours, or any other unit of the support item, or null.")]
    unit_price: Annotated[Amount, Meta(description="In dollars, or null.")]
    total_price: Annotated[Amount, Meta(description="In dollars, excluding tax, or null.")]
    gst_code: Annotated[GstCode, Meta(description="`P1`, `P2` (the default) or `P5`.")]
    amount: Annotated[
        Amount,
        Meta(description="What the line costs, in dollars, including tax. Null without a price, or if deleted."),
    ]
    claim_type: Annotated[ClaimType | None, Meta(description="What is claimed, or null for a direct service.")]
    cancellation_reason: Annotated[
        CancellationReason | None, Meta(description="Why the service was cancelled, with the claim type `CANC`.")
    ]
    component_id: Annotated[
        UUID | None, Meta(description="The component of the participant's plan that the line names, or null.")
    ]
    claim_status: Annotated[ClaimStatus, Meta(description="As on the invoice.")]
    claim_batch_ref: Annotated[str | None, Meta(description="The reference of the batch of claims, or null.")]
    claim_number: Annotated[str | None, Meta(description="The number of the claim, or null.")]
    paid_amount: Annotated[
        Amount, Meta(description="What the agency has paid for the line, in dollars, or null before a result.")
    ]
    rejection_reason: Annotated[str | None, Meta(description="Why the agency has rejected the claim, or null.")]
    payment_ref: Annotated[str | None, Meta(description="The reference of the payment, or null.")]
    closing_reason: Annotated[str | None, Meta(description="Why the line was cancelled, or null.")]
    open_claim_batch: Annotated[
        str | None, Meta(description="The number of the draft or submitted claim batch that the line is in, or null.")
    ]
    open_payment_run: Annotated[
        str | None, Meta(description="The number of the draft payment run that the line is in, or null.")
    ]
    has_payment: Annotated[
        bool, Meta(description="Whether the payee has been paid for the line, or the payment is in a draft run.")
    ]
    is_rest_waiting: Annotated[
        bool, Meta(description="Whether the unpaid rest of the line is for the next claim batch.")
    ]
    is_deleted: Annotated[bool, Meta(description="Whether the line has been deleted. The checks ignore deleted lines.")]
    created_at: CreatedAt


class Invoice(InvoiceValues):
    """An invoice."""

    document: Annotated[Document | None, Meta(description="The current document, or null.")]
    updated_at: UpdatedAt
    line_items: Annotated[
        list[LineItem] | UnsetType,
        Meta(description="All lines of the invoice, in its order. In a list only with `include=line_items`."),
    ]
    warnings: Annotated[
        list[WarningDetails] | UnsetType,
        EXTENSION,
        Meta(description="The facts of each warning. Only with `include=warnings`."),
    ] = UNSET


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
    amount: Ignored = UNSET
    claim_status: Ignored = UNSET
    claim_batch_ref: Ignored = UNSET
    claim_number: Ignored = UNSET
    paid_amount: Ignored = UNSET
    rejection_reason: Ignored = UNSET
    payment_ref: Ignored = UNSET
    closing_reason: Ignored = UNSET
    open_claim_batch: Ignored = UNSET
    open_payment_run: Ignored = UNSET
    has_payment: Ignored = UNSET
    is_rest_waiting: Ignored = UNSET
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


class InvoiceRecord(InvoiceValues):
    """An invoice as exports have it."""

    line_items: list[LineItem]


class InvoiceStatusRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """The provider and the number of the invoices to look up."""

    provider_email: Annotated[Text254, Meta(description="The email of the provider, ignoring case.")]
    invoice_number: Annotated[Text255, Meta(description="The provider's number for the invoice, exactly.")]


class InvoiceStatusData(Struct):
    """The invoices with a number."""

    invoices: Annotated[
        list[Invoice], Meta(description="All invoices with the number, of all providers with the email.")
    ]


class InvoiceStatusResponse(Struct):
    """Where the invoices with a number stand."""

    success: Annotated[bool, Meta(description="Always `true`.")]
    message: Annotated[str, Meta(description="The number of invoices, as a sentence.")]
    data: Annotated[InvoiceStatusData, Meta(description="The invoices that were found.")]


InvoiceSort = Annotated[
    Literal["id", "-id", "updated_at", "-updated_at", "invoice_date", "-invoice_date", "total", "-total"],
    component("InvoiceSort", "The order of the list of invoices; `-` reverses it."),
]


# The index has the invoices with a warning that isn't ignored.
WARNING_FILTER = Filter(
    "warning_codes <> '{{}}' and warning_codes @> array[{0}]",
    "warning_codes <> '{{}}' and warning_codes && {0}::text[]",
    label="Warning",
)


_HAS_LINE: LiteralString = """id in (
        select invoice_id from invoice_lines
        where plan_manager_id = $1 and not is_deleted and claim_status = {condition}
    )"""
LINE_FILTER = Filter(_HAS_LINE.replace("{condition}", "{}"), _HAS_LINE.replace("{condition}", "any ({}::text[])"))


class InvoiceListQuery(ResourceListQuery, frozen=True):
    """Filters of the list, combined with AND."""

    sort: Annotated[InvoiceSort | UnsetType, EXTENSION, SORT] = UNSET
    include: Annotated[
        Annotated[list[Literal["line_items", "warnings"]], Meta(max_length=10)] | UnsetType,
        EXTENSION,
        Meta(
            description="`line_items`: each invoice comes with its lines. `warnings`: with the facts of its warnings."
            " Separated by commas."
        ),
    ] = UNSET
    participant_id: Annotated[
        UuidText | UnsetType,
        Meta(description="Returns items of this participant."),
        Filter("participant_id = {}", label="Participant"),
    ] = UNSET
    provider_id: Annotated[
        UuidText | UnsetType,
        Meta(description="Returns items of this provider."),
        Filter("pm_provider_id = {}", label="Provider"),
    ] = UNSET
    claim_status: Annotated[
        Annotated[list[ClaimStatus], Meta(max_length=MAX_ENUM_VALUES)] | UnsetType,
        Meta(description="Returns items with one of these claim statuses, separated by commas."),
        enum_filter("claim_status", label="Claim status"),
    ] = UNSET
    approval_status: Annotated[
        Annotated[list[ApprovalStatus], Meta(max_length=MAX_ENUM_VALUES)] | UnsetType,
        Meta(description="Returns items with one of these approval statuses, separated by commas."),
        enum_filter("approval_status", label="Approval"),
    ] = UNSET
    is_deleted: Annotated[
        bool | UnsetType,
        EXTENSION,
        Meta(description="Returns items that have been deleted (`true`) or not (`false`)."),
        Filter("is_deleted = {}", label="Deleted"),
    ] = UNSET
    invoice_number: Annotated[
        Text255 | UnsetType,
        Meta(description="Returns items with exactly this number."),
        Filter("invoice_number = {}", label="Number"),
    ] = UNSET
    invoice_date_from: Annotated[
        date | UnsetType,
        Meta(description="Returns items dated this day or later."),
        Filter("invoice_date >= {}", label="Invoice date"),
    ] = UNSET
    invoice_date_to: Annotated[
        date | UnsetType,
        Meta(description="Returns items dated this day or earlier."),
        Filter("invoice_date <= {}", label="Invoice date"),
    ] = UNSET
    total_min: Annotated[
        Decimal | UnsetType,
        Meta(description="Returns items with this total or a higher one."),
        Filter("total >= {}", label="Total"),
    ] = UNSET
    total_max: Annotated[
        Decimal | UnsetType,
        Meta(description="Returns items with this total or a lower one."),
        Filter("total <= {}", label="Total"),
    ] = UNSET
    line_claim_status: Annotated[
        Annotated[list[ClaimStatus], Meta(max_length=MAX_ENUM_VALUES)] | UnsetType,
        EXTENSION,
        Meta(
            description="Returns items with a line that has one of these claim statuses, separated by commas, and"
            " isn't deleted."
        ),
        LINE_FILTER,
    ] = UNSET
    assigned_to: Annotated[
        UuidText | UnsetType,
        EXTENSION,
        Meta(description="Returns items that are assigned to this account."),
        Filter("assigned_to = {}"),
    ] = UNSET
    external_id: ExternalIdFilter = UNSET
    warning: Annotated[
        Annotated[list[WarningCode], Meta(max_length=MAX_ENUM_VALUES)] | UnsetType,
        Meta(description="Returns items with one of these warnings, separated by commas, which nobody has ignored."),
        WARNING_FILTER,
    ] = UNSET


class InvoiceLineRow(Struct, kw_only=True):
    """A stored line; `position` is its index in the invoice, from 0."""

    invoice_id: UUID
    id: UUID
    position: int
    description: str | None = None
    service_item_number: str | None = None
    service_date_from: date | None = None
    service_date_to: date | None = None
    quantity: Decimal | None = None
    unit_price: Decimal | None = None
    total_price: Decimal | None = None
    gst_code: GstCode = "P2"
    amount: Decimal | None = None
    claim_type: ClaimType | None = None
    cancellation_reason: CancellationReason | None = None
    component_id: UUID | None = None
    claim_status: ClaimStatus = "new"
    claim_batch_ref: str | None = None
    claim_number: str | None = None
    paid_amount: Decimal | None = None
    rejection_reason: str | None = None
    payment_ref: str | None = None
    closing_reason: str | None = None
    open_claim_batch: str | None = None
    open_payment_run: str | None = None
    has_payment: bool = False
    is_rest_waiting: bool = False
    is_deleted: bool = False
    created_at: AwareDatetime


class InvoiceRow(Struct, kw_only=True):
    """A stored invoice, without its lines."""

    id: UUID
    invoice_number: str | None = None
    invoice_date: date | None = None
    total: Decimal | None = None
    tax: Decimal | None = None
    subtotal: Decimal | None = None
    participant_id: UUID | None = None
    claim_status: ClaimStatus = "new"
    approval_status: ApprovalStatus = "not_required"
    created_at: AwareDatetime
    pm_provider_id: UUID | None = None
    s3_key: str | None = None
    email_message_id: str | None = None
    ignored_error_codes: list[str] = []
    is_deleted: bool = False
    wont_claim: bool = False
    is_reimbursement: bool = False
    received_at: AwareDatetime
    due_date: date | None = None
    assigned_to: UUID | None = None
    held_at: AwareDatetime | None = None
    held_by: str | None = None
    hold_reason: str | None = None
    cancelled_at: AwareDatetime | None = None
    closing_reason: str | None = None
    approval_decided_at: AwareDatetime | None = None
    approval_decided_by: ApprovalDecider | None = None
    approval_team_member_id: UUID | None = None
    approval_reason: str | None = None
    external_id: str | None = None
    ambiguous_participant_number: str | None = None
    ambiguous_provider_abn: str | None = None
