"""The states of invoices and their lines: transitions, roll-up, locks, actions, approval, and amounts of lines.

A line has a state, and the state of its invoice follows from those of its lines. docs/invoice-states.md has the same
tables. All functions take and return values: a service locks the invoice's row, builds an `InvoiceState` from what is
stored, calls a function, and stores the result with its `roll_up`.

A call that the tables don't allow raises a DomainError: `invalid_transition` names the present state, and
`invoice_locked` the claim batch, the payment run or the state.
"""

from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Literal, NamedTuple
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from plankeeper.core.errors import DomainError, ErrorResource, NotFound
from plankeeper.core.formatting import CENT, to_cents
from plankeeper.resources.invoices.schemas import ApprovalStatus, ClaimStatus

GstCode = Literal["P1", "P2", "P5"]

Cause = Literal[
    "submit_batch",
    "claim_elsewhere",
    "leave_out",
    "change",
    "resolve",
    "pay_in_full",
    "pay_in_part",
    "pay_reversed",
    "reject",
    "cancel_batch",
    "cancel_claim",
    "replace_result",
    "retry",
    "split",
    "pay_out",
    "take_fee",
    "claim_rest",
    "return_payment",
    "return_rest",
    "return_all",
    "reverse_part",
    "reverse_rest",
    "reverse_all",
    "cancel",
    "reopen",
]
ApprovalAction = Literal["request_approval", "approve", "reject"]
WaitingLineStatus = Literal["new", "flagged", "rejected"]
InvoiceAction = Literal["hold", "release", "cancel", "reopen", "wont_claim"] | ApprovalAction


class Transition(NamedTuple):
    """A line changes from one state to another."""

    source: ClaimStatus
    target: ClaimStatus
    cause: Cause


class ApprovalTransition(NamedTuple):
    """The approval of an invoice changes."""

    source: ApprovalStatus
    target: ApprovalStatus
    cause: ApprovalAction | Literal["change"]


TRANSITIONS = (
    Transition("new", "pending", "submit_batch"),
    Transition("new", "pending", "claim_elsewhere"),
    Transition("flagged", "pending", "submit_batch"),
    Transition("flagged", "pending", "claim_elsewhere"),
    Transition("new", "flagged", "leave_out"),
    Transition("flagged", "new", "change"),
    Transition("flagged", "new", "split"),
    Transition("flagged", "new", "resolve"),
    Transition("pending", "payment_ready", "pay_in_full"),
    Transition("pending", "partially_ready", "pay_in_part"),
    Transition("pending", "rejected", "reject"),
    Transition("pending", "new", "cancel_batch"),
    Transition("pending", "new", "cancel_claim"),
    Transition("rejected", "new", "change"),
    Transition("rejected", "new", "split"),
    Transition("rejected", "new", "retry"),
    Transition("payment_ready", "paid", "pay_out"),
    Transition("payment_ready", "paid", "take_fee"),
    Transition("payment_ready", "partially_ready", "reverse_part"),
    Transition("payment_ready", "partially_paid", "reverse_rest"),
    Transition("partially_ready", "partially_paid", "pay_out"),
    Transition("partially_ready", "partially_paid", "take_fee"),
    Transition("partially_ready", "partially_paid", "reverse_rest"),
    Transition("partially_paid", "pending", "submit_batch"),
    # The bank or the agency took the first part back while the batch was a draft.
    Transition("partially_ready", "pending", "submit_batch"),
    Transition("rejected", "pending", "submit_batch"),
    # The result was recorded wrong, and another one follows at once.
    Transition("payment_ready", "pending", "replace_result"),
    Transition("partially_ready", "pending", "replace_result"),
    Transition("partially_paid", "pending", "replace_result"),
    Transition("rejected", "pending", "replace_result"),
    # The rest of a line whose first part the agency has paid.
    Transition("pending", "partially_paid", "pay_reversed"),
    Transition("pending", "partially_paid", "reject"),
    Transition("pending", "partially_paid", "cancel_batch"),
    Transition("pending", "partially_paid", "cancel_claim"),
    Transition("pending", "partially_ready", "reject"),
    Transition("pending", "partially_ready", "cancel_batch"),
    Transition("pending", "partially_ready", "cancel_claim"),
    Transition("paid", "payment_ready", "return_payment"),
    Transition("partially_paid", "partially_ready", "return_payment"),
    Transition("paid", "partially_paid", "return_rest"),
    Transition("paid", "rejected", "return_all"),
    Transition("partially_paid", "rejected", "return_all"),
    Transition("payment_ready", "rejected", "reverse_all"),
    Transition("partially_ready", "rejected", "reverse_all"),
    Transition("new", "cancelled", "cancel"),
    Transition("flagged", "cancelled", "cancel"),
    Transition("rejected", "cancelled", "cancel"),
    Transition("cancelled", "new", "reopen"),
)
"""Every transition of a line. If a source and a cause have several targets, the first is that of an unpaid line."""

