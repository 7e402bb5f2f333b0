"""Schemas of invoices: responses, request bodies, queries and stored rows."""

from datetime import date
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.http.pagination import UuidListQuery
from plankeeper.http.schemas import AwareDatetime, LongText, NewId, Text254, Text255, UuidText, component

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
ApprovalStatus = Annotated[
    Literal["not_required", "pending", "approved", "rejected"],
    component("ApprovalStatus", "Whether an invoice has been approved, if its participant requires approval."),
]

# An exact JSON number: stored as `numeric`, never converted to floating point.
Amount = Annotated[Decimal | None, Meta(extra_json_schema={"type": ["number", "null"]})]


class StateManagement(Struct):
    """The results of the checks."""

    errors: Annotated[list[str], Meta(description="Codes of the error catalogue, from the last check.")]
    ignored_errors: Annotated[list[str], Meta(description="Codes that do not count as errors here.")]


class Invoice(Struct):
    """An invoice in the list."""

    id: UUID
    invoice_number: str | None
    invoice_date: date | None
    total: Amount
    tax: Amount
    subtotal: Amount
    plan_manager: Annotated[UUID, Meta(description="The plan manager's id.")]
    participant_id: UUID | None
    claim_status: ClaimStatus
    approval_status: ApprovalStatus
    created_at: AwareDatetime
    pm_provider_id: UUID | None
    s3_key: str | None
    email_message_id: str | None
    errors: Annotated[bool, Meta(description="Whether the checks reported an error that is not ignored.")]
    state_management: StateManagement
    is_deleted: bool
    wont_claim: bool
    is_reimbursement: bool
    is_duplicate: bool


class LineItem(Struct):
    """One line of an invoice."""

    id: UUID
    invoice: Annotated[UUID, Meta(description="The invoice's id.")]
    description: str | None
    service_item_number: str | None
    quantity: Amount
    unit_price: Amount
    total_price: Amount
    claim_status: ClaimStatus
    claim_batch_ref: str | None
    claim_number: str | None
    payment_ref: str | None
    is_deleted: bool
    created_at: AwareDatetime


class InvoiceWithLines(Invoice):
    """An invoice with its lines."""

    line_items: list[LineItem]


class InvoiceStatusRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """The provider and the number to look up."""

    provider_email: Text254
    invoice_number: Text255


class InvoiceStatusData(Struct):
    """The matching invoices."""

    invoices: list[Invoice]


class InvoiceStatusResponse(Struct):
    """The status of the invoices with a number."""

    success: bool
    message: str
    data: InvoiceStatusData


class InvoiceListQuery(UuidListQuery):
    """Filters of the list, combined with AND."""

    participant_id: UuidText | UnsetType = UNSET
    provider_id: UuidText | UnsetType = UNSET
    claim_status: ClaimStatus | UnsetType = UNSET
    approval_status: ApprovalStatus | UnsetType = UNSET
    invoice_number: Text255 | UnsetType = UNSET
    updated_since: Annotated[AwareDatetime | UnsetType, Meta(description="Changed at or after this time.")] = UNSET


class InvoiceLineRow(Struct, kw_only=True):
    """A stored line; `position` is its index in the invoice, from 0."""

    invoice_id: UUID | str
    id: UUID | str
    position: int
    description: str | None = None
    service_item_number: str | None = None
    quantity: Decimal | None = None
    unit_price: Decimal | None = None
    total_price: Decimal | None = None
    claim_status: ClaimStatus = "new"
    claim_batch_ref: str | None = None
    claim_number: str | None = None
    payment_ref: str | None = None
    is_deleted: bool = False
    created_at: AwareDatetime


class InvoiceRow(Struct, kw_only=True):
    """A stored invoice, without its lines."""

    id: UUID | str
    invoice_number: str | None = None
    invoice_date: date | None = None
    total: Decimal | None = None
    tax: Decimal | None = None
    subtotal: Decimal | None = None
    participant_id: UUID | str | None = None
    claim_status: ClaimStatus = "new"
    approval_status: ApprovalStatus = "not_required"
    created_at: AwareDatetime
    pm_provider_id: UUID | str | None = None
    s3_key: str | None = None
    email_message_id: str | None = None
    ignored_error_codes: list[str] = []
    is_deleted: bool = False
    wont_claim: bool = False
    is_reimbursement: bool = False


class StateManagementImport(Struct, forbid_unknown_fields=True, kw_only=True):
    """The import uses `ignored_errors` only; the checks compute `errors`."""

    errors: list[Text255] | UnsetType = UNSET
    ignored_errors: list[Text255] | UnsetType = UNSET


class InvoiceLineImport(Struct, forbid_unknown_fields=True, kw_only=True):
    """A line of an invoice in an import."""

    id: NewId | UnsetType = UNSET
    invoice: UuidText | UnsetType = UNSET
    description: LongText | None | UnsetType = UNSET
    service_item_number: Text255 | None | UnsetType = UNSET
    quantity: Decimal | None | UnsetType = UNSET
    unit_price: Decimal | None | UnsetType = UNSET
    total_price: Decimal | None | UnsetType = UNSET
    claim_status: ClaimStatus | UnsetType = UNSET
    claim_batch_ref: Text255 | None | UnsetType = UNSET
    claim_number: Text255 | None | UnsetType = UNSET
    payment_ref: Text255 | None | UnsetType = UNSET
    is_deleted: bool | UnsetType = UNSET
    created_at: AwareDatetime | UnsetType = UNSET


class InvoiceImport(Struct, forbid_unknown_fields=True, kw_only=True):
    """A record of an import. The checks compute their results; values in the file are ignored."""

    id: NewId | UnsetType = UNSET
    invoice_number: Text255 | None | UnsetType = UNSET
    invoice_date: date | None | UnsetType = UNSET
    total: Decimal | None | UnsetType = UNSET
    tax: Decimal | None | UnsetType = UNSET
    subtotal: Decimal | None | UnsetType = UNSET
    plan_manager: UuidText | UnsetType = UNSET
    participant_id: UuidText | None | UnsetType = UNSET
    claim_status: ClaimStatus | UnsetType = UNSET
    approval_status: ApprovalStatus | UnsetType = UNSET
    created_at: AwareDatetime | UnsetType = UNSET
    pm_provider_id: UuidText | None | UnsetType = UNSET
    s3_key: Text255 | None | UnsetType = UNSET
    email_message_id: Text255 | None | UnsetType = UNSET
    errors: bool | UnsetType = UNSET
    state_management: StateManagementImport | UnsetType = UNSET
    is_deleted: bool | UnsetType = UNSET
    wont_claim: bool | UnsetType = UNSET
    is_reimbursement: bool | UnsetType = UNSET
    is_duplicate: bool | UnsetType = UNSET
    line_items: list[InvoiceLineImport] | UnsetType = UNSET
