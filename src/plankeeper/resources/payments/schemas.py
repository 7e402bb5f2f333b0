"""Schemas of payment runs and payments: responses, request bodies, queries and stored rows."""

from datetime import date
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import EXTENSION, AwareDatetime, CreatedAt, Query, Text255, UpdatedAt, UuidText, component
from plankeeper.core.lists import DefaultSort, ResourceListQuery, StatesFilter
from plankeeper.resources.bank_details.accounts import PayeeKind
from plankeeper.resources.invoices.action_schemas import ReasonText
from plankeeper.resources.invoices.schemas import Payee
from plankeeper.resources.office_settings.schemas import PaymentGrouping

MAX_INVOICES = 5000  # in a request
MAX_LEFT_OUT = 5000  # lines that a run names

RunState = Annotated[
    Literal["draft", "paid", "cancelled"],
    component("PaymentRunState", "`draft`: made, and not yet marked as paid."),
]
PaymentState = Annotated[
    Literal["draft", "paid", "returned", "cancelled"],
    component("PaymentState", "`draft`: its run is a draft. `returned`: the bank sent it back."),
]
Grouping = Annotated[
    PaymentGrouping, component("PaymentGrouping", "`payee`: one payment for each payee. `invoice`: one for each.")
]
UnpaidReason = Annotated[
    Literal[
        "not_ready",
        "in_payment_run",
        "held",
        "own_fee",
        "no_result",
        "nothing_to_pay",
        "waiting_for_receipt",
        "payee_missing",
        "estate",
        "no_bank_details",
        "bank_details_waiting",
        "bank_details_need_approval",
        "batch_full",
    ],
    component("UnpaidReason", "Why a line isn't in a payment run."),
]
RunWarningCode = Annotated[
    Literal["process_date_past", "process_date_weekend", "text_changed"],
    component("PaymentRunWarningCode", "What to look at before a file goes to the bank."),
]


class UnpaidLine(Struct, kw_only=True):
    """A line that isn't in the run."""

    invoice_id: Annotated[UUID, Meta(description="The invoice's UUID.")]
    line_id: Annotated[UUID, Meta(description="The line's UUID.")]
    reason: Annotated[UnpaidReason, Meta(description="Why the line is left out.")]
    message: Annotated[str, Meta(description="A sentence for people. Its text can change.")]


class RunWarning(Struct, kw_only=True):
    """Something to look at before the file goes to the bank."""

    code: Annotated[RunWarningCode, Meta(description="What it is about.")]
    message: Annotated[str, Meta(description="A sentence for people. Its text can change.")]


class PaymentRun(Struct, kw_only=True):
    """Payments to providers and participants with one file for the bank."""

    id: Annotated[UUID | None, Meta(description="The run's UUID; null in a dry run.")]
    number: Annotated[str | None, Meta(description="The number of the run, such as `P000001`; null in a dry run.")]
    state: Annotated[RunState, Meta(description="`draft`, `paid` or `cancelled`.")]
    process_date: Annotated[date, Meta(description="The day on which the bank is to pay.")]
    group_by: Annotated[Grouping, Meta(description="`payee` or `invoice`.")]
    total: Annotated[Decimal, Meta(description="The sum of the payments, in dollars.")]
    payments: Annotated[int, Meta(description="The number of payments.")]
    returned: Annotated[int, Meta(description="The number of payments that the bank has sent back.")] = 0
    warnings: Annotated[list[RunWarning] | UnsetType, Meta(description="What to look at. Not in lists and events.")] = (
        UNSET
    )
    left_out: Annotated[
        list[UnpaidLine] | UnsetType,
        Meta(description="Lines that are left out, at most 5,000. Not in lists and events."),
    ] = UNSET
    left_out_count: Annotated[int, Meta(description="The number of all lines that are left out.")]
    created_at: CreatedAt
    created_by: Annotated[str | None, Meta(description="The account or the API key that made the run.")]
    downloaded_at: Annotated[AwareDatetime | None, Meta(description="When the file was first downloaded, or null.")] = (
        None
    )
    downloaded_by: Annotated[str | None, Meta(description="Who downloaded it first, or null.")] = None
    paid_on: Annotated[date | None, Meta(description="The day on which the bank has paid, or null.")] = None
    paid_at: Annotated[AwareDatetime | None, Meta(description="When the run was marked as paid, or null.")] = None
    paid_by: Annotated[str | None, Meta(description="Who marked it as paid, or null.")] = None
    cancelled_at: Annotated[AwareDatetime | None, Meta(description="When the run was cancelled, or null.")] = None
    cancelled_by: Annotated[str | None, Meta(description="Who cancelled it, or null.")] = None
    cancel_reason: Annotated[str | None, Meta(description="Why it was cancelled, or null.")] = None
    updated_at: UpdatedAt