UNCHANGED: Mapping[Cause, frozenset[ClaimStatus]] = MappingProxyType(
    {
        "leave_out": frozenset({"flagged"}),
        "change": frozenset({"new", "cancelled"}),
        "split": frozenset({"new"}),
        "claim_rest": frozenset({"partially_paid"}),
        "return_payment": frozenset({"pending", "payment_ready", "partially_ready"}),
        "return_rest": frozenset({"pending", "partially_paid"}),
        "return_all": frozenset({"pending"}),
        "reverse_part": frozenset({"pending", "partially_ready", "partially_paid", "paid"}),
        "reverse_rest": frozenset({"pending", "partially_paid", "paid"}),
        "reverse_all": frozenset({"pending", "partially_paid", "paid"}),
    }
)
"""The states in which a cause is allowed and leaves the state of the line as it is."""

APPROVAL_TRANSITIONS = (
    ApprovalTransition("not_required", "pending", "request_approval"),
    ApprovalTransition("not_required", "pending", "change"),
    ApprovalTransition("pending", "approved", "approve"),
    ApprovalTransition("pending", "rejected", "reject"),
    ApprovalTransition("rejected", "pending", "request_approval"),
    ApprovalTransition("approved", "pending", "change"),
)

LOCKED_STATUSES: frozenset[ClaimStatus] = frozenset(
    {"pending", "payment_ready", "partially_ready", "partially_paid", "paid"}
)
_PART_STATUSES = ("partially_paid", "partially_ready")
# The fields of an invoice that can't be changed while a line is locked. `is_reimbursement` follows the payee.
LOCKED_FIELDS = frozenset(
    {"participant_id", "pm_provider_id", "payee", "is_reimbursement", "invoice_number", "invoice_date", "is_deleted"}
)
# The fields of an invoice whose change corrects its rejected lines, too: they are claimed again, for what it now bills.
CORRECTED_FIELDS = LOCKED_FIELDS - {"is_deleted"}
# The fields of an invoice whose change ends an approval.
APPROVED_FIELDS = frozenset(
    {"participant_id", "pm_provider_id", "payee", "is_reimbursement", "total", "tax", "subtotal", "line_items"}
)

# What a draft run prevents, because the line must be ready when the run is marked as paid.
_RUN_CAUSES = frozenset[Cause]({"submit_batch", "replace_result", "reverse_part", "reverse_rest", "reverse_all"})
# What people do to a line. A draft batch or run prevents it.
_STAFF_CAUSES = frozenset[Cause]({"claim_elsewhere", "change", "retry", "split", "claim_rest", "cancel", "reopen"})
# What can't be done to a line or an invoice: "so it can't be …".
_VERBS: Mapping[Cause | InvoiceAction, str] = {
    "submit_batch": "claimed",
    "claim_elsewhere": "marked as claimed elsewhere",
    "leave_out": "flagged",
    "change": "changed",
    "resolve": "unflagged",
    "pay_in_full": "marked as paid by the agency",
    "pay_in_part": "marked as paid by the agency",
    "pay_reversed": "marked as paid by the agency",
    "reject": "rejected",
    "cancel_batch": "removed from a claim batch",
    "cancel_claim": "removed from a claim",
    "replace_result": "given another result",
    "retry": "retried",
    "split": "split",
    "pay_out": "marked as paid",
    "take_fee": "taken as a fee",
    "claim_rest": "claimed for its rest",
    "return_payment": "marked as returned by the bank",
    "return_rest": "marked as returned by the bank",
    "return_all": "marked as returned by the bank",
    "reverse_part": "reversed",
    "reverse_rest": "reversed",
    "reverse_all": "reversed",
    "cancel": "cancelled",
    "reopen": "reopened",
    "hold": "held",
    "release": "released",
    "wont_claim": "excluded from claims",
    "request_approval": "sent for approval",
    "approve": "approved",
}


