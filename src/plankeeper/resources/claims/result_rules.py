"""What the rows of a results file mean for the claims of a batch, without input or output.

Only `SUCCESSFUL` with more than zero and at most the claimed amount is a payment, and only `ERROR` without an amount is
a rejection. All other rows change nothing and say why.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple
from uuid import UUID

from msgspec import Struct

from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.core.formatting import CENT, format_money
from plankeeper.resources.claims.results_file import ResultRow
from plankeeper.resources.claims.schemas import BatchState
from plankeeper.resources.invoices.states import Cause

Outcome = Literal["paid", "partially_paid", "rejected"]

CAUSES: Mapping[Outcome, Cause] = {"paid": "pay_in_full", "partially_paid": "pay_in_part", "rejected": "reject"}
_RESULTS: Sequence[Outcome] = ("paid", "partially_paid", "rejected")
_MAX_SHOWN = 60  # characters of a cell in a message


class ClaimState(Struct, frozen=True):
    """A claim of the office, as far as a result depends on it.

    `file_amount` is quantity times unit price in the claim's file, null for a claim without a file. `paid` is the
    result's amount, null before a result. `is_reversed`: the agency has reversed an earlier payment of the line since
    the claim was made. `has_late_result`: it was cancelled, and a result came in spite of that. `to_recover`: what the
    payee has of the line beyond what the agency pays for after its reversals.
    """

    id: UUID
    batch_id: UUID | None
    invoice_id: UUID
    line_id: UUID
    batch_number: str | None
    reference: str
    ndis_number: str | None
    is_rest: bool
    amount: Decimal
    file_amount: Decimal | None
    state: str
    paid: Decimal | None
    is_reversed: bool
    has_late_result: bool
    to_recover: Decimal


class Result(NamedTuple):
    """What the agency has answered to a claim. `paid` is zero for a rejection."""

    row: int
    claim: ClaimState
    outcome: Outcome
    paid: Decimal
    agency_number: str | None
    message: str | None

    @property
    def cause(self) -> Cause:
        """What happens to the line: with a reversal, a claim that is paid in full doesn't pay the line in full.

        If the payee has as much already, or more, nothing is due.
        """
        if self.outcome != "rejected" and self.paid <= self.claim.to_recover:
            return "pay_reversed"
        outcome = "partially_paid" if self.outcome == "paid" and self.claim.is_reversed else self.outcome
        return CAUSES[outcome]


class Unmatched(NamedTuple):
    """A row that changes nothing, and why."""

    row: int
    message: str


class FileResults(NamedTuple):
    """What a file says: new results, those that were applied before, late ones of cancelled claims, and other rows."""

    new: Sequence[Result]
    applied: Sequence[Result]
    late: Sequence[Result]
    unmatched: Sequence[Unmatched]

    def count(self, outcome: Outcome) -> int:
        """The number of lines with an outcome, also of those that have had it before."""
        return sum(each.outcome == outcome for each in (*self.new, *self.applied))


class _RowError(Exception):
    """Why a row isn't a result."""


def read_results(
    rows: Sequence[ResultRow], batch_id: UUID, claims: Iterable[ClaimState], tolerance: Decimal
) -> FileResults:
    """Compare the rows of a file with claims that have a reference of the file, of this batch and of others.

    `tolerance`, in dollars: a claim that is paid with a smaller difference, or this one, is paid in full.
    """
    by_reference = {each.reference: each for each in claims}
    results, unmatched = list[Result](), list[Unmatched]()
    counts = Counter(_key(each) for each in rows)
    for row in rows:
        try:
            claim = _find(row, batch_id, by_reference)
            _require_single(row, counts[_key(row)])
            results.append(_read(row, claim, tolerance))
        except _RowError as error:
            unmatched.append(Unmatched(row.row, str(error)))
    new, applied, late = list[Result](), list[Result](), list[Result]()
    for result in results:
        match result.claim.state:
            case "submitted":
                new.append(result)
            case "cancelled":
                late.append(result)
            case _ if _is_applied(result):
                applied.append(result)
            case _:
                unmatched.append(Unmatched(result.row, _differs_message(result)))
    return FileResults(new, applied, late, sorted(unmatched))


def _key(row: ResultRow) -> tuple[str, str]:
    return row.ndis_number, row.reference