class PaymentPayee(Struct, kw_only=True):
    """Who gets a payment, as named when the run was made."""

    kind: Annotated[Payee, Meta(description="`provider`, or `participant` for a reimbursement.")]
    id: Annotated[UUID, Meta(description="The UUID of the provider or the participant.")]
    name: Annotated[str, Meta(description="The name.")]


class PaidLine(Struct, kw_only=True):
    """What a payment pays of a line."""

    invoice_id: Annotated[UUID, Meta(description="The invoice's UUID.")]
    line_id: Annotated[UUID, Meta(description="The line's UUID.")]
    claim_id: Annotated[UUID, Meta(description="The UUID of the claim that the agency has paid.")]
    amount: Annotated[Decimal, Meta(description="In dollars.")]


class Payment(Struct, kw_only=True):
    """A payment of a run."""

    id: Annotated[UUID, Meta(description="The payment's UUID.")]
    position: Annotated[int, Meta(description="The place in the file, from 1.")]
    payee: Annotated[PaymentPayee, Meta(description="Who gets it.")]
    account_ending: Annotated[str, Meta(description="The last three digits of the account that it goes to.")]
    reference: Annotated[str, Meta(description="The lodgement reference, which the payee's bank shows.")]
    amount: Annotated[Decimal, Meta(description="In dollars.")]
    state: Annotated[PaymentState, Meta(description="`draft`, `paid`, `returned` or `cancelled`.")]
    lines: Annotated[list[PaidLine], Meta(description="The lines that it pays.")]
    returned_on: Annotated[date | None, Meta(description="The day on which the bank sent it back, or null.")]
    return_reference: Annotated[str | None, Meta(description="The bank's reference of the return, or null.")]
    return_reason: Annotated[str | None, Meta(description="Why the bank sent it back, or null.")]
    returned_at: Annotated[AwareDatetime | None, Meta(description="When the return was recorded, or null.")]
    returned_by: Annotated[str | None, Meta(description="Who recorded the return, or null.")]
    created_at: CreatedAt
    updated_at: UpdatedAt


class NewPaymentRun(Struct, forbid_unknown_fields=True, kw_only=True):
    """The invoices whose lines are paid: those with the ids, or all that can be paid."""

    invoice_ids: Annotated[
        Annotated[list[UuidText], Meta(min_length=1, max_length=MAX_INVOICES)] | UnsetType,
        Meta(description="The invoices whose lines are paid. Not allowed with `all`."),
    ] = UNSET
    all: Annotated[bool | UnsetType, Meta(description="`true`: pays the lines of all invoices.")] = UNSET
    process_date: Annotated[date, Meta(description="The day on which the bank is to pay.")]
    group_by: Annotated[
        Grouping | UnsetType,
        Meta(description="`payee` or `invoice`. The default is in the plan manager's settings."),
    ] = UNSET


class NewPaymentRunQuery(Query, frozen=True):
    """Whether the run is made, or only what it would contain is returned."""

    dry_run: Annotated[
        bool | UnsetType,
        EXTENSION,
        Meta(description="`true`: nothing is stored, and the response (200) says what the run would contain."),
    ] = UNSET