class LineState(Struct, frozen=True, kw_only=True):
    """What decides the next state of a line.

    `number` counts from 1 in the invoice, with deleted lines, and is for messages. `paid_amount` is what the agency has
    paid less reversals, in dollars. `claim_batch` is the draft or submitted batch with an open claim of the line, and
    `payment_run` the draft run with a payment of it. `has_payment`: a payment to the payee is neither cancelled nor
    returned. `is_rest_waiting`: the rest of a partially paid line is to be in the next claim batch.
    """

    invoice_id: UUID
    id: UUID
    number: int
    claim_status: ClaimStatus = "new"
    is_deleted: bool = False
    paid_amount: Decimal | None = None
    claim_batch: str | None = None
    payment_run: str | None = None
    has_payment: bool = False
    is_rest_waiting: bool = False

    @property
    def status(self) -> ClaimStatus:
        """The state. Only invoices are held, but a line can be imported as `on_hold`: it counts as new."""
        return "new" if self.claim_status == "on_hold" else self.claim_status


class InvoiceState(Struct, frozen=True, kw_only=True):
    """What decides the state of an invoice. `lines` has deleted lines too.

    `imported_status` is the state that an import gave an invoice without giving it to the lines, which aren't claimed
    therefore; null if the state follows from the lines. A hold, a release and an exclusion from claims keep it.
    """

    id: UUID
    is_held: bool = False
    is_cancelled: bool = False
    is_deleted: bool = False
    wont_claim: bool = False
    approval_status: ApprovalStatus = "not_required"
    lines: tuple[LineState, ...] = ()
    imported_status: ClaimStatus | None = None

    @property
    def active_lines(self) -> list[LineState]:
        """The lines that aren't deleted."""
        return [each for each in self.lines if not each.is_deleted]


class Lock(NamedTuple):
    """Why a line can't be changed: a claim batch or a payment run with its number, or the state of the line."""

    kind: Literal["batch", "run", "state"]
    name: str


class LineAmount(Struct, frozen=True, kw_only=True):
    """The price of a line without tax, in dollars: as stated, else quantity times unit price, else null.

    `locked_amount` is what a locked line costs with tax; null if it isn't locked.
    """

    id: UUID
    total_price: Decimal | None
    gst_code: GstCode = "P2"
    locked_amount: Decimal | None = None
    is_deleted: bool = False


class InvoiceAmounts(Struct, frozen=True, kw_only=True):
    """The amounts of an invoice, in dollars, and its lines in their order.

    `has_wrong_total`: the totals don't add up, whatever the level of the warning `check_total` is.
    """

    total: Decimal | None
    tax: Decimal | None
    subtotal: Decimal | None
    lines: tuple[LineAmount, ...]
    has_wrong_total: bool = False


