"""Which lines can be claimed, and why the others are left out of a claim batch.

All functions take and return values. docs/api/claims.md has the same table of reasons. Amounts are in dollars.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple
from uuid import UUID

from msgspec import Struct

from plankeeper.core.fields import component
from plankeeper.core.formatting import format_date, format_money, plain_number
from plankeeper.resources.claims.batch_file import (
    EXEMPT,
    REIMBURSEMENT,
    FileRow,
    Price,
    express,
    express_rest,
)
from plankeeper.resources.invoices.schemas import ApprovalStatus, CancellationReason, ClaimStatus, ClaimType, GstCode
from plankeeper.resources.invoices.warnings import WARNINGS

Reason = Literal[
    "state",
    "wont_claim",
    "held",
    "approval_pending",
    "approval_rejected",
    "blocking_warning",
    "missing_registration_number",
    "missing_ndis_number",
    "missing_item",
    "invalid_item",
    "missing_service_date",
    "future_service",
    "across_plans",
    "across_funding_periods",
    "inexpressible_quantity",
    "inexpressible_total",
    "zero_or_less",
    "missing_abn",
    "p1_undecided",
    "batch_full",
]
LeftOutReason = Annotated[Reason, component("LeftOutReason", "Why a line isn't in a claim batch.")]
WarnedCode = Annotated[
    Literal["line_duplicate", "check_budget", "price_above_limit"],
    component("ClaimWarningCode", "A warning that doesn't keep a line out of claim batches."),
]
WARNED_CODES: Sequence[WarnedCode] = ("line_duplicate", "check_budget", "price_above_limit")

REASONS: Mapping[Reason, str] = MappingProxyType(
    {
        "state": "The line is in another claim batch, claimed, rejected or cancelled. Or its invoice is deleted, or was"
        " imported as claimed, paid or cancelled.",
        "wont_claim": "The invoice is excluded from claims.",
        "held": "The invoice is on hold.",
        "approval_pending": "The invoice waits for approval.",
        "approval_rejected": "The approval was rejected.",
        "blocking_warning": "The invoice has a warning that blocks claims, and that nobody has ignored.",
        "missing_registration_number": "The settings of the plan manager have no registration number.",
        "missing_ndis_number": "The participant has no NDIS number of nine digits.",
        "missing_item": "The line has no support item number.",
        "invalid_item": "The file can't contain the support item number.",
        "missing_service_date": "The line has no service date, or its last day is before its first.",
        "future_service": "The service ends after today.",
        "across_plans": "The service is in two plans. Split the line.",
        "across_funding_periods": "The service is in two funding periods, or in one that hasn't begun. Split the line.",
        "inexpressible_quantity": "The line has no quantity that the file can contain: below 1,000 with up to two"
        " decimals, or a whole number up to 99,999.",
        "inexpressible_total": "Quantity times unit price isn't the amount to the cent, or the file can't contain the"
        " unit price.",
        "zero_or_less": "The amount is zero or less. Cancel a free line, and record a credit as a refund.",
        "missing_abn": "The provider has no ABN of 11 digits, and isn't exempt from quoting one.",
        "p1_undecided": "The line has the GST code P1, and the settings don't say whether unit prices include GST.",
        "batch_full": "The batch has 5,000 lines. The line is for the next one.",
    }
)
"""All reasons. A line that is left out for several has the first one."""

LineKey = tuple[UUID, UUID]  # the ids of an invoice and its line: that of a line alone isn't unique
# A line that is left out for another reason than these is flagged.
UNFLAGGED_REASONS = frozenset[Reason]({"state", "wont_claim", "batch_full"})
_CLAIMABLE = frozenset[ClaimStatus]({"new", "flagged", "on_hold"})
_ITEM = re.compile(r"[A-Za-z0-9](?:[ -~]{0,58}[!-~])?")
_NDIS_NUMBER = re.compile(r"[0-9]{9}")
_ABN = re.compile(r"[0-9]{11}")


class Office(NamedTuple):
    """What a batch takes from the plan manager's settings. `prices_include_gst` is null if it isn't decided."""

    registration_number: str | None
    prices_include_gst: bool | None
    today: date


class CandidateState(Struct, frozen=True, kw_only=True):
    """A line that a request asks for, with what decides first whether it can be claimed.

    `number` counts from 1 in the invoice, with deleted lines. `open_batch` is the batch that has the line.
    `settled_status` is the state of the invoice if none of its lines waits for somebody.
    `blocking_codes` are the open warnings of the invoice that block claims.
    """

    invoice_id: UUID
    line_id: UUID
    number: int
    claim_status: ClaimStatus
    is_rest_waiting: bool
    open_batch: str | None
    is_invoice_deleted: bool
    settled_status: ClaimStatus | None
    wont_claim: bool
    is_held: bool
    approval_status: ApprovalStatus
    blocking_codes: list[str]

    @property
    def key(self) -> LineKey:
        return self.invoice_id, self.line_id

    @property
    def is_settled(self) -> bool:
        """Whether the state of the invoice says that nobody claims the line. A rest is claimed if it is asked for."""
        return self.settled_status is not None and self.claim_status != "partially_paid"


class Candidate(CandidateState, frozen=True, kw_only=True):
    """A line with all that decides whether it can be claimed, and that the file has.

    `has_siblings`: the invoice has several lines that aren't deleted. `warned_codes` are the open warnings of the line
    that don't block claims. `crosses` is what the service is in two of. `net` is the price without tax, `amount` that
    with tax; both are null without a price.
    """

    invoice_number: str | None
    has_siblings: bool
    warned_codes: Sequence[WarnedCode]
    ndis_number: str | None
    item: str | None
    first_day: date | None
    last_day: date | None
    crosses: Literal["plan", "funding period"] | None
    quantity: Decimal | None
    unit_price: Decimal | None
    net: Decimal | None
    amount: Decimal | None
    paid: Decimal | None
    gst_code: GstCode
    claim_type: ClaimType | None
    cancellation_reason: CancellationReason | None
    is_reimbursement: bool
    provider_abn: str | None
    is_abn_exempt: bool

    @property
    def is_rest(self) -> bool:
        return self.claim_status == "partially_paid"

    @property
    def claimed_amount(self) -> Decimal:
        """What is claimed: the amount, or the rest of it."""
        return (self.amount or Decimal(0)) - ((self.paid or Decimal(0)) if self.is_rest else 0)

    @property
    def payee_number(self) -> str | None:
        """The last column of the file."""
        digits = plain_number(self.provider_abn or "")
        if self.is_reimbursement:
            return REIMBURSEMENT
        return digits if _ABN.fullmatch(digits) else EXEMPT if self.is_abn_exempt else None


class LeftOut(NamedTuple):
    """Why a line is left out, and the sentence about it."""

    reason: Reason
    message: str


def find_reason(line: Candidate, office: Office) -> LeftOut | None:
    """Why a line can't be claimed, or None if it can. `batch_full` isn't among the results."""
    if early := find_state_reason(line):
        return early
    failed: list[Reason] = [reason for reason, applies in _RECORD_CHECKS.items() if applies(line, office)]
    found = failed[0] if failed else _price_problem(line, office)
    if found is None:
        return None
    describe = _DETAILS.get(found)
    return LeftOut(found, describe(line) if describe else REASONS[found])


def find_state_reason(line: CandidateState) -> LeftOut | None:
    """Why the states of a line and of its invoice, and its warnings, keep the line out, or None if they don't."""
    failed: list[Reason] = [reason for reason, applies in _STATE_CHECKS.items() if applies(line)]
    if not failed:
        return None
    if failed[0] == "state":
        return LeftOut("state", _describe_state(line))
    if failed[0] == "blocking_warning":
        titles = ", ".join(WARNINGS[each].title if each in WARNINGS else each for each in line.blocking_codes)
        return LeftOut("blocking_warning", f"These warnings block claims: {titles}.")
    return LeftOut(failed[0], REASONS[failed[0]])