class MarkPaid(Struct, forbid_unknown_fields=True, kw_only=True):
    """When the bank has paid."""

    paid_on: Annotated[
        date | UnsetType,
        Meta(description="The day on which the bank has paid, not after today. The default is `process_date`."),
    ] = UNSET


class PaymentRunCancel(Struct, forbid_unknown_fields=True, kw_only=True):
    """Why a run is cancelled. If its file was downloaded, both fields are required."""

    not_sent_to_bank: Annotated[
        bool | UnsetType, Meta(description="`true`: the file hasn't been sent to the bank.")
    ] = UNSET
    reason: Annotated[ReasonText | UnsetType, Meta(description="Why the run is cancelled.")] = UNSET


class PaymentReturn(Struct, forbid_unknown_fields=True, kw_only=True):
    """A payment that the bank has sent back."""

    date: Annotated[
        date,
        Meta(description="The day on which the bank sent it back, from the day on which it has paid until today."),
    ]
    reference: Annotated[
        Text255 | None | UnsetType, Meta(description="The bank's reference of the return, or null.")
    ] = UNSET
    reason: Annotated[ReasonText, Meta(description="Why the bank sent it back.")]


class PaymentRunListQuery(ResourceListQuery, frozen=True):
    """Filters of the list, combined with AND."""

    sort: DefaultSort = UNSET
    state: StatesFilter[RunState] = UNSET


class PaymentListQuery(ResourceListQuery, frozen=True):
    """Filters of the list, combined with AND."""

    sort: DefaultSort = UNSET
    state: StatesFilter[PaymentState] = UNSET


class FileHeader(Struct, kw_only=True):
    """The office's data for direct entry when a run was made, as the file has it."""

    bank_letters: str
    bsb: str
    account_name: str
    user_id: str
    user_name: str
    description: str
    remitter: str
    has_balancing_record: bool


class PaidClaim(Struct, kw_only=True):
    """A claim that the agency has paid.

    `is_open`: a payment of it is neither cancelled nor returned, or it was taken as a fee.
    """

    id: UUID
    paid: Decimal
    batch_id: UUID | None
    is_open: bool


class PayableLine(Struct, kw_only=True):
    """A line with what decides whether and how much of it is paid, in dollars.

    `payee_name` is null if the payee's record doesn't exist. `payee_abn` has a provider's digits. `reversed` is what
    the agency has taken back, `refunded` what the payee has returned, and `open` the payments that are neither
    cancelled nor returned, and what was taken as a fee. `is_fee`: the office has made the invoice for its own fee.
    """

    invoice_id: UUID
    line_id: UUID
    invoice_number: str | None
    is_held: bool
    claim_status: str
    payment_run: str | None
    paid_amount: Decimal | None
    payee_kind: PayeeKind
    payee_id: UUID | None
    payee_name: str | None
    payee_abn: str | None
    is_deceased: bool
    reversed: Decimal
    refunded: Decimal
    open: Decimal
    is_fee: bool
    claims: list[PaidClaim]


class StoredPayment(Struct, kw_only=True):
    """A row of the payments. `account` is encrypted, and `account_title` as in the file."""

    id: UUID
    run_id: UUID
    position: int
    payee_kind: PayeeKind
    payee_id: UUID
    payee_name: str
    account: str
    account_ending: str
    account_title: str
    reference: str
    amount: Decimal
    state: PaymentState
    created_at: AwareDatetime


class StoredPaymentLine(Struct, kw_only=True):
    """A row of what a payment pays."""

    payment_id: UUID
    claim_id: UUID
    invoice_id: UUID
    line_id: UUID
    amount: Decimal


class StoredRun(PaymentRun, kw_only=True):
    """A run with what only its file and the check of two people need."""

    header: FileHeader
    account: str
    created_by_account: UUID | None
    downloaded_by_account: UUID | None = None