def roll_up(invoice: InvoiceState) -> ClaimStatus:
    """The state of an invoice: the first row of the table that holds. Deleted lines don't count."""
    statuses = {each.status for each in invoice.active_lines}
    if not statuses and invoice.is_cancelled:
        return "cancelled"
    live = statuses - {"cancelled"}
    is_part_paid = any(each.status == "pending" and each.has_payment for each in invoice.active_lines)
    rows: tuple[tuple[ClaimStatus, bool], ...] = (
        ("cancelled", statuses == {"cancelled"}),
        ("paid", live == {"paid"}),
        ("on_hold", invoice.is_held),
        ("partially_paid", bool(live & {"paid", "partially_paid"}) or is_part_paid),
        ("payment_ready", live == {"payment_ready"}),
        ("partially_ready", bool(live & {"payment_ready", "partially_ready"})),
        ("pending", "pending" in live),
        ("rejected", live == {"rejected"}),
        ("flagged", "flagged" in live),
    )
    for status, holds in rows:
        if holds:
            return status
    return "new"


def current_status(invoice: InvoiceState) -> ClaimStatus:
    """The state that was imported, else the one that follows from the lines."""
    return invoice.imported_status or roll_up(invoice)


def with_imported_status(invoice: InvoiceState, claim_status: ClaimStatus) -> InvoiceState:
    """An invoice that is stored in this state, which doesn't follow from its lines if it was imported."""
    settled = settled_status(claim_status, invoice.lines)
    return invoice if settled == roll_up(invoice) else replace(invoice, imported_status=settled)


def waiting_line_status(claim_status: ClaimStatus, lines: Iterable[LineState]) -> WaitingLineStatus | None:
    """The state of the lines of an invoice that wait for somebody: rejected before flagged before new; null for none.

    `claim_status` is that of the invoice. It counts too, because an import can store one that its lines don't have:
    new lines of an invoice that was imported as claimed or paid wait for nobody.
    """
    if claim_status == "cancelled":
        return None
    statuses = {each.status for each in lines if not each.is_deleted}
    if "rejected" in statuses or claim_status == "rejected":
        return "rejected"
    if "flagged" in statuses or claim_status == "flagged":
        return "flagged"
    is_partly_claimed = "new" in statuses and not statuses.isdisjoint(LOCKED_STATUSES)
    return "new" if claim_status == "new" or is_partly_claimed else None


def settled_status(claim_status: ClaimStatus, lines: Iterable[LineState]) -> ClaimStatus | None:
    """The state of an invoice that isn't held and has no line that waits for somebody; null for any other invoice.

    A new or flagged line of such an invoice was imported so, and isn't claimed.
    """
    is_settled = claim_status != "on_hold" and waiting_line_status(claim_status, lines) is None
    return claim_status if is_settled else None


def next_status(line: LineState, cause: Cause) -> ClaimStatus:
    """The state of a line after a cause. Raises `invalid_transition` and `invoice_locked`."""
    invalid = f"Line {line.number} is {_words(line.status)}, so it can't be {_VERBS[cause]}."
    if line.is_deleted:
        raise _invalid(line.invoice_id, f"Line {line.number} is deleted, so it can't be {_VERBS[cause]}.")
    _require_free(line, cause)
    if cause == "claim_rest" and line.is_rest_waiting:
        detail = f"Line {line.number} is {_words(line.status)}, and its rest already waits for a claim batch."
        raise _invalid(line.invoice_id, detail)
    # The rest of a partially paid line is claimed only if somebody has asked for it, and a rejected one is in a draft.
    is_claimable = line.claim_batch is not None if line.status == "rejected" else line.is_rest_waiting
    if cause == "submit_batch" and line.status in ("rejected", *_PART_STATUSES) and not is_claimable:
        raise _invalid(line.invoice_id, invalid)
    if line.status in UNCHANGED.get(cause, ()):
        return line.status
    targets: list[ClaimStatus] = [
        each.target for each in TRANSITIONS if (each.source, each.cause) == (line.status, cause)
    ]
    if not targets:
        raise _invalid(line.invoice_id, invalid)
    if len(targets) == 1 or not (line.has_payment or has_agency_paid(line)):
        return targets[0]
    return "partially_paid" if line.has_payment else "partially_ready"


