"""The money rules of payment runs: what is due of a line, why a line is left out, and how lines become payments."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from plankeeper.resources.payments.schemas import (
    PaidLine,
    PayableLine,
    PayeeKind,
    RunWarning,
    UnpaidLine,
    UnpaidReason,
)

READY = ("payment_ready", "partially_ready")
REFERENCE_LENGTH = 18  # characters of a lodgement reference

SENTENCES: Mapping[UnpaidReason, str] = {
    "not_ready": "The line isn't ready to be paid: the agency has paid nothing that is still due.",
    "in_payment_run": "The line is in a payment run that is a draft.",
    "held": "The invoice is on hold.",
    "own_fee": "It is the office's own fee, which is never in a payment run.",
    "no_result": "The line was imported, and nobody has confirmed what the agency has paid.",
    "nothing_to_pay": "What the agency has paid is paid out, or was reversed.",
    "waiting_for_receipt": "The agency's money for its claim batch hasn't arrived.",
    "payee_missing": "The invoice has no payee, or the payee's record was deleted.",
    "estate": "The participant has died, so the reimbursement needs an approved payee for the estate.",
    "no_bank_details": "The payee has no bank details.",
    "bank_details_waiting": "A change of the payee's bank details waits for approval.",
    "bank_details_need_approval": "The bank sent a payment back, so the bank details need to be approved again.",
    "batch_full": "The file is full. Make another run.",
}


class PayeeKey(NamedTuple):
    """Who gets a payment: equal to the payee of bank details."""

    kind: PayeeKind
    id: UUID


class LineToPay(NamedTuple):
    """A line with the amounts that are due, by claim, in dollars."""

    line: PayableLine
    due: Sequence[tuple[UUID, Decimal]]

    @property
    def amount(self) -> Decimal:
        return sum((amount for _, amount in self.due), Decimal(0))


class PlannedPayment(NamedTuple):
    """A payment of a run: the lines of a payee or, by invoice, of one invoice."""

    payee: PayeeKey
    name: str
    invoice_number: str | None
    lines: Sequence[LineToPay]

    @property
    def amount(self) -> Decimal:
        return sum((each.amount for each in self.lines), Decimal(0))

    def paid_lines(self) -> list[PaidLine]:
        return [
            PaidLine(invoice_id=line.invoice_id, line_id=line.line_id, claim_id=claim_id, amount=amount)
            for line, due in self.lines
            for claim_id, amount in due
        ]


def payee_of(line: PayableLine) -> PayeeKey | None:
    """The payee of a line, or None if its record doesn't exist."""
    if line.payee_id is None or line.payee_name is None:
        return None
    return PayeeKey(line.payee_kind, line.payee_id)


def balance(line: PayableLine) -> Decimal:
    """What the agency has paid for a line, less reversals and what the payee has got and not refunded, in dollars.

    Below zero if the payee has more than the agency has paid. What an import says that was paid elsewhere, which is
    what no claim has, is on both sides.
    """
    paid = _claimed(line) if line.paid_amount is None else line.paid_amount
    return paid - max(paid_out(line) - line.refunded, Decimal(0))


def paid_out(line: PayableLine) -> Decimal:
    """What the payee of a line has got or gets with a draft, here and before an import, in dollars."""
    claimed = _claimed(line)
    return line.open + max((claimed if line.paid_amount is None else line.paid_amount) - claimed, Decimal(0))


def _claimed(line: PayableLine) -> Decimal:
    return sum((each.paid for each in line.claims), Decimal(0)) - line.reversed


def is_covered(line: PayableLine) -> bool:
    """Whether the payee gets at most what the agency has paid."""
    return balance(line) >= 0


def amounts_due(line: PayableLine) -> list[tuple[UUID, Decimal]]:
    """What is due of each claim that has no open payment, in dollars.

    Together with what the payee has got and not refunded, never more than the agency has paid for the line, less
    reversals. A reversal concerns the line: it lowers its earliest claims first, which it is about if a line was
    claimed again.
    """
    rest, due = balance(line), list[tuple[UUID, Decimal]]()
    for claim in reversed(line.claims):
        amount = min(claim.paid, rest)
        if not claim.is_open and amount > 0:
            due.insert(0, (claim.id, amount))
            rest -= amount
    return due


