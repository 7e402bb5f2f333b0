"""Schemas of the import of invoices."""

from datetime import date
from decimal import Decimal

from msgspec import UNSET, Struct, UnsetType

from plankeeper.core.fields import AwareDatetime, ExternalIdText, LongText, NewId, Text50, Text255, UuidText
from plankeeper.resources.invoices.schemas import (
    ApprovalDecider,
    ApprovalStatus,
    CancellationReason,
    ClaimStatus,
    ClaimType,
    GstCode,
    Ignored,
    Payee,
)


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
    service_date_from: date | None | UnsetType = UNSET
    service_date_to: date | None | UnsetType = UNSET
    quantity: Decimal | None | UnsetType = UNSET
    unit_price: Decimal | None | UnsetType = UNSET
    total_price: Decimal | None | UnsetType = UNSET
    gst_code: GstCode | UnsetType = UNSET
    amount: Decimal | None | UnsetType = UNSET
    claim_type: ClaimType | None | UnsetType = UNSET
    cancellation_reason: CancellationReason | None | UnsetType = UNSET
    component_id: UuidText | None | UnsetType = UNSET
    claim_status: ClaimStatus | UnsetType = UNSET
    claim_batch_ref: Text255 | None | UnsetType = UNSET
    claim_number: Text255 | None | UnsetType = UNSET
    paid_amount: Decimal | None | UnsetType = UNSET
    rejection_reason: LongText | None | UnsetType = UNSET
    payment_ref: Text255 | None | UnsetType = UNSET
    closing_reason: LongText | None | UnsetType = UNSET
    open_claim_batch: Ignored = UNSET
    open_payment_run: Ignored = UNSET
    has_payment: Ignored = UNSET
    is_rest_waiting: Ignored = UNSET
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
    payee: Payee | UnsetType = UNSET
    received_at: AwareDatetime | UnsetType = UNSET
    due_date: date | None | UnsetType = UNSET
    assigned_to: UuidText | None | UnsetType = UNSET
    held_at: AwareDatetime | None | UnsetType = UNSET
    held_by: Text255 | None | UnsetType = UNSET
    hold_reason: LongText | None | UnsetType = UNSET
    cancelled_at: AwareDatetime | None | UnsetType = UNSET
    closing_reason: LongText | None | UnsetType = UNSET
    approval_decided_at: AwareDatetime | None | UnsetType = UNSET
    approval_decided_by: ApprovalDecider | None | UnsetType = UNSET
    approval_team_member_id: UuidText | None | UnsetType = UNSET
    approval_reason: LongText | None | UnsetType = UNSET
    external_id: ExternalIdText | None | UnsetType = UNSET
    ambiguous_participant_number: Text50 | None | UnsetType = UNSET
    ambiguous_provider_abn: Text50 | None | UnsetType = UNSET
    line_items: list[InvoiceLineImport] | UnsetType = UNSET