def move_line(invoice: InvoiceState, line_id: UUID, cause: Cause) -> InvoiceState:
    """The invoice after a cause has acted on one line. Raises NotFound and what `next_status` raises."""
    line = next((each for each in invoice.lines if each.id == line_id), None)
    if line is None:
        raise NotFound(ErrorResource("line_item", str(line_id)))
    moved = move(line, cause)
    return _with_lines(invoice, (moved if each is line else each for each in invoice.lines))


def move(line: LineState, cause: Cause) -> LineState:
    """A line after a cause has acted on it. Raises what `next_status` raises."""
    status = next_status(line, cause)
    is_rest_waiting = cause == "claim_rest" or (line.is_rest_waiting and status in _PART_STATUSES)
    return replace(line, claim_status=status, is_rest_waiting=is_rest_waiting)


def change_lines(invoice: InvoiceState, changed: Collection[UUID] = ()) -> InvoiceState:
    """The invoice after a change of it and of the lines with these ids. Raises what `next_status` raises.

    Flagged lines are new again, unless a batch locks them, and so are the rejected ones among the changed lines.
    """
    return _renew_lines(invoice, "change", changed)


def resolve_lines(invoice: InvoiceState) -> InvoiceState:
    """The invoice after what kept it out of claims has ended: flagged lines are new, unless a batch locks them."""
    return _renew_lines(invoice, "resolve")


def _renew_lines(invoice: InvoiceState, cause: Cause, changed: Collection[UUID] = ()) -> InvoiceState:
    return _with_lines(
        invoice,
        (
            replace(each, claim_status=next_status(each, cause))
            if not each.is_deleted and (each.id in changed or (each.status == "flagged" and find_lock(each) is None))
            else each
            for each in invoice.lines
        ),
    )


def act_on_invoice(invoice: InvoiceState, action: InvoiceAction) -> InvoiceState:
    """The invoice after an action of a person. Raises `invalid_transition` and `invoice_locked`."""
    if invoice.is_deleted:
        raise _invalid(invoice.id, f"The invoice is deleted, so it can't be {_VERBS[action]}.")
    match action:
        case "hold":
            _require(invoice, not invoice.is_held and current_status(invoice) not in ("paid", "cancelled"), action)
            return replace(invoice, is_held=True)
        case "release":
            _require(invoice, invoice.is_held, action)
            return replace(invoice, is_held=False, lines=tuple(map(_release, invoice.lines)))
        case "cancel":
            _require_unclaimed(invoice, action)
            return _with_lines(replace(invoice, is_cancelled=True), map(_cancel, invoice.lines))
        case "wont_claim":
            _require_unclaimed(invoice, action)
            return replace(invoice, wont_claim=True)
        case "reopen":
            return _reopen(invoice)
        case "request_approval" | "approve" | "reject":
            return replace(invoice, approval_status=_next_approval(invoice, action))


def find_lock(line: LineState) -> Lock | None:
    """Why a line is locked. A deleted line isn't."""
    if line.is_deleted:
        return None
    if line.claim_batch is not None:
        return Lock("batch", line.claim_batch)
    if line.payment_run is not None:
        return Lock("run", line.payment_run)
    return Lock("state", line.status) if line.status in LOCKED_STATUSES else None


def require_unlocked(invoice: InvoiceState, fields: Iterable[str] = (), line_ids: Collection[UUID] = ()) -> None:
    """Raise `invoice_locked` if a changed field of the invoice, or a changed or deleted line, is locked.

    `fields` can have fields that are never locked. For totals, see `require_matching_totals`.
    """
    names = ", ".join(sorted(LOCKED_FIELDS.intersection(fields)))
    for line in invoice.lines:
        lock = find_lock(line)
        if lock is not None and line.id in line_ids:
            raise _locked(line, lock, "it can't be changed or deleted")
        if lock is not None and names:
            raise _locked(line, lock, f"these fields of the invoice can't be changed: {names}")