def reason_left_out(
    line: PayableLine,
    *,
    own_abn: str | None,
    uncovered_batches: frozenset[UUID],
    bank_reasons: Mapping[PayeeKey, UnpaidReason | None],
    estates: frozenset[PayeeKey],
) -> UnpaidReason | None:
    """Why a line isn't paid, or None. `bank_reasons` has all payees with a record that can be paid, and why not.

    `estates` are the participants for whose estate an owner has approved a payee.
    """
    reason = _reason_not_due(line, uncovered_batches, is_own_fee=is_own_fee(line, own_abn))
    if reason:
        return reason
    payee = payee_of(line)
    if payee is None:
        return "payee_missing"
    return estate_reason(line, has_estate_payee=payee in estates) or bank_reasons.get(payee, "no_bank_details")


def is_own_fee(line: PayableLine, own_abn: str | None) -> bool:
    """Whether a line is the office's own fee: made as one, or billed by a provider with the office's ABN."""
    return line.is_fee or (own_abn is not None and line.payee_kind == "provider" and line.payee_abn == own_abn)


def reason_not_taken(line: PayableLine, uncovered_batches: frozenset[UUID]) -> UnpaidReason | None:
    """Why the line of an own fee can't be taken, or None."""
    return _reason_not_due(line, uncovered_batches, is_own_fee=False)


def _reason_not_due(line: PayableLine, uncovered_batches: frozenset[UUID], *, is_own_fee: bool) -> UnpaidReason | None:
    """Why nothing can be paid for a line to whoever gets it, or None."""
    due = {claim_id for claim_id, _ in amounts_due(line)}
    reasons: tuple[tuple[UnpaidReason, bool], ...] = (
        ("in_payment_run", line.payment_run is not None),
        ("not_ready", line.claim_status not in READY),
        ("held", line.is_held),
        ("own_fee", is_own_fee),
        ("no_result", not line.claims),
        ("nothing_to_pay", not due),
        ("waiting_for_receipt", any(each.batch_id in uncovered_batches for each in line.claims if each.id in due)),
    )
    return next((reason for reason, holds in reasons if holds), None)


def estate_reason(line: PayableLine, *, has_estate_payee: bool) -> UnpaidReason | None:
    """Why the account on record isn't one for this participant: it is not the estate's, or only the estate's."""
    if line.payee_kind == "provider" or line.is_deceased == has_estate_payee:
        return None
    return "estate" if line.is_deceased else "no_bank_details"


def left_out(line: PayableLine, reason: UnpaidReason) -> UnpaidLine:
    return UnpaidLine(invoice_id=line.invoice_id, line_id=line.line_id, reason=reason, message=SENTENCES[reason])


def plan_payments(lines: Sequence[PayableLine], *, is_by_invoice: bool) -> list[PlannedPayment]:
    """The payments of lines that can be paid, in the order of their first lines."""
    groups: dict[tuple[PayeeKey, UUID | None], list[LineToPay]] = {}
    for line in lines:
        if payee := payee_of(line):
            key = (payee, line.invoice_id if is_by_invoice else None)
            groups.setdefault(key, []).append(LineToPay(line, amounts_due(line)))
    planned = list[PlannedPayment]()
    for (payee, invoice_id), grouped in groups.items():
        first = grouped[0].line
        number = first.invoice_number if invoice_id else None
        planned.append(PlannedPayment(payee, first.payee_name or "", number, grouped))
    return planned


def payment_number(run_number: str, position: int) -> str:
    """`P000123-0045`, the `payment_ref` of lines."""
    return f"{run_number}-{position:04}"


def lodgement_reference(run_number: str, position: int, invoice_number: str) -> str:
    """The last 18 characters of an invoice's number, which is in the characters of banks, or that of the payment."""
    return invoice_number[-REFERENCE_LENGTH:].strip() or payment_number(run_number, position)


def date_warnings(process_date: date, today: date) -> list[RunWarning]:
    warnings = list[RunWarning]()
    if process_date < today:
        warnings.append(RunWarning(code="process_date_past", message="The process date is in the past."))
    if process_date.weekday() >= 5:
        warnings.append(RunWarning(code="process_date_weekend", message="The process date is at a weekend."))
    return warnings
