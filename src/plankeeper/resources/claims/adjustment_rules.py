"""What is to be recovered after reversals, without input or output. Amounts are in dollars."""

from decimal import Decimal

from msgspec import Struct

from plankeeper.core.errors import FieldError
from plankeeper.resources.claims.adjustment_schemas import AdjustmentKind
from plankeeper.resources.claims.amounts import find_amount_error
from plankeeper.resources.invoices.states import Cause

ZERO = Decimal(0)


class LineMoney(Struct, frozen=True):
    """The money of a line: what the agency has paid less reversals, what the payee has got, and the adjustments.

    `reversed_paid_out` is what the payee had got of the reversals, each when it was recorded: see `paid_out_part`.
    """

    paid: Decimal = ZERO
    paid_out: Decimal = ZERO
    reversed: Decimal = ZERO
    refunded: Decimal = ZERO
    repaid: Decimal = ZERO
    reversed_paid_out: Decimal = ZERO

    @property
    def net_paid_out(self) -> Decimal:
        """What the payee has got and not returned."""
        return max(ZERO, self.paid_out - self.refunded)

    @property
    def to_recover(self) -> Decimal:
        """What the payee has got and not returned, beyond what the agency still pays for."""
        return max(ZERO, self.net_paid_out - self.paid) if self.reversed else ZERO

    @property
    def to_repay(self) -> Decimal:
        """What the agency has taken back of the money that was paid out, and hasn't got."""
        return max(ZERO, self.reversed_paid_out - self.repaid) if self.paid_out else ZERO


def find_error(kind: AdjustmentKind, amount: Decimal, money: LineMoney) -> FieldError | None:
    """The error of the amount of an adjustment: never more than there is."""
    if error := find_amount_error(amount):
        return error
    limit, what = {
        "agency_reversal": (money.paid, "the agency has paid for the line"),
        "provider_refund": (money.net_paid_out, "the payee has been paid for the line"),
        "repaid_to_agency": (
            money.paid + money.reversed - money.repaid,
            "the agency has paid for the line and not been repaid",
        ),
    }[kind]
    if amount <= limit:
        return None
    return FieldError("amount", f"must be at most what {what}: {max(ZERO, limit):.2f}", "too_large")


def paid_out_part(money: LineMoney, amount: Decimal) -> Decimal:
    """What the payee has got of a reversal, beyond what the agency pays for after it.

    Refunds of earlier reversals don't count as got. A refund that came before its reversal does: it is to be repaid.
    """
    before = money.paid_out - min(money.refunded, money.reversed) - money.paid
    return max(ZERO, before + amount) - max(ZERO, before)


def reversal_cause(money: LineMoney, amount: Decimal) -> Cause:
    """`reverse_rest`: what the agency still pays for isn't more than what the payee has, so nothing is due.

    A line that was paid out stays paid: `reverse_all` is only for one of which the payee has got nothing.
    """
    if amount == money.paid and not money.paid_out:
        return "reverse_all"
    return "reverse_rest" if money.paid - amount <= money.net_paid_out else "reverse_part"