def require_matching_totals(invoice: InvoiceState, before: InvoiceAmounts, after: InvoiceAmounts) -> None:
    """Raise `invoice_locked` if a line is locked, and a total changes by another amount than the lines do.

    Call `require_unlocked` first: then only lines that aren't locked differ.
    """
    locks = [(line, lock) for line in invoice.lines if (lock := find_lock(line)) is not None]
    if not locks:
        return
    subtotal = _sum_of_prices(after) - _sum_of_prices(before)
    # If the tax of the invoice isn't that of its lines, no line has the difference.
    sum_of_taxes = _sum_of_taxes if before.tax == _sum_of_taxes(before) else _sum_of_rounded_taxes
    tax = sum_of_taxes(after) - sum_of_taxes(before)
    for name, old, new, difference in (
        ("subtotal", before.subtotal, after.subtotal, subtotal),
        ("tax", before.tax, after.tax, tax),
        ("total", before.total, after.total, subtotal + tax),
    ):
        if old != new and (old is None or new is None or new - old != difference):
            raise _locked(*locks[0], f"{name} can change only by as much as the lines do, which is {difference:.2f}")


def has_agency_paid(line: LineState) -> bool:
    """Whether the agency has paid for a line, and hasn't reversed all of it."""
    return line.status in LOCKED_STATUSES - {"pending"} or (line.paid_amount or 0) > 0


def approval_after_change(status: ApprovalStatus, fields: Iterable[str], *, is_required: bool) -> ApprovalStatus:
    """The approval of an invoice after a change of these fields; `line_items` stands for a change of any line.

    `is_required`: the participant that the invoice now has requires approval.
    """
    changed = APPROVED_FIELDS.intersection(fields)
    is_new_requirement = status == "not_required" and is_required and "participant_id" in changed
    return "pending" if is_new_requirement or (status == "approved" and changed) else status


def line_amounts(invoice: InvoiceAmounts) -> dict[UUID, Decimal | None]:
    """The amount of each line that isn't deleted, in dollars to the cent; null for a line without a price.

    A `P1` line costs a tenth more. Providers round the tax of the whole invoice, so a difference of up to a cent for
    each `P1` line goes to the last of them that isn't locked, unless the totals don't add up. What a locked line costs
    never changes, because it was claimed for that.
    """
    lines = [each for each in invoice.lines if not each.is_deleted]
    amounts = {
        each.id: None if each.total_price is None else to_cents(each.total_price) + _line_tax(each) for each in lines
    }
    taxed = [each for each in lines if each.gst_code == "P1" and each.total_price is not None]
    free = [each.id for each in taxed if each.locked_amount is None]
    if not free or invoice.tax is None or invoice.has_wrong_total:
        return amounts
    difference = invoice.tax - sum(map(_line_tax, taxed), Decimal(0))
    if abs(difference) <= CENT * len(taxed):
        amounts[free[-1]] = to_cents((amounts[free[-1]] or Decimal(0)) + difference)
    return amounts


def _require_free(line: LineState, cause: Cause) -> None:
    """Raise `invoice_locked` if the batch, the run or the state of a line prevents a cause."""
    if cause in _RUN_CAUSES and line.payment_run is not None:
        raise _locked(line, Lock("run", line.payment_run), f"it can't be {_VERBS[cause]}")
    lock = find_lock(line)
    if lock is None or cause not in _STAFF_CAUSES:
        return
    is_change = cause in ("change", "split") or (cause == "cancel" and line.status == "pending")
    if lock.kind != "state" or is_change:
        raise _locked(line, lock, f"it can't be {_VERBS[cause]}")


def _with_lines(invoice: InvoiceState, lines: Iterable[LineState]) -> InvoiceState:
    """The invoice with other lines. It is no longer cancelled if one of them is open."""
    changed = replace(invoice, lines=tuple(lines), imported_status=None)
    return replace(changed, is_cancelled=invoice.is_cancelled and roll_up(changed) == "cancelled")


def _require(invoice: InvoiceState, holds: bool, action: InvoiceAction) -> None:
    if not holds:
        detail = f"The invoice is {_words(current_status(invoice))}, so it can't be {_VERBS[action]}."
        raise _invalid(invoice.id, detail)