def is_candidate(status: ClaimStatus, *, is_rest_waiting: bool, open_batch: str | None) -> bool:
    """Whether the state of a line lets it be claimed."""
    is_open = status in _CLAIMABLE or (status == "partially_paid" and is_rest_waiting)
    return is_open and open_batch is None


def to_file_row(line: Candidate, office: Office, reference: str) -> FileRow:
    """The row of the file for a line for which `find_reason` has returned None."""
    quantity_and_price = _express(line, office)
    if isinstance(quantity_and_price, str):
        raise TypeError(f"a line can't be claimed: {quantity_and_price}")
    quantity, unit_price = quantity_and_price
    is_cancellation = line.claim_type == "CANC"
    return FileRow(
        registration_number=office.registration_number or "",
        ndis_number=plain_number(line.ndis_number or ""),
        delivered_from=line.first_day.isoformat() if line.first_day else "",
        delivered_to=line.last_day.isoformat() if line.last_day else "",
        support_number=(line.item or "").strip(),
        claim_reference=reference,
        quantity=quantity,
        unit_price=unit_price,
        gst_code=line.gst_code,
        claim_type=line.claim_type or "",
        cancellation_reason=(line.cancellation_reason or "") if is_cancellation else "",
        provider_abn=line.payee_number or "",
    )