def _find(row: ResultRow, batch_id: UUID, claims: Mapping[str, ClaimState]) -> ClaimState:
    """The claim that a row names with its reference and its NDIS number."""
    if row.problem:
        raise _RowError(row.problem)
    if not row.reference:
        raise _RowError("The row has no claim reference.")
    claim = claims.get(row.reference)
    if claim is None:
        raise _RowError(f"No claim has the reference {_shown(row.reference)}.")
    if claim.batch_id != batch_id:
        raise _RowError(f"The claim {claim.reference} is in claim batch {claim.batch_number}, and not in this one.")
    if row.ndis_number != claim.ndis_number:
        own, given = claim.ndis_number, _shown(row.ndis_number) if row.ndis_number else "empty"
        raise _RowError(f"The claim {claim.reference} is for NDIS number {own}, and the row's is {given}.")
    if row.claimed is not None and claim.file_amount is not None and abs(row.claimed - claim.file_amount) >= CENT:
        claimed, own = format_money(row.claimed), format_money(claim.file_amount)
        raise _RowError(f"The claim {claim.reference} is for {own}, and the row's quantity and price make {claimed}.")
    return claim


def _require_single(row: ResultRow, count: int) -> None:
    if count > 1:
        raise _RowError(f"The claim {row.reference} is in the file {count} times.")


def _read(row: ResultRow, claim: ClaimState, tolerance: Decimal) -> Result:
    """The result that a row is for its claim."""
    amount = row.amount
    if amount is not None and (amount.is_nan() or amount != round(amount, 2)):
        raise _RowError("The paid amount isn't a number of dollars and cents.")
    match row.status.upper():
        case "SUCCESSFUL":
            return Result(row.row, claim, *_payment(claim, amount, tolerance), row.agency_number, row.message)
        case "ERROR" if not amount:
            return Result(row.row, claim, "rejected", Decimal(0), row.agency_number, row.message)
        case "ERROR":
            raise _RowError(f"The status is ERROR, so the paid amount must be empty or zero, and not {amount}.")
        case "":
            raise _RowError("The row has no status. It must be SUCCESSFUL or ERROR.")
        case _:
            raise _RowError(f"The status {_shown(row.status)} is neither SUCCESSFUL nor ERROR.")


def _payment(claim: ClaimState, amount: Decimal | None, tolerance: Decimal) -> tuple[Outcome, Decimal]:
    if not amount:
        raise _RowError("The status is SUCCESSFUL, but the paid amount is empty or zero.")
    if amount < 0:
        raise _RowError(f"The paid amount is below zero: {amount}.")
    if amount > claim.amount:
        raise _RowError(f"The paid amount, {amount}, is more than the claimed one, {claim.amount:.2f}.")
    return payment_outcome(claim.amount, amount, tolerance), amount


def payment_outcome(claimed: Decimal, paid: Decimal, tolerance: Decimal) -> Outcome:
    """Whether a payment that is at most the claimed amount is one in full."""
    return "paid" if claimed - paid <= tolerance else "partially_paid"


def _is_applied(result: Result) -> bool:
    return result.outcome == _applied_outcome(result) and result.paid == (result.claim.paid or 0)


def _applied_outcome(result: Result) -> str:
    """The outcome that was recorded. The tolerance can have changed since, but a payment is still the same one."""
    state = result.claim.state
    return result.outcome if result.outcome != "rejected" != state else state


def late_message(result: Result) -> str:
    """Why the result of a cancelled claim changes nothing, for the row and for the hold of its invoice."""
    what = "rejected it" if result.outcome == "rejected" else f"paid {format_money(result.paid)}"
    return f"The claim {result.claim.reference} was cancelled, but the agency has {what}."


def _differs_message(result: Result) -> str:
    claim, paid = result.claim, result.claim.paid
    recorded = "a rejection" if claim.state == "rejected" else f"a payment of {format_money(paid or Decimal(0))}"
    if claim.state == "draft":
        return f"The claim {claim.reference} is in a draft, so it has no result."
    return f"The claim {claim.reference} already has another result: {recorded}."


def _shown(text: str) -> str:
    return repr(text[:_MAX_SHOWN])


def state_after(state: BatchState, claim_states: Iterable[str]) -> BatchState:
    """The state of a submitted batch by those of its claims."""
    states = {*claim_states}
    if "submitted" not in states:
        return "processed"
    return "part_processed" if states.intersection(_RESULTS) else state


def require_result_amount(outcome: str, amount: Decimal | None, claimed: Decimal) -> None:
    """Raise ValidationError for an amount of a result by hand that the rules of a row of a file forbid."""
    if error := next(_find_amount_errors(outcome, amount, claimed), None):
        raise ValidationError(error)


def _find_amount_errors(outcome: str, amount: Decimal | None, claimed: Decimal) -> Iterator[FieldError]:
    if outcome == "paid":
        if amount is None:
            yield FieldError("amount", "is required with the outcome paid", "required")
        elif amount <= 0:
            yield FieldError("amount", "must be above zero; without a payment, the outcome is rejected", "too_small")
        elif amount > claimed:
            yield FieldError("amount", f"must be at most the claimed amount, {claimed:.2f}", "too_large")
        elif amount != round(amount, 2):
            yield FieldError("amount", "must be an amount in dollars and cents", "invalid_format")
    elif amount:
        yield FieldError("amount", f"must be left out or zero with the outcome {outcome}")