def _require_unclaimed(invoice: InvoiceState, action: Literal["cancel", "wont_claim"]) -> None:
    for line in invoice.active_lines:
        lock = find_lock(line)
        if lock is not None and (lock.kind != "state" or line.status == "pending"):
            raise _locked(line, lock, f"the invoice can't be {_VERBS[action]}")
    _require(invoice, not any(map(has_agency_paid, invoice.active_lines)), action)
    _require(invoice, current_status(invoice) != "cancelled", action)
    if action == "wont_claim" and invoice.wont_claim:
        detail = f"The invoice is {_words(current_status(invoice))}, and is already excluded from claims."
        raise _invalid(invoice.id, detail)


def _cancel(line: LineState) -> LineState:
    is_open = not line.is_deleted and line.status != "cancelled"
    return replace(line, claim_status=next_status(line, "cancel")) if is_open else line


def _release(line: LineState) -> LineState:
    """A line that was imported as on hold is new from now on."""
    return replace(line, claim_status="new") if line.claim_status == "on_hold" and not line.is_deleted else line


def _reopen(invoice: InvoiceState) -> InvoiceState:
    """Reopen the cancelled lines and clear `wont_claim`.

    If the invoice isn't cancelled, but won't be claimed, its cancelled lines stay so: they have a reason of their own,
    such as a line that was billed twice.
    """
    is_cancelled = current_status(invoice) == "cancelled"
    if invoice.wont_claim and not is_cancelled:
        return replace(invoice, wont_claim=False)
    _require(invoice, is_cancelled or any(each.status == "cancelled" for each in invoice.active_lines), "reopen")
    lines = (
        replace(each, claim_status="new") if each.status == "cancelled" and not each.is_deleted else each
        for each in invoice.lines
    )
    return replace(invoice, is_cancelled=False, wont_claim=False, lines=tuple(lines), imported_status=None)


def _next_approval(invoice: InvoiceState, action: ApprovalAction) -> ApprovalStatus:
    for each in APPROVAL_TRANSITIONS:
        if (each.source, each.cause) == (invoice.approval_status, action):
            return each.target
    status = _words(invoice.approval_status)
    raise _invalid(invoice.id, f"The invoice's approval is {status}, so the invoice can't be {_VERBS[action]}.")


def _sum_of_prices(invoice: InvoiceAmounts) -> Decimal:
    return sum((each.total_price or Decimal(0) for each in invoice.lines if not each.is_deleted), Decimal(0))


def _sum_of_taxes(invoice: InvoiceAmounts) -> Decimal:
    """The difference between the amounts of the lines and their prices."""
    prices = (to_cents(each.total_price or Decimal(0)) for each in invoice.lines if not each.is_deleted)
    return sum((each or Decimal(0) for each in line_amounts(invoice).values()), Decimal(0)) - sum(prices, Decimal(0))


def _sum_of_rounded_taxes(invoice: InvoiceAmounts) -> Decimal:
    return sum((_line_tax(each) for each in invoice.lines if not each.is_deleted), Decimal(0))


def _line_tax(line: LineAmount) -> Decimal:
    """The tax of a locked line, else its tax without the difference that the last line can have."""
    price = line.total_price or Decimal(0)
    if line.locked_amount is not None:
        return line.locked_amount - to_cents(price)
    return to_cents(price / 10) if line.gst_code == "P1" else Decimal(0)


def _invalid(invoice_id: UUID, detail: str) -> DomainError:
    return DomainError("invalid_transition", detail, resource=ErrorResource("invoice", str(invoice_id)))


def _locked(line: LineState, lock: Lock, consequence: str) -> DomainError:
    places = {"batch": f"in claim batch {lock.name}", "run": f"in payment run {lock.name}", "state": _words(lock.name)}
    detail = f"Line {line.number} is {places[lock.kind]}, so {consequence}."
    return DomainError("invoice_locked", detail, resource=ErrorResource("invoice", str(line.invoice_id)))


def _words(status: str) -> str:
    return status.replace("_", " ")