_STATE_CHECKS: Mapping[Reason, Callable[[CandidateState], bool]] = {
    "state": lambda line: (
        line.is_invoice_deleted
        or line.is_settled
        or not is_candidate(line.claim_status, is_rest_waiting=line.is_rest_waiting, open_batch=line.open_batch)
    ),
    "wont_claim": lambda line: line.wont_claim,
    "held": lambda line: line.is_held,
    "approval_pending": lambda line: line.approval_status == "pending",
    "approval_rejected": lambda line: line.approval_status == "rejected",
    "blocking_warning": lambda line: bool(line.blocking_codes),
}
_RECORD_CHECKS: Mapping[Reason, Callable[[Candidate, Office], bool]] = {
    "missing_registration_number": lambda _, office: not is_registration_number(office.registration_number),
    "missing_ndis_number": lambda line, _: _NDIS_NUMBER.fullmatch(plain_number(line.ndis_number or "")) is None,
    "missing_item": lambda line, _: not (line.item or "").strip(),
    "invalid_item": lambda line, _: not is_expressible_item(line.item),
    "missing_service_date": lambda line, _: not (line.first_day and line.last_day and line.first_day <= line.last_day),
    "future_service": lambda line, office: line.last_day is not None and line.last_day > office.today,
    "across_plans": lambda line, _: line.crosses == "plan",
    "across_funding_periods": lambda line, _: line.crosses == "funding period",
}


def is_registration_number(text: str | None) -> bool:
    """Whether the file can contain it: digits."""
    return text is not None and text.isascii() and text.isdigit()


def is_expressible_item(text: str | None) -> bool:
    """Whether the file can contain a support item number: up to 60 characters, without commas and quotes."""
    item = (text or "").strip()
    return _ITEM.fullmatch(item) is not None and not {",", '"'} & {*item}


def _price_problem(line: Candidate, office: Office) -> Reason | None:
    if line.amount is None:
        return "inexpressible_total"
    if line.claimed_amount <= 0:
        return "zero_or_less"
    if line.payee_number is None:
        return "missing_abn"
    if line.gst_code == "P1" and office.prices_include_gst is None:
        return "p1_undecided"
    found = _express(line, office)
    return found if isinstance(found, str) else None


def _express(
    line: Candidate, office: Office
) -> tuple[str, str] | Literal["inexpressible_quantity", "inexpressible_total"]:
    is_taxed, includes_gst = line.gst_code == "P1", office.prices_include_gst is True
    if line.is_rest:
        return express_rest(line.claimed_amount, is_taxed=is_taxed, prices_include_gst=includes_gst)
    price = Price(line.quantity, line.unit_price, line.net, line.claimed_amount, is_taxed)
    return express(price, prices_include_gst=includes_gst)


def _describe_state(line: CandidateState) -> str:
    if line.is_invoice_deleted:
        return f"Line {line.number} is on a deleted invoice."
    if line.open_batch is not None:
        return f"Line {line.number} is in claim batch {line.open_batch}."
    if line.settled_status is not None and line.claim_status in _CLAIMABLE:
        return f"Line {line.number} is on an invoice that was imported as {line.settled_status.replace('_', ' ')}."
    return f"Line {line.number} is {line.claim_status.replace('_', ' ')}."


def _describe_total(line: Candidate) -> str:
    if line.amount is None:
        return f"Line {line.number} has no amount."
    amount = format_money(line.claimed_amount)
    return (
        f"Line {line.number}: the quantity times the unit price, in cents as the file has it, isn’t {amount}."
        " Enter a quantity of 1 and the whole price, or correct the amount."
    )


_DETAILS: Mapping[Reason, Callable[[Candidate], str]] = {
    "invalid_item": lambda line: f"The file can’t contain the support item number “{(line.item or '').strip()[:80]}”.",
    "future_service": lambda line: (
        f"Line {line.number} has a service until {format_date(line.last_day or date.max)}, which is in the future."
    ),
    "inexpressible_total": _describe_total,
    "zero_or_less": lambda line: f"Line {line.number} costs {format_money(line.claimed_amount)}.",
}
